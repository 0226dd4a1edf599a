// dot kernel; [1] 512x256 by 256x512 on matrix units (bf16), 32x64x32 tiles in 3 stages, 16x32 a subgroup
// in0: bf16[512,256], in1: bf16[256,512], out0: bf16[512,512]
// 134217728 flops, 1048576 bytes

namespace dot_0_module {

using bf16 = unsigned short;

__device__ __forceinline__ float4 float4_of(float x) {
  return float4{x, x, x, x};
}

#ifndef SINTER_HOST
__device__ __forceinline__ unsigned shared_address(const void *at) {
  return static_cast<unsigned>(__cvta_generic_to_shared(at));
}

__device__ __forceinline__ void cp_async16(void *shared, const void *source, int valid) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :: "r"(shared_address(shared)), "l"(source), "r"(valid) : "memory");
}

__device__ __forceinline__ void cp_async_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int groups>
__device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" :: "n"(groups) : "memory");
}

__device__ __forceinline__ void ldmatrix_x4(unsigned (&r)[4], const void *row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_address(row)) : "memory");
}
#endif

__device__ __forceinline__ uint4 load_matrix(const void *row) {
  unsigned r[4];
  ldmatrix_x4(r, row);
  return uint4{r[0], r[1], r[2], r[3]};
}

#ifndef SINTER_HOST
__device__ __forceinline__ void ldmatrix_x4_trans(unsigned (&r)[4], const void *row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_address(row)) : "memory");
}
#endif

__device__ __forceinline__ uint4 load_matrix_trans(const void *row) {
  unsigned r[4];
  ldmatrix_x4_trans(r, row);
  return uint4{r[0], r[1], r[2], r[3]};
}

#ifndef SINTER_HOST
__device__ __forceinline__ void mma_m16n8k16_bf16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#endif

__device__ __forceinline__ void multiply_bf16(float4 &sum, uint4 lhs, uint2 rhs) {
  float d[4] = {sum.x, sum.y, sum.z, sum.w};
  const unsigned a[4] = {lhs.x, lhs.y, lhs.z, lhs.w};
  const unsigned b[2] = {rhs.x, rhs.y};
  mma_m16n8k16_bf16(d, a, b);
  sum = float4{d[0], d[1], d[2], d[3]};
}

struct __align__(8) bf16x4 { bf16 x, y, z, w; };

#ifndef SINTER_HOST
__device__ __forceinline__ unsigned short cuda_f32_to_bf16(float x) {
#if __CUDA_ARCH__ >= 800
  unsigned short bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
#else
  const unsigned bits = __float_as_uint(x);
  return static_cast<unsigned short>((x == x ? bits + 0x7fffu + ((bits >> 16) & 1u) : bits | 0x400000u) >> 16);
#endif
}
#endif

__device__ __forceinline__ bf16 float_to_bf16(float x) {
  return cuda_f32_to_bf16(x);
}

__device__ __forceinline__ void store_bf16x4(bf16 *to, float4 value) {
  *reinterpret_cast<bf16x4 *>(to) = bf16x4{float_to_bf16(value.x), float_to_bf16(value.y), float_to_bf16(value.z), float_to_bf16(value.w)};
}

