"""SciPy's solvers under their own names, in a trace."""
