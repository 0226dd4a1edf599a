// `sinter/runtime`: the low-level face, for programs that mix Sinter with other code on the same
// device: memory, layouts, fences, pools, backends, all by their own names.

// Memory on devices
export { DeviceBuffer, type MapMode, type Claim } from '../tensor/buffer/buffer.ts';
export {
  allocateBuffer,
  uploadBuffer,
  wrapBuffer,
  type BufferOptions,
  type UploadOptions,
  type WrapOptions,
  type WrappedMemory,
} from '../tensor/buffer/source.ts';
export { Fence, fenceId, noFence, type FenceId } from '../tensor/buffer/fence.ts';

// Element formats
export {
  deviceByteSize,
  elemSize,
  describeFormat,
  q8,
  q8BlockStride,
  decodeQ8,
  encodeQ8,
  type Format,
  type FormatInfo,
  type Q8,
} from '../tensor/buffer/format.ts';

// Devices and backends
export {
  capabilities,
  cdistSupports,
  getBackend,
  gpuBackend,
  hasBackend,
  limitPool,
  nativeDevice,
  openDevice,
  poolStats,
  registerBackend,
  streamCount,
  trimPool,
  type BackendBuffer,
  type Capabilities,
  type PoolStats,
} from './backends.ts';
export type {
  Backend,
  Device,
  DeviceFacts,
  DeviceLimits,
  HostFunctions,
  LoadedProgram,
} from '../runtime/device.ts';
export type { NativeApi, NativeDevice, NativeMemory, Sharing } from '../runtime/sharing.ts';
export type { Program, ProgramBuffer, ProgramKernel, ProgramStep } from '../runtime/program.ts';

// Layouts
export { arrange, layoutOf } from './arrange.ts';
export { Layout, type LayoutRange, type MemoryFormat } from './layout.ts';

// Descriptors, numbers, gradients
export { dlDevices, fromDlpack, toDlpack, type DLTensor } from './dlpack.ts';
export { storageId, type GradId, type Id, type OpId, type ParamId, type StorageId } from './ids.ts';
export { gradMeta, incomingGrads, type GradMeta } from './meta.ts';

// Storage
export { Storage, WeakStorage, type Dirty, type Residency, type StorageOptions } from './storage.ts';
