"""Backends make executors of programs: the NumPy interpreter, Numba, and the choice between them."""
