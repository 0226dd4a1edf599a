// The driver's calls about itself: initialisation, devices, the primary context, errors.

#include <cstdio>
#include <cstring>

#include "arena.h"
#include "../control.h"
#include "driver.h"

namespace standin {

CUresult broken = CUDA_SUCCESS;

namespace {

struct Context {
  int device, retained;
};

std::recursive_mutex mutex;
bool ready = false;
Context contexts[8];
thread_local Context *bound = nullptr;

const struct {
  CUresult code;
  const char *name, *words;
} results[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {CUDA_ERROR_DEINITIALIZED, "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
    {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {CUDA_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"},
    {CUDA_ERROR_INVALID_PTX, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
    {CUDA_ERROR_LAUNCH_TIMEOUT, "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated"},
    {CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "part or all of the requested memory range is already mapped"},
    {CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "pointer does not correspond to a registered memory region"},
    {CUDA_ERROR_MISALIGNED_ADDRESS, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"},
    {CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "operation failed due to a previous error during capture"},
    {CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "capture was not initiated in this stream"},
    {CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "capturing stream has unjoined work"},
    {CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", "operation would make the legacy stream depend on a capturing blocking stream"},
    {CUDA_ERROR_CAPTURED_EVENT, "CUDA_ERROR_CAPTURED_EVENT", "operation not permitted on an event last recorded in a capturing stream"},
};

bool is_device(int device) { return device >= 0 && device < settings.devices; }

void leave_context(Context &context) {
  context.retained = 0;
  bool any = false;
  for (const Context &other : contexts) any = any || other.retained > 0;
  if (any) return;
  for (Stream *stream : Handles<Stream>::live) stream->queue.clear();
  default_stream.queue.clear();
  give_all_memory();
  broken = CUDA_SUCCESS;
}

}  // namespace

Call::Call(const char *function, Needs needs) : lock(mutex) {
  counters.calls++;
  if (int result = injected(function)) refused = static_cast<CUresult>(result);
  if (refused != CUDA_SUCCESS || needs == nothing) return;
  if (!ready) refused = CUDA_ERROR_NOT_INITIALIZED;
  if (refused != CUDA_SUCCESS || needs == initialised) return;
  if (bound == nullptr || bound->retained == 0) refused = CUDA_ERROR_INVALID_CONTEXT;
  if (refused == CUDA_SUCCESS) refused = broken;
}

}  // namespace standin

using namespace standin;

API cuInit(unsigned flags) {
  ENTER(cuInit, nothing)
  NEED(flags == 0, CUDA_ERROR_INVALID_VALUE)
  NEED(settings.devices > 0, CUDA_ERROR_NO_DEVICE)
  ready = true;
  return CUDA_SUCCESS;
}

API cuDriverGetVersion(int *version) {
  ENTER(cuDriverGetVersion, nothing)
  NEED(version != nullptr, CUDA_ERROR_INVALID_VALUE)
  *version = static_cast<int>(settings.driver_version);
  return CUDA_SUCCESS;
}

API cuGetErrorName(CUresult code, const char **text) {
  if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *text = nullptr;
  for (const auto &one : results)
    if (one.code == code) *text = one.name;
  return *text == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

API cuGetErrorString(CUresult code, const char **text) {
  if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *text = nullptr;
  for (const auto &one : results)
    if (one.code == code) *text = one.words;
  return *text == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

API cuDeviceGetCount(int *count) {
  ENTER(cuDeviceGetCount, initialised)
  NEED(count != nullptr, CUDA_ERROR_INVALID_VALUE)
  *count = static_cast<int>(settings.devices);
  return CUDA_SUCCESS;
}

API cuDeviceGet(int *device, int ordinal) {
  ENTER(cuDeviceGet, initialised)
  NEED(device != nullptr, CUDA_ERROR_INVALID_VALUE)
  NEED(is_device(ordinal), CUDA_ERROR_INVALID_DEVICE)
  *device = ordinal;
  return CUDA_SUCCESS;
}

API cuDeviceGetName(char *name, int length, int device) {
  ENTER(cuDeviceGetName, initialised)
  NEED(name != nullptr && length > 0, CUDA_ERROR_INVALID_VALUE)
  NEED(is_device(device), CUDA_ERROR_INVALID_DEVICE)
  std::snprintf(name, static_cast<size_t>(length), "CUDA stand-in on the CPU");
  return CUDA_SUCCESS;
}

API cuDeviceGetUuid_v2(unsigned char *uuid, int device) {
  ENTER(cuDeviceGetUuid_v2, initialised)
  NEED(uuid != nullptr, CUDA_ERROR_INVALID_VALUE)
  NEED(is_device(device), CUDA_ERROR_INVALID_DEVICE)
  std::memset(uuid, device + 1, 16);
  return CUDA_SUCCESS;
}

API cuDeviceTotalMem_v2(size_t *bytes, int device) {
  ENTER(cuDeviceTotalMem_v2, initialised)
  NEED(bytes != nullptr, CUDA_ERROR_INVALID_VALUE)
  NEED(is_device(device), CUDA_ERROR_INVALID_DEVICE)
  *bytes = static_cast<size_t>(settings.device_bytes);
  return CUDA_SUCCESS;
}

API cuDeviceGetAttribute(int *value, int attribute, int device) {
  ENTER(cuDeviceGetAttribute, initialised)
  NEED(value != nullptr, CUDA_ERROR_INVALID_VALUE)
  NEED(is_device(device), CUDA_ERROR_INVALID_DEVICE)
  bool hopper = settings.capability >= 90;
  static const struct {
    int attribute, value;
  } table[] = {
      {1, 1024}, {2, 1024}, {3, 1024}, {4, 64}, {5, 2147483647}, {6, 65535}, {7, 65535}, {8, 49152}, {9, 65536}, {10, 32}, {12, 65536}, {13, 1785000},
      {15, 0}, {16, 132}, {18, 0}, {19, 1}, {31, 1}, {32, 0}, {36, 2619000}, {37, 5120}, {38, 52428800}, {39, 2048}, {40, 3}, {41, 1}, {82, 65536},
      {83, 1}, {95, 1}, {106, 32}, {111, 1024}, {115, 1},
  };
  switch (attribute) {
    case 75: return *value = static_cast<int>(settings.capability / 10), CUDA_SUCCESS;
    case 76: return *value = static_cast<int>(settings.capability % 10), CUDA_SUCCESS;
    case 81: return *value = hopper ? 233472 : 167936, CUDA_SUCCESS;
    case 97: return *value = hopper ? 232448 : 166912, CUDA_SUCCESS;
    case 120:
    case 127: return *value = hopper, CUDA_SUCCESS;
    default: break;
  }
  NEED(attribute > 0 && attribute < 150, CUDA_ERROR_INVALID_VALUE)
  *value = 0;
  for (const auto &one : table)
    if (one.attribute == attribute) *value = one.value;
  return CUDA_SUCCESS;
}

API cuDevicePrimaryCtxRetain(Context **context, int device) {
  ENTER(cuDevicePrimaryCtxRetain, initialised)
  NEED(context != nullptr, CUDA_ERROR_INVALID_VALUE)
  NEED(is_device(device) && device < 8, CUDA_ERROR_INVALID_DEVICE)
  contexts[device].device = device;
  contexts[device].retained++;
  *context = &contexts[device];
  return CUDA_SUCCESS;
}

API cuDevicePrimaryCtxRelease_v2(int device) {
  ENTER(cuDevicePrimaryCtxRelease_v2, initialised)
  NEED(is_device(device) && device < 8, CUDA_ERROR_INVALID_DEVICE)
  NEED(contexts[device].retained > 0, CUDA_ERROR_INVALID_CONTEXT)
  if (contexts[device].retained == 1) leave_context(contexts[device]);
  else contexts[device].retained--;
  return CUDA_SUCCESS;
}

API cuDevicePrimaryCtxReset_v2(int device) {
  ENTER(cuDevicePrimaryCtxReset_v2, initialised)
  NEED(is_device(device) && device < 8, CUDA_ERROR_INVALID_DEVICE)
  leave_context(contexts[device]);
  return CUDA_SUCCESS;
}

API cuCtxSetCurrent(Context *context) {
  ENTER(cuCtxSetCurrent, initialised)
  NEED(context == nullptr || (context >= contexts && context < contexts + 8 && context->retained > 0), CUDA_ERROR_INVALID_CONTEXT)
  bound = context;
  return CUDA_SUCCESS;
}

API cuCtxGetCurrent(Context **context) {
  ENTER(cuCtxGetCurrent, initialised)
  NEED(context != nullptr, CUDA_ERROR_INVALID_VALUE)
  *context = bound;
  return CUDA_SUCCESS;
}

API cuCtxGetDevice(int *device) {
  ENTER(cuCtxGetDevice, context)
  NEED(device != nullptr, CUDA_ERROR_INVALID_VALUE)
  *device = bound->device;
  return CUDA_SUCCESS;
}

API cuCtxSynchronize() {
  ENTER(cuCtxSynchronize, context)
  NEED(!capture_forbids(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
  return drain_all();
}

API cuCtxGetLimit(size_t *value, int limit) {
  ENTER(cuCtxGetLimit, context)
  NEED(value != nullptr && limit >= 0, CUDA_ERROR_INVALID_VALUE)
  *value = 1024;
  return CUDA_SUCCESS;
}

API cuCtxSetLimit(int limit, size_t) {
  ENTER(cuCtxSetLimit, context)
  NEED(limit >= 0, CUDA_ERROR_INVALID_VALUE)
  return CUDA_SUCCESS;
}
