// Programs compiled for a capacity of which a run says how much there is: the inputs hold NaN beyond, and masks select it away.

import {
  add,
  below,
  bounded,
  broadcast,
  cast,
  constant,
  div,
  mul,
  reduceKeep,
  sub,
  unary,
  where,
} from '../../../src/ir/build.ts';
import { dims, GraphBuilder, type Graph, type Node, type NodeOf } from '../../../src/ir/graph.ts';
import { sizeOf, type FixedShape } from '../../../src/ir/shape.ts';
import { hostArray, type HostArray } from '../../../src/ir/value.ts';

/** Sizes of a program; the second is its capacity. */
export interface Sizes {
  readonly rows: number;
  readonly capacity: number;
  readonly columns: number;
}

/** A program over inputs of which the last is the bound. */
export interface Bounded {
  readonly graph: Graph;
  /** Along which axis of each input the bound is; undefined: nowhere. */
  readonly along: readonly (number | undefined)[];
  /** Along which axis of the results nothing beyond the bound is specified. */
  readonly open?: number;
}

class Recorder {
  readonly b: GraphBuilder = new GraphBuilder();
  readonly parameters: NodeOf<'parameter'>[] = [];
  readonly along: (number | undefined)[] = [];

  input(shape: FixedShape, along?: number): Node {
    return this.#parameter(shape, 'f32', along);
  }

  /** How much there is. */
  bound(): Node {
    return this.#parameter([], 'i32', undefined);
  }

  done(outputs: readonly Node[], open?: number): Bounded {
    const graph = { parameters: this.parameters, outputs };
    return { graph, along: this.along, ...(open !== undefined && { open }) };
  }

  #parameter(shape: FixedShape, dtype: 'f32' | 'i32', along: number | undefined): Node {
    const index = this.parameters.length;
    const made = this.b.add('parameter', [], { index, name: `p${index}`, dtype, shape });
    this.parameters.push(made);
    this.along.push(along);
    return made as Node;
  }
}

/** Σ over one axis of each. */
export function product(
  b: GraphBuilder,
  x: Node,
  y: Node,
  [i, j]: readonly [number, number],
  batch = 0,
): Node {
  const lead = Array.from({ length: batch }, (_, axis) => axis);
  const attrs = { lhsBatch: lead, rhsBatch: lead, lhsContract: [i], rhsContract: [j], dtype: 'f32' } as const;
  return b.add('dot', [x, y], attrs) as Node;
}

export function softmax(b: GraphBuilder, x: Node): Node {
  const last = x.shape.length - 1;
  const max = reduceKeep(b, 'max', x, [last]);
  const powers = unary(b, 'exp', sub(b, x, broadcast(b, max, dims(x))));
  return div(b, powers, broadcast(b, reduceKeep(b, 'sum', powers, [last]), dims(x)));
}

/** The mean of the first n of each row taken away, over their deviation. */
function norm(b: GraphBuilder, x: Node, n: Node): Node {
  const shape = dims(x);
  const last = shape.length - 1;
  const total = cast(b, n, 'f32');
  const mean = (of: Node): Node => {
    const sum = reduceKeep(b, 'sum', below(b, of, last, n), [last]);
    return broadcast(b, div(b, sum, broadcast(b, total, dims(sum))), shape);
  };
  const centred = sub(b, x, mean(x));
  const deviation = unary(b, 'rsqrt', add(b, mean(mul(b, centred, centred)), 1e-5));
  return below(b, mul(b, centred, deviation), last, n);
}

/** Where the index along one axis is at most that along another, with something added. */
function upTo(b: GraphBuilder, shape: FixedShape, key: number, row: number, offset: Node): Node {
  const place = (axis: number): Node => b.add('iota', [], { shape, axis, dtype: 'i32' }) as Node;
  return b.add('le', [place(key), add(b, place(row), broadcast(b, offset, shape))], {}) as Node;
}

export type Program = (sizes: Sizes) => Bounded;

