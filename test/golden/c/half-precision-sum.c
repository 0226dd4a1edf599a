// map kernel; 1 x 16 elements per invocation
// in0: f16[64], in1: f16[64], out0: f16[64]
// 64 flops, 384 bytes
#include <stdint.h>

#ifndef SINTER_KERNEL
#define SINTER_KERNEL
#endif

#ifndef SINTER_F32X4
#define SINTER_F32X4
typedef float f32x4 __attribute__((vector_size(16)));
#endif
#ifndef SINTER_U16X4_U
#define SINTER_U16X4_U
typedef uint16_t u16x4_u __attribute__((vector_size(8), aligned(2), may_alias));
#endif
#ifndef SINTER_U32_BITS_F32
#define SINTER_U32_BITS_F32
static inline uint32_t u32_bits_f32(float x) {
  uint32_t r;
  __builtin_memcpy(&r, &x, sizeof r);
  return r;
}
#endif
#ifndef SINTER_F32_BITS_U32
#define SINTER_F32_BITS_U32
static inline float f32_bits_u32(uint32_t x) {
  float r;
  __builtin_memcpy(&r, &x, sizeof r);
  return r;
}
#endif
#ifndef SINTER_F32_OF_F16
#define SINTER_F32_OF_F16
// The float that the low 16 bits of a word are: scaled, as its exponents are others.
static inline float f32_of_f16(uint32_t x) {
  const float scaled = f32_bits_u32((x & 0x7fffu) << 13) * 5192296858534827628530496329220096.0f;
  // Infinities and NaN keep their fraction under the largest exponent.
  const uint32_t special = scaled >= 65536.0f ? 0x7f800000u : 0u;
  return f32_bits_u32(u32_bits_f32(scaled) | special | (x & 0x8000u) << 16);
}
#endif
#ifndef SINTER_U32X4
#define SINTER_U32X4
typedef uint32_t u32x4 __attribute__((vector_size(16)));
#endif
#ifndef SINTER_F32_OF_F16X4
#define SINTER_F32_OF_F16X4
static inline f32x4 f32_of_f16x4(u32x4 x) {
  f32x4 r = {0};
  for (int i = 0; i < 4; i++) r[i] = f32_of_f16(x[i]);
  return r;
}
#endif
#ifndef SINTER_LOAD_F16X4
#define SINTER_LOAD_F16X4
static inline f32x4 load_f16x4(const uint16_t *p) {
  return f32_of_f16x4(__builtin_convertvector(*(const u16x4_u *)p, u32x4));
}
#endif
#ifndef SINTER_ABS_F32X4
#define SINTER_ABS_F32X4
static inline f32x4 abs_f32x4(f32x4 x) {
  f32x4 r = {0};
  for (int i = 0; i < 4; i++) r[i] = __builtin_fabsf(x[i]);
  return r;
}
#endif
#ifndef SINTER_I32X4
#define SINTER_I32X4
typedef int32_t i32x4 __attribute__((vector_size(16)));
#endif
#ifndef SINTER_SPLAT_F32X4
#define SINTER_SPLAT_F32X4
static inline f32x4 splat_f32x4(float x) {
  return (f32x4){x, x, x, x};
}
#endif
#ifndef SINTER_SPLAT_I32X4
#define SINTER_SPLAT_I32X4
static inline i32x4 splat_i32x4(int32_t x) {
  return (i32x4){x, x, x, x};
}
#endif
#ifndef SINTER_ADD_I32X4
#define SINTER_ADD_I32X4
static inline i32x4 add_i32x4(i32x4 x, i32x4 y) {
  return (i32x4)((u32x4)x + (u32x4)y);
}
#endif
#ifndef SINTER_SELECT_F32X4
#define SINTER_SELECT_F32X4
static inline f32x4 select_f32x4(i32x4 x, f32x4 y, f32x4 z) {
  f32x4 r = {0};
  for (int i = 0; i < 4; i++) r[i] = (x[i] != 0) ? y[i] : z[i];
  return r;
}
#endif
#ifndef SINTER_F16_OF_F32
#define SINTER_F16_OF_F32
// The nearest 16-bit float, of two the even one.
static inline uint16_t f16_of_f32(float x) {
  const uint32_t word = u32_bits_f32(x), size = word & 0x7fffffffu;
  // The exponent's bias changes, and half of the last place is added, a little less where that is even.
  const uint32_t normal = (size + 0xc8000fffu + ((size >> 13) & 1u)) >> 13;
  // Below 2^-14: added to a half, the last bits are those of the result.
  const uint32_t small = u32_bits_f32(f32_bits_u32(size) + 0.5f) - 0x3f000000u;
  const uint32_t finite = size > 0x387fffffu ? normal : small;
  const uint32_t other = size > 0x7f800000u ? 0x7e00u : 0x7c00u;
  return (uint16_t)((size < 0x47800000u ? finite : other) | ((word >> 16) & 0x8000u));
}
#endif
#ifndef SINTER_F16_OF_F32X4
#define SINTER_F16_OF_F32X4
static inline u32x4 f16_of_f32x4(f32x4 x) {
  u32x4 r = {0};
  for (int i = 0; i < 4; i++) r[i] = f16_of_f32(x[i]);
  return r;
}
#endif
#ifndef SINTER_STORE_F16X4
#define SINTER_STORE_F16X4
static inline void store_f16x4(uint16_t *p, f32x4 x) {
  *(u16x4_u *)p = __builtin_convertvector(f16_of_f32x4(x), u16x4_u);
}
#endif

