// The driver's calls about memory: buffers, pools, page-locked memory, copies, fills.

#include <cstring>

#include "arena.h"
#include "../control.h"
#include "driver.h"

using namespace standin;

namespace {

struct Pool {
  unsigned long long threshold = 0;
};
Pool default_pool;

CUresult allocate(CUdeviceptr *address, size_t bytes) {
  NEED(address != nullptr && bytes > 0, CUDA_ERROR_INVALID_VALUE)
  CUdeviceptr fresh = take_memory(bytes);
  NEED(fresh != 0, CUDA_ERROR_OUT_OF_MEMORY)
  *address = fresh;
  return CUDA_SUCCESS;
}

Work copy_of(unsigned long long to, bool to_device, unsigned long long from, bool from_device, size_t bytes) {
  Work work;
  work.kind = Work::copy;
  work.to = to;
  work.from = from;
  work.to_device = to_device;
  work.from_device = from_device;
  work.bytes = bytes;
  return work;
}

/** A copy that is done when the call returns: on the default stream, after what that waits for. */
CUresult copy_now(Work work) {
  if (work.bytes == 0) return CUDA_SUCCESS;
  for (Stream *stream : Handles<Stream>::live)
    if (stream->capture != nullptr && stream->blocking) return stream->invalidated = true, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  NEED(!capture_forbids(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
  if (CUresult result = drain_blocking()) return result;
  return work.run();
}

bool is_device_range(CUdeviceptr address, size_t bytes) { return bytes == 0 || is_live(address, bytes); }

unsigned long long number(const void *pointer) { return reinterpret_cast<unsigned long long>(pointer); }

CUresult fill(CUdeviceptr to, unsigned value, unsigned value_bytes, size_t count, Stream *handle) {
  Stream *stream = stream_of(handle);
  NEED(stream != nullptr, CUDA_ERROR_INVALID_HANDLE)
  NEED(to % value_bytes == 0 && is_device_range(to, count * value_bytes), CUDA_ERROR_INVALID_VALUE)
  if (count == 0) return CUDA_SUCCESS;
  Work work;
  work.kind = Work::fill;
  work.to = to;
  work.bytes = count * value_bytes;
  work.value = value;
  work.value_bytes = value_bytes;
  return submit(stream, work);
}

}  // namespace

API cuMemGetInfo_v2(size_t *free, size_t *total) {
  ENTER(cuMemGetInfo_v2, context)
  NEED(free != nullptr && total != nullptr, CUDA_ERROR_INVALID_VALUE)
  *total = static_cast<size_t>(settings.device_bytes);
  *free = *total - static_cast<size_t>(counters.live_bytes);
  return CUDA_SUCCESS;
}

API cuMemAlloc_v2(CUdeviceptr *address, size_t bytes) {
  ENTER(cuMemAlloc_v2, context)
  NEED(!capture_forbids(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
  return allocate(address, bytes);
}

/** Of memory on the device alone: type, device, start and size of the allocation around a pointer. */
API cuPointerGetAttribute(void *value, int attribute, CUdeviceptr address) {
  ENTER(cuPointerGetAttribute, initialised)
  NEED(value != nullptr, CUDA_ERROR_INVALID_VALUE)
  uint64_t start = 0;
  size_t bytes = 0;
  NEED(buffer_around(address, &start, &bytes), CUDA_ERROR_INVALID_VALUE)
  switch (attribute) {
    case 2: *static_cast<unsigned *>(value) = 2; return CUDA_SUCCESS;
    case 9: *static_cast<int *>(value) = 0; return CUDA_SUCCESS;
    case 11: *static_cast<CUdeviceptr *>(value) = start; return CUDA_SUCCESS;
    case 12: *static_cast<size_t *>(value) = bytes; return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

API cuMemFree_v2(CUdeviceptr address) {
  ENTER(cuMemFree_v2, context)
  NEED(!capture_forbids(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
  if (address == 0) return CUDA_SUCCESS;
  if (CUresult result = drain_all()) return result;
  return give_memory(address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API cuMemAllocAsync(CUdeviceptr *address, size_t bytes, Stream *handle) {
  ENTER(cuMemAllocAsync, context)
  Stream *stream = stream_of(handle);
  NEED(stream != nullptr, CUDA_ERROR_INVALID_HANDLE)
  NEED(stream->capture == nullptr, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
  return allocate(address, bytes);
}

API cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t bytes, Pool *pool, Stream *handle) {
  ENTER(cuMemAllocFromPoolAsync, context)
  Stream *stream = stream_of(handle);
  NEED(stream != nullptr, CUDA_ERROR_INVALID_HANDLE)
  NEED(pool == &default_pool, CUDA_ERROR_INVALID_VALUE)
  NEED(stream->capture == nullptr, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
  return allocate(address, bytes);
}

API cuMemFreeAsync(CUdeviceptr address, Stream *handle) {
  ENTER(cuMemFreeAsync, context)
  Stream *stream = stream_of(handle);
  NEED(stream != nullptr, CUDA_ERROR_INVALID_HANDLE)
  NEED(stream->capture == nullptr, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
  uint64_t start = 0;
  size_t bytes = 0;
  NEED(buffer_around(address, &start, &bytes) && start == address, CUDA_ERROR_INVALID_VALUE)
  Work work;
  work.kind = Work::release;
  work.to = address;
  return submit(stream, work);
}

API cuDeviceGetDefaultMemPool(Pool **pool, int device) {
  ENTER(cuDeviceGetDefaultMemPool, initialised)
  NEED(pool != nullptr && device >= 0 && device < settings.devices, CUDA_ERROR_INVALID_VALUE)
  *pool = &default_pool;
  return CUDA_SUCCESS;
}

API cuMemPoolSetAttribute(Pool *pool, int attribute, void *value) {
  ENTER(cuMemPoolSetAttribute, initialised)
  NEED(pool == &default_pool && value != nullptr && attribute >= 1 && attribute <= 8, CUDA_ERROR_INVALID_VALUE)
  if (attribute == 4) std::memcpy(&pool->threshold, value, 8);
  return CUDA_SUCCESS;
}

API cuMemPoolTrimTo(Pool *pool, size_t) {
  ENTER(cuMemPoolTrimTo, initialised)
  NEED(pool == &default_pool, CUDA_ERROR_INVALID_VALUE)
  return CUDA_SUCCESS;
}

API cuMemHostAlloc(void **memory, size_t bytes, unsigned flags) {
  ENTER(cuMemHostAlloc, context)
  NEED(memory != nullptr && bytes > 0 && flags < 8, CUDA_ERROR_INVALID_VALUE)
  *memory = take_pinned(bytes);
  return *memory == nullptr ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

API cuMemAllocHost_v2(void **memory, size_t bytes) {
  ENTER(cuMemAllocHost_v2, context)
  NEED(memory != nullptr && bytes > 0, CUDA_ERROR_INVALID_VALUE)
  *memory = take_pinned(bytes);
  return *memory == nullptr ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

API cuMemFreeHost(void *memory) {
  ENTER(cuMemFreeHost, context)
  if (CUresult result = drain_all()) return result;
  return give_pinned(memory) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API cuMemHostRegister_v2(void *memory, size_t bytes, unsigned) {
  ENTER(cuMemHostRegister_v2, context)
  NEED(memory != nullptr && bytes > 0, CUDA_ERROR_INVALID_VALUE)
  return pin(memory, bytes) ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
}

API cuMemHostUnregister(void *memory) {
  ENTER(cuMemHostUnregister, context)
  return unpin(memory) ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}

API cuMemHostGetDevicePointer_v2(CUdeviceptr *address, void *memory, unsigned flags) {
  ENTER(cuMemHostGetDevicePointer_v2, context)
  NEED(address != nullptr && flags == 0 && is_pinned(memory, 1), CUDA_ERROR_INVALID_VALUE)
  *address = number(memory);
  return CUDA_SUCCESS;
}

API cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes) {
  ENTER(cuMemcpyHtoD_v2, context)
  NEED(from != nullptr && is_device_range(to, bytes), CUDA_ERROR_INVALID_VALUE)
  return copy_now(copy_of(to, true, number(from), false, bytes));
}

API cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes) {
  ENTER(cuMemcpyDtoH_v2, context)
  NEED(to != nullptr && is_device_range(from, bytes), CUDA_ERROR_INVALID_VALUE)
  return copy_now(copy_of(number(to), false, from, true, bytes));
}

API cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  ENTER(cuMemcpyDtoD_v2, context)
  NEED(is_device_range(to, bytes) && is_device_range(from, bytes), CUDA_ERROR_INVALID_VALUE)
  return copy_now(copy_of(to, true, from, true, bytes));
}

API cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, Stream *handle) {
  ENTER(cuMemcpyHtoDAsync_v2, context)
  Stream *stream = stream_of(handle);
  NEED(stream != nullptr, CUDA_ERROR_INVALID_HANDLE)
  NEED(from != nullptr && is_device_range(to, bytes), CUDA_ERROR_INVALID_VALUE)
  if (bytes == 0) return CUDA_SUCCESS;
  Work work = copy_of(to, true, number(from), false, bytes);
  if (!is_pinned(from, bytes) && stream->capture == nullptr) {
    // Pageable memory is read into a staging buffer before the call returns.
    auto start = static_cast<const unsigned char *>(from);
    work.staged = std::make_shared<std::vector<unsigned char>>(start, start + bytes);
  }
  return submit(stream, work);
}

API cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, Stream *handle) {
  ENTER(cuMemcpyDtoHAsync_v2, context)
  Stream *stream = stream_of(handle);
  NEED(stream != nullptr, CUDA_ERROR_INVALID_HANDLE)
  NEED(to != nullptr && is_device_range(from, bytes), CUDA_ERROR_INVALID_VALUE)
  if (bytes == 0) return CUDA_SUCCESS;
  CUresult result = submit(stream, copy_of(number(to), false, from, true, bytes));
  // To pageable memory the call returns when the copy is done.
  if (result != CUDA_SUCCESS || is_pinned(to, bytes) || stream->capture != nullptr) return result;
  return drain(stream);
}

API cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, Stream *handle) {
  ENTER(cuMemcpyDtoDAsync_v2, context)
  Stream *stream = stream_of(handle);
  NEED(stream != nullptr, CUDA_ERROR_INVALID_HANDLE)
  NEED(is_device_range(to, bytes) && is_device_range(from, bytes), CUDA_ERROR_INVALID_VALUE)
  if (bytes == 0) return CUDA_SUCCESS;
  return submit(stream, copy_of(to, true, from, true, bytes));
}

API cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, Stream *stream) {
  ENTER(cuMemsetD8Async, context)
  return fill(to, value, 1, count, stream);
}

API cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, Stream *stream) {
  ENTER(cuMemsetD16Async, context)
  return fill(to, value, 2, count, stream);
}

API cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, Stream *stream) {
  ENTER(cuMemsetD32Async, context)
  return fill(to, value, 4, count, stream);
}

API cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count) {
  ENTER(cuMemsetD8_v2, context)
  if (CUresult result = drain_blocking()) return result;
  return fill(to, value, 1, count, nullptr);
}

API cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t count) {
  ENTER(cuMemsetD32_v2, context)
  if (CUresult result = drain_blocking()) return result;
  return fill(to, value, 4, count, nullptr);
}
