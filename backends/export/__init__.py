"""Export: a plan as a shared library with a C header, without Python in it."""
