// What a model in C is, before any text is written: its functions with types and names of C, its kernels
// under different names, and its memory. All writers of this folder read this.

import { SinterError } from '../../errors.ts';
import type { BundleWeight, EntryInput, EntryOutput, Sizes } from '../../bundle-runtime/manifest.ts';
import type { HostTensor } from '../../io/host.ts';
import type { ElementType, ProgramKernel } from '../../runtime/program.ts';
import type { PortedProgram } from '../ported.ts';
import { memoryOf, type CPlace, type ModelMemory, type ProgramMemory } from './memory.ts';
import { isaNames, type CIsa } from './isas.ts';
import { distinctWords, macro, parameterNames } from './names.ts';

/** The types of elements in C; bool is a byte of 0 or 1, f16 and bf16 are given by their bits. */
export const elementTypes: Readonly<Record<ElementType, string>> = {
  bool: 'uint8_t',
  i8: 'int8_t',
  u8: 'uint8_t',
  i16: 'int16_t',
  u16: 'uint16_t',
  i32: 'int32_t',
  u32: 'uint32_t',
  i64: 'int64_t',
  u64: 'uint64_t',
  f16: 'uint16_t',
  bf16: 'uint16_t',
  f32: 'float',
  f64: 'double',
};

const elementBytes: Readonly<Record<ElementType, number>> = {
  bool: 1,
  i8: 1,
  u8: 1,
  i16: 2,
  u16: 2,
  i32: 4,
  u32: 4,
  i64: 8,
  u64: 8,
  f16: 2,
  bf16: 2,
  f32: 4,
  f64: 8,
};

/** A tensor as C has it. */
export interface CTensor {
  /** As it is called in TypeScript. */
  readonly title: string;
  /** As it is called in C. */
  readonly name: string;
  readonly dtype: ElementType;
  readonly shape: readonly number[];
  readonly count: number;
  readonly bytes: number;
}

export type CInput =
  | ({ readonly kind: 'tensor' } & CTensor)
  | { readonly kind: 'number'; readonly title: string; readonly name: string };

export interface CFunction {
  readonly title: string;
  /** With the prefix. */
  readonly name: string;
  /** Sizes that were left open, as they are here. */
  readonly sizes: Sizes;
  readonly inputs: readonly CInput[];
  readonly outputs: readonly CTensor[];
  readonly ported: PortedProgram;
  /** The kernels of its program, as they are called in the file. */
  readonly kernels: readonly string[];
}

/** A weight, where it lies, and the macro that says so. */
export interface CWeight extends CTensor {
  readonly place: CPlace;
  readonly data: Uint8Array;
}

/** A kernel's text, and what its entry point is called there and in the file. */
export interface CKernelText {
  readonly source: string;
  readonly own: string;
  readonly name: string;
}

export interface CModel {
  readonly prefix: string;
  readonly producer: string;
  readonly title: string;
  readonly functions: readonly CFunction[];
  readonly kernels: readonly CKernelText[];
  readonly weights: readonly CWeight[];
  readonly memory: ModelMemory;
  /** The functions once more for each of these, the best first. */
  readonly variants: readonly CVariant[];
  /** How many threads may share the work of a call; undefined for models without threads. */
  readonly threads: number | undefined;
}

/** The functions for processors with an instruction set. */
export interface CVariant {
  readonly isa: CIsa;
  /** As those of the model, with names that end in the set's; two underscores keep them apart from all others. */
  readonly functions: readonly CFunction[];
  readonly kernels: readonly CKernelText[];
  /** By function. */
  readonly programs: readonly ProgramMemory[];
}

/** A function and its program for one set of sizes. */
export interface GivenFunction {
  readonly title: string;
  readonly sizes: Sizes;
  readonly inputs: readonly EntryInput[];
  readonly outputs: readonly EntryOutput[];
  readonly ported: PortedProgram;
  /** By instruction set, as the model lists them. */
  readonly variants: readonly PortedProgram[];
}

export interface GivenModel {
  readonly prefix: string;
  readonly producer: string;
  readonly title: string;
  readonly functions: readonly GivenFunction[];
  readonly weights: readonly BundleWeight[];
  /** By weight. */
  readonly values: readonly HostTensor[];
  /** Instruction sets with kernels of their own, the best first. */
  readonly isas: readonly CIsa[];
  readonly threads: number | undefined;
}

