// Tensor maps, as the device's copies of boxes (device/hopper.h) read them. The checks are the ones of the driver's manual.

#include <cstring>

#include "driver.h"
#include "../device/tensor-map.h"

using namespace standin;

API cuTensorMapEncodeTiled(void *map, int type, unsigned rank, void *address, const unsigned long long *sizes, const unsigned long long *strides,
                           const unsigned *box, const unsigned *steps, int interleave, int swizzle, int promotion, int fill) {
  ENTER(cuTensorMapEncodeTiled, nothing)
  static const unsigned bytes_of[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
  static const unsigned spans[] = {0, 32, 64, 128};
  auto number = [](const void *pointer) { return reinterpret_cast<unsigned long long>(pointer); };
  NEED(map != nullptr && number(map) % 64 == 0, CUDA_ERROR_INVALID_VALUE)
  NEED(type >= 0 && type <= 12 && rank >= 1 && rank <= 5, CUDA_ERROR_INVALID_VALUE)
  NEED(address != nullptr && number(address) % 16 == 0, CUDA_ERROR_INVALID_VALUE)
  NEED(sizes != nullptr && box != nullptr && steps != nullptr && (rank == 1 || strides != nullptr), CUDA_ERROR_INVALID_VALUE)
  // Interleaved layouts are not modelled.
  NEED(interleave == 0 && swizzle >= 0 && swizzle <= 3 && promotion >= 0 && promotion <= 3 && fill >= 0 && fill <= 1, CUDA_ERROR_INVALID_VALUE)
  unsigned bytes = bytes_of[type];
  NEED(box[0] * bytes % 16 == 0, CUDA_ERROR_INVALID_VALUE)
  NEED(swizzle == 0 || box[0] * bytes <= spans[swizzle], CUDA_ERROR_INVALID_VALUE)
  CudaTensorMap encoded = {};
  encoded.address = number(address);
  encoded.bytes = bytes;
  encoded.rank = rank;
  encoded.swizzle = static_cast<unsigned>(swizzle);
  for (unsigned i = 0; i < rank; i++) {
    NEED(sizes[i] > 0 && sizes[i] <= 1ull << 32 && box[i] > 0 && box[i] <= 256 && steps[i] == 1, CUDA_ERROR_INVALID_VALUE)
    NEED(i == 0 || (strides[i - 1] > 0 && strides[i - 1] % 16 == 0 && strides[i - 1] < 1ull << 40), CUDA_ERROR_INVALID_VALUE)
    NEED(i < 2 || strides[i - 1] % strides[i - 2] == 0, CUDA_ERROR_INVALID_VALUE)
    encoded.sizes[i] = static_cast<unsigned>(sizes[i] - 1);
    encoded.box[i] = box[i];
    encoded.strides[i] = i == 0 ? bytes : strides[i - 1];
  }
  std::memcpy(map, &encoded, sizeof encoded);
  return CUDA_SUCCESS;
}
