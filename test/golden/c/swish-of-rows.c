// map kernel; 2 x 16 elements per invocation
// in0: f32[64,32], in1: f32[32], out0: f32[64,32]
// 32768 flops, 16512 bytes
#include <stdint.h>

#ifndef SINTER_KERNEL
#define SINTER_KERNEL
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

static inline void map_mul_0_group(
    int32_t group,
    const float *restrict in0,
    const float *restrict in1,
    float *out0) {
  const int32_t group_x = group;
  const int32_t turn = group_x * 2 + 0;
  const int32_t next = (group_x + 1) * 2;
  for (int32_t turn_1 = turn; turn_1 < next; turn_1++) {
    const int32_t idx = turn_1 * 4;
    const f32x4 x0 = load_f32x4(in0 + idx * 4);
    const int32_t idx_1 = turn_1 & 1;
    const int32_t idx_2 = idx_1 * 4;
    const f32x4 x1 = load_f32x4(in1 + idx_2 * 4);
    const f32x4 add = x0 + x1;
    const f32x4 neg = -add;
    const f32x4 exp_4 = pmin_f32x4(pmax_f32x4(neg, splat_f32x4(-87.5f)), splat_f32x4(89.0f));
    const f32x4 exp_5 = exp_4 * splat_f32x4(1.4426950216293335f) + splat_f32x4(12583038.0f);
    const f32x4 exp_6 = exp_5 - splat_f32x4(12583038.0f);
    const f32x4 exp_7 = exp_4 - exp_6 * splat_f32x4(0.693145751953125f) - exp_6 * splat_f32x4(0.000001428606765330187f);
    const f32x4 part = exp_7 * (exp_7 * (exp_7 * (exp_7 * (exp_7 * splat_f32x4(0.0027629078831523657f) + splat_f32x4(0.01673749089241028f)) + splat_f32x4(0.08333677798509598f)) + splat_f32x4(0.3333304226398468f)) + splat_f32x4(0.9999998807907104f)) + splat_f32x4(2.0f);
    const f32x4 exp = (exp_7 * part + splat_f32x4(2.0f)) * (f32x4)((i32x4)((u32x4)((i32x4)exp_5) << 23));
    const f32x4 add_1 = exp + splat_f32x4(1.0f);
    const f32x4 recip = splat_f32x4(1.0f) / add_1;
    const f32x4 mul = add * recip;
    store_f32x4(out0 + idx * 4, mul);
    const int32_t idx_3 = 1 + idx;
    const f32x4 x0_1 = load_f32x4(in0 + idx_3 * 4);
    const int32_t idx_4 = 1 + idx_2;
    const f32x4 x1_1 = load_f32x4(in1 + idx_4 * 4);
    const f32x4 add_2 = x0_1 + x1_1;
    const f32x4 neg_1 = -add_2;
    const f32x4 exp_8 = pmin_f32x4(pmax_f32x4(neg_1, splat_f32x4(-87.5f)), splat_f32x4(89.0f));
    const f32x4 exp_9 = exp_8 * splat_f32x4(1.4426950216293335f) + splat_f32x4(12583038.0f);
    const f32x4 exp_10 = exp_9 - splat_f32x4(12583038.0f);
    const f32x4 exp_11 = exp_8 - exp_10 * splat_f32x4(0.693145751953125f) - exp_10 * splat_f32x4(0.000001428606765330187f);
    const f32x4 part_1 = exp_11 * (exp_11 * (exp_11 * (exp_11 * (exp_11 * splat_f32x4(0.0027629078831523657f) + splat_f32x4(0.01673749089241028f)) + splat_f32x4(0.08333677798509598f)) + splat_f32x4(0.3333304226398468f)) + splat_f32x4(0.9999998807907104f)) + splat_f32x4(2.0f);
    const f32x4 exp_1 = (exp_11 * part_1 + splat_f32x4(2.0f)) * (f32x4)((i32x4)((u32x4)((i32x4)exp_9) << 23));
    const f32x4 add_3 = exp_1 + splat_f32x4(1.0f);
    const f32x4 recip_1 = splat_f32x4(1.0f) / add_3;
    const f32x4 mul_1 = add_2 * recip_1;
    store_f32x4(out0 + idx_3 * 4, mul_1);
    const int32_t idx_5 = 2 + idx;
    const f32x4 x0_2 = load_f32x4(in0 + idx_5 * 4);
    const int32_t idx_6 = 2 + idx_2;
    const f32x4 x1_2 = load_f32x4(in1 + idx_6 * 4);
    const f32x4 add_4 = x0_2 + x1_2;
    const f32x4 neg_2 = -add_4;
    const f32x4 exp_12 = pmin_f32x4(pmax_f32x4(neg_2, splat_f32x4(-87.5f)), splat_f32x4(89.0f));
    const f32x4 exp_13 = exp_12 * splat_f32x4(1.4426950216293335f) + splat_f32x4(12583038.0f);
    const f32x4 exp_14 = exp_13 - splat_f32x4(12583038.0f);
    const f32x4 exp_15 = exp_12 - exp_14 * splat_f32x4(0.693145751953125f) - exp_14 * splat_f32x4(0.000001428606765330187f);
    const f32x4 part_2 = exp_15 * (exp_15 * (exp_15 * (exp_15 * (exp_15 * splat_f32x4(0.0027629078831523657f) + splat_f32x4(0.01673749089241028f)) + splat_f32x4(0.08333677798509598f)) + splat_f32x4(0.3333304226398468f)) + splat_f32x4(0.9999998807907104f)) + splat_f32x4(2.0f);
    const f32x4 exp_2 = (exp_15 * part_2 + splat_f32x4(2.0f)) * (f32x4)((i32x4)((u32x4)((i32x4)exp_13) << 23));
    const f32x4 add_5 = exp_2 + splat_f32x4(1.0f);
    const f32x4 recip_2 = splat_f32x4(1.0f) / add_5;
    const f32x4 mul_2 = add_4 * recip_2;
    store_f32x4(out0 + idx_5 * 4, mul_2);
    const int32_t idx_7 = 3 + idx;
    const f32x4 x0_3 = load_f32x4(in0 + idx_7 * 4);
    const int32_t idx_8 = 3 + idx_2;
    const f32x4 x1_3 = load_f32x4(in1 + idx_8 * 4);
    const f32x4 add_6 = x0_3 + x1_3;
    const f32x4 neg_3 = -add_6;
    const f32x4 exp_16 = pmin_f32x4(pmax_f32x4(neg_3, splat_f32x4(-87.5f)), splat_f32x4(89.0f));
    const f32x4 exp_17 = exp_16 * splat_f32x4(1.4426950216293335f) + splat_f32x4(12583038.0f);
    const f32x4 exp_18 = exp_17 - splat_f32x4(12583038.0f);
    const f32x4 exp_19 = exp_16 - exp_18 * splat_f32x4(0.693145751953125f) - exp_18 * splat_f32x4(0.000001428606765330187f);
    const f32x4 part_3 = exp_19 * (exp_19 * (exp_19 * (exp_19 * (exp_19 * splat_f32x4(0.0027629078831523657f) + splat_f32x4(0.01673749089241028f)) + splat_f32x4(0.08333677798509598f)) + splat_f32x4(0.3333304226398468f)) + splat_f32x4(0.9999998807907104f)) + splat_f32x4(2.0f);
    const f32x4 exp_3 = (exp_19 * part_3 + splat_f32x4(2.0f)) * (f32x4)((i32x4)((u32x4)((i32x4)exp_17) << 23));
    const f32x4 add_7 = exp_3 + splat_f32x4(1.0f);
    const f32x4 recip_3 = splat_f32x4(1.0f) / add_7;
    const f32x4 mul_3 = add_6 * recip_3;
    store_f32x4(out0 + idx_7 * 4, mul_3);
  }
}

SINTER_KERNEL void map_mul_0(
    int32_t first, int32_t end, void *const *buffers, const uint32_t *scalars, void *scratch) {
  (void)scalars;
  (void)scratch;
  for (int32_t group = first; group < end; group++)
    map_mul_0_group(group, buffers[0], buffers[1], buffers[2]);
}
