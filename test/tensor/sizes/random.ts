// Random programs with an axis that varies: chains of operations, drawn from a seed, that are the
// same whatever the size is.

import * as sn from '../../../src/index.ts';

/** An axis: `n`, a multiple of it or so and so much more, by its text; or a fixed size. */
type Size = string | number;

interface Known {
  readonly x: sn.Tensor;
  readonly shape: readonly Size[];
}

/** Whole numbers below a bound, one after the other. */
export function drawer(seed: number): (below: number) => number {
  let state = seed | 0;
  return (below) => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x6d2b79f5) | 0;
    const mixed = Math.imul(state ^ (state >>> 13), 0x297a2d39);
    return ((mixed ^ (mixed >>> 16)) >>> 0) % below;
  };
}

const isVarying = (size: Size): boolean => typeof size === 'string';
const tame = (x: sn.Tensor): sn.Tensor => x.clamp(-4, 4);

type Step = (draw: (below: number) => number, known: readonly Known[]) => Known | undefined;

const pick = (draw: (below: number) => number, known: readonly Known[]): Known => known[draw(known.length)]!;

/** An operation along some axis of some value, which keeps its shape. */
const along =
  (fn: (x: sn.Tensor, axis: number) => sn.Tensor): Step =>
  (draw, known) => {
    const { x, shape } = pick(draw, known);
    if (shape.length === 0) return undefined;
    return { x: fn(x, draw(shape.length)), shape };
  };

/** One that takes the axis away, or leaves one element. */
const folding =
  (fn: (x: sn.Tensor, axis: number, keepdim: boolean) => sn.Tensor): Step =>
  (draw, known) => {
    const { x, shape } = pick(draw, known);
    if (shape.length === 0) return undefined;
    const axis = draw(shape.length);
    const keepdim = draw(2) === 0;
    return { x: fn(x, axis, keepdim), shape: keepdim ? shape.with(axis, 1) : shape.toSpliced(axis, 1) };
  };

/** One that changes the size of the axis. */
const resizing =
  (fn: (x: sn.Tensor, axis: number) => sn.Tensor, text: (size: Size) => Size, least: number): Step =>
  (draw, known) => {
    const { x, shape } = pick(draw, known);
    const axis = draw(Math.max(1, shape.length));
    const size = shape[axis];
    if (size === undefined || (typeof size === 'number' ? size < least : size !== 'n')) return undefined;
    return { x: fn(x, axis), shape: shape.with(axis, text(size)) };
  };

const more =
  (by: number) =>
  (size: Size): Size =>
    typeof size === 'number' ? size + by : `${size}${by < 0 ? '' : '+'}${by}`;

