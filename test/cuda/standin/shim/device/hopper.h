// What sm_90a has for warp groups: mbarriers, copies of tiles by maps of tensors, and products of tiles in shared memory. The names
// are those that generated sources wrap PTX in; what they mean stands in tiles.cpp and products.cpp.
#pragma once

#include "tensor-map.h"

/** The 128 bytes that the driver encodes. */
struct __align__(64) TileMap {
  unsigned long long words[16];
};

extern "C" {
void cuda_mbarrier_init(unsigned long long *barrier, int count);
/** Announces bytes (which may be none) and arrives. */
void cuda_mbarrier_arrive(unsigned long long *barrier, int bytes);
void cuda_mbarrier_wait(unsigned long long *barrier, int parity, int line);
void cuda_copy_tile(void *to, const CudaTensorMap *map, unsigned long long *barrier, const int *at, int axes);
/** Sets an element of tiled memory to zero, which products and copies see once the thread has published it. */
void cuda_clear_tile(void *tiles, int element);
void cuda_publish_tiles();
/** Begins to add a product to `count` registers of four sums each. `across`: lines run along the free axis, in panels. */
void cuda_product(const void *lhs, const void *rhs, bool lhs_across, bool rhs_across, int panel, bool is_bf16, float4 *const *sums, int count);
/** The same, with the thread's words of the left operand. */
void cuda_product_of_words(uint4 lhs, const void *rhs, bool rhs_across, int panel, bool is_bf16, float4 *const *sums, int count);
void cuda_product_fence();
void cuda_product_commit();
void cuda_product_wait(int groups, int line);
/** Before sums are read or written by the kernel itself. */
void cuda_product_settle(float4 *sum);
}

static inline void mbarrier_init(unsigned long long *barrier, int count) { cuda_mbarrier_init(barrier, count); }
static inline void mbarrier_arrive(unsigned long long *barrier) { cuda_mbarrier_arrive(barrier, 0); }
static inline void mbarrier_arrive_with(unsigned long long *barrier, int bytes) { cuda_mbarrier_arrive(barrier, bytes); }
static inline void mbarrier_wait(unsigned long long *barrier, int parity, CUDA_LINE) { cuda_mbarrier_wait(barrier, parity, line); }

template <class... At>
static inline void cuda_copy_tile_at(void *to, const TileMap &map, unsigned long long *barrier, At... at) {
  const int all[] = {at...};
  cuda_copy_tile(to, reinterpret_cast<const CudaTensorMap *>(&map), barrier, all, sizeof...(At));
}
static inline void copy_tile_2d(void *to, const TileMap &map, unsigned long long *barrier, int x, int y) {
  cuda_copy_tile_at(to, map, barrier, x, y);
}
static inline void copy_tile_3d(void *to, const TileMap &map, unsigned long long *barrier, int x, int y, int z) {
  cuda_copy_tile_at(to, map, barrier, x, y, z);
}
static inline void copy_tile_4d(void *to, const TileMap &map, unsigned long long *barrier, int x, int y, int z, int u) {
  cuda_copy_tile_at(to, map, barrier, x, y, z, u);
}
static inline void copy_tile_5d(void *to, const TileMap &map, unsigned long long *barrier, int x, int y, int z, int u, int v) {
  cuda_copy_tile_at(to, map, barrier, x, y, z, u, v);
}

static inline void clear_tile(void *tiles, int element) { cuda_clear_tile(tiles, element); }
static inline void publish_tiles() { cuda_publish_tiles(); }

static inline void settle_one(float4 &sum) { cuda_product_settle(&sum); }
template <class... Sums> static inline void settle(Sums &...sums) { (settle_one(sums), ...); }
static inline void wgmma_fence() { cuda_product_fence(); }
static inline void wgmma_commit() { cuda_product_commit(); }
template <int groups> static inline void wgmma_wait(CUDA_LINE) { cuda_product_wait(groups, line); }
template <int registers> static inline void grow_registers() {}
template <int registers> static inline void shrink_registers() {}

/** Shared addresses begin where dynamic shared memory does. */
static inline unsigned shared_address(const void *at) { return (unsigned)(static_cast<const unsigned char *>(at) - cuda_dynamic_shared); }

static inline bool begins_at(const void *memory, unsigned multiple) { return shared_address(memory) % multiple == 0; }

/** Where the descriptor of a matrix says that it begins. Its groups of eight lines are 1024 bytes apart, pieces of them swizzled. */
CUDA_MACHINE const void *cuda_described(unsigned long long descriptor) {
  if (descriptor >> 62 != 1) cuda_fail("wgmma: a descriptor says no swizzle of 128 bytes");
  if ((descriptor >> 32 & 0x3fff) << 4 != 1024) cuda_fail("wgmma: a descriptor says that groups of eight lines are not 1024 bytes apart");
  return cuda_dynamic_shared + ((descriptor & 0x3fff) << 4);
}
/** Bytes between panels, which a descriptor calls the leading dimension. */
static inline int cuda_panel(unsigned long long descriptor) { return (int)(descriptor >> 16 & 0x3fff) << 4; }

#define CUDA_PRODUCT(columns, operand, is_bf16) \
  template <int lhs_across, int rhs_across, class... Sums> \
  static inline void wgmma_n##columns##_##operand(unsigned long long lhs, unsigned long long rhs, Sums &...sums) { \
    static_assert(sizeof...(Sums) == columns / 8, "eight columns a register"); \
    float4 *const all[] = {&sums...}; \
    cuda_product(cuda_described(lhs), cuda_described(rhs), lhs_across != 0, rhs_across != 0, cuda_panel(rhs), is_bf16, all, sizeof...(Sums)); \
  } \
  template <int rhs_across, class... Sums> \
  static inline void wgmma_words_n##columns##_##operand(uint4 lhs, unsigned long long rhs, Sums &...sums) { \
    static_assert(sizeof...(Sums) == columns / 8, "eight columns a register"); \
    float4 *const all[] = {&sums...}; \
    cuda_product_of_words(lhs, cuda_described(rhs), rhs_across != 0, cuda_panel(rhs), is_bf16, all, sizeof...(Sums)); \
  }
#define CUDA_PRODUCTS(columns) CUDA_PRODUCT(columns, f16, false) CUDA_PRODUCT(columns, bf16, true)
CUDA_PRODUCTS(8) CUDA_PRODUCTS(16) CUDA_PRODUCTS(24) CUDA_PRODUCTS(32) CUDA_PRODUCTS(40) CUDA_PRODUCTS(48) CUDA_PRODUCTS(56) CUDA_PRODUCTS(64)
CUDA_PRODUCTS(72) CUDA_PRODUCTS(80) CUDA_PRODUCTS(88) CUDA_PRODUCTS(96) CUDA_PRODUCTS(104) CUDA_PRODUCTS(112) CUDA_PRODUCTS(120) CUDA_PRODUCTS(128)
CUDA_PRODUCTS(136) CUDA_PRODUCTS(144) CUDA_PRODUCTS(152) CUDA_PRODUCTS(160) CUDA_PRODUCTS(168) CUDA_PRODUCTS(176) CUDA_PRODUCTS(184) CUDA_PRODUCTS(192)
CUDA_PRODUCTS(200) CUDA_PRODUCTS(208) CUDA_PRODUCTS(216) CUDA_PRODUCTS(224) CUDA_PRODUCTS(232) CUDA_PRODUCTS(240) CUDA_PRODUCTS(248) CUDA_PRODUCTS(256)
#undef CUDA_PRODUCTS
#undef CUDA_PRODUCT
