"""Scalar operations: the table of what scalar expressions of primitives and kernels may call."""
