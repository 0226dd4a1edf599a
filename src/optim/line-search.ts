// A line search to a point of Wolfe's strong conditions (Nocedal and Wright, Numerical Optimization,
// 2nd edition, algorithms 3.5 and 3.6, with the cubic of equation 3.59).

import type { Tensor } from '../tensor/tensor.ts';

/** A loss and its gradient at a point. */
export interface LossPoint {
  readonly loss: number;
  readonly gradient: Tensor;
}

interface Search {
  /** The point at a length along the direction. */
  readonly visit: (length: number) => Promise<LossPoint>;
  /** The slope along the direction at a point. */
  readonly alongside: (point: LossPoint) => Promise<number>;
  readonly from: LossPoint;
  /** The slope where the search starts; negative. */
  readonly slope: number;
  /** The first length to try. */
  readonly start: number;
  /** The largest element of the direction, by which lengths become changes of parameters. */
  readonly bound: number;
  /** The least change of a parameter. */
  readonly tolerance: number;
}

interface Found {
  readonly point: LossPoint;
  readonly length: number;
  readonly evaluations: number;
}

interface Sample {
  readonly length: number;
  readonly slope: number;
  readonly point: LossPoint;
}

/** Share of the slope that the loss must fall by, and share that the slope must fall to. */
const [decrease, flatness] = [1e-4, 0.9];
const mostEvaluations = 25;

/** Goes on until both conditions hold, the bracket is empty, or 25 evaluations are made. */
export async function strongWolfe(search: Search): Promise<Found> {
  const { from, slope, start } = search;
  const spent = { evaluations: 0 };
  const sample = async (length: number): Promise<Sample> => {
    spent.evaluations += 1;
    const point = await search.visit(length);
    return { length, point, slope: await search.alongside(point) };
  };
  const origin: Sample = { length: 0, slope, point: from };
  const isHigh = ({ length, point }: Sample): boolean =>
    !(point.loss <= from.loss + decrease * length * slope);
  const isFlat = (at: Sample): boolean => Math.abs(at.slope) <= -flatness * slope;
  const done = ({ point, length }: Sample): Found => ({ point, length, ...spent });

  let last = origin;
  let bracket: readonly [low: Sample, high: Sample] | undefined;
  for (let length = start; bracket === undefined;) {
    const now = await sample(length);
    if (isHigh(now) || (last !== origin && now.point.loss >= last.point.loss)) bracket = [last, now];
    else if (isFlat(now)) return done(now);
    else if (now.slope >= 0) bracket = [now, last];
    else if (spent.evaluations >= mostEvaluations) return done(now);
    else {
      const [least, most] = [now.length + 0.01 * (now.length - last.length), now.length * 10];
      length = Math.min(most, Math.max(least, minimumOfCubic(last, now) ?? most));
      last = now;
    }
  }

  let [low, high] = bracket;
  while (spent.evaluations < mostEvaluations) {
    const width = Math.abs(high.length - low.length);
    if (width * search.bound < search.tolerance) break;
    const now = await sample(inside(low, high));
    if (isHigh(now) || now.point.loss >= low.point.loss) {
      high = now;
      continue;
    }
    if (isFlat(now)) return done(now);
    if (now.slope * (high.length - low.length) >= 0) high = low;
    low = now;
  }
  return done(low);
}

/** Where the cubic through two samples has its minimum, or their middle where that is no progress. */
function inside(low: Sample, high: Sample): number {
  const middle = (low.length + high.length) / 2;
  const width = Math.abs(high.length - low.length);
  const at = minimumOfCubic(low, high);
  if (at === undefined) return middle;
  const [left, right] = [Math.min(low.length, high.length), Math.max(low.length, high.length)];
  return at < left + 0.1 * width || at > right - 0.1 * width ? middle : at;
}

/** The minimum of the cubic with the losses and slopes of two samples; undefined if there is none. */
function minimumOfCubic(a: Sample, b: Sample): number | undefined {
  const d1 = a.slope + b.slope - (3 * (a.point.loss - b.point.loss)) / (a.length - b.length);
  const square = d1 * d1 - a.slope * b.slope;
  if (!(square >= 0)) return undefined;
  const d2 = Math.sign(b.length - a.length) * Math.sqrt(square);
  const at = b.length - (b.length - a.length) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2));
  return Number.isFinite(at) ? at : undefined;
}
