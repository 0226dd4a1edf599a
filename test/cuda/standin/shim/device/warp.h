// Where threads wait for each other: barriers of the block, and the collectives of a warp, each made of one exchange of bytes
// between its lanes. The line of a call comes in by a default argument: lanes that meet must stand at the same one.
#pragma once

#define CUDA_LINE int line = __builtin_LINE()

static inline void __syncthreads(CUDA_LINE) { cuda_barrier(0, 0, line); }
static inline int __syncthreads_count(int predicate, CUDA_LINE) {
  __shared__ int count;
  cuda_barrier(0, 0, line);
  count = 0;
  cuda_barrier(0, 0, line);
  count += predicate != 0;
  cuda_barrier(0, 0, line);
  return count;
}
static inline int __syncthreads_or(int predicate, CUDA_LINE) { return __syncthreads_count(predicate, line) != 0; }
static inline int __syncthreads_and(int predicate, CUDA_LINE) { return __syncthreads_count(!predicate, line) == 0; }
static inline void bar_sync(int id, int count, CUDA_LINE) { cuda_barrier(id, count, line); }
static inline void bar_arrive(int id, int count) { cuda_barrier_arrive(id, count); }
static inline void __threadfence() {}
static inline void __threadfence_block() {}
static inline void __threadfence_system() {}
static inline void __nanosleep(unsigned) {}
static inline void __syncwarp(unsigned mask = 0xffffffffu, CUDA_LINE) {
  int nothing = 0;
  cuda_exchange(mask, &nothing, sizeof nothing, line);
}
static inline unsigned __activemask() { return 0xffffffffu; }

template <class T>
CUDA_MACHINE T cuda_shuffle(unsigned mask, T value, int from, int line) {
  static_assert(sizeof(T) <= 8, "shuffles take 4 or 8 bytes");
  const unsigned char *lanes = cuda_exchange(mask, &value, sizeof(T), line);
  if (!(mask >> from & 1)) cuda_fail("a shuffle reads a lane outside its mask");
  T result;
  __builtin_memcpy(&result, lanes + 64 * from, sizeof(T));
  return result;
}
template <class T>
static inline T __shfl_sync(unsigned mask, T value, int from, int width = 32, CUDA_LINE) {
  int lane = (int)cuda_machine.lane;
  return cuda_shuffle(mask, value, (lane & ~(width - 1)) | (from & (width - 1)), line);
}
template <class T>
static inline T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32, CUDA_LINE) {
  int lane = (int)cuda_machine.lane, from = lane ^ bits;
  return cuda_shuffle(mask, value, from / width <= lane / width ? from : lane, line);
}
template <class T>
static inline T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32, CUDA_LINE) {
  int lane = (int)cuda_machine.lane, place = lane & (width - 1);
  return cuda_shuffle(mask, value, place + (int)by < width ? lane + (int)by : lane, line);
}
template <class T>
static inline T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32, CUDA_LINE) {
  int lane = (int)cuda_machine.lane, place = lane & (width - 1);
  return cuda_shuffle(mask, value, place >= (int)by ? lane - (int)by : lane, line);
}

/** Folds the values of the lanes in `mask` that the block has. */
template <class T, class Fold>
CUDA_MACHINE T cuda_fold(unsigned mask, T value, int line, Fold fold) {
  const unsigned char *lanes = cuda_exchange(mask, &value, sizeof(T), line);
  unsigned threads = blockDim.x * blockDim.y * blockDim.z, first = cuda_machine.warp * 32;
  T result = 0;
  bool any = false;
  for (unsigned lane = 0; lane < 32 && first + lane < threads; lane++) {
    if (!(mask >> lane & 1)) continue;
    T other;
    __builtin_memcpy(&other, lanes + 64 * lane, sizeof(T));
    result = any ? fold(result, other) : other;
    any = true;
  }
  return result;
}
static inline unsigned __ballot_sync(unsigned mask, int predicate, CUDA_LINE) {
  unsigned bit = (predicate != 0 ? 1u : 0u) << cuda_machine.lane;
  return cuda_fold(mask, bit, line, [](unsigned a, unsigned b) { return a | b; });
}
static inline int __any_sync(unsigned mask, int predicate, CUDA_LINE) { return __ballot_sync(mask, predicate, line) != 0; }
static inline int __all_sync(unsigned mask, int predicate, CUDA_LINE) { return __ballot_sync(mask, !predicate, line) == 0; }
template <class T>
static inline unsigned __match_any_sync(unsigned mask, T value, CUDA_LINE) {
  const unsigned char *lanes = cuda_exchange(mask, &value, sizeof(T), line);
  unsigned equal = 0;
  for (unsigned lane = 0; lane < 32; lane++)
    if (mask >> lane & 1 && __builtin_memcmp(lanes + 64 * lane, &value, sizeof(T)) == 0) equal |= 1u << lane;
  return equal;
}
#define CUDA_REDUCE(name, T, expression) \
  static inline T name(unsigned mask, T value, CUDA_LINE) { \
    return cuda_fold(mask, value, line, [](T a, T b) { return (T)(expression); }); \
  }
CUDA_REDUCE(__reduce_add_sync, unsigned, a + b)
CUDA_REDUCE(__reduce_add_sync, int, (int)((unsigned)a + (unsigned)b))
CUDA_REDUCE(__reduce_min_sync, unsigned, a < b ? a : b)
CUDA_REDUCE(__reduce_min_sync, int, a < b ? a : b)
CUDA_REDUCE(__reduce_max_sync, unsigned, a > b ? a : b)
CUDA_REDUCE(__reduce_max_sync, int, a > b ? a : b)
CUDA_REDUCE(__reduce_and_sync, unsigned, a & b)
CUDA_REDUCE(__reduce_or_sync, unsigned, a | b)
CUDA_REDUCE(__reduce_xor_sync, unsigned, a ^ b)
#undef CUDA_REDUCE
