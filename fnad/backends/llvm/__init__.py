"""Kernels and scalar operations as LLVM instructions, for all targets of LLVM."""
