// CUDA's vector types, aligned as on the device, with their make_ functions.
#pragma once

#define CUDA_VECTORS(name, T, align2, align4) \
  struct name##1 { \
    T x; \
  }; \
  struct __align__(align2) name##2 { \
    T x, y; \
  }; \
  struct name##3 { \
    T x, y, z; \
  }; \
  struct __align__(align4) name##4 { \
    T x, y, z, w; \
  }; \
  static inline name##1 make_##name##1(T x) { return {x}; } \
  static inline name##2 make_##name##2(T x, T y) { return {x, y}; } \
  static inline name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; } \
  static inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }

CUDA_VECTORS(char, signed char, 2, 4)
CUDA_VECTORS(uchar, unsigned char, 2, 4)
CUDA_VECTORS(short, short, 4, 8)
CUDA_VECTORS(ushort, unsigned short, 4, 8)
CUDA_VECTORS(uint, unsigned, 8, 16)
CUDA_VECTORS(int, int, 8, 16)
CUDA_VECTORS(long, long, 16, 16)
CUDA_VECTORS(ulong, unsigned long, 16, 16)
CUDA_VECTORS(longlong, long long, 16, 16)
CUDA_VECTORS(ulonglong, unsigned long long, 16, 16)
CUDA_VECTORS(float, float, 8, 16)
CUDA_VECTORS(double, double, 16, 16)

#undef CUDA_VECTORS
