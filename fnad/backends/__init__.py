"""Executors of programs: the NumPy interpreter, native code for the CPU, and the choice between them."""
