// The weights of a bundle: tensors of the state by where they lie in it, and captured ones by what
// they are; and the files they are written to. Those that are all zeros, as moments of optimizers
// are in the beginning, are in no file.

import { dtypeBytes } from '../ir/dtype.ts';
import { storedType } from '../ir/stored.ts';
import { joinSafetensors, readSafetensors } from '../io/safetensors.ts';
import type { HostTensor } from '../io/host.ts';
import type { BundleWeight, WeightFile } from '../bundle-runtime/manifest.ts';
import { bytesOf, type Value } from '../tensor/values.ts';
import { uniqueName } from './names.ts';

export class WeightTable {
  readonly #given: ReadonlyMap<Value, string>;
  readonly #names = new Set<string>();
  readonly #list: {
    readonly name: string;
    readonly tensor: Value;
    readonly isNamed: boolean;
    state: boolean;
  }[] = [];
  readonly #ofState = new Map<string, number>();
  readonly #captured = new Map<Value, number>();

  /** `names`: what captured tensors are called. */
  constructor(names: ReadonlyMap<Value, string>) {
    this.#given = names;
  }

  /** The weight at a place of the state. */
  ofState(path: string, tensor: Value): number {
    const known = this.#ofState.get(path);
    if (known !== undefined) return known;
    const index = this.#add(dotted(path), tensor, true);
    this.#ofState.set(path, index);
    // A function that captures the tensor means the same weight.
    if (!this.#captured.has(tensor)) this.#captured.set(tensor, index);
    return index;
  }

  captured(tensor: Value): number {
    const known = this.#captured.get(tensor);
    if (known !== undefined) return known;
    const name = this.#given.get(tensor);
    const index = this.#add(name ?? `weight${this.#list.length}`, tensor, name !== undefined);
    this.#captured.set(tensor, index);
    return index;
  }

  /** Notes that calls write it. */
  change(weight: number): void {
    this.#list[weight]!.state = true;
  }

  /** The tensors, by weight. */
  get tensors(): readonly Value[] {
    return this.#list.map(({ tensor }) => tensor);
  }

  /** Whether users gave its name. */
  isNamed(weight: number): boolean {
    return this.#list[weight]!.isNamed;
  }

  get all(): readonly BundleWeight[] {
    return this.#list.map(({ name, tensor: { dtype, shape }, state }) => ({
      name,
      ...storedType({ dtype, shape }),
      state,
    }));
  }

  /** Values, by weight; computed on the current device. */
  values(): Promise<HostTensor[]> {
    return Promise.all(
      this.#list.map(async ({ tensor }) => {
        const { dtype, shape } = tensor;
        return { dtype, shape, data: await bytesOf(tensor) };
      }),
    );
  }

  #add(wished: string, tensor: Value, isNamed: boolean): number {
    const name = uniqueName(wished, this.#names);
    return this.#list.push({ name, tensor, isNamed, state: false }) - 1;
  }
}

/** A path in the state as a dotted name, as `namedParameters` has them: `layers.0.weight`. */
function dotted(path: string): string {
  const parts = path.replaceAll(/\[(\d+)\]/g, '.$1').replaceAll(/\[("(?:[^"\\]|\\.)*")\]/g, quoted);
  return parts.slice(1);
}

function quoted(_: string, key: string): string {
  return `.${JSON.parse(key) as string}`;
}

/**
 * Weights as files of at most `limit` bytes where one tensor has no more, and where they lie in
 * them.
 */
export function weightFiles(
  weights: readonly BundleWeight[],
  values: readonly HostTensor[],
  limit: number,
): { readonly file: WeightFile; readonly bytes: Uint8Array }[] {
  const groups: number[][] = [];
  let size = 0;
  values.forEach(({ data }, weight) => {
    if (isZero(data)) return;
    if (groups.length === 0 || (size > 0 && size + data.byteLength > limit)) {
      groups.push([]);
      size = 0;
    }
    groups.at(-1)!.push(weight);
    size += data.byteLength;
  });
  const names = new Set(weights.map(({ name }) => name));
  return groups.map((group, i) => {
    const widest = group.toSorted((a, b) => dtypeBytes(values[b]!.dtype) - dtypeBytes(values[a]!.dtype));
    const bytes = joinSafetensors(
      widest.flatMap((weight) => [
        [weights[weight]!.name, values[weight]!] as const,
        ...padding(values[weight]!, names),
      ]),
    );
    const { tensors } = readSafetensors(bytes);
    const parts = group.map((weight) => {
      const { data } = tensors.get(weights[weight]!.name)!;
      return { weight, start: data.byteOffset - bytes.byteOffset, bytes: data.byteLength };
    });
    const name =
      groups.length === 1 ? 'weights.safetensors' : `weights-${i + 1}-of-${groups.length}.safetensors`;
    return { file: { name, bytes: bytes.length, parts: parts.toSorted((a, b) => a.start - b.start) }, bytes };
  });
}

/**
 * What fills a weight's last word, under a name of its own: machines are written in words, and
 * files of this kind have no gaps.
 */
function padding({ data }: HostTensor, names: Set<string>): [string, HostTensor][] {
  const rest = -data.byteLength & 3;
  if (rest === 0) return [];
  let name = 'padding';
  for (let i = 1; names.has(name); i++) name = `padding.${i}`;
  names.add(name);
  return [[name, { dtype: 'u8', shape: [rest], data: new Uint8Array(rest) }]];
}

/** By bits: a negative zero is another number. */
function isZero(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === 0);
}
