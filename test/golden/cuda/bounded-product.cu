// dot kernel; [1] 64x64 by 64x64, 1x4 a register tile, k in 16 slices, k < scalars[0], of m < scalars[0] only
// in0: f32[64,64], in1: f32[64,64], out0: f32[64,64]
// 540672 flops, 49152 bytes

namespace dot_0_module {

__device__ __forceinline__ int max_i32(int a, int b) {
  return a < b ? b : a;
}

__device__ __forceinline__ int min_i32(int a, int b) {
  return a < b ? a : b;
}

__device__ __forceinline__ float4 float4_of(float x) {
  return float4{x, x, x, x};
}

__device__ __forceinline__ float4 load_f32x4(const float *from) {
  return *reinterpret_cast<const float4 *>(from);
}

__device__ __forceinline__ float4 fma_f32x4(float4 a, float4 b, float4 c) {
  return float4{fmaf(a.x, b.x, c.x), fmaf(a.y, b.y, c.y), fmaf(a.z, b.z, c.z), fmaf(a.w, b.w, c.w)};
}

__device__ __forceinline__ void store_f32x4(float *to, float4 value) {
  *reinterpret_cast<float4 *>(to) = value;
}

__device__ __forceinline__ float4 operator+(float4 a, float4 b) {
  return float4{a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
}

extern "C" __global__ void __launch_bounds__(256)
dot_0(
    const float *__restrict__ in0,
    const float *__restrict__ in1,
    float *out0,
    const unsigned *__restrict__ scalars) {
  __shared__ __align__(16) float sums_of_slices[1024];
  const int group = int(blockIdx.x);
  const int max_ = max_i32(int(scalars[0]), 0);
  const int min_ = min_i32(max_, 64);
  const bool is_needed = group < min_;
  if (is_needed) {
    const int first_quad = int(threadIdx.x);
    const int end_quad = min_i32(((min_ + 3) >> 2), 16);
    float4 sum_0_0 = float4_of(0.0f);
    const int idx = group * 64;
    for (int k = int(threadIdx.y); k < min_; k += 16) {
      const bool lt = k < int(scalars[0]);
      const int idx_1 = idx + k;
      const float x0 = in0[idx_1];
      const float where = lt ? x0 : 0.0f;
      const int idx_2 = k * 16;
      const int idx_3 = first_quad + idx_2;
      const float4 x1 = load_f32x4(in1 + idx_3 * 4);
      const float4 where_1 = lt ? x1 : float4_of(0.0f);
      sum_0_0 = fma_f32x4(float4_of(where), where_1, sum_0_0);
    }
    const int slot = (int(threadIdx.y) * 16 + int(threadIdx.x)) * 4;
    store_f32x4(sums_of_slices + slot, sum_0_0);
    __syncthreads();
    if (int(threadIdx.y) < 8) {
      const int other = int(threadIdx.y) + 8;
      const int slot_1 = (other * 16 + int(threadIdx.x)) * 4;
      sum_0_0 = sum_0_0 + load_f32x4(sums_of_slices + slot_1);
      store_f32x4(sums_of_slices + slot, sum_0_0);
    }
    __syncthreads();
    if (int(threadIdx.y) < 4) {
      const int other_1 = int(threadIdx.y) + 4;
      const int slot_2 = (other_1 * 16 + int(threadIdx.x)) * 4;
      sum_0_0 = sum_0_0 + load_f32x4(sums_of_slices + slot_2);
      store_f32x4(sums_of_slices + slot, sum_0_0);
    }
    __syncthreads();
    if (int(threadIdx.y) < 2) {
      const int other_2 = int(threadIdx.y) + 2;
      const int slot_3 = (other_2 * 16 + int(threadIdx.x)) * 4;
      sum_0_0 = sum_0_0 + load_f32x4(sums_of_slices + slot_3);
      store_f32x4(sums_of_slices + slot, sum_0_0);
    }
    __syncthreads();
    if (int(threadIdx.y) < 1) {
      const int other_3 = int(threadIdx.y) + 1;
      const int slot_4 = (other_3 * 16 + int(threadIdx.x)) * 4;
      sum_0_0 = sum_0_0 + load_f32x4(sums_of_slices + slot_4);
    }
    if (int(threadIdx.y) < 1) {
      const float4 result = sum_0_0;
      const int idx_4 = group * 16;
      const int idx_5 = idx_4 + first_quad;
      store_f32x4(out0 + idx_5 * 4, result);
    }
  }
}

}
