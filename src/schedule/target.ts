// The targets: one or two profiles for each language that kernels are written in, and the table that makes
// them of the facts that an open device reports.

import { SinterError } from '../errors.ts';
import { dtypes } from '../ir/dtype.ts';
import type { DeviceFacts } from '../runtime/device.ts';
import type { TargetId } from '../runtime/program.ts';
import type { Target, VectorProfile } from './machine.ts';

export type { RowProfile, SerialProfile, Target, VectorProfile } from './machine.ts';

/** A mid-range GPU with the limits every WebGPU device offers. Budgets are counted on this one. */
export const gpuTarget: Target = {
  id: 'wgsl',
  name: 'wgsl',
  machine: 'gpu',
  dtypes: ['f32', 'f16', 'bf16', 'i32', 'u32', 'i64', 'u64', 'bool'],
  limits: {
    storageBuffers: 8,
    bufferBytes: 268_435_456,
    bindingBytes: 134_217_728,
    workgroupBytes: 16_384,
    workgroupInvocations: 256,
    workgroupsPerDimension: 65_535,
  },
  cores: { count: 64, invocations: 1024 },
  elementsPerInvocation: 4,
  workgroupSize: 64,
  rows: { alone: 8, share: 8, registers: 16, shared: 12_288, fuse: 0, split: 64 },
  combining: 'nobody',
  launch: 5,
  bandwidth: 400_000,
  arithmetic: 8_000_000,
  step: 0.02,
  // Weights are read once for several rows.
  furtherRow: 0.1,
  isBesideHost: true,
};

/**
 * A software adapter on a few cores, from measurements: barriers expensive, many floats an
 * invocation, 11 µs a dispatch.
 */
export const softwareTarget: Target = {
  ...gpuTarget,
  name: 'wgsl:software',
  machine: 'software',
  cores: { count: 2, invocations: 256 },
  elementsPerInvocation: 256,
  workgroupSize: 16,
  rows: { alone: Infinity, share: 1, registers: 8, shared: 0, fuse: Infinity, split: 2048 },
  launch: 11,
  bandwidth: 4_000,
  arithmetic: 10_000,
  // Cores are busy with the arithmetic too.
  furtherRow: 0.6,
};

/** An H200 or H100, by its data sheet and the copy bandwidth measured on one. */
export const cudaTarget: Target = {
  ...gpuTarget,
  id: 'cuda',
  name: 'cuda',
  bindsParts: true,
  dtypes,
  limits: {
    // Pointers are cheap; a masked attention's gradients take ten.
    storageBuffers: 16,
    bufferBytes: 2 ** 40,
    bindingBytes: 2 ** 40,
    // 227 KiB, of which launches must ask for what is beyond 48.
    workgroupBytes: 232_448,
    workgroupInvocations: 1024,
    workgroupsPerDimension: 65_535,
  },
  cores: { count: 132, invocations: 2048 },
  // Warps are filled in order.
  subgroups: { min: 32, max: 32, inOrder: true },
  matrixUnits: ['f16', 'bf16'],
  combining: 'stream',
  launch: 3,
  bandwidth: 4_300_000,
  arithmetic: 50_000_000,
};

/**
 * WebAssembly SIMD: a kernel costs next to nothing to start. Schedules are the same for any number
 * of threads, so that results are too; eight are as many as share a kernel.
 */
export const wasmTarget: Target = {
  ...softwareTarget,
  id: 'wasm',
  name: 'wasm',
  machine: 'cpu',
  dtypes,
  limits: {
    storageBuffers: 256,
    bufferBytes: 2 ** 31,
    bindingBytes: 2 ** 31,
    workgroupBytes: 2 ** 21,
    workgroupInvocations: 1024,
    workgroupsPerDimension: 2 ** 30,
  },
  cores: { count: 8, invocations: 8 },
  elementsPerInvocation: 16_384,
  workgroupSize: 1,
  // Half of the second level of a cache.
  rows: { ...softwareTarget.rows, shared: 262_144 },
  combining: 'communicator',
  serial: { unroll: 4, work: 32, width: 16 },
  launch: 1,
  bandwidth: 20_000,
  arithmetic: 30_000,
  isBesideHost: false,
};

/** C on the processor of this machine, which shares the memory of WebAssembly and its schedules. */
export const cTarget: Target = { ...wasmTarget, id: 'c', name: 'native', bindsParts: true };

/** The reference interpreter runs graphs; what is said of it is scheduled as for a GPU. */
export const interpreterTarget: Target = {
  ...gpuTarget,
  id: 'interpreter',
  name: 'interpreter',
  dtypes,
  combining: 'communicator',
  furtherRow: 1,
  isBesideHost: false,
};

function wgslOf({ software, limits, subgroups }: DeviceFacts): Target {
  // The software adapter has subgroups of four, which save no barrier that its schedules would
  // have.
  if (software) return { ...softwareTarget, limits: { ...limits } };
  return { ...gpuTarget, limits: { ...limits }, ...(subgroups !== undefined && { subgroups }) };
}

