// Random programs of branches and loops within each other: their values, gradients, tangents and
// batches are those of plain JavaScript's `if` and `for`, and of finite differences.

import * as fc from 'fast-check';
import { expect } from 'vitest';

import * as sn from '../../src/index.ts';

type Tensor = sn.Tensor;
type Vector = readonly number[];

/** A function of a vector of three, and of the parameters that the whole program has, of three too. */
type Piece =
  | { readonly kind: 'leaf'; readonly name: 'tanh' | 'mix' | 'turn' | 'weigh'; readonly by: number }
  | { readonly kind: 'both'; readonly first: Piece; readonly second: Piece }
  | { readonly kind: 'cond'; readonly limit: number; readonly yes: Piece; readonly no: Piece }
  | { readonly kind: 'scan'; readonly turns: number; readonly reverse: boolean; readonly piece: Piece }
  | { readonly kind: 'fori'; readonly turns: number; readonly checkpoint: boolean; readonly piece: Piece };

const leaf: fc.Arbitrary<Piece> = fc.record({
  kind: fc.constant('leaf' as const),
  name: fc.constantFrom('tanh' as const, 'mix' as const, 'turn' as const, 'weigh' as const),
  by: fc.integer({ min: -8, max: 8 }).map((n) => n / 8),
});

function pieces(depth: number): fc.Arbitrary<Piece> {
  if (depth === 0) return leaf;
  const inner = pieces(depth - 1);
  const turns = fc.integer({ min: 0, max: 4 });
  const limit = fc.integer({ min: -8, max: 8 }).map((n) => n / 8 + 0.03);
  return fc.oneof(
    leaf,
    fc.record({ kind: fc.constant('both' as const), first: inner, second: inner }),
    fc.record({ kind: fc.constant('cond' as const), limit, yes: inner, no: inner }),
    fc.record({ kind: fc.constant('cond' as const), limit, yes: inner, no: inner }),
    fc.record({ kind: fc.constant('scan' as const), turns, reverse: fc.boolean(), piece: inner }),
    fc.record({ kind: fc.constant('fori' as const), turns, checkpoint: fc.boolean(), piece: inner }),
  );
}

/** What scans read: a row an iteration. */
const rows = Array.from({ length: 4 }, (_, i) => [0.3 - 0.2 * i, 0.1 * i, -0.25 + 0.15 * i]);
const matrix = [
  [0.5, -0.3, 0.2],
  [0.1, 0.7, -0.4],
  [-0.6, 0.2, 0.3],
];

const recorded = (piece: Piece, x: Tensor, w: Tensor): Tensor => {
  const apply = (p: Piece, v: Tensor): Tensor => recorded(p, v, w);
  switch (piece.kind) {
    case 'leaf':
      if (piece.name === 'tanh') return x.add(piece.by).tanh();
      if (piece.name === 'mix') return x.matmul(sn.tensor(matrix)).add(piece.by);
      return piece.name === 'turn' ? x.mul(piece.by).sin() : x.mul(w).add(piece.by);
    case 'both':
      return apply(piece.second, apply(piece.first, x));
    case 'cond':
      return sn.cond(
        x.sum().gt(piece.limit),
        (v) => apply(piece.yes, v),
        (v) => apply(piece.no, v),
        x,
      );
    case 'scan': {
      const { turns: length, reverse } = piece;
      const xs = sn.tensor(rows.slice(0, length).flat(), { shape: [length, 3] });
      const turn = (c: Tensor, row: Tensor): [Tensor, Tensor] => {
        const next = apply(piece.piece, c.add(row));
        return [next, next.mul(row)];
      };
      const [last, given] = sn.scan(turn, x, xs, { reverse });
      return last.add(given.sum(0));
    }
    case 'fori': {
      const options = piece.checkpoint ? { checkpoint: 2 } : {};
      return sn.foriLoop(
        1,
        1 + piece.turns,
        (i, c: Tensor) => apply(piece.piece, c.add(i.mul(0.1))),
        x,
        options,
      );
    }
    default:
      return piece satisfies never;
  }
};

