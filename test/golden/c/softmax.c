// row-reduction kernel; 64 rows of 256, lanes along column, 1 values kept
// in0: f32[64,256], out0: f32[64,256]
// 245760 flops, 131072 bytes
#include <stdint.h>

#ifndef SINTER_KERNEL
#define SINTER_KERNEL
#endif

#ifndef SINTER_F32X4
#define SINTER_F32X4
typedef float f32x4 __attribute__((vector_size(16)));
#endif
#ifndef SINTER_SPLAT_F32X4
#define SINTER_SPLAT_F32X4
static inline f32x4 splat_f32x4(float x) {
  return (f32x4){x, x, x, x};
}
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
#ifndef SINTER_U32X4
#define SINTER_U32X4
typedef uint32_t u32x4 __attribute__((vector_size(16)));
#endif
#ifndef SINTER_I32X4
#define SINTER_I32X4
typedef int32_t i32x4 __attribute__((vector_size(16)));
#endif
#ifndef SINTER_HAS_BUILTIN
#define SINTER_HAS_BUILTIN
#if !defined(SINTER_KNOWS) && defined(__has_builtin)
#define SINTER_KNOWS(name) __has_builtin(name)
#elif !defined(SINTER_KNOWS)
#define SINTER_KNOWS(name) 0
#endif
#endif
#ifndef SINTER_PMAX_F32X4
#define SINTER_PMAX_F32X4
static inline f32x4 pmax_f32x4(f32x4 x, f32x4 y) {
#if SINTER_KNOWS(__builtin_ia32_maxps) && defined(__SSE2__)
  return __builtin_ia32_maxps(y, x);
#else
  return (f32x4)(((i32x4)y & (x < y)) | ((i32x4)x & ~(x < y)));
#endif
}
#endif
#ifndef SINTER_PMIN_F32X4
#define SINTER_PMIN_F32X4
static inline f32x4 pmin_f32x4(f32x4 x, f32x4 y) {
#if SINTER_KNOWS(__builtin_ia32_minps) && defined(__SSE2__)
  return __builtin_ia32_minps(y, x);
#else
  return (f32x4)(((i32x4)y & (y < x)) | ((i32x4)x & ~(y < x)));
#endif
}
#endif
#ifndef SINTER_SPLAT_I32X4
#define SINTER_SPLAT_I32X4
static inline i32x4 splat_i32x4(int32_t x) {
  return (i32x4){x, x, x, x};
}
#endif
#ifndef SINTER_STORE_F32X4
#define SINTER_STORE_F32X4
static inline void store_f32x4(float *p, f32x4 x) {
  *(f32x4_u *)p = x;
}
#endif

static inline void row_reduction_div_0_group(int32_t group, const float *restrict in0, float *out0) {
  const int32_t group_x = group;
  const int32_t row = group_x + 0;
  f32x4 max = splat_f32x4(-__builtin_inff());
  f32x4 max_1 = splat_f32x4(-__builtin_inff());
  f32x4 max_2 = splat_f32x4(-__builtin_inff());
  f32x4 max_3 = splat_f32x4(-__builtin_inff());
  const int32_t idx = row * 64;
  const int32_t idx_3 = 1 + row * 64;
  const int32_t idx_5 = 2 + row * 64;
  const int32_t idx_7 = 3 + row * 64;
  for (int32_t turn = 0; turn < 16; turn++) {
    const int32_t idx_1 = turn * 4;
    const int32_t idx_2 = idx + idx_1;
    const f32x4 x0 = load_f32x4(in0 + idx_2 * 4);
    max = pmax_f32x4(max, x0);
    const int32_t idx_4 = idx_3 + idx_1;
    const f32x4 x0_1 = load_f32x4(in0 + idx_4 * 4);
    max_1 = pmax_f32x4(max_1, x0_1);
    const int32_t idx_6 = idx_5 + idx_1;
    const f32x4 x0_2 = load_f32x4(in0 + idx_6 * 4);
    max_2 = pmax_f32x4(max_2, x0_2);
    const int32_t idx_8 = idx_7 + idx_1;
    const f32x4 x0_3 = load_f32x4(in0 + idx_8 * 4);
    max_3 = pmax_f32x4(max_3, x0_3);
  }
  const f32x4 max_4 = max;
  const f32x4 max_5 = max_1;
  const f32x4 max_6 = max_2;
  const f32x4 max_7 = max_3;
  const f32x4 max_8 = pmax_f32x4(max_4, max_5);
  const f32x4 max_9 = pmax_f32x4(max_6, max_7);
  const f32x4 max_10 = pmax_f32x4(max_8, max_9);
  const float max_11 = max_10[0] < max_10[1] ? max_10[1] : max_10[0];
  const float max_12 = max_10[2] < max_10[3] ? max_10[3] : max_10[2];
  const float max_13 = max_11 < max_12 ? max_12 : max_11;
  f32x4 sum = splat_f32x4(0.0f);
  const int32_t idx_9 = row * 256;
  for (int32_t turn_1 = 0; turn_1 < 64; turn_1++) {
    const int32_t idx_10 = turn_1 * 4;
    const int32_t idx_11 = idx_9 + idx_10;
    const int32_t idx_12 = idx + turn_1;
    const f32x4 x0_4 = load_f32x4(in0 + idx_12 * 4);
    const f32x4 sub = x0_4 - splat_f32x4(max_13);
    const f32x4 power = sub * splat_f32x4(1.4426950216293335f);
    const f32x4 exp2 = pmin_f32x4(pmax_f32x4(power, splat_f32x4(-126.0f)), splat_f32x4(128.39999389648438f));
    const f32x4 exp2_1 = exp2 + splat_f32x4(12583038.0f);
    const f32x4 exp2_2 = exp2 - (exp2_1 - splat_f32x4(12583038.0f));
    const f32x4 part = exp2_2 * (exp2_2 * (exp2_2 * (exp2_2 * (exp2_2 * splat_f32x4(0.002652945462614298f) + splat_f32x4(0.019343025982379913f)) + splat_f32x4(0.11101467162370682f)) + splat_f32x4(0.48044484853744507f)) + splat_f32x4(1.3862940073013306f)) + splat_f32x4(2.0f);
    const f32x4 exp = part * (f32x4)((i32x4)((u32x4)((i32x4)exp2_1) << 23));
    store_f32x4(out0 + idx_11, exp);
    sum = sum + exp;
  }
  const f32x4 sum_1 = sum;
  const float sum_2 = sum_1[0] + sum_1[1];
  const float sum_3 = sum_1[2] + sum_1[3];
  const float sum_4 = sum_2 + sum_3;
  const float share = 1.0f / sum_4;
  for (int32_t turn_2 = 0; turn_2 < 64; turn_2++) {
    const int32_t idx_13 = turn_2 * 4;
    const int32_t idx_14 = idx_9 + idx_13;
    const f32x4 kept = load_f32x4(out0 + idx_14);
    const f32x4 div = kept * splat_f32x4(share);
    const int32_t idx_15 = idx + turn_2;
    store_f32x4(out0 + idx_15 * 4, div);
  }
}

SINTER_KERNEL void row_reduction_div_0(
    int32_t first, int32_t end, void *const *buffers, const uint32_t *scalars, void *scratch) {
  (void)scalars;
  (void)scratch;
  for (int32_t group = first; group < end; group++)
    row_reduction_div_0_group(group, buffers[0], buffers[1]);
}