const steps: readonly Step[] = [
  along((x) => x.neg().exp().clamp(0, 4)),
  along((x) => x.relu()),
  along((x, axis) => x.softmax(axis)),
  along((x, axis) => tame(x.cumsum(axis))),
  along((x, axis) => x.flip(axis)),
  along((x, axis) => x.sort(axis)[0]!),
  along((x, axis) => x.argsort(axis, { descending: true }).cast('f32').mul(0.01)),
  along((x, axis) => x.roll(1, axis)),
  along((x, axis) => x.sub(x.mean(axis, { keepdim: true }))),
  along((x, axis) => tame(x.flip(axis).cumsum(axis).flip(axis))),
  along((x, axis) => sn.takeAlongDim(x, x.argsort(axis), axis)),
  along((x, axis) => x.add(x.argmax(axis, { keepdim: true }).cast('f32').mul(0.01))),
  along((x) => sn.where(x.gt(0), x, x.mul(0.5))),
  along((x) => x.div(x.abs().add(0.5))),
  // A branch on what no rounding changes.
  along((x, axis) =>
    sn.cond(
      x.ne(x).any(),
      (a: sn.Tensor) => a.mul(0),
      (a: sn.Tensor) => a.softmax(axis).add(a.mean(axis, { keepdim: true })),
      x,
    ),
  ),
  folding((x, axis, keepdim) => tame(x.sum(axis, { keepdim }))),
  folding((x, axis, keepdim) => x.max(axis, { keepdim })),
  folding((x, axis, keepdim) => x.min(axis, { keepdim })),
  folding((x, axis, keepdim) => x.mean(axis, { keepdim })),
  folding((x, axis, keepdim) => x.logsumexp(axis, { keepdim })),
  resizing((x, axis) => x.slice(axis, 1), more(-1), 2),
  resizing((x, axis) => x.slice(axis, 0, -1), more(-1), 2),
  resizing(
    (x, axis) => sn.cat([x, x.mul(0.5)], axis),
    (size) => (typeof size === 'number' ? 2 * size : `${size}+${size}`),
    1,
  ),
  resizing((x, axis) => sn.cat([x, sn.ones(x.shape.with(axis, 2)), x.slice(axis, 0, 1)], axis), more(3), 1),
  resizing(
    (x, axis) =>
      sn.pad(
        x,
        x.shape.map((_, i) => (i === axis ? [2, 1] : [0, 0])),
        { value: 0.25 },
      ),
    more(3),
    1,
  ),
  resizing(
    (x, axis) => x.slice(axis, -1),
    () => 1,
    1,
  ),
  // A loop over a fixed axis, which carries what may vary.
  (draw, known) => {
    const { x, shape } = pick(draw, known);
    if (shape.length < 2 || isVarying(shape[0]!)) return undefined;
    const begin = sn.zeros(x.shape.slice(1));
    const turn = (carry: sn.Tensor, slice: sn.Tensor): [sn.Tensor, sn.Tensor] => {
      const next = carry.mul(0.5).add(slice).tanh();
      return [next, next.sub(carry.mean())];
    };
    return { x: sn.scan(turn, begin, x)[1], shape };
  },
  // Another order of axes.
  (draw, known) => {
    const { x, shape } = pick(draw, known);
    if (shape.length < 2) return undefined;
    const [a, b] = [draw(shape.length), draw(shape.length)];
    const swapped = shape.with(a, shape[b]!).with(b, shape[a]!);
    return { x: x.transpose(a, b), shape: swapped };
  },
  // Everything in a row, or two axes as one.
  (draw, known) => {
    const { x, shape } = pick(draw, known);
    if (shape.length < 2) return undefined;
    const axis = draw(shape.length - 1);
    const [a, b] = [shape[axis]!, shape[axis + 1]!];
    const size: Size = isVarying(a) || isVarying(b) ? `(${a})*(${b})` : (a as number) * (b as number);
    const to = [...x.shape.slice(0, axis), x.shape[axis]! * x.shape[axis + 1]!, ...x.shape.slice(axis + 2)];
    return { x: x.reshape(to), shape: [...shape.slice(0, axis), size, ...shape.slice(axis + 2)] };
  },
  // One axis more.
  (draw, known) => {
    const { x, shape } = pick(draw, known);
    if (shape.length > 2) return undefined;
    const axis = draw(shape.length + 1);
    return { x: x.unsqueeze(axis), shape: shape.toSpliced(axis, 0, 1) };
  },
  // Two values, spread over one another.
  (draw, known) => {
    const [a, b] = [pick(draw, known), pick(draw, known)];
    const rank = Math.max(a.shape.length, b.shape.length);
    const shape: Size[] = [];
    for (let i = 1; i <= rank; i++) {
      const [left, right] = [a.shape.at(-i) ?? 1, b.shape.at(-i) ?? 1];
      if (left !== right && left !== 1 && right !== 1) return undefined;
      shape.unshift(left === 1 ? right : left);
    }
    return { x: draw(2) === 0 ? a.x.add(b.x) : tame(a.x.mul(b.x)), shape };
  },
  // A product along the last axis of both.
  (draw, known) => {
    const [a, b] = [pick(draw, known), pick(draw, known)];
    if (a.shape.length !== 2 || b.shape.length !== 2 || a.shape[1] !== b.shape[1]) return undefined;
    return { x: tame(a.x.matmul(b.x.transpose(0, 1))), shape: [a.shape[0]!, b.shape[0]!] };
  },
  // Positions, and numbers of the size.
  (draw, known) => {
    const { x, shape } = pick(draw, known);
    const last = x.shape.at(-1);
    if (last === undefined) return undefined;
    return { x: x.add(sn.arange(last).mul(1 / (1 + last))), shape };
  },
  (draw, known) => {
    const { x, shape } = pick(draw, known);
    if (shape.length !== 2) return undefined;
    return { x: draw(2) === 0 ? x.tril() : x.triu(1), shape };
  },
];

/** The program of a seed: of `[n,3]`, `[4,n]` and `[n]` to a few results. */
export function randomProgram(
  seed: number,
  length: number,
): (a: sn.Tensor, b: sn.Tensor, c: sn.Tensor) => sn.Tensor[] {
  return (a, b, c) => {
    const draw = drawer(seed);
    const known: Known[] = [
      { x: a, shape: ['n', 3] },
      { x: b, shape: [4, 'n'] },
      { x: c, shape: ['n'] },
    ];
    const made: Known[] = [];
    for (let i = 0; made.length < length && i < 20 * length; i++) {
      const next = steps[draw(steps.length)]!(draw, [...known, ...made, ...made.slice(-2)]);
      if (next !== undefined && next.x.size < 40_000) made.push(next);
    }
    return made.slice(-3).map(({ x }) => x);
  };
}