/** The same in plain numbers; `near` is told how far each decision is from another one. */
const plain = (piece: Piece, x: Vector, w: Vector, near: (distance: number) => void): Vector => {
  const apply = (p: Piece, v: Vector): Vector => plain(p, v, w, near);
  switch (piece.kind) {
    case 'leaf':
      if (piece.name === 'tanh') return x.map((v) => Math.tanh(v + piece.by));
      if (piece.name === 'mix')
        return [0, 1, 2].map((k) => x.reduce((sum, v, i) => sum + v * matrix[i]![k]!, piece.by));
      return x.map((v, i) => (piece.name === 'turn' ? Math.sin(v * piece.by) : v * w[i]! + piece.by));
    case 'both':
      return apply(piece.second, apply(piece.first, x));
    case 'cond': {
      const margin = x[0]! + x[1]! + x[2]! - piece.limit;
      near(Math.abs(margin));
      return apply(margin > 0 ? piece.yes : piece.no, x);
    }
    case 'scan': {
      let [c, sum]: [Vector, Vector] = [x, [0, 0, 0]];
      for (let turn = 0; turn < piece.turns; turn++) {
        const row = rows[piece.reverse ? piece.turns - 1 - turn : turn]!;
        c = apply(
          piece.piece,
          c.map((v, i) => v + row[i]!),
        );
        sum = sum.map((v, i) => v + c[i]! * row[i]!);
      }
      return c.map((v, i) => v + sum[i]!);
    }
    case 'fori': {
      let c = x;
      for (let turn = 1; turn <= piece.turns; turn++)
        c = apply(
          piece.piece,
          c.map((v) => v + 0.1 * turn),
        );
      return c;
    }
    default:
      return piece satisfies never;
  }
};

export interface Sample {
  readonly piece: Piece;
  readonly xs: readonly Vector[];
  readonly w: Vector;
}

const vector = fc.tuple(...[0, 1, 2].map(() => fc.integer({ min: -16, max: 16 }).map((n) => n / 16)));
/** Programs with what they are called with. */
export const samples: fc.Arbitrary<Sample> = fc
  .record({ piece: pieces(3), xs: fc.tuple(vector, vector), w: vector })
  // Where a decision is near, differences and rounding may take the other branch.
  .filter(({ piece, xs, w }) => {
    let nearest = Infinity;
    const values = xs.flatMap((x) =>
      plain(piece, x, w, (distance) => (nearest = Math.min(nearest, distance))),
    );
    return nearest > 0.02 && values.every((value) => Math.abs(value) < 20);
  });

/** Σᵢ (i + 1) yᵢ of what a program gives. */
const weights = [1, 2, 3];
const total = ({ piece, w }: Sample, x: Vector, at: Vector = w): number =>
  plain(piece, x, at, () => undefined).reduce((sum, v, i) => sum + weights[i]! * v, 0);

/** Central differences of a function of a vector. */
function slopes(f: (x: Vector) => number, x: Vector): number[] {
  const h = 1e-4;
  return x.map((v, i) => (f(x.with(i, v + h)) - f(x.with(i, v - h))) / (2 * h));
}

async function close(tensor: Tensor, expected: readonly number[]): Promise<void> {
  const found = Array.from(await tensor.data(), Number);
  expect(found).toHaveLength(expected.length);
  found.forEach((value, i) =>
    expect(Math.abs(value - expected[i]!), `${found.join()} for ${expected.join()}`).toBeLessThan(
      2e-3 * Math.max(1, Math.abs(expected[i]!)),
    ),
  );
}

/** Holds a program to plain loops, and to differences. */
export async function check(sample: Sample): Promise<void> {
  const { piece, xs, w } = sample;
  const sum = (x: Tensor, v: Tensor): Tensor => recorded(piece, x, v).mul(sn.tensor(weights)).sum();
  const [first] = xs as readonly [Vector, Vector];
  const [x, v, batch] = [sn.tensor([...first]), sn.tensor([...w]), sn.tensor(xs.map((row) => [...row]))];
  await close(
    recorded(piece, x, v),
    plain(piece, first, w, () => undefined),
  );
  const [dx, dw] = sn.grad(sum, { argnums: [0, 1] })(x, v);
  const expected = slopes((at) => total(sample, at), first);
  await close(dx, expected);
  await close(
    dw,
    slopes((at) => total(sample, first, at), w),
  );
  const { tangent } = sn.jvp((at: Tensor) => sum(at, v), [x], [sn.tensor([1, -0.5, 0.25])]);
  await close(tangent, [expected[0]! - 0.5 * expected[1]! + 0.25 * expected[2]!]);
  await close(
    sn.vmap((at: Tensor) => recorded(piece, at, v))(batch),
    xs.flatMap((row) => plain(piece, row, w, () => undefined)),
  );
  const all = xs.flatMap((row) => slopes((at) => total(sample, at), row));
  await close(sn.vmap(sn.grad((at: Tensor) => sum(at, v)))(batch), all);
  await close(
    sn.grad((rows_: Tensor) =>
      sn
        .vmap((at: Tensor) => sum(at, v))(rows_)
        .sum(),
    )(batch),
    all,
  );
}
