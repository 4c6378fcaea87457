"""The backend for the CPU: kernels to native code by llvmlite, and the executor that runs it on NumPy arrays."""
