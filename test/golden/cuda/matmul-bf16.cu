// dot kernel; [1] 512x256 by 256x512 on matrix units (bf16), 64x64x64 tiles in 3 stages, 32x32 a subgroup
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

__device__ __forceinline__ float bf16_to_float(bf16 x) {
  return __uint_as_float(unsigned(x) << 16);
}

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

__device__ __forceinline__ float round_bf16(float x) {
  return bf16_to_float(float_to_bf16(x));
}

__device__ __forceinline__ float4 round_bf16_f32x4(float4 a) {
  return float4{round_bf16(a.x), round_bf16(a.y), round_bf16(a.z), round_bf16(a.w)};
}

struct __align__(8) bf16x4 { bf16 x, y, z, w; };

__device__ __forceinline__ void store_bf16x4(bf16 *to, float4 value) {
  *reinterpret_cast<bf16x4 *>(to) = bf16x4{float_to_bf16(value.x), float_to_bf16(value.y), float_to_bf16(value.z), float_to_bf16(value.w)};
}

extern "C" __global__ void __launch_bounds__(128)
dot_0(const bf16 *__restrict__ in0, const bf16 *__restrict__ in1, bf16 *out0) {
  extern __shared__ __align__(16) unsigned char dot_0_memory[];
  bf16 *const tile_lhs = reinterpret_cast<bf16 *>(dot_0_memory);
  bf16 *const tile_rhs = reinterpret_cast<bf16 *>(dot_0_memory + 27648);
  const int band = int(blockIdx.x) >> 6;
  const int in_band = int(blockIdx.x) & 63;
  const int first_row = band * 8;
  const int tile_m = first_row + (in_band & 7);
  const int tile_n = in_band >> 3;
  const int first_m = tile_m * 64;
  const int first_n = tile_n * 64;
  const int warp_m = int(threadIdx.y) >> 1;
  const int warp_n = int(threadIdx.y) & 1;
  const int local = int(threadIdx.y) * 32 + int(threadIdx.x);
  float4 sum_0_0 = float4_of(0.0f);
  float4 sum_0_1 = float4_of(0.0f);
  float4 sum_0_2 = float4_of(0.0f);
  float4 sum_0_3 = float4_of(0.0f);
  float4 sum_1_0 = float4_of(0.0f);
  float4 sum_1_1 = float4_of(0.0f);
  float4 sum_1_2 = float4_of(0.0f);
  float4 sum_1_3 = float4_of(0.0f);
  const int line = local >> 3;
  const int run = local & 7;
  const int to = line * 72 + run * 8;
  const int run_1 = (0 >> 3) + run;
  const int at = first_m + line;
  const int idx = at * 32 + run_1;
  const int from = idx * 8;
  cp_async16(tile_lhs + to, in0 + from, 16);
  const int unit = local + 128;
  const int line_1 = unit >> 3;
  const int run_2 = unit & 7;
  const int to_1 = line_1 * 72 + run_2 * 8;
  const int run_3 = (0 >> 3) + run_2;
  const int at_1 = first_m + line_1;
  const int idx_1 = at_1 * 32 + run_3;
  const int from_1 = idx_1 * 8;
  cp_async16(tile_lhs + to_1, in0 + from_1, 16);
  const int unit_1 = local + 256;
  const int line_2 = unit_1 >> 3;
  const int run_4 = unit_1 & 7;
  const int to_2 = line_2 * 72 + run_4 * 8;
  const int run_5 = (0 >> 3) + run_4;
  const int at_2 = first_m + line_2;
  const int idx_2 = at_2 * 32 + run_5;
  const int from_2 = idx_2 * 8;
  cp_async16(tile_lhs + to_2, in0 + from_2, 16);
  const int unit_2 = local + 384;
  const int line_3 = unit_2 >> 3;
  const int run_6 = unit_2 & 7;
  const int to_3 = line_3 * 72 + run_6 * 8;
  const int run_7 = (0 >> 3) + run_6;
  const int at_3 = first_m + line_3;
  const int idx_3 = at_3 * 32 + run_7;
  const int from_3 = idx_3 * 8;
  cp_async16(tile_lhs + to_3, in0 + from_3, 16);
  const int run_8 = (first_n >> 3) + run;
  const int idx_4 = line * 64 + run_8;
  const int from_4 = idx_4 * 8;
  cp_async16(tile_rhs + to, in1 + from_4, 16);
  const int run_9 = (first_n >> 3) + run_2;
  const int idx_5 = line_1 * 64 + run_9;
  const int from_5 = idx_5 * 8;
  cp_async16(tile_rhs + to_1, in1 + from_5, 16);
  const int run_10 = (first_n >> 3) + run_4;
  const int idx_6 = line_2 * 64 + run_10;
  const int from_6 = idx_6 * 8;
  cp_async16(tile_rhs + to_2, in1 + from_6, 16);
  const int run_11 = (first_n >> 3) + run_6;
  const int idx_7 = line_3 * 64 + run_11;
  const int from_7 = idx_7 * 8;
  cp_async16(tile_rhs + to_3, in1 + from_7, 16);
  cp_async_commit();
  const int to_4 = 4608 + (line * 72 + run * 8);
  const int run_12 = (64 >> 3) + run;
  const int idx_8 = at * 32 + run_12;
  const int from_8 = idx_8 * 8;
  cp_async16(tile_lhs + to_4, in0 + from_8, 16);
  const int to_5 = 4608 + (line_1 * 72 + run_2 * 8);
  const int run_13 = (64 >> 3) + run_2;
  const int idx_9 = at_1 * 32 + run_13;
  const int from_9 = idx_9 * 8;
  cp_async16(tile_lhs + to_5, in0 + from_9, 16);
  const int to_6 = 4608 + (line_2 * 72 + run_4 * 8);
  const int run_14 = (64 >> 3) + run_4;
  const int idx_10 = at_2 * 32 + run_14;
  const int from_10 = idx_10 * 8;
  cp_async16(tile_lhs + to_6, in0 + from_10, 16);
  const int to_7 = 4608 + (line_3 * 72 + run_6 * 8);
  const int run_15 = (64 >> 3) + run_6;
  const int idx_11 = at_3 * 32 + run_15;
  const int from_11 = idx_11 * 8;
  cp_async16(tile_lhs + to_7, in0 + from_11, 16);
  const int k = 64 + line;
  const int idx_12 = k * 64 + run_8;
  const int from_12 = idx_12 * 8;
  cp_async16(tile_rhs + to_4, in1 + from_12, 16);
  const int k_1 = 64 + line_1;
  const int idx_13 = k_1 * 64 + run_9;
  const int from_13 = idx_13 * 8;
  cp_async16(tile_rhs + to_5, in1 + from_13, 16);
  const int k_2 = 64 + line_2;
  const int idx_14 = k_2 * 64 + run_10;
  const int from_14 = idx_14 * 8;
  cp_async16(tile_rhs + to_6, in1 + from_14, 16);
  const int k_3 = 64 + line_3;
  const int idx_15 = k_3 * 64 + run_11;
  const int from_15 = idx_15 * 8;
  cp_async16(tile_rhs + to_7, in1 + from_15, 16);
  cp_async_commit();
  const int high = (int(threadIdx.x) >> 4) * 8;
  const int low = ((int(threadIdx.x) >> 3) & 1) * 8;
  const int row = int(threadIdx.x) & 7;
  for (int tile = 0; tile < 4; tile++) {
    cp_async_wait<1>();
    __syncthreads();
    const int ahead = tile + 2;
    const int next_slot = ahead % 3;
    if (ahead < 4) {
      const int k0 = ahead * 64;
      const int to_8 = next_slot * 4608 + (line * 72 + run * 8);
      const int run_16 = (k0 >> 3) + run;
      const int idx_16 = at * 32;
      const int idx_17 = idx_16 + run_16;
      const int from_16 = idx_17 * 8;
      cp_async16(tile_lhs + to_8, in0 + from_16, 16);
      const int to_9 = next_slot * 4608 + (line_1 * 72 + run_2 * 8);
      const int run_17 = (k0 >> 3) + run_2;
      const int idx_18 = at_1 * 32;
      const int idx_19 = idx_18 + run_17;
      const int from_17 = idx_19 * 8;
      cp_async16(tile_lhs + to_9, in0 + from_17, 16);
      const int to_10 = next_slot * 4608 + (line_2 * 72 + run_4 * 8);
      const int run_18 = (k0 >> 3) + run_4;
      const int idx_20 = at_2 * 32;
      const int idx_21 = idx_20 + run_18;
      const int from_18 = idx_21 * 8;
      cp_async16(tile_lhs + to_10, in0 + from_18, 16);
      const int to_11 = next_slot * 4608 + (line_3 * 72 + run_6 * 8);
      const int run_19 = (k0 >> 3) + run_6;
      const int idx_22 = at_3 * 32;
      const int idx_23 = idx_22 + run_19;
      const int from_19 = idx_23 * 8;
      cp_async16(tile_lhs + to_11, in0 + from_19, 16);
      const int k_4 = k0 + line;
      const int idx_24 = k_4 * 64;
      const int idx_25 = run_8 + idx_24;
      const int from_20 = idx_25 * 8;
      cp_async16(tile_rhs + to_8, in1 + from_20, 16);
      const int k_5 = k0 + line_1;
      const int idx_26 = k_5 * 64;
      const int idx_27 = run_9 + idx_26;
      const int from_21 = idx_27 * 8;
      cp_async16(tile_rhs + to_9, in1 + from_21, 16);
      const int k_6 = k0 + line_2;
      const int idx_28 = k_6 * 64;
      const int idx_29 = run_10 + idx_28;
      const int from_22 = idx_29 * 8;
      cp_async16(tile_rhs + to_10, in1 + from_22, 16);
      const int k_7 = k0 + line_3;
      const int idx_30 = k_7 * 64;
      const int idx_31 = run_11 + idx_30;
      const int from_23 = idx_31 * 8;
      cp_async16(tile_rhs + to_11, in1 + from_23, 16);
    }
    cp_async_commit();
    const int slot = tile % 3;
    for (int step = 0; step < 64; step += 16) {
      const int matrix = slot * 4608 + ((warp_m * 32 + low + row) * 72 + (step + high));
      const uint4 lhs = load_matrix(tile_lhs + matrix);
      const int matrix_1 = slot * 4608 + ((warp_m * 32 + 16 + low + row) * 72 + (step + high));
      const uint4 lhs_1 = load_matrix(tile_lhs + matrix_1);
      const int matrix_2 = slot * 4608 + ((step + low + row) * 72 + (warp_n * 32 + high));
      const uint4 rhs = load_matrix_trans(tile_rhs + matrix_2);
      const int matrix_3 = slot * 4608 + ((step + low + row) * 72 + (warp_n * 32 + 16 + high));
      const uint4 rhs_1 = load_matrix_trans(tile_rhs + matrix_3);
      multiply_bf16(sum_0_0, lhs, uint2{rhs.x, rhs.y});
      multiply_bf16(sum_0_1, lhs, uint2{rhs.z, rhs.w});
      multiply_bf16(sum_0_2, lhs, uint2{rhs_1.x, rhs_1.y});
      multiply_bf16(sum_0_3, lhs, uint2{rhs_1.z, rhs_1.w});
      multiply_bf16(sum_1_0, lhs_1, uint2{rhs.x, rhs.y});
      multiply_bf16(sum_1_1, lhs_1, uint2{rhs.z, rhs.w});
      multiply_bf16(sum_1_2, lhs_1, uint2{rhs_1.x, rhs_1.y});
      multiply_bf16(sum_1_3, lhs_1, uint2{rhs_1.z, rhs_1.w});
    }
  }
  const bool odd = (int(threadIdx.x) & 1) != 0;
  const int in_row = (int(threadIdx.x) >> 2) + (odd ? 8 : 0);
  const int in_quad = (int(threadIdx.x) & 3) >> 1;
  const int m = first_m + warp_m * 32 + in_row;
  const int quad = (first_n >> 2) + warp_n * 8 + in_quad;
  const float2 given = odd ? float2{sum_0_0.x, sum_0_0.y} : float2{sum_0_0.z, sum_0_0.w};
  const float2 taken = float2{__shfl_xor_sync(0xffffffffu, given.x, 1), __shfl_xor_sync(0xffffffffu, given.y, 1)};
  const float4 whole = odd ? float4{taken.x, taken.y, sum_0_0.z, sum_0_0.w} : float4{sum_0_0.x, sum_0_0.y, taken.x, taken.y};
  const float4 result = round_bf16_f32x4(whole);
  const int idx_32 = m * 128 + quad;
  store_bf16x4(out0 + idx_32 * 4, result);
  const int quad_1 = (first_n >> 2) + warp_n * 8 + (in_quad + 2);
  const float2 given_1 = odd ? float2{sum_0_1.x, sum_0_1.y} : float2{sum_0_1.z, sum_0_1.w};
  const float2 taken_1 = float2{__shfl_xor_sync(0xffffffffu, given_1.x, 1), __shfl_xor_sync(0xffffffffu, given_1.y, 1)};
  const float4 whole_1 = odd ? float4{taken_1.x, taken_1.y, sum_0_1.z, sum_0_1.w} : float4{sum_0_1.x, sum_0_1.y, taken_1.x, taken_1.y};
  const float4 result_1 = round_bf16_f32x4(whole_1);
  const int idx_33 = m * 128 + quad_1;
  store_bf16x4(out0 + idx_33 * 4, result_1);
  const int quad_2 = (first_n >> 2) + warp_n * 8 + (in_quad + 4);
  const float2 given_2 = odd ? float2{sum_0_2.x, sum_0_2.y} : float2{sum_0_2.z, sum_0_2.w};
  const float2 taken_2 = float2{__shfl_xor_sync(0xffffffffu, given_2.x, 1), __shfl_xor_sync(0xffffffffu, given_2.y, 1)};
  const float4 whole_2 = odd ? float4{taken_2.x, taken_2.y, sum_0_2.z, sum_0_2.w} : float4{sum_0_2.x, sum_0_2.y, taken_2.x, taken_2.y};
  const float4 result_2 = round_bf16_f32x4(whole_2);
  const int idx_34 = m * 128 + quad_2;
  store_bf16x4(out0 + idx_34 * 4, result_2);
  const int quad_3 = (first_n >> 2) + warp_n * 8 + (in_quad + 6);
  const float2 given_3 = odd ? float2{sum_0_3.x, sum_0_3.y} : float2{sum_0_3.z, sum_0_3.w};
  const float2 taken_3 = float2{__shfl_xor_sync(0xffffffffu, given_3.x, 1), __shfl_xor_sync(0xffffffffu, given_3.y, 1)};
  const float4 whole_3 = odd ? float4{taken_3.x, taken_3.y, sum_0_3.z, sum_0_3.w} : float4{sum_0_3.x, sum_0_3.y, taken_3.x, taken_3.y};
  const float4 result_3 = round_bf16_f32x4(whole_3);
  const int idx_35 = m * 128 + quad_3;
  store_bf16x4(out0 + idx_35 * 4, result_3);
  const int m_1 = first_m + (warp_m * 32 + 16) + in_row;
  const float2 given_4 = odd ? float2{sum_1_0.x, sum_1_0.y} : float2{sum_1_0.z, sum_1_0.w};
  const float2 taken_4 = float2{__shfl_xor_sync(0xffffffffu, given_4.x, 1), __shfl_xor_sync(0xffffffffu, given_4.y, 1)};
  const float4 whole_4 = odd ? float4{taken_4.x, taken_4.y, sum_1_0.z, sum_1_0.w} : float4{sum_1_0.x, sum_1_0.y, taken_4.x, taken_4.y};
  const float4 result_4 = round_bf16_f32x4(whole_4);
  const int idx_36 = m_1 * 128 + quad;
  store_bf16x4(out0 + idx_36 * 4, result_4);
  const float2 given_5 = odd ? float2{sum_1_1.x, sum_1_1.y} : float2{sum_1_1.z, sum_1_1.w};
  const float2 taken_5 = float2{__shfl_xor_sync(0xffffffffu, given_5.x, 1), __shfl_xor_sync(0xffffffffu, given_5.y, 1)};
  const float4 whole_5 = odd ? float4{taken_5.x, taken_5.y, sum_1_1.z, sum_1_1.w} : float4{sum_1_1.x, sum_1_1.y, taken_5.x, taken_5.y};
  const float4 result_5 = round_bf16_f32x4(whole_5);
  const int idx_37 = m_1 * 128 + quad_1;
  store_bf16x4(out0 + idx_37 * 4, result_5);
  const float2 given_6 = odd ? float2{sum_1_2.x, sum_1_2.y} : float2{sum_1_2.z, sum_1_2.w};
  const float2 taken_6 = float2{__shfl_xor_sync(0xffffffffu, given_6.x, 1), __shfl_xor_sync(0xffffffffu, given_6.y, 1)};
  const float4 whole_6 = odd ? float4{taken_6.x, taken_6.y, sum_1_2.z, sum_1_2.w} : float4{sum_1_2.x, sum_1_2.y, taken_6.x, taken_6.y};
  const float4 result_6 = round_bf16_f32x4(whole_6);
  const int idx_38 = m_1 * 128 + quad_2;
  store_bf16x4(out0 + idx_38 * 4, result_6);
  const float2 given_7 = odd ? float2{sum_1_3.x, sum_1_3.y} : float2{sum_1_3.z, sum_1_3.w};
  const float2 taken_7 = float2{__shfl_xor_sync(0xffffffffu, given_7.x, 1), __shfl_xor_sync(0xffffffffu, given_7.y, 1)};
  const float4 whole_7 = odd ? float4{taken_7.x, taken_7.y, sum_1_3.z, sum_1_3.w} : float4{sum_1_3.x, sum_1_3.y, taken_7.x, taken_7.y};
  const float4 result_7 = round_bf16_f32x4(whole_7);
  const int idx_39 = m_1 * 128 + quad_3;
  store_bf16x4(out0 + idx_39 * 4, result_7);
}

}
