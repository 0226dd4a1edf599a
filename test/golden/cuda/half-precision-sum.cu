// map kernel; 1 x 4 elements per invocation
// in0: f16[64], in1: f16[64], out0: f16[64]
// 64 flops, 384 bytes

namespace map_add_0_module {

using f16 = unsigned short;

struct __align__(8) f16x4 { f16 x, y, z, w; };

#ifndef SINTER_HOST
__device__ __forceinline__ float cuda_f16_to_f32(unsigned short bits) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
  return x;
}
#endif

__device__ __forceinline__ float f16_to_float(f16 x) {
  return cuda_f16_to_f32(x);
}

__device__ __forceinline__ float4 load_f16x4(const f16 *from) {
  const f16x4 pack = *reinterpret_cast<const f16x4 *>(from);
  return float4{f16_to_float(pack.x), f16_to_float(pack.y), f16_to_float(pack.z), f16_to_float(pack.w)};
}

__device__ __forceinline__ float4 operator+(float4 a, float4 b) {
  return float4{a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
}

#ifndef SINTER_HOST
__device__ __forceinline__ unsigned short cuda_f32_to_f16(float x) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}
#endif

__device__ __forceinline__ f16 float_to_f16(float x) {
  return cuda_f32_to_f16(x);
}

__device__ __forceinline__ void store_f16x4(f16 *to, float4 value) {
  *reinterpret_cast<f16x4 *>(to) = f16x4{float_to_f16(value.x), float_to_f16(value.y), float_to_f16(value.z), float_to_f16(value.w)};
}

extern "C" __global__ void __launch_bounds__(64)
map_add_0(const f16 *__restrict__ in0, const f16 *__restrict__ in1, f16 *out0) {
  const int quad = int(blockIdx.x) * 64 + int(threadIdx.x);
  if (quad < 16) {
    const float4 x0 = load_f16x4(in0 + quad * 4);
    const float4 x1 = load_f16x4(in1 + quad * 4);
    const float4 add = x0 + x1;
    store_f16x4(out0 + quad * 4, add);
  }
}

}
