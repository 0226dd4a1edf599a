// Atomic operations. One thread of the host runs the whole grid and switches only where a CUDA thread waits, so a plain read and
// write is atomic. The checker sees one access, marked as atomic: atomics do not race with each other.
#pragma once

extern "C" void cuda_touch_atomic(const void *address, unsigned bytes);

#define CUDA_ATOMIC(name, expression) \
  template <class T> \
  CUDA_MACHINE T name(T *address, T value) { \
    cuda_touch_atomic(address, sizeof(T)); \
    T old = *address; \
    *address = (expression); \
    return old; \
  } \
  template <class T> static inline T name##_block(T *address, T value) { return name(address, value); }
/** The type of a value passed beside a pointer to T, which does not take part in deduction. */
template <class T> struct CudaSame { typedef T type; };
#define CUDA_ATOMIC_CONVERTING(name) \
  template <class T, class U> static inline T name(T *address, U value) { return name<T>(address, (T)value); }

CUDA_ATOMIC(atomicAdd, (T)(old + value))
CUDA_ATOMIC(atomicSub, (T)(old - value))
CUDA_ATOMIC(atomicMax, value > old ? value : old)
CUDA_ATOMIC(atomicMin, value < old ? value : old)
CUDA_ATOMIC(atomicExch, value)
CUDA_ATOMIC(atomicAnd, (T)(old & value))
CUDA_ATOMIC(atomicOr, (T)(old | value))
CUDA_ATOMIC(atomicXor, (T)(old ^ value))
CUDA_ATOMIC(atomicInc, old >= value ? (T)0 : (T)(old + 1))
CUDA_ATOMIC(atomicDec, old == 0 || old > value ? value : (T)(old - 1))
CUDA_ATOMIC_CONVERTING(atomicAdd)
CUDA_ATOMIC_CONVERTING(atomicSub)
CUDA_ATOMIC_CONVERTING(atomicMax)
CUDA_ATOMIC_CONVERTING(atomicMin)
CUDA_ATOMIC_CONVERTING(atomicExch)
CUDA_ATOMIC_CONVERTING(atomicAnd)
CUDA_ATOMIC_CONVERTING(atomicOr)
CUDA_ATOMIC_CONVERTING(atomicXor)
#undef CUDA_ATOMIC
#undef CUDA_ATOMIC_CONVERTING

template <class T>
CUDA_MACHINE T atomicCAS(T *address, typename CudaSame<T>::type expected, typename CudaSame<T>::type value) {
  cuda_touch_atomic(address, sizeof(T));
  T old = *address;
  if (__builtin_memcmp(&old, &expected, sizeof old) == 0) *address = value;
  return old;
}
