// What goes into a model that is run from the command line: files, images, numbers and random
// fillings, held against what the model takes.

import { tensor, type DType } from '../../index.ts';
import { toHostTensor, type HostTensor } from '../../io/index.ts';
import { UsageError } from '../command.ts';
import { isImage, readImage, type Normalisation } from './images.ts';
import type { ModelPort, NamedTensors } from './model.ts';
import { inDType, namedFile, readTensorFile } from './tensor-files.ts';
import { literalTensor } from '../program/literal.ts';

export interface InputChoice {
  /** `NAME=FILE`, `NAME=1,2,3`; a model of one input needs no name. */
  readonly given: readonly string[];
  /** Sizes that models leave open. */
  readonly dims: ReadonlyMap<string, number>;
  /** Fills what is not given. */
  readonly seed: number | undefined;
  readonly normalisation: Normalisation;
}

/** The inputs by name. Throws UsageError at what is missing, unknown or does not fit. */
export async function readInputs(ports: readonly ModelPort[], choice: InputChoice): Promise<NamedTensors> {
  const sized = ports.map((port) => withSizes(port, choice.dims));
  checkDims(ports, choice.dims);
  const inputs = new Map<string, HostTensor>();
  for (const text of choice.given) {
    const { name, file } = namedFile(text);
    const port = sized.find(
      (one) => one.name === (name ?? (sized.length === 1 ? sized[0]!.name : undefined)),
    );
    if (port === undefined) {
      const problem = name === undefined ? `'${text}' names no input` : `there is no input '${name}'`;
      throw new UsageError(`--input: ${problem}: expected NAME=FILE with ${namesOf(sized)}`);
    }
    if (inputs.has(port.name)) throw new UsageError(`--input: ${port.name} is given twice`);
    inputs.set(port.name, await readInput(port, file, choice.normalisation));
  }
  const random = choice.seed === undefined ? undefined : generator(choice.seed);
  for (const port of sized) {
    const own =
      inputs.get(port.name) ?? (random === undefined ? port.example : await filled(fixed(port), random));
    if (own === undefined)
      throw new UsageError(
        `the input ${showPort(port)} is not given\n  try: --input ${port.name}=FILE, or --random 1`,
      );
    inputs.set(port.name, own);
  }
  return inputs;
}

function namesOf(ports: readonly ModelPort[]): string {
  return ports.map(({ name }) => name).join(', ') || 'no inputs at all';
}

function withSizes(port: ModelPort, dims: ReadonlyMap<string, number>): ModelPort {
  return {
    ...port,
    shape: port.shape?.map((size) => (typeof size === 'string' ? (dims.get(size) ?? size) : size)),
  };
}

function checkDims(ports: readonly ModelPort[], dims: ReadonlyMap<string, number>): void {
  const open = new Set(ports.flatMap(({ shape }) => shape?.filter((size) => typeof size === 'string') ?? []));
  const strange = [...dims.keys()].find((name) => !open.has(name));
  if (strange === undefined) return;
  const known = open.size === 0 ? 'all sizes are fixed' : `open are ${[...open].join(', ')}`;
  throw new UsageError(`--dim: no input has a size called '${strange}': ${known}`);
}

async function readInput(port: ModelPort, file: string, normalisation: Normalisation): Promise<HostTensor> {
  if (isImage(file)) return toHostTensor(await readImage(file, fixed(port), normalisation));
  const literal = literalTensor(file, port.dtype ?? 'f32', port.shape);
  const host = literal === undefined ? await readTensorFile(file) : await toHostTensor(literal);
  const { shape, dtype } = port;
  const fits =
    shape === undefined ||
    (shape.length === host.shape.length &&
      shape.every((size, i) => typeof size === 'string' || size === host.shape[i]));
  if (!fits)
    throw new UsageError(
      `the input ${showPort(port)} cannot be ${host.dtype}[${host.shape.join(', ')}] of ${file}`,
    );
  if (dtype === undefined) return host;
  return inDType(host, dtype, `${file}: the input ${port.name}`);
}

/** A port whose type is wholly known. */
function fixed(port: ModelPort): {
  readonly name: string;
  readonly dtype: DType;
  readonly shape: readonly number[];
} {
  const { name, dtype, shape } = port;
  if (dtype === undefined || shape === undefined)
    throw new UsageError(
      `the model does not tell the type of its input ${name}\n  try: --input ${name}=FILE.npy`,
    );
  const open = shape.filter((size) => typeof size === 'string');
  if (open.length > 0) {
    const sizes = open.map((size) => `${size}=1`).join();
    throw new UsageError(`the input ${showPort(port)} has open sizes\n  try: --dim ${sizes}`);
  }
  return { name, dtype, shape: shape as readonly number[] };
}

export function showPort({ name, dtype, shape }: ModelPort): string {
  return `${name} of ${dtype ?? 'unknown type'}[${shape?.join(', ') ?? '…'}]`;
}

/**
 * Floats from 0 up to 1; zeros and ones in other types, which are positions and masks more often
 * than numbers.
 */
async function filled(
  { dtype, shape }: { readonly dtype: DType; readonly shape: readonly number[] },
  random: () => number,
): Promise<HostTensor> {
  const count = shape.reduce((product, size) => product * size, 1);
  const isReal = /^b?f/.test(dtype);
  const isWide = dtype === 'i64' || dtype === 'u64';
  const items = Array.from({ length: count }, () => {
    const value = isReal ? random() : Math.round(random());
    return isWide ? BigInt(value) : value;
  });
  return toHostTensor(tensor(items as number[], { dtype, shape: [...shape] }));
}

/**
 * A generator of numbers from 0 up to 1, the same for a seed everywhere: Marsaglia's xorshift of 32
 * bits.
 */
function generator(seed: number): () => number {
  let state = (seed ^ 0x9e3779b9) >>> 0 || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 8) / 2 ** 24;
  };
}
