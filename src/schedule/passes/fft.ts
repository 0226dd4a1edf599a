// Fourier transforms become kernels by their length. Real and imaginary parts are taken apart: a
// kernel transforms pairs of lines, of either part that anybody asks for. Lengths that one kernel
// cannot do follow their plan (ir/fft/plan.ts): two transforms with factors between them (Bailey's
// four steps, whose transpositions are views), or a convolution with a chirp (Bluestein).

import { add, broadcast, full, mul, permute, reshape, slice, sub } from '../../ir/build.ts';
import { fftPlan, padded, type FftPlan } from '../../ir/fft/plan.ts';
import {
  dims,
  rewrite,
  topological,
  type Graph,
  type GraphBuilder,
  type Node,
  type NodeOf,
} from '../../ir/graph.ts';
import { sizeOf } from '../../ir/shape.ts';

/** Rows whose columns lie a page apart, and in few sets of a cache. */
const longRow = 512;

/** Rows whose columns lie together then: two lines of a cache. */
const blockRows = 32;

/** Real and imaginary parts of one shape. */
interface Pair {
  readonly re: Node;
  readonly im: Node;
}

/** Rewrites all transforms of pairs to parts of transforms that one kernel can do. */
export function splitTransforms(graph: Graph): Graph {
  // Others keep their nodes, and so the order in which these were recorded.
  if (!topological(graph.outputs).some(({ op }) => op === 'fft')) return graph;
  return rewrite(graph, (node, inputs, b) => {
    if (node.op === 'slice') return partOf(node, inputs[0]!);
    if (node.op !== 'fft' || sizeOf(dims(node as Node)) === 0) return undefined;
    const [x, table] = inputs as [Node, Node];
    const shape = dims(x);
    const { axis, inverse } = node.attrs;
    const n = shape[axis]!;
    // The axis last: a permutation of the parts, which is a view.
    const order = shape.flatMap((_, i) => (i === axis || i === shape.length - 1 ? [] : [i])).concat(axis);
    const back = order.map((_, i) => order.indexOf(i));
    const moved = order.map((i) => shape[i]!);
    const lines = [sizeOf(moved) / n, n];
    const given = partsOf(b, x, (part) => reshape(b, permute(b, part, order), lines));
    const { re, im } = inverse
      ? swapped(transform(b, swapped(given), table, fftPlan(n)))
      : transform(b, given, table, fftPlan(n));
    const part = (of: Node): Node =>
      reshape(b, permute(b, reshape(b, of, moved), back), [...shape.slice(0, -1), 1]);
    return b.add('concat', [part(re), part(im)], { axis: shape.length - 1 }) as Node;
  });
}

/** One part of joined ones, where a slice is just that. */
function partOf(node: NodeOf<'slice'>, joined: Node): Node | undefined {
  if (joined.op !== 'concat' || joined.inputs.length !== 2) return undefined;
  const last = joined.shape.length - 1;
  const { start, size } = node.attrs;
  const whole = dims(joined).every((dim, axis) => axis === last || (start[axis] === 0 && size[axis] === dim));
  if (joined.attrs.axis !== last || dims(joined)[last] !== 2 || size[last] !== 1 || !whole) return undefined;
  const part = joined.inputs[start[last]!];
  return part?.shape[last] === 1 ? part : undefined;
}

/** The other sign of a transform: its parts change places, before and after. */
function swapped({ re, im }: Pair): Pair {
  return { re: im, im: re };
}

/** Parts of pairs, laid out as asked; what the pairs were put together of, where that is known. */
function partsOf(b: GraphBuilder, x: Node, laid: (part: Node) => Node): Pair {
  const shape = dims(x);
  const last = shape.length - 1;
  const isJoined = x.op === 'concat' && x.attrs.axis === last && x.inputs.length === 2;
  const part = (which: number): Node => {
    const pairs = isJoined
      ? x.inputs[which]!
      : slice(b, x, [...Array<number>(last).fill(0), which], shape.with(last, 1));
    return laid(reshape(b, pairs, shape.slice(0, last)));
  };
  return { re: part(0), im: part(1) };
}

