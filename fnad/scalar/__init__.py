"""Scalar operations: one table of what the scalar expressions of primitives and kernels may call."""
