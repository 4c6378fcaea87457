"""The typed kernel language below the loops: statements on scalars and flat arrays, shared by every target."""
