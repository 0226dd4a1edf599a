// A random program under construction: evaluates every node as it is added. Tame programs are well-conditioned: each node is
// evaluated a second time as a sloppy device would (every op that rounds is a little off), and a node whose two values differ
// visibly is refused. So any decent device agrees with the interpreter on what is left, without tuning per-op tolerances.

import { isFloat, type DType } from '../../src/ir/dtype.ts';
import { dims, GraphBuilder, type Node, type NodeOf } from '../../src/ir/graph.ts';
import { evaluateNode } from '../../src/ir/interpret.ts';
import type { Attrs, Op } from '../../src/ir/ops.ts';
import { sizeOf, type FixedShape } from '../../src/ir/shape.ts';
import type { HostArray } from '../../src/ir/value.ts';
import { randomArray, wordsFrom, type ValueKind } from './random-values.ts';

export interface DraftOptions {
  /** Element types of parameters, and of casts. Default f32, i32, u32, bool. */
  readonly dtypes?: readonly DType[];
  /** `special` brings NaN, −0, infinities and the ends of the integers; `tame` stays comparable within 1e-3. */
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
}

/** How far a sloppy device is off after one op, and how far apart results may then be, both relative to max(1, |x|). */
const slop: Readonly<Partial<Record<DType, readonly [off: number, apart: number]>>> = {
  f64: [2e-5, 1e-2],
  f32: [2e-5, 1e-2],
  f16: [1e-3, 3e-2],
  bf16: [8e-3, 1e-1],
};
const largestTame = 1000;

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
    this.#known.set(node as Node, { value: array, shaken: array });
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
      this.#known.set(node, { value, shaken: value });
      return node;
    }
    const raw = evaluateNode(
      node,
      known.map((input) => input.shaken),
    );
    const shaken = movesOnly.has(op) ? raw : shake(raw, node.id);
    if (!areClose(value, shaken)) throw new Unfit('ill-conditioned');
    if (
      node.op === 'bitcast' &&
      isFloat(inputs[0]!.dtype) &&
      known[0]!.value.data.some((x) => Number(x) === 0)
    ) {
      throw new Unfit('the sign of zero');
    }
    this.#known.set(node, { value, shaken });
    return node;
  }
}

function hasNaN(array: HostArray): boolean {
  return array.data.some((x: number | bigint) => Number.isNaN(x));
}

/** The values a sloppy device would compute. */
function shake(array: HostArray, seed: number): HostArray {
  const off = slop[array.dtype]?.[0];
  if (off === undefined) return array;
  const words = wordsFrom(seed);
  const data = Float64Array.from(array.data as Float64Array, (x) => {
    const noise = (words() / 2 ** 31 - 1) * off;
    return x + noise * Math.max(Math.abs(x), 0.1);
  });
  return { ...array, data: array.dtype === 'f64' ? data : Float32Array.from(data) };
}

function areClose(value: HostArray, shaken: HostArray): boolean {
  const apart = slop[value.dtype]?.[1];
  return value.data.every((x: number | bigint, i: number) => {
    const y = shaken.data[i]!;
    if (apart === undefined) return x === y;
    const size = Math.abs(Number(x));
    return size <= largestTame && Math.abs(Number(x) - Number(y)) <= apart * Math.max(1, size);
  });
}
