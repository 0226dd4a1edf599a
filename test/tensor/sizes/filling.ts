// An operation as one graph for many sizes, beside its graph at each of them, all run by the interpreter. What lies beyond a size can be
// anything: whatever it is made here (`poisons`), the elements that count have to be the same.

import { SinterError } from '../../../src/errors.ts';
import * as sn from '../../../src/index.ts';
import { integerRange, isComplex, isFloat, isWide, partType, type DType } from '../../../src/ir/dtype.ts';
import { dims } from '../../../src/ir/graph.ts';
import { interpret } from '../../../src/ir/interpret/interpret.ts';
import { isExact } from '../../../src/ir/sizes/layout.ts';
import type { SizeLowering, SizedNode } from '../../../src/ir/sizes/lowering.ts';
import { generalise, match, type Matched } from '../../../src/ir/sizes/recording.ts';
import type { SizeStructure } from '../../../src/ir/sizes/structure.ts';
import { VaryingSizes } from '../../../src/ir/sizes/size.ts';
import { scalarValue, variantOf } from '../../../src/ir/sizes/variant.ts';
import { emptyData, hostArray, unpackBytes, type HostArray, type Scalar } from '../../../src/ir/value.ts';
import type { HostTensor } from '../../../src/io/host.ts';
import { fromHostTensor, toHostTensor } from '../../../src/io/tensors.ts';
import { traceFlat, type Traced } from '../../../src/tensor/tracing.ts';
import { Tensor } from '../../../src/tensor/tensor.ts';
import { flatten } from '../../../src/tensor/tree.ts';
import type { Inputs } from '../../support/coverage/call.ts';

/** Which axes of which inputs vary, all by one size. */
export type Varied = Readonly<Record<string, readonly number[]>>;

/** What may lie beyond a size, for each kind of element. */
export const poisons = ['nothing', 'NaN', 'huge', 'low'] as const;
export type Poison = (typeof poisons)[number];

function poisonOf(poison: Exclude<Poison, 'nothing'>, dtype: DType): Scalar {
  const part = isComplex(dtype) ? partType(dtype) : dtype;
  if (isFloat(part)) return { NaN, huge: 6e4, low: -6e4 }[poison];
  if (part === 'bool') return { NaN: 1, huge: 1, low: 0 }[poison];
  const [low, high] = integerRange(part);
  const value = { NaN: 77n, huge: high, low }[poison];
  return isWide(part) ? value : Number(value);
}

/** The operand with something else beyond its sizes. Where all elements are one, those are too. */
function poisoned(ctx: SizeLowering, operand: SizedNode, poison: Poison): SizedNode {
  if (poison === 'nothing') return operand;
  const value = poisonOf(poison, operand.node.dtype);
  return operand.axes.reduce(
    (x, along, axis) => (isExact(along) || along.uniform ? x : ctx.boundedTo(x, axis, value)),
    operand,
  );
}

const sizeOf = (shape: readonly number[]): number => shape.reduce((size, n) => size * n, 1);

/** The host tensor with another size along some axes: each element as often as comes, so that an order stays one. */
function stretched({ dtype, shape, data }: HostTensor, axes: readonly number[], n: number): HostTensor {
  const to = shape.map((size, axis) => (axes.includes(axis) ? n : size));
  const bytes = data.byteLength / Math.max(1, sizeOf(shape));
  const out = new Uint8Array(sizeOf(to) * bytes);
  for (let i = 0; i < sizeOf(to); i++) {
    let [rest, from, stride] = [i, 0, 1];
    for (let axis = to.length - 1; axis >= 0; axis--) {
      const index = rest % to[axis]!;
      rest = Math.floor(rest / to[axis]!);
      from += Math.floor((index * shape[axis]!) / to[axis]!) * stride;
      stride *= shape[axis]!;
    }
    out.set(data.subarray(from * bytes, (from + 1) * bytes), i * bytes);
  }
  return { dtype, shape: to, data: out };
}

const arrayOf = ({ dtype, shape, data }: HostTensor): HostArray => unpackBytes(data, dtype, shape);

/** A function of named tensors, recorded at a size. */
interface Recorded {
  readonly n: number;
  readonly traced: Traced;
  /** In the order of the graph's parameters. */
  readonly arrays: readonly HostArray[];
}

type Fn = (values: Readonly<Record<string, sn.Tensor>>) => readonly sn.Tensor[];

async function recordedAt(fn: Fn, inputs: Inputs, varied: Varied, n: number): Promise<Recorded> {
  const given = Object.fromEntries(
    Object.entries(inputs).map(([name, input]) => [name, stretched(input, varied[name] ?? [], n)]),
  );
  const tensors = Object.fromEntries(
    Object.entries(given).map(([name, host]) => [name, fromHostTensor(host)]),
  );
  const flat = flatten([tensors], 'compile');
  const traced = traceFlat(fn as (...args: never[]) => unknown, flat);
  const arrays: HostArray[] = [];
  let [tensor, scalar] = [0, 0];
  for (const [i, parameter] of traced.graph.parameters.entries()) {
    if (traced.scalarIndices.has(i)) {
      // Seeds and counters: any, the same at each size.
      scalar += 1;
      arrays.push(hostArray(parameter.dtype, [], [scalar * 12_345]));
      continue;
    }
    const { origin } = traced.inputs[tensor++]!;
    const leaf =
      origin.kind === 'argument' ? (flat.leaves[origin.leaf] as sn.Tensor) : new Tensor(origin.handle);
    arrays.push(arrayOf(await toHostTensor(leaf)));
  }
  return { n, traced, arrays };
}