export const folds: Readonly<Record<string, Program>> = {
  softmax({ rows, capacity }) {
    const r = new Recorder();
    const [x, n] = [r.input([rows, capacity], 1), r.bound()];
    return r.done([softmax(r.b, below(r.b, x, 1, n, -Infinity))]);
  },
  norm({ rows, capacity }) {
    const r = new Recorder();
    const [x, n] = [r.input([rows, capacity], 1), r.bound()];
    return r.done([norm(r.b, x, n)]);
  },
  sums({ rows, capacity }) {
    const r = new Recorder();
    const [x, n] = [r.input([rows, capacity], 1), r.bound()];
    const { b } = r;
    const kept = below(b, x, 1, n);
    return r.done([
      reduceKeep(b, 'sum', kept, [1]),
      reduceKeep(b, 'sum', mul(b, kept, kept), [1]),
      reduceKeep(b, 'prod', below(b, x, 1, n, 1), [1]),
    ]);
  },
  'sums of columns'({ rows, capacity }) {
    const r = new Recorder();
    const [x, n] = [r.input([capacity, rows], 0), r.bound()];
    return r.done([reduceKeep(r.b, 'sum', below(r.b, x, 0, n), [0])]);
  },
  extremes({ rows, capacity }) {
    const r = new Recorder();
    const [x, n] = [r.input([rows, capacity], 1), r.bound()];
    const { b } = r;
    return r.done([
      reduceKeep(b, 'max', below(b, x, 1, n, -Infinity), [1]),
      // What is beyond has a value of its own, which shows where it is the greatest.
      reduceKeep(b, 'max', below(b, x, 1, n, 0.25), [1]),
      reduceKeep(b, 'min', below(b, x, 1, add(b, n, 1), Infinity), [1]),
    ]);
  },
  dot({ rows, capacity, columns }) {
    const r = new Recorder();
    const [x, y, n] = [r.input([rows, capacity], 1), r.input([capacity, columns], 0), r.bound()];
    return r.done([product(r.b, below(r.b, x, 1, n), below(r.b, y, 0, n), [1, 0])]);
  },
  'dot along rows'({ rows, capacity, columns }) {
    const r = new Recorder();
    const [x, y, n] = [r.input([rows, capacity], 1), r.input([columns, capacity], 1), r.bound()];
    const few = r.b.add('min', [n, constant(r.b, 5, 'i32')], {}) as Node;
    return r.done([product(r.b, below(r.b, x, 1, few), below(r.b, y, 1, n), [1, 1])]);
  },
  attention({ rows, capacity, columns }) {
    const r = new Recorder();
    const { b } = r;
    const q = r.input([2, rows, columns]);
    const [k, v] = [r.input([2, capacity, columns], 1), r.input([2, capacity, columns], 1)];
    const n = r.bound();
    const scores = below(b, product(b, q, k, [2, 2], 1), 2, n, -Infinity);
    return r.done([product(b, softmax(b, scores), below(b, v, 1, n), [2, 1], 1)]);
  },
  'attention that may see nothing'({ rows, capacity, columns }) {
    const r = new Recorder();
    const { b } = r;
    const q = r.input([2, rows, columns]);
    const [k, v] = [r.input([2, capacity, columns]), r.input([2, capacity, columns])];
    const n = r.bound();
    const scores = product(b, q, k, [2, 2], 1);
    const shape = dims(scores);
    const seen = upTo(b, shape, 2, 1, n);
    const max = reduceKeep(
      b,
      'max',
      where(b, seen, scores, broadcast(b, constant(b, -3e38, 'f32'), shape)),
      [2],
    );
    const powers = unary(b, 'exp', sub(b, scores, broadcast(b, max, shape)));
    const terms = where(b, seen, powers, broadcast(b, constant(b, 0, 'f32'), shape));
    const total = reduceKeep(b, 'sum', terms, [2]);
    const nothing = cast(
      b,
      b.add('eq', [total, broadcast(b, constant(b, 0, 'f32'), dims(total))], {}) as Node,
      'f32',
    );
    const weights = div(b, terms, broadcast(b, add(b, total, nothing), shape));
    return r.done([product(b, weights, v, [2, 1], 1)]);
  },
};

