// The driver's calls about modules, functions and launches.

#include <cstring>

#include "../control.h"
#include "driver.h"
#include "../compiler/image.h"

namespace standin {

namespace {

unsigned most_dynamic_bytes() { return settings.capability >= 90 ? 232448 : 166912; }

/** Whether code for the image's architecture runs on the device. */
bool suits(const Image &image) {
  int here = static_cast<int>(settings.capability);
  if (image.exact) return image.capability == here;
  if (image.virtual_architecture) return image.capability <= here;
  return image.capability / 10 == here / 10 && image.capability <= here;
}

CUresult load_module(Module **module, const void *bytes) {
  NEED(module != nullptr && bytes != nullptr, CUDA_ERROR_INVALID_VALUE)
  Image image;
  NEED(read_image(bytes, image), CUDA_ERROR_INVALID_IMAGE)
  NEED(suits(image), CUDA_ERROR_NO_BINARY_FOR_GPU)
  bool checked = settings.check != 0;
  Built built = build(image.text, image.name, image.build_options(), checked);
  if (built.file.empty()) return tell(built.log), CUDA_ERROR_INVALID_PTX;
  std::string why;
  std::unique_ptr<LoadedProgram> program(load(built.file, checked, why));
  if (program == nullptr) return tell(why), CUDA_ERROR_INVALID_IMAGE;
  for (const auto &[name, kernel] : program->kernels)
    if (kernel->static_bytes > 48 * 1024) {
      tell("kernel " + name + " has " + std::to_string(kernel->static_bytes) + " bytes of static shared memory, of at most 49152");
      return CUDA_ERROR_INVALID_PTX;
    }
  *module = new Module{std::move(program)};
  Handles<Module>::live.insert(*module);
  counters.modules++;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult describe_launch(Function *function, uint3 grid, uint3 block, unsigned dynamic, void **parameters, void **extra, Work &work) {
  NEED(Handles<Function>::has(function), CUDA_ERROR_INVALID_HANDLE)
  NEED(extra == nullptr, CUDA_ERROR_INVALID_VALUE)
  NEED(grid.x > 0 && grid.y > 0 && grid.z > 0 && block.x > 0 && block.y > 0 && block.z > 0, CUDA_ERROR_INVALID_VALUE)
  NEED(grid.x <= 2147483647u && grid.y <= 65535 && grid.z <= 65535, CUDA_ERROR_INVALID_VALUE)
  NEED(block.x <= 1024 && block.y <= 1024 && block.z <= 64, CUDA_ERROR_INVALID_VALUE)
  const Kernel &kernel = *function->kernel;
  NEED(block.x * block.y * block.z <= 1024, CUDA_ERROR_INVALID_VALUE)
  NEED(block.x * block.y * block.z <= kernel.threads, CUDA_ERROR_INVALID_VALUE)
  NEED(dynamic <= function->most_dynamic, CUDA_ERROR_INVALID_VALUE)
  NEED(dynamic + kernel.static_bytes <= most_dynamic_bytes(), CUDA_ERROR_INVALID_VALUE)
  NEED(parameters != nullptr || kernel.parameters.empty(), CUDA_ERROR_INVALID_VALUE)
  work.kind = Work::kernel;
  work.function = function;
  work.grid = grid;
  work.block = block;
  work.dynamic = dynamic;
  work.parameters.clear();
  for (size_t i = 0; i < kernel.parameters.size(); i++) {
    NEED(parameters[i] != nullptr, CUDA_ERROR_INVALID_VALUE)
    auto start = static_cast<const unsigned char *>(parameters[i]);
    work.parameters.emplace_back(start, start + kernel.parameters[i]);
  }
  return CUDA_SUCCESS;
}

}  // namespace standin

using namespace standin;

API cuModuleLoadData(Module **module, const void *image) {
  ENTER(cuModuleLoadData, context)
  return load_module(module, image);
}

API cuModuleLoadDataEx(Module **module, const void *image, unsigned count, const int *options, void *const *values) {
  ENTER(cuModuleLoadDataEx, context)
  NEED(count == 0 || (options != nullptr && values != nullptr), CUDA_ERROR_INVALID_VALUE)
  return load_module(module, image);
}

API cuModuleUnload(Module *module) {
  ENTER(cuModuleUnload, context)
  NEED(Handles<Module>::has(module), CUDA_ERROR_INVALID_HANDLE)
  if (CUresult result = drain_all()) return result;
  Handles<Module>::live.erase(module);
  std::set<Function *> functions = Handles<Function>::live;
  for (Function *function : functions)
    if (function->module == module) {
      Handles<Function>::live.erase(function);
      delete function;
    }
  counters.modules--;
  // The object stays mapped: other modules may have been loaded from it.
  delete module;
  return CUDA_SUCCESS;
}

API cuModuleGetFunction(Function **function, Module *module, const char *name) {
  ENTER(cuModuleGetFunction, context)
  NEED(function != nullptr && name != nullptr, CUDA_ERROR_INVALID_VALUE)
  NEED(Handles<Module>::has(module), CUDA_ERROR_INVALID_HANDLE)
  auto found = module->program->kernels.find(name);
  NEED(found != module->program->kernels.end(), CUDA_ERROR_NOT_FOUND)
  for (Function *known : Handles<Function>::live)
    if (known->kernel == found->second.get()) return *function = known, CUDA_SUCCESS;
  *function = new Function{found->second.get(), module};
  Handles<Function>::live.insert(*function);
  return CUDA_SUCCESS;
}

API cuModuleGetGlobal_v2(CUdeviceptr *, size_t *, Module *module, const char *) {
  ENTER(cuModuleGetGlobal_v2, context)
  NEED(Handles<Module>::has(module), CUDA_ERROR_INVALID_HANDLE)
  return CUDA_ERROR_NOT_FOUND;
}

API cuFuncGetAttribute(int *value, int attribute, Function *function) {
  ENTER(cuFuncGetAttribute, context)
  NEED(value != nullptr && attribute >= 0 && attribute < 16, CUDA_ERROR_INVALID_VALUE)
  NEED(Handles<Function>::has(function), CUDA_ERROR_INVALID_HANDLE)
  switch (attribute) {
    case 0: *value = static_cast<int>(function->kernel->threads); break;
    case 1: *value = static_cast<int>(function->kernel->static_bytes); break;
    case 4: *value = 32; break;
    case 5:
    case 6: *value = static_cast<int>(settings.capability); break;
    case 8: *value = static_cast<int>(function->most_dynamic); break;
    default: *value = 0;
  }
  return CUDA_SUCCESS;
}

API cuFuncSetAttribute(Function *function, int attribute, int value) {
  ENTER(cuFuncSetAttribute, context)
  NEED(Handles<Function>::has(function), CUDA_ERROR_INVALID_HANDLE)
  NEED(attribute == 8 || attribute == 9 || attribute >= 10, CUDA_ERROR_INVALID_VALUE)
  if (attribute != 8) return CUDA_SUCCESS;
  NEED(value >= 0 && static_cast<size_t>(value) + function->kernel->static_bytes <= most_dynamic_bytes(), CUDA_ERROR_INVALID_VALUE)
  function->most_dynamic = static_cast<unsigned>(value);
  return CUDA_SUCCESS;
}

API cuFuncSetCacheConfig(Function *function, int config) {
  ENTER(cuFuncSetCacheConfig, context)
  NEED(Handles<Function>::has(function), CUDA_ERROR_INVALID_HANDLE)
  NEED(config >= 0 && config <= 3, CUDA_ERROR_INVALID_VALUE)
  return CUDA_SUCCESS;
}

API cuFuncGetParamInfo(Function *function, size_t place, size_t *offset, size_t *size) {
  ENTER(cuFuncGetParamInfo, context)
  NEED(Handles<Function>::has(function), CUDA_ERROR_INVALID_HANDLE)
  NEED(offset != nullptr && place < function->kernel->parameters.size(), CUDA_ERROR_INVALID_VALUE)
  *offset = 0;
  for (size_t i = 0; i <= place; i++) {
    size_t bytes = function->kernel->parameters[i], unit = bytes < 8 ? bytes : 8;
    *offset = (*offset + unit - 1) / unit * unit + (i < place ? bytes : 0);
  }
  if (size != nullptr) *size = function->kernel->parameters[place];
  return CUDA_SUCCESS;
}

API cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, Function *function, int threads, size_t dynamic) {
  ENTER(cuOccupancyMaxActiveBlocksPerMultiprocessor, context)
  NEED(Handles<Function>::has(function), CUDA_ERROR_INVALID_HANDLE)
  NEED(blocks != nullptr && threads > 0, CUDA_ERROR_INVALID_VALUE)
  size_t shared = dynamic + function->kernel->static_bytes + 1024, by_shared = 233472 / shared, by_threads = 2048 / static_cast<size_t>(threads);
  *blocks = static_cast<int>(by_shared < by_threads ? by_shared : by_threads);
  if (*blocks > 32) *blocks = 32;
  return CUDA_SUCCESS;
}

static CUresult launch(Function *function, uint3 grid, uint3 block, unsigned dynamic, Stream *handle, void **parameters, void **extra) {
  Stream *stream = stream_of(handle);
  NEED(stream != nullptr, CUDA_ERROR_INVALID_HANDLE)
  Work work;
  if (CUresult result = describe_launch(function, grid, block, dynamic, parameters, extra, work)) return result;
  return submit(stream, std::move(work));
}

API cuLaunchKernel(Function *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                   unsigned dynamic, Stream *stream, void **parameters, void **extra) {
  ENTER(cuLaunchKernel, context)
  return launch(function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, dynamic, stream, parameters, extra);
}

API cuLaunchCooperativeKernel(Function *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                              unsigned block_z, unsigned dynamic, Stream *stream, void **parameters) {
  ENTER(cuLaunchCooperativeKernel, context)
  return launch(function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, dynamic, stream, parameters, nullptr);
}

struct CUlaunchConfig {
  unsigned grid[3], block[3], dynamic;
  Stream *stream;
  void *attributes;
  unsigned count;
};

API cuLaunchKernelEx(const CUlaunchConfig *config, Function *function, void **parameters, void **extra) {
  ENTER(cuLaunchKernelEx, context)
  NEED(config != nullptr && (config->count == 0 || config->attributes != nullptr), CUDA_ERROR_INVALID_VALUE)
  uint3 grid = {config->grid[0], config->grid[1], config->grid[2]}, block = {config->block[0], config->block[1], config->block[2]};
  return launch(function, grid, block, config->dynamic, config->stream, parameters, extra);
}
