// dot kernel; [1] 512x512 by 512x512, 32x32x32 tiles in workgroup memory, 4x4 an invocation
// in0: f32[512,512], in1: f32[512,512], in2: f32[512], out0: f32[512,512]
// 268959744 flops, 3147776 bytes

namespace dot_max_0_module {

__device__ __forceinline__ float4 float4_of(float x) {
  return float4{x, x, x, x};
}

__device__ __forceinline__ float4 load_f32x4(const float *from) {
  return *reinterpret_cast<const float4 *>(from);
}

__device__ __forceinline__ void store_f32x4(float *to, float4 value) {
  *reinterpret_cast<float4 *>(to) = value;
}

__device__ __forceinline__ float4 fma_f32x4(float4 a, float4 b, float4 c) {
  return float4{fmaf(a.x, b.x, c.x), fmaf(a.y, b.y, c.y), fmaf(a.z, b.z, c.z), fmaf(a.w, b.w, c.w)};
}

__device__ __forceinline__ float4 operator+(float4 a, float4 b) {
  return float4{a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
}

__device__ __forceinline__ float max_f32(float a, float b) {
#if __CUDA_ARCH__ >= 800 && !defined(SINTER_HOST)
  float x;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(x) : "f"(a), "f"(b));
  return x;
#else
  return a != a || b != b ? a + b : fmaxf(a, b);
#endif
}

__device__ __forceinline__ float4 max_f32x4(float4 a, float4 b) {
  return float4{max_f32(a.x, b.x), max_f32(a.y, b.y), max_f32(a.z, b.z), max_f32(a.w, b.w)};
}

extern "C" __global__ void __launch_bounds__(64)
dot_max_0(
    const float *__restrict__ in0,
    const float *__restrict__ in1,
    const float *__restrict__ in2,
    float *out0) {
  __shared__ __align__(16) float tile_lhs[1024];
  __shared__ __align__(16) float tile_rhs[1024];
  const int local = int(threadIdx.y) * 8 + int(threadIdx.x);
  const int first_m = int(blockIdx.y) * 32;
  const int first_n = int(blockIdx.x) * 32;
  float4 sum_0_0 = float4_of(0.0f);
  float4 sum_1_0 = float4_of(0.0f);
  float4 sum_2_0 = float4_of(0.0f);
  float4 sum_3_0 = float4_of(0.0f);
  const int row = local >> 3;
  const int column = local & 7;
  const int at = first_m + row * 4;
  const int idx = at * 128;
  const int at_1 = first_m + (row * 4 + 1);
  const int idx_2 = at_1 * 128;
  const int at_2 = first_m + (row * 4 + 2);
  const int idx_4 = at_2 * 128;
  const int at_3 = first_m + (row * 4 + 3);
  const int idx_6 = at_3 * 128;
  const int quad = (first_n >> 2) + column;
  const int unit = local + 64;
  const int line = unit >> 3;
  const int place = unit & 7;
  const int quad_1 = (first_n >> 2) + place;
  const int unit_1 = local + 128;
  const int line_1 = unit_1 >> 3;
  const int place_1 = unit_1 & 7;
  const int quad_2 = (first_n >> 2) + place_1;
  const int unit_2 = local + 192;
  const int line_2 = unit_2 >> 3;
  const int place_2 = unit_2 & 7;
  const int quad_3 = (first_n >> 2) + place_2;
  for (int k0 = 0; k0 < 512; k0 += 32) {
    const int kquad = (k0 >> 2) + column;
    const int idx_1 = idx + kquad;
    const float4 x0 = load_f32x4(in0 + idx_1 * 4);
    const int idx_3 = idx_2 + kquad;
    const float4 x0_1 = load_f32x4(in0 + idx_3 * 4);
    const int idx_5 = idx_4 + kquad;
    const float4 x0_2 = load_f32x4(in0 + idx_5 * 4);
    const int idx_7 = idx_6 + kquad;
    const float4 x0_3 = load_f32x4(in0 + idx_7 * 4);
    store_f32x4(tile_lhs + (column * 4 * 8 + row) * 4, float4{x0.x, x0_1.x, x0_2.x, x0_3.x});
    store_f32x4(tile_lhs + ((column * 4 + 1) * 8 + row) * 4, float4{x0.y, x0_1.y, x0_2.y, x0_3.y});
    store_f32x4(tile_lhs + ((column * 4 + 2) * 8 + row) * 4, float4{x0.z, x0_1.z, x0_2.z, x0_3.z});
    store_f32x4(tile_lhs + ((column * 4 + 3) * 8 + row) * 4, float4{x0.w, x0_1.w, x0_2.w, x0_3.w});
    const int k = k0 + row;
    const int idx_8 = k * 128;
    const int idx_9 = quad + idx_8;
    const float4 x1 = load_f32x4(in1 + idx_9 * 4);
    store_f32x4(tile_rhs + (row * 8 + column) * 4, x1);
    const int k_1 = k0 + line;
    const int idx_10 = k_1 * 128;
    const int idx_11 = quad_1 + idx_10;
    const float4 x1_1 = load_f32x4(in1 + idx_11 * 4);
    store_f32x4(tile_rhs + (line * 8 + place) * 4, x1_1);
    const int k_2 = k0 + line_1;
    const int idx_12 = k_2 * 128;
    const int idx_13 = quad_2 + idx_12;
    const float4 x1_2 = load_f32x4(in1 + idx_13 * 4);
    store_f32x4(tile_rhs + (line_1 * 8 + place_1) * 4, x1_2);
    const int k_3 = k0 + line_2;
    const int idx_14 = k_3 * 128;
    const int idx_15 = quad_3 + idx_14;
    const float4 x1_3 = load_f32x4(in1 + idx_15 * 4);
    store_f32x4(tile_rhs + (line_2 * 8 + place_2) * 4, x1_3);
    __syncthreads();
    for (int kk = 0; kk < 32; kk += 4) {
      const float4 lhs = load_f32x4(tile_lhs + (kk * 32 + int(threadIdx.y) * 4));
      const float4 rhs = load_f32x4(tile_rhs + (kk * 32 + int(threadIdx.x) * 4));
      sum_0_0 = fma_f32x4(float4_of(lhs.x), rhs, sum_0_0);
      sum_1_0 = fma_f32x4(float4_of(lhs.y), rhs, sum_1_0);
      sum_2_0 = fma_f32x4(float4_of(lhs.z), rhs, sum_2_0);
      sum_3_0 = fma_f32x4(float4_of(lhs.w), rhs, sum_3_0);
      const float4 lhs_1 = load_f32x4(tile_lhs + ((kk + 1) * 32 + int(threadIdx.y) * 4));
      const float4 rhs_1 = load_f32x4(tile_rhs + ((kk + 1) * 32 + int(threadIdx.x) * 4));
      sum_0_0 = fma_f32x4(float4_of(lhs_1.x), rhs_1, sum_0_0);
      sum_1_0 = fma_f32x4(float4_of(lhs_1.y), rhs_1, sum_1_0);
      sum_2_0 = fma_f32x4(float4_of(lhs_1.z), rhs_1, sum_2_0);
      sum_3_0 = fma_f32x4(float4_of(lhs_1.w), rhs_1, sum_3_0);
      const float4 lhs_2 = load_f32x4(tile_lhs + ((kk + 2) * 32 + int(threadIdx.y) * 4));
      const float4 rhs_2 = load_f32x4(tile_rhs + ((kk + 2) * 32 + int(threadIdx.x) * 4));
      sum_0_0 = fma_f32x4(float4_of(lhs_2.x), rhs_2, sum_0_0);
      sum_1_0 = fma_f32x4(float4_of(lhs_2.y), rhs_2, sum_1_0);
      sum_2_0 = fma_f32x4(float4_of(lhs_2.z), rhs_2, sum_2_0);
      sum_3_0 = fma_f32x4(float4_of(lhs_2.w), rhs_2, sum_3_0);
      const float4 lhs_3 = load_f32x4(tile_lhs + ((kk + 3) * 32 + int(threadIdx.y) * 4));
      const float4 rhs_3 = load_f32x4(tile_rhs + ((kk + 3) * 32 + int(threadIdx.x) * 4));
      sum_0_0 = fma_f32x4(float4_of(lhs_3.x), rhs_3, sum_0_0);
      sum_1_0 = fma_f32x4(float4_of(lhs_3.y), rhs_3, sum_1_0);
      sum_2_0 = fma_f32x4(float4_of(lhs_3.z), rhs_3, sum_2_0);
      sum_3_0 = fma_f32x4(float4_of(lhs_3.w), rhs_3, sum_3_0);
    }
    __syncthreads();
  }
  const int quad_4 = int(blockIdx.x) * 8 + int(threadIdx.x);
  const int m = first_m + int(threadIdx.y) * 4;
  const float4 result = sum_0_0;
  const float4 x2 = load_f32x4(in2 + quad_4 * 4);
  const float4 add = result + x2;
  const float4 max_ = max_f32x4(add, float4_of(0.0f));
  const int idx_16 = m * 128 + quad_4;
  store_f32x4(out0 + idx_16 * 4, max_);
  const int m_1 = first_m + (int(threadIdx.y) * 4 + 1);
  const float4 result_1 = sum_1_0;
  const float4 add_1 = result_1 + x2;
  const float4 max_1 = max_f32x4(add_1, float4_of(0.0f));
  const int idx_17 = m_1 * 128 + quad_4;
  store_f32x4(out0 + idx_17 * 4, max_1);
  const int m_2 = first_m + (int(threadIdx.y) * 4 + 2);
  const float4 result_2 = sum_2_0;
  const float4 add_2 = result_2 + x2;
  const float4 max_2 = max_f32x4(add_2, float4_of(0.0f));
  const int idx_18 = m_2 * 128 + quad_4;
  store_f32x4(out0 + idx_18 * 4, max_2);
  const int m_3 = first_m + (int(threadIdx.y) * 4 + 3);
  const float4 result_3 = sum_3_0;
  const float4 add_3 = result_3 + x2;
  const float4 max_3 = max_f32x4(add_3, float4_of(0.0f));
  const int idx_19 = m_3 * 128 + quad_4;
  store_f32x4(out0 + idx_19 * 4, max_3);
}

}
