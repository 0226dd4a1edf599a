// Transforms as the tests of their compositions know them: each with the same by other means, a `vmap` or a `scan` as a loop in
// JavaScript, a `jvp` as two passes backwards.

import { sizeOf } from '../../../src/ir/shape.ts';
import { hostArray, type HostArray } from '../../../src/ir/value.ts';
import * as sn from '../../../src/index.ts';
import type { Tensor } from '../../../src/tensor/tensor.ts';
import { specialPoint, type Random } from './sample.ts';

export type Many = readonly Tensor[];
export type Fn = (xs: Many) => Many;

/** A function, the same by other means, and where it is evaluated. */
export interface Stage {
  readonly fn: Fn;
  readonly other: Fn;
  readonly points: readonly HostArray[];
}

/** One number of many, bent so that second derivatives are there. */
export function weighed(ys: Many): Tensor {
  const parts = ys.map((y, k) =>
    y
      .mul(y.add(1))
      .mul(numbersLike(y, k + 1))
      .sum(),
  );
  return parts.reduce((a, b) => a.add(b));
}

const directionsFor = (xs: Many): Many => xs.map((x) => numbersLike(x, 0.3));

/** Numbers for every element, made by operations: what is traced captures nothing. */
function numbersLike({ shape, dtype }: Tensor, from: number): Tensor {
  return sn
    .arange(sizeOf(shape))
    .cast(dtype)
    .mul(1.7)
    .add(from)
    .sin()
    .reshape([...shape]);
}

