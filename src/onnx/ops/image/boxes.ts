// Choosing among boxes: how many are left depends on the data, so it is done on the host.

import type { Call, Rows } from '../../call.ts';
import { knownData, type Value } from '../../value.ts';
import { hosted } from '../row.ts';

interface Box {
  readonly top: number;
  readonly left: number;
  readonly bottom: number;
  readonly right: number;
}

const { fround } = Math;

function area({ top, left, bottom, right }: Box): number {
  return fround(fround(bottom - top) * fround(right - left));
}

/**
 * Shared area over joint area, with the roundings of f32: boxes that overlap by just the limit are
 * kept or left out as in other runtimes.
 */
function overlap(a: Box, b: Box): number {
  const height = fround(Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top));
  const width = fround(Math.min(a.right, b.right) - Math.max(a.left, b.left));
  if (height <= 0 || width <= 0) return 0;
  const shared = fround(height * width);
  const joint = fround(fround(area(a) + area(b)) - shared);
  return joint <= 0 ? 0 : fround(shared / joint);
}

/** The sides along one axis of a box that is given by its centre and its size. */
function sides(centre: number, size: number): readonly [low: number, high: number] {
  const half = fround(size / 2);
  return [fround(centre - half), fround(centre + half)];
}

/** The best boxes of each class that do not overlap a better one: rows of batch, class and box. */
function nonMaxSuppression(call: Call): Value {
  const [boxes, scores] = [call.host(0)!, call.host(1)!];
  const maxKept = call.number(2) ?? 0;
  const [overlapLimit, minScore] = [call.number(3) ?? 0, call.number(4)];
  const isCentred = call.attributes.int('center_point_box', 0) === 1;
  const [batches, count, corners] = boxes.shape as readonly [number, number, number];
  const [scored, classes, each] = scores.shape as readonly [number, number, number];
  if (corners !== 4 || scored !== batches || each !== count)
    call.fail(`scores [${scores.shape.join()}] do not fit boxes [${boxes.shape.join()}]`);
  if (!(overlapLimit >= 0 && overlapLimit <= 1)) call.fail(`iou_threshold ${overlapLimit} is outside [0, 1]`);
  const boxAt = (batch: number, i: number): Box => {
    const at = (batch * count + i) * 4;
    const [a, b, c, d] = Array.from(boxes.data.slice(at, at + 4), Number) as [number, number, number, number];
    if (isCentred) {
      const [[top, bottom], [left, right]] = [sides(b, d), sides(a, c)];
      return { top, left, bottom, right };
    }
    return { top: Math.min(a, c), left: Math.min(b, d), bottom: Math.max(a, c), right: Math.max(b, d) };
  };
  const rows: number[] = [];
  for (let batch = 0; batch < batches; batch++) {
    const all = Array.from({ length: count }, (_, i) => boxAt(batch, i));
    for (let kind = 0; kind < classes; kind++) {
      const score = (i: number): number => Number(scores.data[(batch * classes + kind) * count + i]);
      const order = all.flatMap((_, i) => (minScore === undefined || score(i) > minScore ? [i] : []));
      // Scores that are NaN come last.
      const rank = (i: number): number => (Number.isNaN(score(i)) ? -Infinity : score(i));
      order.sort((p, q) => (rank(p) === rank(q) ? p - q : rank(q) - rank(p)));
      const kept: number[] = [];
      for (const i of order) {
        if (kept.length >= maxKept) break;
        if (kept.every((other) => overlap(all[i]!, all[other]!) <= overlapLimit)) kept.push(i);
      }
      for (const i of kept) rows.push(batch, kind, i);
    }
  }
  return knownData('int64', [rows.length / 3, 3], BigInt64Array.from(rows, BigInt));
}

/** Determinants by elimination with pivots. */
function determinants(call: Call): Value {
  const { shape, data, dtype } = call.host(0)!;
  const n = shape.at(-1)!;
  const count = shape.slice(0, -2).reduce((size, dim) => size * dim, 1);
  const out = Float64Array.from({ length: count }, (_, k) => {
    const m = Array.from({ length: n }, (_, i) =>
      Array.from(data.slice((k * n + i) * n, (k * n + i + 1) * n), Number),
    );
    let product = 1;
    for (let i = 0; i < n; i++) {
      const pivot = m.reduce(
        (best, line, r) => (r >= i && Math.abs(line[i]!) > Math.abs(m[best]![i]!) ? r : best),
        i,
      );
      if (m[pivot]![i] === 0) return 0;
      if (pivot !== i) {
        [m[i], m[pivot]] = [m[pivot]!, m[i]!];
        product = -product;
      }
      product *= m[i]![i]!;
      for (let r = i + 1; r < n; r++) {
        const factor = m[r]![i]! / m[i]![i]!;
        for (let c = i; c < n; c++) m[r]![c]! -= factor * m[i]![c]!;
      }
    }
    return product;
  });
  return knownData(call.type(0), shape.slice(0, -2), dtype === 'f64' ? out : Float32Array.from(out));
}

export const boxes: Rows = {
  Det: hosted([11, 22], [0], determinants),
  NonMaxSuppression: { ...hosted([10, 11], 'all', nonMaxSuppression), counts: true },
};
