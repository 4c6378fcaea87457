"""The backend for NVIDIA's GPUs: kernels to PTX by llvmlite, and the executor that launches them on arrays of CuPy."""
