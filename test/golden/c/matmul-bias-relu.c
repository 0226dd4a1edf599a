// dot kernel; [1] 64x64 by 64x64, blocks of 64x64, 64 steps of k packed at a time, tiles of 2x16
// in0: f32[64,64], in1: f32[64,64], in2: f32[64], out0: f32[64,64]
// 532480 flops, 49408 bytes
#include <stdint.h>

#ifndef SINTER_KERNEL
#define SINTER_KERNEL
#endif

#ifndef SINTER_MIN_I32
#define SINTER_MIN_I32
static inline int32_t min_i32(int32_t x, int32_t y) {
  return y < x ? y : x;
}
#endif
#ifndef SINTER_F32X4
#define SINTER_F32X4
typedef float f32x4 __attribute__((vector_size(16)));
#endif
#ifndef SINTER_F32X4_U
#define SINTER_F32X4_U
typedef float f32x4_u __attribute__((vector_size(16), aligned(4), may_alias));
#endif
#ifndef SINTER_LOAD_F32X4
#define SINTER_LOAD_F32X4
static inline f32x4 load_f32x4(const float *p) {
  return *(const f32x4_u *)p;
}
#endif
#ifndef SINTER_HAS_BUILTIN
#define SINTER_HAS_BUILTIN
#if !defined(SINTER_KNOWS) && defined(__has_builtin)
#define SINTER_KNOWS(name) __has_builtin(name)
#elif !defined(SINTER_KNOWS)
#define SINTER_KNOWS(name) 0
#endif
#endif
#ifndef SINTER_SHUFFLE_F32X4_0_4_1_5
#define SINTER_SHUFFLE_F32X4_0_4_1_5
static inline f32x4 shuffle_f32x4_0_4_1_5(f32x4 x, f32x4 y) {
#if SINTER_KNOWS(__builtin_shufflevector)
  return __builtin_shufflevector(x, y, 0, 4, 1, 5);
#else
  return (f32x4){x[0], y[0], x[1], y[1]};
#endif
}
#endif
#ifndef SINTER_SHUFFLE_F32X4_2_6_3_7
#define SINTER_SHUFFLE_F32X4_2_6_3_7
static inline f32x4 shuffle_f32x4_2_6_3_7(f32x4 x, f32x4 y) {
#if SINTER_KNOWS(__builtin_shufflevector)
  return __builtin_shufflevector(x, y, 2, 6, 3, 7);
#else
  return (f32x4){x[2], y[2], x[3], y[3]};
#endif
}
#endif
#ifndef SINTER_STORE_F32X4
#define SINTER_STORE_F32X4
static inline void store_f32x4(float *p, f32x4 x) {
  *(f32x4_u *)p = x;
}
#endif
#ifndef SINTER_SPLAT_F32X4
#define SINTER_SPLAT_F32X4
static inline f32x4 splat_f32x4(float x) {
  return (f32x4){x, x, x, x};
}
#endif
#ifndef SINTER_U32X4
#define SINTER_U32X4
typedef uint32_t u32x4 __attribute__((vector_size(16)));
#endif
#ifndef SINTER_FMA_F32
#define SINTER_FMA_F32
// One instruction where the processor has it.
static inline float fma_f32(float x, float y, float z) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA) || defined(__FP_FAST_FMAF)
  return __builtin_fmaf(x, y, z);
#else
  return x * y + z;
#endif
}
#endif
#ifndef SINTER_FMA_F32X4
#define SINTER_FMA_F32X4
static inline f32x4 fma_f32x4(f32x4 x, f32x4 y, f32x4 z) {
#if SINTER_KNOWS(__builtin_ia32_vfmaddps) && defined(__FMA__)
  return __builtin_ia32_vfmaddps(x, y, z);
#else
  f32x4 r = {0};
  for (int i = 0; i < 4; i++) r[i] = fma_f32(x[i], y[i], z[i]);
  return r;
#endif
}
#endif
#ifndef SINTER_I32X4
#define SINTER_I32X4
typedef int32_t i32x4 __attribute__((vector_size(16)));
#endif
#ifndef SINTER_MAX_ZERO_F32X4
#define SINTER_MAX_ZERO_F32X4
static inline f32x4 max_zero_f32x4(f32x4 x, f32x4 y) {
  return (f32x4)(((i32x4)y & (x <= y)) | ((i32x4)x & ~(x <= y)));
}
#endif

