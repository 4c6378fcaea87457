"""Backends turn programs into executors: the NumPy interpreter, Numba, and the choice between them."""