/** Programs of whose results a run says how much is asked for. */
export const grids: Readonly<Record<string, Program>> = {
  'map of first rows'({ rows, capacity }) {
    const r = new Recorder();
    const [x, n] = [r.input([capacity, rows], 0), r.bound()];
    return r.done([bounded(r.b, unary(r.b, 'exp', x), 0, n)], 0);
  },
  'map of heads'({ rows, capacity, columns }) {
    const r = new Recorder();
    const [x, n] = [r.input([rows, capacity, columns], 1), r.bound()];
    return r.done([bounded(r.b, unary(r.b, 'exp', x), 1, n)], 1);
  },
  'map of first columns'({ rows, capacity }) {
    const r = new Recorder();
    const [x, n] = [r.input([rows, capacity], 1), r.bound()];
    return r.done([bounded(r.b, unary(r.b, 'exp', x), 1, n)], 1);
  },
  'transposed map'({ capacity }) {
    const r = new Recorder();
    const [x, n] = [r.input([16, capacity], 1), r.bound()];
    const turned = r.b.add('permute', [x], { order: [1, 0] }) as Node;
    return r.done([bounded(r.b, unary(r.b, 'exp', turned), 0, n)], 0);
  },
  'softmax of first rows'({ capacity, columns }) {
    const r = new Recorder();
    const [x, n] = [r.input([capacity, columns], 0), r.bound()];
    return r.done([bounded(r.b, softmax(r.b, x), 0, n)], 0);
  },
  'softmax of heads'({ rows, capacity }) {
    const r = new Recorder();
    const [x, n] = [r.input([rows, capacity, 40], 1), r.bound()];
    return r.done([bounded(r.b, softmax(r.b, x), 1, n)], 1);
  },
  'softmax of the first of both'({ capacity }) {
    const r = new Recorder();
    const [x, n] = [r.input([capacity, capacity], 0), r.bound()];
    const { b } = r;
    const all = softmax(b, below(b, x, 1, n, -Infinity));
    return r.done([bounded(b, below(b, bounded(b, all, 1, n), 1, n), 0, n)], 0);
  },
  'sums of columns': ({ rows, capacity }) => {
    const r = new Recorder();
    const [x, n] = [r.input([rows, capacity], 1), r.bound()];
    return r.done([bounded(r.b, reduceKeep(r.b, 'sum', x, [0]), 1, n)], 1);
  },
  'first rows of a product'({ capacity, columns }) {
    const r = new Recorder();
    const [x, y, n] = [r.input([capacity, 24], 0), r.input([24, columns]), r.bound()];
    return r.done([bounded(r.b, product(r.b, x, y, [1, 0]), 0, n)], 0);
  },
  'first columns of a product'({ rows, capacity }) {
    const r = new Recorder();
    const [x, y, n] = [r.input([rows, 24]), r.input([24, capacity], 1), r.bound()];
    return r.done([bounded(r.b, product(r.b, x, y, [1, 0]), 1, n)], 1);
  },
  'first products of a batch'({ rows, capacity, columns }) {
    const r = new Recorder();
    const [x, y, n] = [r.input([capacity, rows, 8], 0), r.input([capacity, 8, columns], 0), r.bound()];
    return r.done([bounded(r.b, product(r.b, x, y, [2, 1], 1), 0, n)], 0);
  },
  'layers of first rows'({ capacity, columns }) {
    const r = new Recorder();
    const { b } = r;
    const [x, y, z] = [r.input([capacity, 16], 0), r.input([16, 32]), r.input([32, columns])];
    const n = r.bound();
    const hidden = unary(b, 'tanh', product(b, x, y, [1, 0]));
    const out = softmax(b, product(b, hidden, z, [1, 0]));
    // The sum over rows selects those that there are.
    return r.done([reduceKeep(b, 'sum', below(b, out, 0, n), [0])]);
  },
  'attention among the first'({ capacity, columns }) {
    const r = new Recorder();
    const { b } = r;
    const input = (): Node => r.input([2, capacity, columns], 1);
    const [q, k, v] = [input(), input(), input()];
    const n = r.bound();
    const scores = below(b, product(b, q, k, [2, 2], 1), 2, n, -Infinity);
    const seen = product(b, softmax(b, scores), below(b, v, 1, n), [2, 1], 1);
    return r.done([bounded(b, seen, 1, n)], 1);
  },
};

/** Numbers of a size near 1, and NaN beyond the bound. */
export function inputsOf({ graph, along }: Bounded, n: number): HostArray[] {
  return graph.parameters.map(({ shape, dtype }, p) => {
    if (dtype === 'i32') return hostArray('i32', [], [n]);
    const sizes = shape as FixedShape;
    const axis = along[p];
    const inner = axis === undefined ? 1 : sizeOf(sizes.slice(axis + 1));
    const values = Array.from({ length: sizeOf(sizes) }, (_, i) => {
      const beyond = axis !== undefined && Math.floor(i / inner) % sizes[axis]! >= n;
      return beyond ? NaN : Math.sin(1.3 * i + p);
    });
    return hostArray('f32', sizes, values);
  });
}

/** What of a result is specified. */
export function specified(array: HostArray, open: number | undefined, n: number): HostArray {
  if (open === undefined) return array;
  const inner = sizeOf(array.shape.slice(open + 1));
  const data = array.data.slice();
  for (let i = 0; i < data.length; i++) if (Math.floor(i / inner) % array.shape[open]! >= n) data[i] = 0;
  return { ...array, data };
}