/** An array at the beginning of one of another shape, and so many times something else behind it. */
function behind(array: HostArray, shape: readonly number[], poison: Poison): HostArray {
  const count = sizeOf(shape);
  const data = emptyData(array.dtype, count);
  if (poison !== 'nothing') (data as Float32Array).fill(poisonOf(poison, array.dtype) as number);
  (data as Float32Array).set((array.data as Float32Array).subarray(0, data.length));
  return { dtype: array.dtype, shape, data };
}

export type Outcome =
  | { readonly kind: 'same' }
  /** It is no one computation for all sizes, or takes no other sizes. */
  | { readonly kind: 'fixed'; readonly why: string }
  /** A typed error: an operation cannot do with the size. */
  | { readonly kind: 'refused'; readonly message: string }
  | { readonly kind: 'differs'; readonly why: string };

const tried = [11, 17, 23];
const checked = [12, 23];

/** What comes of an operation with axes that vary. */
export async function outcomeOf(fn: Fn, inputs: Inputs, varied: Varied): Promise<Outcome> {
  const sizes = new VaryingSizes();
  let recordings: Recorded[];
  try {
    recordings = [];
    for (const n of tried) recordings.push(await recordedAt(fn, inputs, varied, n));
  } catch (error) {
    if (error instanceof SinterError) return { kind: 'fixed', why: error.message.split('\n')[0]! };
    throw error;
  }
  const made = generalise(
    recordings.map(({ traced }) => traced.graphKey),
    sizes,
  );
  if (!('parts' in made)) return { kind: 'fixed', why: `${made.node.op} beside ${made.other?.op}` };
  const matches = recordings.map(({ traced }) => match(made, traced.graphKey, sizes)?.values);
  const samples = matches.toReversed().filter((values) => values !== undefined);
  if (samples.length === 0) return { kind: 'fixed', why: 'no recording is the structure' };
  try {
    for (const n of checked) {
      const known = recordings.find((recording) => recording.n === n);
      const recording = known ?? (await recordedAt(fn, inputs, varied, n));
      const found = match(made, recording.traced.graphKey, sizes);
      if (found === undefined) continue;
      const why = await difference(made, sizes, samples, recording, found);
      if (why !== undefined) return { kind: 'differs', why: `at ${n}: ${why}` };
    }
  } catch (error) {
    if (error instanceof SinterError && error.code === 'E_UNSUPPORTED')
      return { kind: 'refused', message: error.message.split('\n')[0]! };
    throw error;
  }
  return { kind: 'same' };
}

async function difference(
  structure: SizeStructure,
  sizes: VaryingSizes,
  samples: readonly Matched['values'][],
  { traced, arrays }: Recorded,
  { values, leaves }: Matched,
): Promise<string | undefined> {
  const wanted = interpret(traced.graph, arrays);
  for (const poison of poisons) {
    const { graph, scalars } = variantOf(
      structure,
      sizes,
      samples,
      () => 'n',
      (ctx, operand) => poisoned(ctx, operand, poison),
    );
    const all = sizes.complete(
      values,
      scalars.map(({ num }) => num),
    );
    if (all === undefined) return `no value for a size`;
    const given = graph.parameters.map((parameter, i) => {
      if (i < leaves.length) return behind(arrays[leaves[i]!]!, dims(parameter), poison);
      return hostArray(parameter.dtype, [], [scalarValue(scalars[i - leaves.length]!, all)]);
    });
    const found = interpret(graph, given);
    for (const [i, want] of wanted.entries()) {
      for (let k = 0; k < want.data.length; k++) {
        const [a, b] = [found[i]!.data[k]!, want.data[k]!];
        if (a === b || (Number.isNaN(a) && Number.isNaN(b))) continue;
        const tolerance = isFloat(want.dtype) || isComplex(want.dtype) ? 2e-5 : 0;
        if (!(Math.abs(Number(a) - Number(b)) <= tolerance * Math.max(1, Math.abs(Number(b)))))
          return `beyond is ${poison}: element ${k} of result ${i} is ${a} in place of ${b}`;
      }
    }
  }
  return undefined;
}

/** The ways in which inputs of an operation may vary: all axes of one size together, then each axis alone. */
export function variations(inputs: Inputs): Varied[] {
  const places = Object.entries(inputs).flatMap(([name, { shape }]) =>
    shape.map((size, axis) => ({ name, axis, size })),
  );
  const groups = new Set(places.filter(({ size }) => size > 1).map(({ size }) => size));
  const together = [...groups].map((size) => places.filter((place) => place.size === size));
  const alone = places.filter(({ size }) => size > 0).map((place) => [place]);
  const all = [
    ...together,
    ...alone.filter(([only]) => together.every((group) => group.length > 1 || group[0] !== only)),
  ];
  return all.map((group) =>
    Object.fromEntries(
      [...new Set(group.map(({ name }) => name))].map((name) => [
        name,
        group.filter((place) => place.name === name).map(({ axis }) => axis),
      ]),
    ),
  );
}
