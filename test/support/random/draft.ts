// A random program under construction: evaluates every node as it is added. Tame programs are well-conditioned: each node is
// evaluated a second time as a sloppy device would (every op that rounds is a little off), and a node whose two values differ
// visibly is refused. So any decent device agrees with the interpreter on what is left, without tuning per-op tolerances. Programs of
// `edges` are made in the same way of special values: the sloppy device flushes denormals and knows no sign of a zero either.

import { isFloat, type DType } from '../../../src/ir/dtype.ts';
import { dims, GraphBuilder, type Node, type NodeOf } from '../../../src/ir/graph.ts';
import { evaluateNode } from '../../../src/ir/interpret/interpret.ts';
import type { Attrs, Op } from '../../../src/ir/ops.ts';
import { sizeOf, type FixedShape } from '../../../src/ir/shape.ts';
import type { HostArray } from '../../../src/ir/value.ts';
import { randomArray, wordsFrom, type ValueKind } from './values.ts';

export interface DraftOptions {
  /** Element types of parameters, and of casts. Default f32, i32, u32, bool. */
  readonly dtypes?: readonly DType[];
  /** `special` brings NaN, −0, infinities and the ends of the integers; `tame` and `edges` stay comparable within 1e-3. */
  readonly values?: ValueKind;
  /** No node has more elements than this. Default 600. */
  readonly maxElements?: number;
  /** Makes the parameters that hold no indices; default values of the kind asked for. */
  readonly fill?: (dtype: DType, shape: FixedShape, seed: number) => HostArray;
}

/** Thrown by a step that does not fit the program so far; the step is left out. */
export class Unfit extends Error {}

interface Known {
  readonly value: HostArray;
  /** The value on the sloppy device. */
  readonly shaken: HostArray;
  /** The value on a device that is exact, but flushes denormals and knows no sign of a zero. */
  readonly flat: HostArray;
}

/** How far a sloppy device is off after one op, and how far apart results may then be, both relative to max(1, |x|). */
const slop: Readonly<Partial<Record<DType, readonly [off: number, apart: number]>>> = {
  f64: [2e-5, 1e-2],
  f32: [2e-5, 1e-2],
  f16: [1e-3, 3e-2],
  bf16: [8e-3, 1e-1],
};
const largestTame = 1000;
/** The least normal number of each dtype that devices may flush below. */
const leastNormal: Readonly<Partial<Record<DType, number>>> = {
  f64: 2 ** -1022,
  f32: 2 ** -126,
  bf16: 2 ** -126,
  f16: 2 ** -14,
};

const movesOnly: ReadonlySet<Op> = new Set<Op>([
  ...(['reshape', 'permute', 'broadcast', 'slice', 'pad', 'concat', 'window', 'gather'] as const),
  ...([
    'parameter',
    'constant',
    'iota',
    'randomBits',
    'neg',
    'abs',
    'min',
    'max',
    'where',
    'cast',
    'bitcast',
  ] as const),
  ...(['floor', 'ceil', 'round', 'trunc', 'sign', 'stopGradient', 'customVjp', 'argReduce'] as const),
]);

const folds: ReadonlySet<Op> = new Set<Op>([
  'reduce',
  'scan',
  'fft',
  'dot',
  'conv',
  'scatter',
  'scatterAddAtomic',
  'fma',
]);

/**
 * Throws Unfit where the order of a fold would show by overflow on the way: devices fold in trees of their own, and some have no
 * fused product. And padding of a
 * convolution may count as zeros or not at all, which shows beside weights that are not finite.
 */
function checkOrderless(node: Node, inputs: readonly HostArray[]): void {
  if (!folds.has(node.op)) return;
  const largest = ['fft', 'dot', 'conv', 'fma'].includes(node.op) ? 1e12 : 1e30;
  const isProduct =
    ((node.op === 'reduce' || node.op === 'scan') && node.attrs.monoid === 'prod') ||
    (node.op === 'scatter' && node.attrs.mode === 'mul');
  for (const { dtype, data } of inputs) {
    if (!isFloat(dtype)) continue;
    for (const value of data) {
      const size = Math.abs(Number(value));
      if (node.op === 'conv' && !Number.isFinite(size)) throw new Unfit('padding beside infinities');
      if (!Number.isFinite(size) || size === 0) continue;
      if (size > (isProduct ? 100 : largest) || (isProduct && size < 0.01))
        throw new Unfit('an order that shows');
    }
  }
}

/** A program under construction. */
export class Draft {
  readonly dtypes: readonly DType[];
  readonly values: ValueKind;
  /** An array of a dtype and shape that follows from a seed. */
  readonly fill: (dtype: DType, shape: FixedShape, seed: number) => HostArray;
  /** What later steps can pick, in order of making. */
  readonly nodes: Node[] = [];
  readonly parameters: NodeOf<'parameter'>[] = [];
  readonly inputs: HostArray[] = [];
  readonly #b = new GraphBuilder();
  readonly #known = new Map<Node, Known>();
  readonly #maxElements: number;