/** The transform of lines [lines, n] with the table of its plan. */
function transform(b: GraphBuilder, x: Pair, table: Node, plan: FftPlan): Pair {
  switch (plan.kind) {
    case 'one': {
      const part = (which: number): Node => b.add('fftPart', [x.re, x.im, table], { part: which }) as Node;
      return { re: part(0), im: part(1) };
    }
    case 'split':
      return splitTransform(b, x, table, plan);
    case 'chirp':
      return chirpTransform(b, x, table, plan);
    default:
      return plan satisfies never;
  }
}

function splitTransform(
  b: GraphBuilder,
  x: Pair,
  table: Node,
  { columns, rows, step, starts, n }: Extract<FftPlan, { kind: 'split' }>,
): Pair {
  const [c, r, lines] = [columns.n, rows.n, dims(x.re)[0]!];
  const both = (pair: Pair, f: (part: Node) => Node): Pair => ({ re: f(pair.re), im: f(pair.im) });
  // [lines, column, row] → columns last.
  const turned = both(x, (part) =>
    reshape(b, permute(b, reshape(b, part, [lines, c, r]), [0, 2, 1]), [lines * r, c]),
  );
  // Stored as it is computed: neighbours that were read are neighbours, and so are the columns of
  // some of them where a whole row is longer than a page: [lines, block, column, row of a block].
  const size = r >= longRow ? ([blockRows, blockRows / 2].find((rows) => r % rows === 0) ?? r) : r;
  const blocks = r / size;
  const first = both(transform(b, turned, entries(b, table, starts.columns, columns.size), columns), (part) =>
    permute(b, reshape(b, part, [lines, blocks, size, c]), [0, 1, 3, 2]),
  );
  const high = c / step;
  const factor = (start: number, count: number, shape: readonly number[]): Pair => {
    const of = (which: number): Node => {
      const given = entries(b, table, start + which * count * r, count * r);
      const blocked = permute(b, reshape(b, given, [count, blocks, size]), [1, 0, 2]);
      const all = broadcast(b, reshape(b, blocked, shape), [blocks, high, step, size]);
      return broadcast(b, reshape(b, all, [1, blocks, c, size]), [lines, blocks, c, size]);
    };
    return { re: of(0), im: of(1) };
  };
  const factors = times(
    b,
    factor(starts.factors, high, [blocks, high, 1, size]),
    factor(starts.factors + 2 * high * r, step, [blocks, 1, step, size]),
  );
  const between = both(times(b, first, factors), (part) =>
    reshape(b, permute(b, part, [0, 2, 1, 3]), [lines * c, r]),
  );
  const second = transform(b, between, entries(b, table, starts.rows, rows.size), rows);
  return both(second, (part) =>
    reshape(b, permute(b, reshape(b, part, [lines, c, r]), [0, 2, 1]), [lines, n]),
  );
}

function chirpTransform(
  b: GraphBuilder,
  x: Pair,
  table: Node,
  { n, over, starts }: Extract<FftPlan, { kind: 'chirp' }>,
): Pair {
  const [lines, m] = [dims(x.re)[0]!, over.n];
  const constants = (re: number, im: number, count: number): Pair => {
    const of = (start: number): Node => broadcast(b, entries(b, table, start, count), [lines, count]);
    return { re: of(re), im: of(im) };
  };
  const chirp = constants(0, padded(n), n);
  const filter = constants(starts.filter, starts.filter + m, m);
  const inner = entries(b, table, starts.over, over.size);
  const zeros = full(b, [lines, m - n], 0, x.re.dtype);
  const longer = (part: Node): Node => b.add('concat', [part, zeros], { axis: 1 }) as Node;
  const given = times(b, x, chirp);
  const spectrum = transform(b, { re: longer(given.re), im: longer(given.im) }, inner, over);
  const found = swapped(transform(b, swapped(times(b, spectrum, filter)), inner, over));
  const first = (part: Node): Node => slice(b, part, [0, 0], [lines, n]);
  return times(b, { re: first(found.re), im: first(found.im) }, chirp);
}

/** A section of the table. */
function entries(b: GraphBuilder, table: Node, start: number, size: number): Node {
  return slice(b, table, [start], [size]);
}

function times(b: GraphBuilder, x: Pair, y: Pair): Pair {
  return {
    re: sub(b, mul(b, x.re, y.re), mul(b, x.im, y.im)),
    im: add(b, mul(b, x.re, y.im), mul(b, x.im, y.re)),
  };
}
