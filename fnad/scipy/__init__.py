"""SciPy's functions that traced values cannot reach through NumPy's protocols, under SciPy's module paths."""
