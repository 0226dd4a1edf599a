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
#ifndef SINTER_F16X4_U
#define SINTER_F16X4_U
typedef uint16_t f16x4_u __attribute__((vector_size(8), aligned(2), may_alias));
#endif
#ifndef SINTER_U32X4
#define SINTER_U32X4
typedef uint32_t u32x4 __attribute__((vector_size(16)));
#endif
#ifndef SINTER_I32X4
#define SINTER_I32X4
typedef int32_t i32x4 __attribute__((vector_size(16)));
#endif
#ifndef SINTER_F32X4_OF_F16
#define SINTER_F32X4_OF_F16
static inline f32x4 f32x4_of_f16(u32x4 x) {
  #ifdef __F16C__
  const i32x4 low = (i32x4)(x & 0xffffu);
  return __builtin_ia32_vcvtph2ps(__builtin_ia32_packusdw128(low, low));
  #else
  const f32x4 scaled = (f32x4)((x & 0x7fffu) << 13) * 5192296858534827628530496329220096.0f;
  // Infinities and NaN keep their fraction under the largest exponent.
  const u32x4 special = (u32x4)(scaled >= 65536.0f) & 0x7f800000u;
  return (f32x4)((u32x4)scaled | special | (x & 0x8000u) << 16);
  #endif
}
#endif
#ifndef SINTER_I16X8
#define SINTER_I16X8
typedef int16_t i16x8 __attribute__((vector_size(16)));
#endif
#ifndef SINTER_U64X2
#define SINTER_U64X2
typedef uint64_t u64x2 __attribute__((vector_size(16)));
#endif
#ifndef SINTER_HAS_BUILTIN
#define SINTER_HAS_BUILTIN
#if !defined(SINTER_KNOWS) && defined(__has_builtin)
#define SINTER_KNOWS(name) __has_builtin(name)
#elif !defined(SINTER_KNOWS)
#define SINTER_KNOWS(name) 0
#endif
#endif
#ifndef SINTER_LOAD_F16X4
#define SINTER_LOAD_F16X4
static inline f32x4 load_f16x4(const uint16_t *p) {
#if SINTER_KNOWS(__builtin_ia32_vcvtph2ps) && defined(__F16C__)
  uint64_t four;
  __builtin_memcpy(&four, p, sizeof four);
  return __builtin_ia32_vcvtph2ps((i16x8)(u64x2){four, 0});
#else
  return f32x4_of_f16(__builtin_convertvector(*(const f16x4_u *)p, u32x4));
#endif
}
#endif
#ifndef SINTER_F16_OF_F32X4
#define SINTER_F16_OF_F32X4
static inline u32x4 f16_of_f32x4(f32x4 x) {
  const u32x4 word = (u32x4)x, size = word & 0x7fffffffu;
  // The exponent's bias changes, and half of the last place is added, a little less where that is even.
  const u32x4 normal = (size + 0xc8000fffu + ((size >> 13) & 1u)) >> 13;
  // Below 2^-14: added to a half, the last bits are those of the result.
  const u32x4 small = (u32x4)((f32x4)size + 0.5f) - 0x3f000000u;
  const u32x4 finite = (u32x4)(((i32x4)normal & (size > 0x387fffffu)) | ((i32x4)small & ~(size > 0x387fffffu)));
  const u32x4 other = 0x7c00u | ((u32x4)(size > 0x7f800000u) & 0x0200u);
  const u32x4 whole = (u32x4)(((i32x4)finite & (size < 0x47800000u)) | ((i32x4)other & ~(size < 0x47800000u)));
  return whole | ((word >> 16) & 0x8000u);
}
#endif
#ifndef SINTER_STORE_F16X4
#define SINTER_STORE_F16X4
static inline void store_f16x4(uint16_t *p, f32x4 x) {
  *(f16x4_u *)p = __builtin_convertvector(f16_of_f32x4(x), f16x4_u);
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
  const f32x4 add = x0 + x1;
  store_f16x4(out0 + idx * 4, add);
  const int32_t idx_1 = 1 + turn * 4;
  const f32x4 x0_1 = load_f16x4(in0 + idx_1 * 4);
  const f32x4 x1_1 = load_f16x4(in1 + idx_1 * 4);
  const f32x4 add_1 = x0_1 + x1_1;
  store_f16x4(out0 + idx_1 * 4, add_1);
  const int32_t idx_2 = 2 + turn * 4;
  const f32x4 x0_2 = load_f16x4(in0 + idx_2 * 4);
  const f32x4 x1_2 = load_f16x4(in1 + idx_2 * 4);
  const f32x4 add_2 = x0_2 + x1_2;
  store_f16x4(out0 + idx_2 * 4, add_2);
  const int32_t idx_3 = 3 + turn * 4;
  const f32x4 x0_3 = load_f16x4(in0 + idx_3 * 4);
  const f32x4 x1_3 = load_f16x4(in1 + idx_3 * 4);
  const f32x4 add_3 = x0_3 + x1_3;
  store_f16x4(out0 + idx_3 * 4, add_3);
}

SINTER_KERNEL void map_add_0(
    int32_t first, int32_t end, void *const *buffers, const uint32_t *scalars, void *scratch) {
  (void)scalars;
  (void)scratch;
  for (int32_t group = first; group < end; group++)
    map_add_0_group(group, buffers[0], buffers[1], buffers[2]);
}
