// What `program.json` of a bundle holds: entry points, what they are called with, their programs for each target, and where the weights
// lie. Plain data; the bundle's code reads it, `sinter build` writes it.

import type { ElementType, KernelOutline, ProgramOutline } from '../runtime/program.ts';

/** Targets that bundles run on by themselves. */
export type BundleTarget = 'cuda' | 'webgpu' | 'wasm';

export interface Manifest {
  readonly version: 1;
  /** What made the bundle. */
  readonly producer: string;
  readonly weights: readonly Weight[];
  /** Files of weights, in order; each is read once, from its beginning. */
  readonly files: readonly WeightFile[];
  readonly entries: Readonly<Record<string, Entry>>;
}

/** A tensor that calls share: a parameter, a moment of an optimizer, a cache. */
export interface Weight extends TensorType {
  readonly name: string;
  /** Some entry writes it. */
  readonly state: boolean;
}

export interface TensorType {
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
  /** First byte in the file, and how many. */
  readonly start: number;
  readonly bytes: number;
}

/** One function of the bundle. */
export interface Entry {
  readonly inputs: readonly EntryInput[];
  readonly outputs: readonly EntryOutput[];
  /** What the program's inputs are, in its order. */
  readonly wiring: readonly Wire[];
  /** What the run-time scalars that come first in the program are. */
  readonly scalars: readonly ScalarSource[];
  /** Weights that have a new value after a call. */
  readonly updates: readonly { readonly weight: number; readonly from: Result }[];
  /** Groups of random words that a call draws. */
  readonly draws: number;
  readonly programs: Readonly<Partial<Record<BundleTarget, BundledProgram>>>;
}

export type EntryInput =
  | (TensorType & { readonly name: string; readonly kind: 'tensor' })
  | { readonly name: string; readonly kind: 'number' };

export interface EntryOutput extends TensorType {
  readonly name: string;
  readonly from: Result;
}

/** An output of the program, or one of its inputs handed through. */
export type Result = { readonly output: number } | { readonly input: number };

/** An argument, by its place among the entry's inputs, or a weight. */
export type Wire = { readonly argument: number } | { readonly weight: number };

export type ScalarSource =
  | { readonly argument: number }
  | { readonly value: number }
  /** A word of the seed of random numbers, or of their counter. */
  | { readonly seed: 0 | 1 }
  | { readonly counter: 0 | 1; readonly offset: number };

/** A program whose kernels lie in files of their own. */
export type BundledProgram = Omit<ProgramOutline, 'kernels'> & {
  readonly kernels: readonly BundledKernel[];
  /** CUDA: what GPUs the kernels are written for: `compute_80` and later, or `compute_90a` alone. */
  readonly arch?: string;
  /** CUDA: all kernels compiled, for some of these GPUs. */
  readonly images?: readonly BundledImage[];
};

/** A cubin, or PTX. */
export interface BundledImage {
  /** `sm_80`, or `compute_80` for PTX. */
  readonly arch: string;
  readonly file: string;
}

export type BundledKernel = KernelOutline & { readonly file: string };
