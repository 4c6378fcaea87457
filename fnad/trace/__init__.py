"""Tracing: the user's NumPy function, run once on traced values, becomes a program."""