static inline void dot_max_0_group(
    const float *restrict in0,
    const float *restrict in1,
    const float *restrict in2,
    float *out0,
    float *restrict left,
    float *restrict right,
    float *restrict sums) {
  const int32_t group_ = 0;
  const int32_t first_row = group_ * 64;
  const int32_t first_quad = 3 >> 2;
  const int32_t end_quad = 67 >> 2;
  for (int32_t line = 0; line < 32; line++) {
    const int32_t at = min_i32(line * 2 + first_row, 63);
    const int32_t at_1 = min_i32(line * 2 + (first_row + 1), 63);
    const int32_t idx = at * 16;
    const int32_t idx_2 = at_1 * 16;
    for (int32_t kquad = first_quad; kquad < end_quad; kquad++) {
      const int32_t idx_1 = idx + kquad;
      const f32x4 x0 = load_f32x4(in0 + idx_1 * 4);
      const int32_t idx_3 = idx_2 + kquad;
      const f32x4 x0_1 = load_f32x4(in0 + idx_3 * 4);
      const f32x4 mixed = shuffle_f32x4_0_4_1_5(x0, x0_1);
      const f32x4 mixed_1 = shuffle_f32x4_2_6_3_7(x0, x0_1);
      store_f32x4(left + (line * 64 + kquad * 4) * 2, mixed);
      store_f32x4(left + (line * 64 + (kquad * 4 + 2)) * 2, mixed_1);
    }
  }
  for (int32_t panel = 0; panel < 4; panel++) {
    const int32_t column = panel * 16;
    const int32_t first_quad_1 = column >> 2;
    const int32_t at_2 = min_i32(first_quad_1, 15);
    const int32_t at_3 = min_i32(first_quad_1 + 1, 15);
    const int32_t at_4 = min_i32(first_quad_1 + 2, 15);
    const int32_t at_5 = min_i32(first_quad_1 + 3, 15);
    for (int32_t k = 0; k < 64; k++) {
      const int32_t idx_4 = k * 16;
      const int32_t idx_5 = at_2 + idx_4;
      const f32x4 x1 = load_f32x4(in1 + idx_5 * 4);
      store_f32x4(right + k * 16, x1);
      const int32_t idx_6 = at_3 + idx_4;
      const f32x4 x1_1 = load_f32x4(in1 + idx_6 * 4);
      store_f32x4(right + (k * 16 + 4), x1_1);
      const int32_t idx_7 = at_4 + idx_4;
      const f32x4 x1_2 = load_f32x4(in1 + idx_7 * 4);
      store_f32x4(right + (k * 16 + 8), x1_2);
      const int32_t idx_8 = at_5 + idx_4;
      const f32x4 x1_3 = load_f32x4(in1 + idx_8 * 4);
      store_f32x4(right + (k * 16 + 12), x1_3);
    }
    const f32x4 x2 = load_f32x4(in2 + first_quad_1 * 4);
    const int32_t quad = first_quad_1 + 1;
    const f32x4 x2_1 = load_f32x4(in2 + quad * 4);
    const int32_t quad_1 = first_quad_1 + 2;
    const f32x4 x2_2 = load_f32x4(in2 + quad_1 * 4);
    const int32_t quad_2 = first_quad_1 + 3;
    const f32x4 x2_3 = load_f32x4(in2 + quad_2 * 4);
    for (int32_t pair = 0; pair < 32; pair++) {
      f32x4 sum_0_0 = splat_f32x4(0.0f);
      f32x4 sum_0_1 = splat_f32x4(0.0f);
      f32x4 sum_0_2 = splat_f32x4(0.0f);
      f32x4 sum_0_3 = splat_f32x4(0.0f);
      f32x4 sum_1_0 = splat_f32x4(0.0f);
      f32x4 sum_1_1 = splat_f32x4(0.0f);
      f32x4 sum_1_2 = splat_f32x4(0.0f);
      f32x4 sum_1_3 = splat_f32x4(0.0f);
      for (int32_t k_1 = 0; k_1 < 64; k_1++) {
        const f32x4 b = load_f32x4(right + k_1 * 16);
        const f32x4 b_1 = load_f32x4(right + (k_1 * 16 + 4));
        const f32x4 b_2 = load_f32x4(right + (k_1 * 16 + 8));
        const f32x4 b_3 = load_f32x4(right + (k_1 * 16 + 12));
        const f32x4 a = splat_f32x4(left[(pair * 64 + k_1) * 2]);
        sum_0_0 = fma_f32x4(a, b, sum_0_0);
        sum_0_1 = fma_f32x4(a, b_1, sum_0_1);
        sum_0_2 = fma_f32x4(a, b_2, sum_0_2);
        sum_0_3 = fma_f32x4(a, b_3, sum_0_3);
        const f32x4 a_1 = splat_f32x4(left[(pair * 64 + k_1) * 2 + 1]);
        sum_1_0 = fma_f32x4(a_1, b, sum_1_0);
        sum_1_1 = fma_f32x4(a_1, b_1, sum_1_1);
        sum_1_2 = fma_f32x4(a_1, b_2, sum_1_2);
        sum_1_3 = fma_f32x4(a_1, b_3, sum_1_3);
      }
      store_f32x4(sums, sum_0_0);
      store_f32x4(sums + 4, sum_0_1);
      store_f32x4(sums + 8, sum_0_2);
      store_f32x4(sums + 12, sum_0_3);
      store_f32x4(sums + 16, sum_1_0);
      store_f32x4(sums + 20, sum_1_1);
      store_f32x4(sums + 24, sum_1_2);
      store_f32x4(sums + 28, sum_1_3);
      const int32_t above = pair * 2;
      const int32_t tile_row = first_row + above;
      for (int32_t row = 0; row < 2; row++) {
        const int32_t m = tile_row + row;
        const f32x4 sum = load_f32x4(sums + row * 16);
        const f32x4 add = sum + x2;
        const f32x4 max = max_zero_f32x4(add, splat_f32x4(0.0f));
        const int32_t idx_9 = m * 16;
        const int32_t idx_10 = first_quad_1 + idx_9;
        store_f32x4(out0 + idx_10 * 4, max);
        const f32x4 sum_1 = load_f32x4(sums + (row * 16 + 4));
        const f32x4 add_1 = sum_1 + x2_1;
        const f32x4 max_1 = max_zero_f32x4(add_1, splat_f32x4(0.0f));
        const int32_t idx_11 = quad + idx_9;
        store_f32x4(out0 + idx_11 * 4, max_1);
        const f32x4 sum_2 = load_f32x4(sums + (row * 16 + 8));
        const f32x4 add_2 = sum_2 + x2_2;
        const f32x4 max_2 = max_zero_f32x4(add_2, splat_f32x4(0.0f));
        const int32_t idx_12 = quad_1 + idx_9;
        store_f32x4(out0 + idx_12 * 4, max_2);
        const f32x4 sum_3 = load_f32x4(sums + (row * 16 + 12));
        const f32x4 add_3 = sum_3 + x2_3;
        const f32x4 max_3 = max_zero_f32x4(add_3, splat_f32x4(0.0f));
        const int32_t idx_13 = quad_2 + idx_9;
        store_f32x4(out0 + idx_13 * 4, max_3);
      }
    }
  }
}

SINTER_KERNEL void dot_max_0(
    int32_t first, int32_t end, void *const *buffers, const uint32_t *scalars, void *scratch) {
  (void)scalars;
  for (int32_t group = first; group < end; group++)
    dot_max_0_group(
        buffers[0],
        buffers[1],
        buffers[2],
        buffers[3],
        scratch,
        (float *)((char *)scratch + 16384),
        (float *)((char *)scratch + 20480));
}