static inline void map_add_0_group(
    int32_t group,
    const uint16_t *restrict in0,
    const uint16_t *restrict in1,
    uint16_t *out0) {
  const int32_t group_x = group;
  const int32_t turn = group_x + 0;
  const int32_t idx = turn * 4;
  const f32x4 x0 = load_f16x4(in0 + idx * 4);
  const f32x4 x1 = load_f16x4(in1 + idx * 4);
  const f32x4 roundF16 = x0 + x1;
  const f32x4 roundF16_1 = abs_f32x4(roundF16);
  const i32x4 roundF16_2 = (i32x4)roundF16_1;
  const f32x4 part = select_f32x4(roundF16_1 < splat_f32x4(65520.0f), select_f32x4(roundF16_1 < splat_f32x4(0.00006103515625f), roundF16_1 + splat_f32x4(0.5f) - splat_f32x4(0.5f), (f32x4)(add_i32x4(add_i32x4(roundF16_2, splat_i32x4(4095)), (roundF16_2 >> 13) & splat_i32x4(1)) & splat_i32x4(-8192))), roundF16_1 + splat_f32x4(__builtin_inff()));
  const f32x4 add = (f32x4)((i32x4)part | ((i32x4)roundF16 & splat_i32x4(INT32_MIN)));
  store_f16x4(out0 + idx * 4, add);
  const int32_t idx_1 = 1 + turn * 4;
  const f32x4 x0_1 = load_f16x4(in0 + idx_1 * 4);
  const f32x4 x1_1 = load_f16x4(in1 + idx_1 * 4);
  const f32x4 roundF16_3 = x0_1 + x1_1;
  const f32x4 roundF16_4 = abs_f32x4(roundF16_3);
  const i32x4 roundF16_5 = (i32x4)roundF16_4;
  const f32x4 part_1 = select_f32x4(roundF16_4 < splat_f32x4(65520.0f), select_f32x4(roundF16_4 < splat_f32x4(0.00006103515625f), roundF16_4 + splat_f32x4(0.5f) - splat_f32x4(0.5f), (f32x4)(add_i32x4(add_i32x4(roundF16_5, splat_i32x4(4095)), (roundF16_5 >> 13) & splat_i32x4(1)) & splat_i32x4(-8192))), roundF16_4 + splat_f32x4(__builtin_inff()));
  const f32x4 add_1 = (f32x4)((i32x4)part_1 | ((i32x4)roundF16_3 & splat_i32x4(INT32_MIN)));
  store_f16x4(out0 + idx_1 * 4, add_1);
  const int32_t idx_2 = 2 + turn * 4;
  const f32x4 x0_2 = load_f16x4(in0 + idx_2 * 4);
  const f32x4 x1_2 = load_f16x4(in1 + idx_2 * 4);
  const f32x4 roundF16_6 = x0_2 + x1_2;
  const f32x4 roundF16_7 = abs_f32x4(roundF16_6);
  const i32x4 roundF16_8 = (i32x4)roundF16_7;
  const f32x4 part_2 = select_f32x4(roundF16_7 < splat_f32x4(65520.0f), select_f32x4(roundF16_7 < splat_f32x4(0.00006103515625f), roundF16_7 + splat_f32x4(0.5f) - splat_f32x4(0.5f), (f32x4)(add_i32x4(add_i32x4(roundF16_8, splat_i32x4(4095)), (roundF16_8 >> 13) & splat_i32x4(1)) & splat_i32x4(-8192))), roundF16_7 + splat_f32x4(__builtin_inff()));
  const f32x4 add_2 = (f32x4)((i32x4)part_2 | ((i32x4)roundF16_6 & splat_i32x4(INT32_MIN)));
  store_f16x4(out0 + idx_2 * 4, add_2);
  const int32_t idx_3 = 3 + turn * 4;
  const f32x4 x0_3 = load_f16x4(in0 + idx_3 * 4);
  const f32x4 x1_3 = load_f16x4(in1 + idx_3 * 4);
  const f32x4 roundF16_9 = x0_3 + x1_3;
  const f32x4 roundF16_10 = abs_f32x4(roundF16_9);
  const i32x4 roundF16_11 = (i32x4)roundF16_10;
  const f32x4 part_3 = select_f32x4(roundF16_10 < splat_f32x4(65520.0f), select_f32x4(roundF16_10 < splat_f32x4(0.00006103515625f), roundF16_10 + splat_f32x4(0.5f) - splat_f32x4(0.5f), (f32x4)(add_i32x4(add_i32x4(roundF16_11, splat_i32x4(4095)), (roundF16_11 >> 13) & splat_i32x4(1)) & splat_i32x4(-8192))), roundF16_10 + splat_f32x4(__builtin_inff()));
  const f32x4 add_3 = (f32x4)((i32x4)part_3 | ((i32x4)roundF16_9 & splat_i32x4(INT32_MIN)));
  store_f16x4(out0 + idx_3 * 4, add_3);
}

SINTER_KERNEL void map_add_0(
    int32_t first, int32_t end, void *const *buffers, const uint32_t *scalars, void *scratch) {
  (void)scalars;
  (void)scratch;
  for (int32_t group = first; group < end; group++)
    map_add_0_group(group, buffers[0], buffers[1], buffers[2]);
}
