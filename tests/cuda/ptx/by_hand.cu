// Programs of the table in docs/gpu.md as one would write them by hand.
#include <math_constants.h>
__device__ inline float warp_sum(float v) { for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(~0u, v, d); return v; }
__device__ inline double warp_sum(double v) { for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(~0u, v, d); return v; }
__device__ inline float warp_max(float v) { for (int d = 16; d; d >>= 1) v = fmaxf(v, __shfl_xor_sync(~0u, v, d)); return v; }
template <class T> __device__ inline T block_sum(T v) {
    __shared__ T part[32]; v = warp_sum(v); int w = threadIdx.x / 32, l = threadIdx.x % 32;
    if (!l) part[w] = v; __syncthreads(); v = l < blockDim.x / 32 ? part[l] : T(0); v = warp_sum(v); __syncthreads(); return v; }
__device__ inline float block_max(float v) {
    __shared__ float part[32]; v = warp_max(v); int w = threadIdx.x / 32, l = threadIdx.x % 32;
    if (!l) part[w] = v; __syncthreads(); v = l < blockDim.x / 32 ? part[l] : -CUDART_INF_F; v = warp_max(v); __syncthreads(); return v; }
extern "C" {
__global__ void copy(const float4* __restrict__ x, float4* __restrict__ y, long n) {
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < n / 4; i += (long)gridDim.x * blockDim.x) y[i] = x[i]; }
__device__ inline float one(float x, float& g) { float s, c, e = expf(x); sincosf(x, &s, &c); g = e * (s + c); return s * e; }
__global__ void elements(const float4* __restrict__ x, float4* __restrict__ y, float* __restrict__ part, long n) {
    float t = 0;
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < n / 4; i += (long)gridDim.x * blockDim.x) {
        float4 v = x[i], g; t += one(v.x, g.x); t += one(v.y, g.y); t += one(v.z, g.z); t += one(v.w, g.w); y[i] = g; }
    t = block_sum(t); if (!threadIdx.x) part[blockIdx.x] = t; }
__global__ void elements_double(const double2* __restrict__ x, double2* __restrict__ y, double* __restrict__ part, long n) {
    double t = 0;
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < n / 2; i += (long)gridDim.x * blockDim.x) {
        double2 v = x[i], g; double s, c, e = exp(v.x); sincos(v.x, &s, &c); g.x = e * (s + c); t += s * e;
        e = exp(v.y); sincos(v.y, &s, &c); g.y = e * (s + c); t += s * e; y[i] = g; }
    t = block_sum(t); if (!threadIdx.x) part[blockIdx.x] = t; }
__global__ void sum(const float4* __restrict__ x, float* __restrict__ part, long n) {
    float t = 0;
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < n / 4; i += (long)gridDim.x * blockDim.x) { float4 v = x[i]; t += v.x + v.y + v.z + v.w; }
    t = block_sum(t); if (!threadIdx.x) part[blockIdx.x] = t; }
__global__ void columns(const float* __restrict__ x, float* __restrict__ y, int rows, int n) {  // part of the rows each
    int many = (n + blockDim.x - 1) / blockDim.x, column = blockIdx.x % many * blockDim.x + threadIdx.x, parts = gridDim.x / many;
    int first = (long)rows * (blockIdx.x / many) / parts, last = (long)rows * (blockIdx.x / many + 1) / parts;
    if (column < n) { float t = 0; for (int r = first; r < last; r++) t += x[(long)r * n + column]; y[blockIdx.x / many * n + column] = t; } }
__global__ void softmax(const float4* __restrict__ x, float4* __restrict__ y) {  // rows of 1000 in registers, 256 threads
    for (long r = blockIdx.x; r < 100000; r += gridDim.x) {
        bool in = threadIdx.x < 250; float4 v = in ? x[r * 250 + threadIdx.x] : make_float4(-CUDART_INF_F, -CUDART_INF_F, -CUDART_INF_F, -CUDART_INF_F);
        float m = block_max(fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)));
        v.x = expf(v.x - m); v.y = expf(v.y - m); v.z = expf(v.z - m); v.w = expf(v.w - m);
        float s = 1 / block_sum(v.x + v.y + v.z + v.w); v.x *= s; v.y *= s; v.z *= s; v.w *= s; if (in) y[r * 250 + threadIdx.x] = v; } }