extern "C" __global__ void __launch_bounds__(128)
dot_0(const bf16 *__restrict__ in0, const bf16 *__restrict__ in1, bf16 *out0) {
  __shared__ __align__(16) bf16 tile_lhs[3840];
  __shared__ __align__(16) bf16 tile_rhs[6912];
  const int band = int(blockIdx.x) >> 6;
  const int in_band = int(blockIdx.x) & 63;
  const int first_row = band * 8;
  const int tile_m = first_row + (in_band & 7);
  const int tile_n = in_band >> 3;
  const int first_m = tile_m * 32;
  const int first_n = tile_n * 64;
  const int warp_m = int(threadIdx.y) >> 1;
  const int warp_n = int(threadIdx.y) & 1;
  const int local = int(threadIdx.y) * 32 + int(threadIdx.x);
  float4 sum_0_0 = float4_of(0.0f);
  float4 sum_0_1 = float4_of(0.0f);
  float4 sum_0_2 = float4_of(0.0f);
  float4 sum_0_3 = float4_of(0.0f);
  const int line = local >> 2;
  const int run = local & 3;
  const int to = line * 40 + run * 8;
  const int run_1 = (0 >> 3) + run;
  const int at = first_m + line;
  const int idx = at * 32 + run_1;
  const int from = idx * 8;
  cp_async16(tile_lhs + to, in0 + from, 16);
  const int line_1 = local >> 3;
  const int run_2 = local & 7;
  const int to_1 = line_1 * 72 + run_2 * 8;
  const int run_3 = (first_n >> 3) + run_2;
  const int idx_1 = line_1 * 64 + run_3;
  const int from_1 = idx_1 * 8;
  cp_async16(tile_rhs + to_1, in1 + from_1, 16);
  const int unit = local + 128;
  const int line_2 = unit >> 3;
  const int run_4 = unit & 7;
  const int to_2 = line_2 * 72 + run_4 * 8;
  const int run_5 = (first_n >> 3) + run_4;
  const int idx_2 = line_2 * 64 + run_5;
  const int from_2 = idx_2 * 8;
  cp_async16(tile_rhs + to_2, in1 + from_2, 16);
  cp_async_commit();
  const int to_3 = 1280 + (line * 40 + run * 8);
  const int run_6 = (32 >> 3) + run;
  const int idx_3 = at * 32 + run_6;
  const int from_3 = idx_3 * 8;
  cp_async16(tile_lhs + to_3, in0 + from_3, 16);
  const int to_4 = 2304 + (line_1 * 72 + run_2 * 8);
  const int k = 32 + line_1;
  const int idx_4 = k * 64 + run_3;
  const int from_4 = idx_4 * 8;
  cp_async16(tile_rhs + to_4, in1 + from_4, 16);
  const int to_5 = 2304 + (line_2 * 72 + run_4 * 8);
  const int k_1 = 32 + line_2;
  const int idx_5 = k_1 * 64 + run_5;
  const int from_5 = idx_5 * 8;
  cp_async16(tile_rhs + to_5, in1 + from_5, 16);
  cp_async_commit();
  const int high = (int(threadIdx.x) >> 4) * 8;
  const int low = ((int(threadIdx.x) >> 3) & 1) * 8;
  const int row = int(threadIdx.x) & 7;
  for (int tile = 0; tile < 8; tile++) {
    cp_async_wait<1>();
    __syncthreads();
    const int ahead = tile + 2;
    const int next_slot = ahead % 3;
    if (ahead < 8) {
      const int k0 = ahead * 32;
      const int to_6 = next_slot * 1280 + (line * 40 + run * 8);
      const int run_7 = (k0 >> 3) + run;
      const int idx_6 = at * 32;
      const int idx_7 = idx_6 + run_7;
      const int from_6 = idx_7 * 8;
      cp_async16(tile_lhs + to_6, in0 + from_6, 16);
      const int to_7 = next_slot * 2304 + (line_1 * 72 + run_2 * 8);
      const int k_2 = k0 + line_1;
      const int idx_8 = k_2 * 64;
      const int idx_9 = run_3 + idx_8;
      const int from_7 = idx_9 * 8;
      cp_async16(tile_rhs + to_7, in1 + from_7, 16);
      const int to_8 = next_slot * 2304 + (line_2 * 72 + run_4 * 8);
      const int k_3 = k0 + line_2;
      const int idx_10 = k_3 * 64;
      const int idx_11 = run_5 + idx_10;
      const int from_8 = idx_11 * 8;
      cp_async16(tile_rhs + to_8, in1 + from_8, 16);
    }
    cp_async_commit();
    const int slot = tile % 3;
    for (int step = 0; step < 32; step += 16) {
      const int matrix = slot * 1280 + ((warp_m * 16 + low + row) * 40 + (step + high));
      const uint4 lhs = load_matrix(tile_lhs + matrix);
      const int matrix_1 = slot * 2304 + ((step + low + row) * 72 + (warp_n * 32 + high));
      const uint4 rhs = load_matrix_trans(tile_rhs + matrix_1);
      const int matrix_2 = slot * 2304 + ((step + low + row) * 72 + (warp_n * 32 + 16 + high));
      const uint4 rhs_1 = load_matrix_trans(tile_rhs + matrix_2);
      multiply_bf16(sum_0_0, lhs, uint2{rhs.x, rhs.y});
      multiply_bf16(sum_0_1, lhs, uint2{rhs.z, rhs.w});
      multiply_bf16(sum_0_2, lhs, uint2{rhs_1.x, rhs_1.y});
      multiply_bf16(sum_0_3, lhs, uint2{rhs_1.z, rhs_1.w});
    }
  }
  const bool odd = (int(threadIdx.x) & 1) != 0;
  const int in_row = (int(threadIdx.x) >> 2) + (odd ? 8 : 0);
  const int in_quad = (int(threadIdx.x) & 3) >> 1;
  const int m = first_m + warp_m * 16 + in_row;
  const int quad = (first_n >> 2) + warp_n * 8 + in_quad;
  const float2 given = odd ? float2{sum_0_0.x, sum_0_0.y} : float2{sum_0_0.z, sum_0_0.w};
  const float2 taken = float2{__shfl_xor_sync(0xffffffffu, given.x, 1), __shfl_xor_sync(0xffffffffu, given.y, 1)};
  const float4 whole = odd ? float4{taken.x, taken.y, sum_0_0.z, sum_0_0.w} : float4{sum_0_0.x, sum_0_0.y, taken.x, taken.y};
  const float4 result = whole;
  const int idx_12 = m * 128 + quad;
  store_bf16x4(out0 + idx_12 * 4, result);
  const int quad_1 = (first_n >> 2) + warp_n * 8 + (in_quad + 2);
  const float2 given_1 = odd ? float2{sum_0_1.x, sum_0_1.y} : float2{sum_0_1.z, sum_0_1.w};
  const float2 taken_1 = float2{__shfl_xor_sync(0xffffffffu, given_1.x, 1), __shfl_xor_sync(0xffffffffu, given_1.y, 1)};
  const float4 whole_1 = odd ? float4{taken_1.x, taken_1.y, sum_0_1.z, sum_0_1.w} : float4{sum_0_1.x, sum_0_1.y, taken_1.x, taken_1.y};
  const float4 result_1 = whole_1;
  const int idx_13 = m * 128 + quad_1;
  store_bf16x4(out0 + idx_13 * 4, result_1);
  const int quad_2 = (first_n >> 2) + warp_n * 8 + (in_quad + 4);
  const float2 given_2 = odd ? float2{sum_0_2.x, sum_0_2.y} : float2{sum_0_2.z, sum_0_2.w};
  const float2 taken_2 = float2{__shfl_xor_sync(0xffffffffu, given_2.x, 1), __shfl_xor_sync(0xffffffffu, given_2.y, 1)};
  const float4 whole_2 = odd ? float4{taken_2.x, taken_2.y, sum_0_2.z, sum_0_2.w} : float4{sum_0_2.x, sum_0_2.y, taken_2.x, taken_2.y};
  const float4 result_2 = whole_2;
  const int idx_14 = m * 128 + quad_2;
  store_bf16x4(out0 + idx_14 * 4, result_2);
  const int quad_3 = (first_n >> 2) + warp_n * 8 + (in_quad + 6);
  const float2 given_3 = odd ? float2{sum_0_3.x, sum_0_3.y} : float2{sum_0_3.z, sum_0_3.w};
  const float2 taken_3 = float2{__shfl_xor_sync(0xffffffffu, given_3.x, 1), __shfl_xor_sync(0xffffffffu, given_3.y, 1)};
  const float4 whole_3 = odd ? float4{taken_3.x, taken_3.y, sum_0_3.z, sum_0_3.w} : float4{sum_0_3.x, sum_0_3.y, taken_3.x, taken_3.y};
  const float4 result_3 = whole_3;
  const int idx_15 = m * 128 + quad_3;
  store_bf16x4(out0 + idx_15 * 4, result_3);
}

}