function cudaOf({ features, limits, multiprocessors, subgroups }: DeviceFacts): Target {
  const { matrixUnits, cores, ...simple } = cudaTarget;
  return {
    ...simple,
    cores: multiprocessors ?? cores,
    // What kernels for matrix units are made of begins with compute capability 8.
    ...(features.includes('sm_80') && matrixUnits !== undefined && { matrixUnits }),
    // Warp groups multiply with instructions that this architecture alone has.
    ...(features.includes('sm_90a') && { warpgroups: true }),
    limits: { ...limits, storageBuffers: cudaTarget.limits.storageBuffers },
    ...(subgroups !== undefined && { subgroups: { ...subgroups, inOrder: true } }),
  };
}

function wasmOf({ features, limits, threads }: DeviceFacts): Target {
  return {
    ...wasmTarget,
    limits: { ...limits },
    relaxedSimd: features.includes('relaxed-simd'),
    ...(threads !== undefined && { threads }),
  };
}

function cOf({ features, limits, threads }: DeviceFacts): Target {
  return {
    ...withVectors(cTarget, vectorsOf(features)),
    limits: { ...limits },
    ...(threads !== undefined && { threads }),
  };
}

/** Vector registers of a processor with these features; undefined where they have four lanes. */
export function vectorsOf(features: readonly string[]): VectorProfile | undefined {
  if (features.includes('avx512f')) return { lanes: 16, registers: 32 };
  if (features.includes('avx2') && features.includes('fma')) return { lanes: 8, registers: 16 };
  return undefined;
}

/**
 * The target with registers of so many lanes: an iteration of a loop has as many of them as it has
 * of four lanes elsewhere.
 */
export function withVectors(target: Target, vectors: VectorProfile | undefined): Target {
  const { serial } = target;
  if (vectors === undefined || serial === undefined) return target;
  const times = vectors.lanes / 4;
  return {
    ...target,
    vectors,
    serial: {
      ...serial,
      unroll: serial.unroll * times,
      work: serial.work * times,
      inRegister: times,
    },
  };
}

/** What kernels of a target may use or not, by the names of features. */
const optional: Readonly<Partial<Record<TargetId, readonly string[]>>> = {
  wgsl: ['subgroups'],
  cuda: ['sm_90a', 'sm_80'],
  wasm: ['relaxed-simd'],
  c: ['avx512f', 'avx2'],
};

/** Features of a device that its kernels can do without, the most particular first. */
export function optionalFeatures({ target, features, subgroups }: DeviceFacts): readonly string[] {
  return (optional[target] ?? []).filter(
    (feature) => features.includes(feature) || (feature === 'subgroups' && subgroups !== undefined),
  );
}

/** The facts of the same device, as if it had no such features. */
export function withoutFeatures(facts: DeviceFacts, avoided: readonly string[]): DeviceFacts {
  const { subgroups, ...rest } = facts;
  const features = facts.features.filter((feature) => !avoided.includes(feature));
  return {
    ...rest,
    features,
    ...(subgroups !== undefined && !avoided.includes('subgroups') && { subgroups }),
  };
}

/** The target of programs in a language while the device is not open yet: what it needs of the compiler, every device of it needs. */
export function leastTargetOf(id: TargetId): Target {
  return leastTargets[id];
}

const leastTargets: Readonly<Record<TargetId, Target>> = {
  wgsl: softwareTarget,
  cuda: cudaTarget,
  wasm: wasmTarget,
  c: cTarget,
  interpreter: interpreterTarget,
};

const targets = {
  wgsl: wgslOf,
  cuda: cudaOf,
  wasm: wasmOf,
  c: cOf,
  interpreter: () => interpreterTarget,
} as const satisfies Record<TargetId, (facts: DeviceFacts) => Target>;

/**
 * The profile for an open device, with the device's own limits. Throws E_UNSUPPORTED where the
 * device does not say what it runs.
 */
export function targetOf(facts: DeviceFacts): Target {
  const { name, target } = facts;
  if (Object.hasOwn(targets, target)) return targets[target](facts);
  const known = Object.keys(targets).map((id) => `'${id}'`);
  const seen = `facts.target is ${JSON.stringify(target)}, expected one of ${known.join(', ')}`;
  throw new SinterError(
    'E_UNSUPPORTED',
    `device ${name} does not say which programs it runs: ${seen}` +
      `\n  try: set 'target' in the facts of your backend's device`,
  );
}

/**
 * The profile for a device of this name that is not open: with the limits that every device of its
 * kind has. Undefined for names that do not say what their device runs.
 */
export function targetOfName(name: string): Target | undefined {
  const [kind, rest] = name.split(':');
  if (kind === 'webgpu') return rest === 'software' ? softwareTarget : gpuTarget;
  if (kind === 'cuda') return cudaTarget;
  if (kind === 'wasm') return wasmTarget;
  if (kind === 'native') return cTarget;
  return kind === 'interpreter' ? interpreterTarget : undefined;
}

/**
 * The target for a precision of products of f32: as they are, or in tf32 where the device has
 * matrix units for it.
 */
export function withPrecision(target: Target, precision: 'f32' | 'tf32'): Target {
  const { matrixUnits } = target;
  if (precision === 'f32' || matrixUnits === undefined || matrixUnits.includes('tf32')) return target;
  return { ...target, matrixUnits: [...matrixUnits, 'tf32'] };
}