/** What the header declares beside the functions of a model. */
const ownWords = [
  'init',
  'error',
  'state',
  'seed',
  'weights',
  'ok',
  'hash',
  'copy',
  'isa',
  'start',
  'stop',
  ...isaNames.map((isa) => `has_${isa}`),
];

/** Names, types and memory of a model. */
export function modelOf(given: GivenModel): CModel {
  const { prefix, functions, weights, values, producer, title, isas, threads } = given;
  const sets = [
    functions.map(({ ported }) => ported),
    ...isas.map((_, k) => functions.map((one) => one.variants[k]!)),
  ];
  // All of them lie over the same state and weights, and one works at a time.
  const memory = memoryOf(weights, values, sets.flat());
  const words = distinctWords(
    functions.map(({ title: own, sizes }) => [own, ...Object.entries(sizes).flat()].join('_')),
    new Set(ownWords),
  );
  const files = sets.map((programs) => {
    const kernels = new KernelNames(prefix);
    const names = programs.map(({ program }) => program.kernels.map((kernel) => kernels.nameOf(kernel)));
    return { kernels: kernels.all, names };
  });
  const allNames = files.flatMap(({ names }) => names.flat());
  const macros = distinctWords(
    weights.map(({ name }) => macro(name)),
    new Set(),
  );
  const functionsOf = (set: number, ending: string): CFunction[] =>
    functions.map(({ title: own, sizes, inputs, outputs }, i): CFunction => {
      const names = parameterNames(
        [...inputs, ...outputs].map(({ name }) => name),
        [prefix, ...allNames],
      );
      return {
        title: own,
        name: `${prefix}_${words[i]!}${ending}`,
        sizes,
        inputs: inputs.map((input, k): CInput => {
          const { name: called } = input;
          if (input.kind === 'number') return { kind: 'number', title: called, name: names[k]! };
          return { kind: 'tensor', ...tensorOf(called, names[k]!, input, sizes) };
        }),
        outputs: outputs.map((output, k) => tensorOf(output.name, names[inputs.length + k]!, output, sizes)),
        ported: sets[set]![i]!,
        kernels: files[set]!.names[i]!,
      };
    });
  return {
    prefix,
    producer,
    title,
    functions: functionsOf(0, ''),
    kernels: files[0]!.kernels,
    variants: isas.map((isa, k) => ({
      isa,
      functions: functionsOf(k + 1, `__${isa}`),
      kernels: files[k + 1]!.kernels,
      programs: memory.programs.slice((k + 1) * functions.length, (k + 2) * functions.length),
    })),
    weights: weights.flatMap((weight, i): CWeight[] => {
      const place = memory.weights[i];
      if (place === undefined) return [];
      return [{ ...tensorOf(weight.name, macros[i]!, weight, {}), place, data: values[i]!.data }];
    }),
    memory,
    threads,
  };
}

function tensorOf(
  title: string,
  name: string,
  { dtype, shape }: EntryOutput | BundleWeight,
  sizes: Sizes,
): CTensor {
  const own = shape.map((size) => (typeof size === 'string' ? sizes[size]! : size));
  const count = own.reduce((product, size) => product * size, 1);
  return { title, name, dtype, shape: own, count, bytes: count * elementBytes[dtype] };
}

/** `f32[8, 20]`. */
export function typeText({ dtype, shape }: Pick<CTensor, 'dtype' | 'shape'>): string {
  return `${dtype}[${shape.join(', ')}]`;
}

/** Kernels of all programs in one file: equal ones are one, and others have different names. */
class KernelNames {
  readonly #prefix: string;
  readonly #known = new Map<string, string>();
  readonly #taken = new Set<string>();
  readonly #all: CKernelText[] = [];

  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  get all(): readonly CKernelText[] {
    return this.#all;
  }

  nameOf({ source, name: own }: ProgramKernel): string {
    const known = this.#known.get(source);
    if (known !== undefined) return known;
    if (!/^[A-Za-z_]\w*$/.test(own))
      throw new SinterError('E_UNSUPPORTED', `build: a kernel called ${own} is not for C`);
    let name = own;
    for (let i = 2; this.#taken.has(name); i++) name = `${this.#prefix}_${own}_${i}`;
    this.#taken.add(name);
    this.#known.set(source, name);
    this.#all.push({ source, own, name });
    return name;
  }
}
