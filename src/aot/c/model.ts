// What a model in C is, before any text is written: its functions with types and names of C, its kernels
// under different names, and its memory. All writers of this folder read this.

import { SinterError } from '../../errors.ts';
import type {
  BundleEntry,
  BundleWeight,
  EntryInput,
  EntryOutput,
  Sizes,
} from '../../bundle-runtime/manifest.ts';
import type { HostTensor } from '../../io/host.ts';
import type { ElementType, ProgramKernel } from '../../runtime/program.ts';
import type { PortedProgram } from '../ported.ts';
import { memoryOf, type CPlace, type ModelMemory, type ProgramMemory } from './memory.ts';
import { isaNames, type CIsa } from './isas.ts';
import { distinctWords, functionWords, macro, parameterNames, sizeNames } from './names.ts';
import { openSizesOf, openTitles, type COpenSizes } from './sizes.ts';

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
  /** Names are those of sizes that calls give, and of those that follow from them. */
  readonly shape: readonly (number | string)[];
  /** Numbers, or expressions of C where the sizes of a call say it. */
  readonly count: number | string;
  readonly bytes: number | string;
}

export type CInput =
  | ({ readonly kind: 'tensor' } & CTensor)
  | { readonly kind: 'number'; readonly title: string; readonly name: string };

export interface CFunction {
  readonly title: string;
  /** Behind the prefix. */
  readonly word: string;
  /** With the prefix. */
  readonly name: string;
  /** Sizes that were left open, as they are here. */
  readonly sizes: Sizes;
  /** Sizes that calls give; undefined where there are none. */
  readonly open: COpenSizes | undefined;
  readonly inputs: readonly CInput[];
  readonly outputs: readonly CTensor[];
  /** One, or for sizes that calls give one for all up to some, small ones first. */
  readonly programs: readonly CProgram[];
}

export interface CProgram {
  /** The sizes up to which it goes. */
  readonly upTo: Sizes;
  readonly ported: PortedProgram;
  /** Its kernels, as they are called in the file. */
  readonly kernels: readonly string[];
  readonly memory: ProgramMemory;
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
}

/** A function for one set of sizes, or for those that calls give. */
export interface GivenFunction extends Pick<BundleEntry, 'ranges' | 'derived'> {
  readonly title: string;
  readonly sizes: Sizes;
  readonly inputs: readonly EntryInput[];
  readonly outputs: readonly EntryOutput[];
  /** As `CFunction` has them. */
  readonly programs: readonly GivenProgram[];
}

export interface GivenProgram {
  readonly upTo: Sizes;
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
  'code',
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
  const programs = functions.flatMap((one) => one.programs);
  const sets = [
    programs.map(({ ported }) => ported),
    ...isas.map((_, k) => programs.map(({ variants }) => variants[k]!)),
  ];
  // All of them lie over the same state and weights, and one works at a time.
  const memory = memoryOf(weights, values, sets.flat());
  const words = functionWords(
    functions.map(({ title: own, sizes }) => [own, ...Object.entries(sizes).flat()].join('_')),
    prefix,
    ownWords,
  );
  const declared = [prefix, ...[...ownWords, ...words].map((own) => `${prefix}_${own}`)];
  const files = sets.map((all) => {
    const kernels = new KernelNames(prefix, declared);
    const names = all.map(({ program }) => program.kernels.map((kernel) => kernels.nameOf(kernel)));
    return { kernels: kernels.all, names };
  });
  const allNames = [...declared, ...files.flatMap(({ names }) => names.flat())];
  const macros = distinctWords(
    weights.map(({ name }) => macro(name)),
    new Set(),
  );
  const programsOf = (one: GivenFunction, set: number): CProgram[] =>
    one.programs.map((program): CProgram => {
      const place = programs.indexOf(program);
      return {
        upTo: program.upTo,
        ported: sets[set]![place]!,
        kernels: files[set]!.names[place]!,
        memory: memory.programs[set * programs.length + place]!,
      };
    });
  const functionsOf = (set: number, ending: string): CFunction[] =>
    functions.map((one, i): CFunction => {
      const { title: own, sizes, inputs, outputs, ranges } = one;
      const titles = openTitles(one);
      const opened = sizeNames(titles, prefix, allNames);
      const open = ranges && openSizesOf(one, (size) => opened[titles.indexOf(size)]!);
      const names = parameterNames(
        [...inputs, ...outputs].map(({ name }) => name),
        prefix,
        [...allNames, ...opened],
      );
      return {
        title: own,
        word: words[i]!,
        name: `${prefix}_${words[i]!}${ending}`,
        sizes,
        open,
        inputs: inputs.map((input, k): CInput => {
          const { name: title } = input;
          if (input.kind === 'number') return { kind: 'number', title, name: names[k]! };
          return { kind: 'tensor', ...tensorOf(title, names[k]!, input, sizes, open) };
        }),
        outputs: outputs.map((output, k) =>
          tensorOf(output.name, names[inputs.length + k]!, output, sizes, open),
        ),
        programs: programsOf(one, set),
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
  open?: COpenSizes,
): CTensor {
  const openNames = new Map(
    [...(open?.given ?? []), ...(open?.derived ?? [])].map((size) => [size.title, size.name]),
  );
  const own = shape.map((size) => (typeof size === 'string' ? (openNames.get(size) ?? sizes[size]!) : size));
  const bytes = elementBytes[dtype];
  const fixed = own.reduce<number>((product, size) => product * (typeof size === 'number' ? size : 1), 1);
  const varying = own.flatMap((size) => (typeof size === 'string' ? [`(size_t)${size}`] : []));
  if (varying.length === 0) return { title, name, dtype, shape: own, count: fixed, bytes: fixed * bytes };
  const times = (factor: number): string => [...(factor === 1 ? [] : [`${factor}`]), ...varying].join(' * ');
  return { title, name, dtype, shape: own, count: times(fixed), bytes: times(fixed * bytes) };
}

/** `f32[8, 20]`. */
export function typeText({ dtype, shape }: Pick<CTensor, 'dtype' | 'shape'>): string {
  return `${dtype}[${shape.join(', ')}]`;
}

/** Kernels of all programs in one file: equal ones are one, and others have different names. */
class KernelNames {
  readonly #prefix: string;
  readonly #known = new Map<string, string>();
  readonly #taken: Set<string>;
  readonly #all: CKernelText[] = [];

  /** `others`: names that no kernel may have. */
  constructor(prefix: string, others: readonly string[]) {
    this.#prefix = prefix;
    this.#taken = new Set(others);
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