export const transforms: Readonly<Record<string, (stage: Stage, random: Random) => Stage>> = {
  vmap: ({ fn, other, points }, random) => {
    const size = 1 + Math.floor(random() * 3);
    // Each input is mapped along an axis of its own, or is the same for all examples.
    const axes = points.map(({ shape }, i) =>
      i > 0 && random() < 0.3 ? null : Math.floor(random() * (shape.length + 1)),
    );
    const stackedPoints = points.map((point, i) => {
      const axis = axes[i]!;
      if (axis === null) return point;
      const examples = Array.from({ length: size }, (_, k) => (k === 0 ? point : another(point, random)));
      return stackAlong(examples, axis);
    });
    const outAxis = random() < 0.5 ? 0 : -1;
    return {
      fn: (xs) => sn.vmap((...ys: Tensor[]) => fn(ys), { inAxes: axes, outAxes: outAxis })(...xs),
      other: (xs) => {
        const results = Array.from({ length: size }, (_, k) =>
          other(
            xs.map((x, i) => {
              const axis = axes[i]!;
              return axis === null ? x : x.select(axis, k);
            }),
          ),
        );
        return results[0]!.map((_, k) =>
          sn.stack(
            results.map((each) => each[k]!),
            outAxis,
          ),
        );
      },
      points: stackedPoints,
    };
  },
  scan: ({ fn, other, points }, random) => {
    const size = 1 + Math.floor(random() * 3);
    const reverse = random() < 0.5;
    const stackedPoints = points.map((point) => {
      const slices = Array.from({ length: size }, (_, k) => (k === 0 ? point : another(point, random)));
      return stackAlong(slices, 0);
    });
    /** The carry comes into what each iteration gives, and what it gives into the carry. */
    const turn = (f: Fn, carry: Tensor, xs: Many): readonly [Tensor, Many] => {
      const ys = f(xs);
      return [carry.mul(0.5).add(weighed(ys)).sin(), ys.map((y) => y.add(carry))];
    };
    const start = (xs: Many): Tensor => sn.zeros([], { dtype: xs[0]!.dtype });
    return {
      fn: (xs) => {
        const [carry, ys] = sn.scan(
          (held: Tensor, slices: readonly Tensor[]) => turn(fn, held, slices),
          start(xs),
          [...xs],
          { reverse },
        );
        return [carry, ...ys];
      },
      other: (xs) => {
        let carry = start(xs);
        const rows: Many[] = [];
        for (let k = 0; k < size; k++) {
          const at = reverse ? size - 1 - k : k;
          const [next, ys] = turn(
            other,
            carry,
            xs.map((x) => x.select(0, at)),
          );
          carry = next;
          rows[at] = ys;
        }
        return [
          carry,
          ...rows[0]!.map((_, i) =>
            sn.stack(
              rows.map((ys) => ys[i]!),
              0,
            ),
          ),
        ];
      },
      points: stackedPoints,
    };
  },
  foriLoop: ({ fn, other, points }, random) => {
    const turns = Math.floor(random() * 4);
    /** All of the carry changes from turn to turn. */
    const turn = (f: Fn, [sum, xs]: readonly [Tensor, Many]): readonly [Tensor, Many] => [
      sum
        .mul(0.5)
        .add(weighed(f(xs)))
        .sin(),
      xs.map((x) => x.mul(0.75).add(0.1)),
    ];
    const start = (xs: Many): readonly [Tensor, Many] => [sn.zeros([], { dtype: xs[0]!.dtype }), xs];
    return {
      fn: (xs) => {
        const [sum, rest] = sn.foriLoop(0, turns, (_, carry) => turn(fn, carry), start(xs));
        return [sum, ...rest];
      },
      other: (xs) => {
        let carry = start(xs);
        for (let i = 0; i < turns; i++) carry = turn(other, carry);
        return [carry[0], ...carry[1]];
      },
      points,
    };
  },
  /** Each branch is taken at some points. */
  cond: ({ fn, other, points }) => {
    const isTaken = ([x]: Many): Tensor => x!.sum().gt(0.1234);
    const bent = (ys: Many): Many => ys.map((y) => y.mul(y.mul(0.3)));
    return {
      fn: (xs) =>
        sn.cond(
          isTaken(xs),
          (...at: Tensor[]) => bent(fn(at)),
          (...at: Tensor[]) => fn(at),
          ...xs,
        ),
      other: (xs) => {
        const taken = isTaken(xs);
        const ys = other(xs);
        return bent(ys).map((y, k) => sn.where(taken, y, ys[k]!));
      },
      points,
    };
  },
  /** One program for all calls that a trace makes. */
  compile: ({ fn, other, points }) => ({
    fn: (xs) => sn.compile((...at: Tensor[]) => fn(at))(...xs),
    other,
    points,
  }),
  checkpoint: ({ fn, other, points }, random) => {
    const policy = ([undefined, 'products', 'unbatchedProducts', everyOther] as const)[
      Math.floor(random() * 4)
    ];
    return {
      fn: sn.checkpoint(fn, policy === undefined ? {} : { policy }),
      other,
      points,
    };
  },
  /** By a rule that is the derivative all the same. */
  customVjp: ({ fn, other, points }) => {
    const ruled = sn.customVjp(
      (...xs: Tensor[]): Many => fn(xs),
      (gs, xs) => sn.vjp(fn, xs).vjp(gs)[0],
    );
    return { fn: (xs) => ruled(...xs), other, points };
  },
  grad: ({ fn, other, points }) => ({
    fn: (xs) => sn.grad((ys: Many) => weighed(fn(ys)))(xs),
    other: (xs) => {
      const { value, vjp } = sn.vjp((ys: Many) => weighed(other(ys)), xs);
      return vjp(sn.onesLike(value))[0];
    },
    points,
  }),
  jvp: ({ fn, other, points }) => ({
    fn: (xs) => sn.jvp(fn, [xs], [directionsFor(xs)]).tangent,
    // ⟨u, J·d⟩ = ⟨Jᵀ·u, d⟩ for all u: the derivative of Jᵀ·u along d, with respect to u.
    other: (xs) => {
      const pulled = (us: Many): Many => sn.vjp(other, xs).vjp(us)[0];
      const zeros = other(xs).map((y) => sn.zerosLike(y));
      return sn.vjp(pulled, zeros).vjp(directionsFor(xs))[0];
    },
    points,
  }),
  linearize: ({ fn, other, points }) => ({
    fn: (xs) => sn.linearize(fn, xs).jvp(directionsFor(xs)),
    other: (xs) => sn.jvp(other, [xs], [directionsFor(xs)]).tangent,
    points,
  }),
  hvp: ({ fn, other, points }) => ({
    fn: (xs) => sn.hvp((ys: Many) => weighed(fn(ys)), [xs], [directionsFor(xs)]).hvp[0] as Many,
    other: (xs) =>
      sn.vjp((ys: Many) => sn.grad((zs: Many) => weighed(other(zs)))(ys), xs).vjp(directionsFor(xs))[0],
    points,
  }),
};

/** Which results a derivative keeps, where it is not one of the words: some of them. */
const everyOther = ({ id }: { readonly id: number }): boolean => id % 2 === 0;

/** Another point of the same type. */
function another({ dtype, shape }: HostArray, random: Random): HostArray {
  const { data } = specialPoint(shape, random);
  return hostArray(dtype, shape, Array.from(data as Float64Array));
}

/** Examples of one shape joined along a new axis. */
function stackAlong(examples: readonly HostArray[], axis: number): HostArray {
  const { dtype, shape } = examples[0]!;
  const inner = sizeOf(shape.slice(axis));
  const outer = sizeOf(shape.slice(0, axis));
  const data: number[] = [];
  for (let i = 0; i < outer; i++) {
    for (const each of examples)
      data.push(...(each.data as Float64Array | Float32Array).slice(i * inner, (i + 1) * inner));
  }
  return hostArray(dtype, shape.toSpliced(axis, 0, examples.length), data);
}

const orders: Readonly<Record<string, number>> = { grad: 1, jvp: 1, linearize: 1, hvp: 2 };

/** How often derivatives are taken. */
export function orderOf(names: readonly string[]): number {
  return names.reduce((order, name) => order + (orders[name] ?? 0), 0);
}
