// scan kernel; 16 lines of 64, lanes along position
// in0: f32[16,64], out0: f32[16,64]
// 1024 flops, 8192 bytes
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
#ifndef SINTER_STORE_F32X4
#define SINTER_STORE_F32X4
static inline void store_f32x4(float *p, f32x4 x) {
  *(f32x4_u *)p = x;
}
#endif

static inline void scan_0_group(int32_t group, const float *restrict in0, float *out0) {
  const int32_t group_x = group;
  const int32_t unit = group_x + 0;
  float running = 0.0f;
  const int32_t idx = unit * 16;
  for (int32_t step = 0; step < 16; step++) {
    const int32_t idx_1 = idx + step;
    const f32x4 x0 = load_f32x4(in0 + idx_1 * 4);
    running = running + x0[0];
    const float after = running;
    running = running + x0[1];
    const float after_1 = running;
    running = running + x0[2];
    const float after_2 = running;
    running = running + x0[3];
    const float after_3 = running;
    const f32x4 result = (f32x4){after, after_1, after_2, after_3};
    store_f32x4(out0 + idx_1 * 4, result);
  }
}

SINTER_KERNEL void scan_0(
    int32_t first, int32_t end, void *const *buffers, const uint32_t *scalars, void *scratch) {
  (void)scalars;
  (void)scratch;
  for (int32_t group = first; group < end; group++)
    scan_0_group(group, buffers[0], buffers[1]);
}
