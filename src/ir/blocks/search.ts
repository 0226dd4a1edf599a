// Scales of groups of values that are stored in few bits: a few candidates are tried, each is moved
// to where the squared error of its levels is least, and the best one stays. Large values count
// more, since products are sums in which they weigh more.

/** How much the error of a value counts. */
function importance(x: number, mean: number): number {
  return mean + Math.abs(x);
}

function meanSize(x: Float32Array): number {
  let sum = 0;
  for (const value of x) sum += value * value;
  return Math.sqrt(sum / x.length);
}

/** Candidates on either side of the scale that spans the values, and how far apart they are in levels. */
const reach = 9;
const stride = 0.1;

/** A scale and what is subtracted behind it: x ≈ scale·q − minimum, where both are at least 0. */
export interface BlockScale {
  readonly scale: number;
  readonly minimum: number;
}

/** The best scale and minimum for levels from 0 to `most`. */
export function affineScale(x: Float32Array, most: number): BlockScale {
  let [low, high] = [0, 0];
  for (const value of x) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (high === low) return { scale: 0, minimum: 0 };
  const mean = meanSize(x);
  let best: BlockScale = { scale: (high - low) / most, minimum: -low };
  let least = affineError(x, mean, most, best);
  for (let step = -reach; step <= reach; step++) {
    const inverse = (most + step * stride) / (high - low);
    if (inverse <= 0) continue;
    // Least squares of x ≈ a·q + b over the levels that this candidate gives.
    let [w, wq, wqq, wx, wqx] = [0, 0, 0, 0, 0];
    for (const value of x) {
      const level = clamp(Math.round((value - low) * inverse), 0, most);
      const weight = importance(value, mean);
      w += weight;
      wq += weight * level;
      wqq += weight * level * level;
      wx += weight * value;
      wqx += weight * level * value;
    }
    const spread = w * wqq - wq * wq;
    if (!(spread > 0)) continue;
    let scale = (w * wqx - wq * wx) / spread;
    let offset = (wqq * wx - wq * wqx) / spread;
    if (offset > 0) {
      offset = 0;
      scale = wqx / wqq;
    }
    if (!(scale > 0)) continue;
    const moved = { scale, minimum: -offset };
    const error = affineError(x, mean, most, moved);
    if (error < least) [best, least] = [moved, error];
  }
  return best;
}

function affineError(x: Float32Array, mean: number, most: number, { scale, minimum }: BlockScale): number {
  let sum = 0;
  for (const value of x) {
    const level = clamp(Math.round((value + minimum) / scale), 0, most);
    const off = scale * level - minimum - value;
    sum += importance(value, mean) * off * off;
  }
  return sum;
}

/** The value farthest from 0, with its sign. */
export function farthest(x: Float32Array): number {
  let far = 0;
  for (const value of x) if (Math.abs(value) > Math.abs(far)) far = value;
  return far;
}

/**
 * The best scale of x ≈ scale·q for levels from −`half` to `half` − 1, of either sign: the farthest
 * value takes the level that has no opposite.
 */
export function signedScale(x: Float32Array, half: number): number {
  return moved(x, farthest(x), half, stride, (value) => clamp(Math.round(value), -half, half - 1));
}

/** The best scale of x ≈ scale·t for levels t of a table, rising, whose farthest from 0 is the first. */
export function tableScale(x: Float32Array, table: readonly number[]): number {
  return moved(x, farthest(x), -(table[0] ?? 0), 1, (value) => table[nearestLevel(table, value)] ?? 0);
}

/** The best scale of candidates that bring `far` to about −`extent`, for levels that a function gives. */
function moved(
  x: Float32Array,
  far: number,
  extent: number,
  apart: number,
  levelOf: (value: number) => number,
): number {
  if (far === 0) return 0;
  const mean = meanSize(x);
  let [best, most] = [0, 0];
  for (let step = -reach; step <= reach; step++) {
    const inverse = -(extent + step * apart) / far;
    let [wqx, wqq] = [0, 0];
    for (const value of x) {
      const level = levelOf(value * inverse);
      const weight = importance(value, mean);
      wqx += weight * level * value;
      wqq += weight * level * level;
    }
    // With the scale wqx/wqq the squared error is a constant less wqx²/wqq.
    if (wqq > 0 && wqx * wqx > most * wqq) {
      most = (wqx * wqx) / wqq;
      best = wqx / wqq;
    }
  }
  return best;
}

/** Which level of a table, rising, is nearest to a value. */
export function nearestLevel(table: readonly number[], value: number): number {
  let [low, high] = [0, table.length - 1];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (value < (table[middle] ?? 0)) high = middle;
    else low = middle;
  }
  return value - (table[low] ?? 0) <= (table[high] ?? 0) - value ? low : high;
}

export function clamp(x: number, low: number, high: number): number {
  return x < low ? low : x > high ? high : x;
}
