"""Kernels and scalar operations as LLVM instructions, as far as all targets of LLVM have them in common."""
