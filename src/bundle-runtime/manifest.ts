// What `program.json` of a bundle holds: entry points, what they are called with, their programs
// for each target, and where the weights lie. Plain data; the bundle's code reads it,
// `sinter build` writes it.

import type { ElementType, KernelOutline, ProgramOutline } from '../runtime/program.ts';

/** Targets that bundles run on by themselves. */
export type BundleTarget = 'cuda' | 'webgpu' | 'wasm';

export interface Manifest {
  readonly version: 1;
  /** The program that made the bundle, with its version. */
  readonly producer: string;
  readonly weights: readonly BundleWeight[];
  /** Files of weights, in order; each is read once, from its beginning. */
  readonly files: readonly WeightFile[];
  readonly entries: Readonly<Record<string, BundleEntry>>;
  /** Some entry has ranges of sizes. */
  readonly ranged?: boolean;
}

/** A tensor that calls share: a parameter, a moment of an optimizer, a cache. */
export interface BundleWeight extends BundleTensorType {
  readonly name: string;
  /** Some entry writes it. */
  readonly state: boolean;
}

export interface BundleTensorType {
  readonly dtype: ElementType;
  readonly shape: readonly number[];
}

/** A safetensors file: where the bytes of weights lie in it. */
export interface WeightFile {
  readonly name: string;
  readonly bytes: number;
  /** By rising place, without overlap. */
  readonly parts: readonly WeightPart[];
}

export interface WeightPart {
  /** Index into `weights`. */
  readonly weight: number;
  /** First byte in the file, a multiple of 4, and how many; zeros follow up to a whole word. */
  readonly start: number;
  readonly bytes: number;
}

/** One function of the bundle. */
export interface BundleEntry {
  readonly inputs: readonly EntryInput[];
  readonly outputs: readonly EntryOutput[];
  /** Sizes that were left open and built, in words: `batch 1, 4`. */
  readonly built?: string;
  /** Sizes that programs are for within a range: the smallest, the largest, and what divides each. */
  readonly ranges?: Readonly<Record<string, readonly [min: number, max: number, multipleOf: number]>>;
  /** Sizes that follow from those with ranges. */
  readonly derived?: Readonly<Record<string, Formula>>;
  /**
   * For each target, a program for each set of sizes that were left open; of those with ranges for all
   * sizes up to some, small ones first.
   */
  readonly programs: Readonly<Partial<Record<BundleTarget, readonly BundledProgram[]>>>;
}

export type EntryInput = TensorInput | { readonly name: string; readonly kind: 'number' };

export type TensorInput = OpenType & { readonly name: string; readonly kind: 'tensor' };

export type EntryOutput = OpenType & { readonly name: string };

/** The type of a tensor for callers: names stand for sizes that differ from program to program. */
export interface OpenType {
  readonly dtype: ElementType;
  readonly shape: readonly (number | string)[];
}

/** What the buffers of a program are to its entry, and to the bundle. */
export interface Ports {
  /**
   * Where the entry's inputs go, in their order; -1 for numbers, and for tensors that are not read.
   */
  readonly args: readonly number[];
  readonly weights: readonly WeightPort[];
  /** What the run-time scalars that come first in the program are. */
  readonly scalars: readonly ScalarSource[];
  /** The entry's outputs, in their order. */
  readonly results: readonly number[];
  /** Weights that have a new value after a call. */
  readonly updates: readonly WeightPort[];
  /** Groups of random words that a call draws. */
  readonly draws: Formula;
  /** Labels and indices that a call checks; none where it was built without. */
  readonly checks?: readonly CheckPort[];
}

/** Integers that must lie in a range. */
export interface CheckPort {
  /** u32[1] or u64[1]: how far the outmost integer lies from the first, counted upwards. */
  readonly buffer: number;
  /** `crossEntropy: label`. */
  readonly what: string;
  /** What it is outside of: `the 3 classes of f32[1,3]`. */
  readonly where: string;
  readonly first: Formula;
  /** The first that is outside. */
  readonly end: Formula;
  readonly signed: boolean;
}

export interface WeightPort {
  readonly weight: number;
  readonly buffer: number;
}

export type ScalarSource =
  | { readonly argument: number }
  /** The bits of a number that is the same in all calls. */
  | { readonly word: number }
  /** A word of the seed of random numbers, or of their counter. */
  | { readonly seed: 0 | 1 }
  | { readonly counter: 0 | 1; readonly offset: Formula }
  /** A number that follows from sizes: a float, or the low or high word of an integer or a double. */
  | { readonly size: Formula; readonly as: 'f' | 'i' | 'ih' | 'd' | 'dh' };

/** A number that follows from sizes: one, a size by its name, or a function of others. */
export type Formula =
  | number
  | string
  | readonly ['+' | '*' | '/' | 'min' | 'max', Formula, Formula]
  | readonly ['floor' | 'sqrt' | 'log' | 'fround', Formula];

/**
 * A program whose kernels lie in files of their own. Integers of 8 and 16 bits may lie in buffers of
 * u32, byte for byte.
 */
export type BundledProgram = Omit<ProgramOutline, 'kernels'> & {
  readonly kernels: readonly BundledKernel[];
  readonly ports: Ports;
  /** The sizes of the entry's names; of those with ranges the largest. */
  readonly sizes: Sizes;
  /** The smallest sizes of those with ranges: such a program is run at sizes alone. */
  readonly least?: Sizes;
  /**
   * CUDA: what GPUs the kernels are written for: `compute_80` and later, or `compute_90a` alone.
   */
  readonly arch?: string;
  /** CUDA: all kernels compiled, for some of these GPUs. */
  readonly images?: readonly BundledImage[];
};

export type Sizes = Readonly<Record<string, number>>;

/** A cubin, or PTX. */
export interface BundledImage {
  /** `sm_80`, or `compute_80` for PTX. */
  readonly arch: string;
  readonly file: string;
}

export type BundledKernel = KernelOutline & { readonly file: string };