__global__ void cross_entropy(const float4* __restrict__ x, const float4* __restrict__ t, float4* __restrict__ y, float4* __restrict__ z, float* __restrict__ part) {
    float total = 0;
    for (long r = blockIdx.x; r < 100000; r += gridDim.x) {
        bool in = threadIdx.x < 250; float4 v = in ? x[r * 250 + threadIdx.x] : make_float4(-CUDART_INF_F, -CUDART_INF_F, -CUDART_INF_F, -CUDART_INF_F);
        float4 l = in ? t[r * 250 + threadIdx.x] : make_float4(0, 0, 0, 0);
        float m = block_max(fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w))), d = block_sum(l.x + l.y + l.z + l.w);
        float4 e; e.x = expf(v.x - m); e.y = expf(v.y - m); e.z = expf(v.z - m); e.w = expf(v.w - m);
        float s = block_sum(e.x + e.y + e.z + e.w), q = logf(s); s = d / s;
        float4 g; g.x = (e.x * s - l.x) * 1e-5f; g.y = (e.y * s - l.y) * 1e-5f; g.z = (e.z * s - l.z) * 1e-5f; g.w = (e.w * s - l.w) * 1e-5f;
        if (in) { y[r * 250 + threadIdx.x] = g; total += l.x * (v.x - m - q) + l.y * (v.y - m - q) + l.z * (v.z - m - q) + l.w * (v.w - m - q); } }
    total = block_sum(total); if (!threadIdx.x) part[blockIdx.x] = total; }
__global__ void layer_norm(const float4* __restrict__ x, const float4* __restrict__ gain, const float4* __restrict__ bias, float4* __restrict__ y) {
    for (long r = blockIdx.x; r < 100000; r += gridDim.x) {
        bool in = threadIdx.x < 250; float4 v = in ? x[r * 250 + threadIdx.x] : make_float4(0, 0, 0, 0);
        float m = block_sum(v.x + v.y + v.z + v.w) / 1000;
        if (in) { v.x -= m; v.y -= m; v.z -= m; v.w -= m; }
        float s = rsqrtf(block_sum(v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w) / 1000 + 1e-5f);
        if (in) { float4 g = gain[threadIdx.x], b = bias[threadIdx.x];
            v.x = g.x * v.x * s + b.x; v.y = g.y * v.y * s + b.y; v.z = g.z * v.z * s + b.z; v.w = g.w * v.w * s + b.w; y[r * 250 + threadIdx.x] = v; } } }
__global__ void layer_norm_gradient(const float4* __restrict__ x, const float4* __restrict__ gain, const float4* __restrict__ dy, float4* __restrict__ dx, float4* __restrict__ pg, float4* __restrict__ pb) {
    float4 ag = make_float4(0, 0, 0, 0), ab = ag; bool in = threadIdx.x < 250; float4 g = in ? gain[threadIdx.x] : ag;
    for (long r = blockIdx.x; r < 100000; r += gridDim.x) {
        float4 v = in ? x[r * 250 + threadIdx.x] : make_float4(0, 0, 0, 0), d = in ? dy[r * 250 + threadIdx.x] : make_float4(0, 0, 0, 0);
        float m = block_sum(v.x + v.y + v.z + v.w) / 1000;
        if (in) { v.x -= m; v.y -= m; v.z -= m; v.w -= m; }
        float s = rsqrtf(block_sum(v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w) / 1000 + 1e-5f);
        v.x *= s; v.y *= s; v.z *= s; v.w *= s;
        ag.x += v.x * d.x; ag.y += v.y * d.y; ag.z += v.z * d.z; ag.w += v.w * d.w; ab.x += d.x; ab.y += d.y; ab.z += d.z; ab.w += d.w;
        d.x *= g.x; d.y *= g.y; d.z *= g.z; d.w *= g.w;
        float a = block_sum(d.x + d.y + d.z + d.w) / 1000, b = block_sum(d.x * v.x + d.y * v.y + d.z * v.z + d.w * v.w) / 1000;
        d.x = (d.x - a - v.x * b) * s; d.y = (d.y - a - v.y * b) * s; d.z = (d.z - a - v.z * b) * s; d.w = (d.w - a - v.w * b) * s;
        if (in) dx[r * 250 + threadIdx.x] = d; }
    if (in) { pg[blockIdx.x * 250 + threadIdx.x] = ag; pb[blockIdx.x * 250 + threadIdx.x] = ab; } }
}
