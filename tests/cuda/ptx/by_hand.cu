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
// the price and its slopes by the formulas of textbooks, in which s phi(d) = k exp(-rt) phi(d - spread)
__device__ inline float4 option(float s, float k, float t, float r, float v, float& rho, float& vega) {
    float root = sqrtf(t), spread = v * root, d = (logf(s / k) + (r + v * v / 2) * t) / spread, discount = expf(-r * t);
    float below = normcdff(d), exercised = discount * normcdff(d - spread), density = s * expf(-0.5f * d * d) * 0.3989422804f;
    float price = s * below - k * exercised; vega += density * root; rho += k * t * exercised;
    return make_float4(price, below, -exercised, density * v / (2 * root) + r * k * exercised); }
__global__ void black_scholes(const float2* __restrict__ s, const float2* __restrict__ k, const float2* __restrict__ t, float2* __restrict__ ds,
        float2* __restrict__ dk, float2* __restrict__ dt, float* __restrict__ part, const float* __restrict__ r, const float* __restrict__ v, long n) {
    float price = 0, rho = 0, vega = 0;
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < n / 2; i += (long)gridDim.x * blockDim.x) {
        float2 a = s[i], b = k[i], c = t[i];
        float4 p = option(a.x, b.x, c.x, *r, *v, rho, vega), q = option(a.y, b.y, c.y, *r, *v, rho, vega);
        price += p.x + q.x; ds[i] = make_float2(p.y, q.y); dk[i] = make_float2(p.z, q.z); dt[i] = make_float2(p.w, q.w); }
    price = block_sum(price); rho = block_sum(rho); vega = block_sum(vega);
    if (!threadIdx.x) { part[blockIdx.x] = price; part[gridDim.x + blockIdx.x] = rho; part[2 * gridDim.x + blockIdx.x] = vega; } }
// means and sums of squares of columns in one pass (Chan, Golub & LeVeque), of which each block has a part of the rows
__device__ inline void together(float& count, float& mean, float& squares, float k, float m, float q) {
    float all = count + k, d = m - mean, share = k / all; mean += d * share; squares += q + d * d * count * share; count = all; }
__global__ void moments(const float* __restrict__ x, float* __restrict__ means, float* __restrict__ sums, int rows, int n) {
    int many = (n + blockDim.x - 1) / blockDim.x, column = blockIdx.x % many * blockDim.x + threadIdx.x, parts = gridDim.x / many;
    int first = (long)rows * (blockIdx.x / many) / parts & ~7, last = (long)rows * (blockIdx.x / many + 1) / parts & ~7;
    if (column < n) { float count = 0, mean = 0, squares = 0;
        for (int r = first; r < last; r += 8) { float v[8], m = 0, q = 0;
            for (int j = 0; j < 8; j++) m += v[j] = x[(long)(r + j) * n + column];
            m /= 8; for (int j = 0; j < 8; j++) q += (v[j] - m) * (v[j] - m);
            together(count, mean, squares, 8, m, q); }
        means[blockIdx.x / many * n + column] = mean; sums[blockIdx.x / many * n + column] = squares; } }
__global__ void whole_moments(const float* __restrict__ means, const float* __restrict__ sums, float* __restrict__ mean, float* __restrict__ scale, int parts, int n) {
    __shared__ float found[3][32][32]; int l = threadIdx.x % 32, w = threadIdx.x / 32, column = blockIdx.x * 32 + l; float count = 0, m = 0, q = 0;
    if (column < n) for (int p = w; p < parts; p += 32) together(count, m, q, 1, means[p * n + column], sums[p * n + column]);
    found[0][w][l] = count; found[1][w][l] = m; found[2][w][l] = q; __syncthreads();
    if (!w && column < n) { for (int j = 1; j < 32; j++) together(count, m, q, found[0][j][l], found[1][j][l], found[2][j][l]);
        mean[column] = m; scale[column] = rsqrtf(q / 100000 + 1e-5f); } }
__global__ void normalized(const float4* __restrict__ x, const float4* __restrict__ mean, const float4* __restrict__ scale, float4* __restrict__ y) {
    if (threadIdx.x < 250) { float4 m = mean[threadIdx.x], s = scale[threadIdx.x];
        for (long r = blockIdx.x; r < 100000; r += gridDim.x) { float4 v = x[r * 250 + threadIdx.x];
            v.x = (v.x - m.x) * s.x; v.y = (v.y - m.y) * s.y; v.z = (v.z - m.z) * s.z; v.w = (v.w - m.w) * s.w; y[r * 250 + threadIdx.x] = v; } } }
// a running sum: of tiles of 16,384, then of their sums, then of the elements
__device__ inline float before(float v, float& whole) {  // the sum of the threads before, and of all
    __shared__ float part[32]; int w = threadIdx.x / 32, l = threadIdx.x % 32; float own = v, start = 0; whole = 0;
    for (int d = 1; d < 32; d <<= 1) { float u = __shfl_up_sync(~0u, v, d); if (l >= d) v += u; }
    if (l == 31) part[w] = v; __syncthreads();
    for (int j = 0; j < blockDim.x / 32; j++) { if (j == w) start = whole; whole += part[j]; } __syncthreads(); return start + v - own; }
__global__ void tiles(const float4* __restrict__ x, float* __restrict__ sums, long n) {
    float t = 0; for (int j = 0; j < 16; j++) { long i = blockIdx.x * 4096L + j * 256 + threadIdx.x; if (i < n / 4) { float4 v = x[i]; t += v.x + v.y + v.z + v.w; } }
    t = block_sum(t); if (!threadIdx.x) sums[blockIdx.x] = t; }
__global__ void starts(float* __restrict__ sums, int n) {
    float v[8], t = 0, whole; for (int j = 0; j < 8; j++) { int i = threadIdx.x * 8 + j; v[j] = i < n ? sums[i] : 0; t += v[j]; }
    float start = before(t, whole); for (int j = 0; j < 8; j++) { int i = threadIdx.x * 8 + j; if (i < n) sums[i] = start; start += v[j]; } }
__global__ void running(const float4* __restrict__ x, const float* __restrict__ starts, float4* __restrict__ y, long n) {
    float start = starts[blockIdx.x], whole;
    for (int j = 0; j < 16; j++) { long i = blockIdx.x * 4096L + j * 256 + threadIdx.x; bool in = i < n / 4;
        float4 v = in ? x[i] : make_float4(0, 0, 0, 0); v.y += v.x; v.z += v.y; v.w += v.z;
        float t = start + before(v.w, whole); v.x += t; v.y += t; v.z += t; v.w += t; if (in) y[i] = v; start += whole; } }
}
