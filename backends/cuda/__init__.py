"""The cuda back end, its thin end: PTX from kernels, and an emulator that runs them on the host."""
