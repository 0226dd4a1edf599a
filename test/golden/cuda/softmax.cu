// row-reduction kernel; 64 rows of 256, lanes along column, 64 invocations a row, kept in registers
// in0: f32[64,256], out0: f32[64,256]
// 245760 flops, 131072 bytes

namespace row_reduction_div_0_module {

__device__ __forceinline__ float4 load_f32x4(const float *from) {
  return *reinterpret_cast<const float4 *>(from);
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

__device__ __forceinline__ float warp_max_f32(float x) {
  for (int apart = 16; apart > 0; apart /= 2) {
    const float other = __shfl_xor_sync(0xffffffffu, x, apart);
    x = max_f32(x, other);
  }
  return x;
}

__device__ __forceinline__ float4 float4_of(float x) {
  return float4{x, x, x, x};
}

__device__ __forceinline__ float4 operator-(float4 a, float4 b) {
  return float4{a.x - b.x, a.y - b.y, a.z - b.z, a.w - b.w};
}

__device__ __forceinline__ float4 operator*(float4 a, float4 b) {
  return float4{a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w};
}

__device__ __forceinline__ float4 exp2_f32x4(float4 a) {
  return float4{exp2f(a.x), exp2f(a.y), exp2f(a.z), exp2f(a.w)};
}

__device__ __forceinline__ float warp_sum_f32(float x) {
  for (int apart = 16; apart > 0; apart /= 2) {
    const float other = __shfl_xor_sync(0xffffffffu, x, apart);
    x = x + other;
  }
  return x;
}

__device__ __forceinline__ void store_f32x4(float *to, float4 value) {
  *reinterpret_cast<float4 *>(to) = value;
}

extern "C" __global__ void __launch_bounds__(64)
row_reduction_div_0(const float *__restrict__ in0, float *out0) {
  __shared__ __align__(16) float partial_f32[128];
  const int unit = int(blockIdx.x);
  const int step = int(threadIdx.x);
  const int idx = unit * 64 + step;
  const float4 x0 = load_f32x4(in0 + idx * 4);
  const float max_ = max_f32(max_f32(x0.x, x0.y), max_f32(x0.z, x0.w));
  const float max_1 = warp_max_f32(max_);
  if (int(threadIdx.x & 31u) == 0) {
    const int slot = int(threadIdx.x >> 5);
    partial_f32[slot] = max_1;
  }
  __syncthreads();
  const int subgroups = 2;
  const float partial = partial_f32[0];
  float max_2 = partial;
  for (int other = 1; other < subgroups; other++) {
    const float partial_1 = partial_f32[other];
    max_2 = max_f32(max_2, partial_1);
  }
  const float max_3 = max_2;
  const float4 sub = x0 - float4_of(max_3);
  const float4 power = sub * float4_of(1.4426950216293335f);
  const float4 exp_ = exp2_f32x4(power);
  const float sum = exp_.x + exp_.y + (exp_.z + exp_.w);
  const float sum_1 = warp_sum_f32(sum);
  if (int(threadIdx.x & 31u) == 0) {
    const int slot_1 = int(threadIdx.x >> 5) + 64;
    partial_f32[slot_1] = sum_1;
  }
  __syncthreads();
  const float partial_2 = partial_f32[64];
  float sum_2 = partial_2;
  for (int other_1 = 1; other_1 < subgroups; other_1++) {
    const int slot_2 = other_1 + 64;
    const float partial_3 = partial_f32[slot_2];
    sum_2 = sum_2 + partial_3;
  }
  const float sum_3 = sum_2;
  const float share = 1.0f / sum_3;
  const float4 div = exp_ * float4_of(share);
  store_f32x4(out0 + idx * 4, div);
}

}
