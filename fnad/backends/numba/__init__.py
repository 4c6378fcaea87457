"""The Numba backend: kernels compiled to native code, and the runtime that they call."""
