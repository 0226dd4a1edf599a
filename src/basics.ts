// What `sinter` exports beside operations, listed one by one: tensors as such, derivatives, compiling, devices, errors.

// Tensors
export { Tensor, type BackwardOptions, type NestedArray, type TensorLike } from './tensor/tensor.ts';
export { fromBuffer, type FromBufferOptions } from './tensor/from-buffer.ts';
export { treeLeaves, treeMap, type Tree } from './tensor/tree.ts';
export type { ComplexDType, DType, FloatDType, IntegerDType } from './ir/dtype.ts';
export type { DataOf, Floated, ItemOf, Promoted, Summed } from './tensor/inferred.ts';
export type { HostData } from './ir/value.ts';

// Derivatives
export { customJvp, customVjp } from './tensor/derivative/custom.ts';
export { stopGradient } from './tensor/derivative/stop.ts';
export {
  enableGrad,
  grad,
  gradients,
  noGrad,
  valueAndGrad,
  vjp,
  type GradientOf,
  type GradOptions,
} from './tensor/derivative/transform.ts';

// Mixed precision
export { autocast, withAutocast, type AutocastOptions, type AutocastType } from './tensor/autocast.ts';

// Compiling
export { compile, type CompileFunctionOptions } from './tensor/compile/compile.ts';
export {
  dim,
  type Dim,
  type DimOptions,
  type DimPattern,
  type Dims,
  type DimTree,
} from './tensor/sizes/dim.ts';
export { setAutoDims } from './tensor/sizes/auto.ts';
export { type Schedules } from './tune/book.ts';
export { measuredSchedules } from './tune/measured.ts';
export type { TuneOptions } from './tune/tune.ts';

// Looking inside
export { explain, loadCompiler, lower } from './explain/front.ts';
export { Explanation } from './explain/explanation.ts';
export type { TextOptions } from './explain/text.ts';
export type {
  CostModel,
  Explained,
  ExplainedAccess,
  ExplainedKernel,
  ExplainedNode,
  ExplainedReason,
  ExplainedFusionDiagnostic,
  ExplainedSource,
  MemoryUse,
  Recomputation,
  Totals,
} from './explain/types.ts';
export type { LoweredSource, LowerOptions } from './explain/explain.ts';

// Devices and memory
export { setChecks, setDebug } from './tensor/debug.ts';
export { close, devices, setDevice, synchronize } from './tensor/device.ts';

// Looking at what happens
export { detectAnomaly } from './tensor/anomaly.ts';
export {
  check,
  type DeviceCheck,
  type CheckedKernel,
  type CheckKernelsOptions,
} from './tensor/check/check.ts';
export { useWorkarounds, type Workaround, type Workarounds } from './tensor/workarounds/use.ts';
export { profile, type Profile, type ProfiledKernel } from './tensor/profiling/profile.ts';
export type { CompileEvent } from './tensor/report/compiles.ts';
export { stats, type Stats } from './tensor/report/stats.ts';
export { matmulPrecision, setMatmulPrecision, type MatmulPrecision } from './tensor/precision.ts';
export type { DeviceReport } from './runtime/registry.ts';
export { setRetainedMemoryLimit } from './tensor/values.ts';
export { manualSeed, restoreRngState, saveRngState, type RngState } from './tensor/generator.ts';

// Errors
export {
  CompilerBug,
  DeviceError,
  IndexError,
  ParseError,
  SinterError,
  TensorError,
  type ErrorCode,
} from './errors.ts';
