/* Name a handwritten digit with an exported model; no Python is running here.
 *
 * Reads 64 numbers from 0 to 16 (an 8x8 image), draws them and prints the model's prediction.
 * examples/export_digits.py makes the library and the header. */
#include <stdio.h>

#include "digits.h"

int main(void) {
    float image[64], probability[10];
    for (int k = 0; k < 64; k++) {
        if (scanf("%f", &image[k]) != 1 || !(image[k] >= 0 && image[k] <= 16)) {
            fprintf(stderr, "expected 64 numbers from 0 to 16, got %d\n", k);
            return 1;
        }
        putchar(" .:-=+*#@"[(int)(image[k] / 2)]);
        if (k % 8 == 7) putchar('\n');
        image[k] /= 16;
    }
    digits *model = digits_create();
    int code = digits_run(model, image, 1, probability, 10);
    digits_destroy(model);
    if (code) {
        fprintf(stderr, "%s\n", digits_error_message(code));
        return 1;
    }
    int best = 0;
    for (int k = 0; k < 10; k++) {
        if (probability[k] > probability[best]) best = k;
        printf("%d: %.9g\n", k, probability[k]);
    }
    printf("this is a %d\n", best);
    return 0;
}
