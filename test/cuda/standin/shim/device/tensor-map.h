// What a tensor map says, as the stand-in keeps it in the 128 bytes of a CUtensorMap.
#pragma once

struct CudaTensorMap {
  unsigned long long address, strides[5];
  /** Sizes less one. */
  unsigned sizes[5], box[5];
  unsigned bytes, rank, swizzle;
};
static_assert(sizeof(CudaTensorMap) <= 128, "a CUtensorMap has 128 bytes");