  constructor(options: DraftOptions) {
    this.dtypes = options.dtypes ?? ['f32', 'i32', 'u32', 'bool'];
    this.values = options.values ?? 'tame';
    this.fill = options.fill ?? ((dtype, shape, seed) => randomArray(dtype, shape, seed, this.values));
    this.#maxElements = options.maxElements ?? 600;
  }

  value(node: Node): HostArray {
    return this.#known.get(node)!.value;
  }

  parameter(array: HostArray): Node {
    const { dtype, shape } = array;
    const index = this.parameters.length;
    const node = this.#b.add('parameter', [], { index, name: `p${index}`, dtype, shape });
    this.parameters.push(node);
    this.inputs.push(array);
    const flat = this.values === 'edges' ? flushed(array) : array;
    this.#known.set(node as Node, { value: array, shaken: flat, flat });
    return node as Node;
  }

  /** The node, evaluated. Throws Unfit when it is too large or, for tame programs, ill-conditioned. */
  add<K extends Op>(op: K, inputs: readonly Node[], attrs: Attrs<K>): Node {
    const node = this.#b.add(op, inputs, attrs) as Node;
    if (this.#known.has(node)) return node;
    if (sizeOf(dims(node)) > this.#maxElements) throw new Unfit('too large');
    const known = inputs.map((input) => this.#known.get(input)!);
    const value = evaluateNode(
      node,
      known.map((input) => input.value),
    );
    if (this.values === 'special') {
      // NaN has many bit patterns, and which one an op gives is nobody's promise.
      if (node.op === 'bitcast' && isFloat(inputs[0]!.dtype) && hasNaN(known[0]!.value))
        throw new Unfit('bits of NaN');
      this.#known.set(node, { value, shaken: value, flat: value });
      return node;
    }
    if (this.values === 'edges')
      checkOrderless(
        node,
        known.map((input) => input.value),
      );
    const flat =
      this.values === 'edges'
        ? flushed(
            evaluateNode(
              node,
              known.map((input) => input.flat),
            ),
          )
        : value;
    if (!areClose(value, flat, true)) throw new Unfit('a denormal number or the sign of a zero shows');
    const fold = this.values === 'edges' && folds.has(op);
    const raw = evaluateNode(
      node,
      known.map((input, i) => (fold ? nudged(input.shaken, node.id + i) : input.shaken)),
    );
    const moved = movesOnly.has(op) ? raw : shake(raw, node.id, this.values === 'edges' ? 0 : 0.1);
    const shaken = this.values === 'edges' ? flushed(moved) : moved;
    if (!areClose(value, shaken, this.values === 'edges')) throw new Unfit('ill-conditioned');
    if (
      node.op === 'bitcast' &&
      isFloat(inputs[0]!.dtype) &&
      known[0]!.value.data.some((x) => !(Math.abs(Number(x)) >= leastNormal[inputs[0]!.dtype]!))
    ) {
      throw new Unfit('the sign of zero, a denormal number or the bits of NaN');
    }
    this.#known.set(node, { value, shaken, flat });
    return node;
  }
}

function hasNaN(array: HostArray): boolean {
  return array.data.some((x: number | bigint) => Number.isNaN(x));
}

/** The values a sloppy device would compute: off by so much of their size, or of `least`. */
function shake(array: HostArray, seed: number, least: number): HostArray {
  const off = slop[array.dtype]?.[0];
  if (off === undefined) return array;
  const words = wordsFrom(seed);
  const data = Float64Array.from(array.data as Float64Array, (x) => {
    const noise = (words() / 2 ** 31 - 1) * off;
    return Number.isFinite(x) ? x + noise * Math.max(Math.abs(x), least) : x;
  });
  return { ...array, data: array.dtype === 'f64' ? data : Float32Array.from(data) };
}

/** Each float off by a few units in the last place, as terms are that were rounded on the way. */
function nudged(array: HostArray, seed: number): HostArray {
  const off = slop[array.dtype]?.[0];
  if (off === undefined) return array;
  const words = wordsFrom(seed);
  const nudge = (x: number): number => (Number.isFinite(x) ? x * (1 + (words() / 2 ** 31 - 1) * off) : x);
  const data = Float64Array.from(array.data as Float64Array, nudge);
  return { ...array, data: array.dtype === 'f64' ? data : Float32Array.from(data) };
}

/** Denormal numbers and −0 as 0. */
function flushed(array: HostArray): HostArray {
  const least = leastNormal[array.dtype];
  if (least === undefined) return array;
  const flush = (x: number): number => (Math.abs(x) < least ? 0 : x);
  if (array.dtype === 'f64') return { ...array, data: Float64Array.from(array.data as Float64Array, flush) };
  return { ...array, data: Float32Array.from(array.data as Float32Array, flush) };
}

function areClose(value: HostArray, shaken: HostArray, edges: boolean): boolean {
  const apart = slop[value.dtype]?.[1];
  return value.data.every((x: number | bigint, i: number) => {
    const y = shaken.data[i]!;
    if (apart === undefined) return x === y;
    if (edges && (x === y || (Number.isNaN(x) && Number.isNaN(y)))) return true;
    const size = Math.abs(Number(x));
    return (
      (edges ? size < Infinity : size <= largestTame) &&
      Math.abs(Number(x) - Number(y)) <= apart * Math.max(1, size)
    );
  });
}
