"""Matrix products: packing, microkernels, and the kernels around them."""
