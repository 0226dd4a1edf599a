// The constants that a transform of a length is given, as one array of numbers in the order of its
// plan. Computed in double precision on the host, so that no device takes the sine of a large angle.

import { fftPlan, padded, stageStarts, type FftPlan, type Stages } from './plan.ts';
import { root } from './roots.ts';
import { chirpFilter, chirpOf } from './transform.ts';
import { transformTypes } from '../typing/slots.ts';
import { transforms } from './types.ts';

transformTypes.fill(transforms);

/** The table of a transform of n points: `fftTableSize(n)` numbers. */
export function fftTable(n: number): Float64Array<ArrayBuffer> {
  const plan = fftPlan(n);
  const table = new Float64Array(plan.size);
  fill(plan, table);
  return table;
}

function fill(plan: FftPlan, table: Float64Array): void {
  switch (plan.kind) {
    case 'one':
      fillStages(plan.wide, table);
      if (plan.narrow !== plan.wide) fillStages(plan.narrow, table);
      return;
    case 'split': {
      const { n, columns, rows, step, starts } = plan;
      const high = columns.n / step;
      // [part, high | low, row]: w^(row·step·high) and w^(row·low), rows side by side.
      const put = (start: number, count: number, stride: number): void => {
        for (let k = 0; k < count; k++)
          for (let r = 0; r < rows.n; r++) {
            const [re, im] = root(r * k * stride, n);
            table[start + k * rows.n + r] = re;
            table[start + (count + k) * rows.n + r] = im;
          }
      };
      put(starts.factors, high, step);
      put(starts.factors + 2 * high * rows.n, step, 1);
      fill(columns, table.subarray(starts.columns));
      fill(rows, table.subarray(starts.rows));
      return;
    }
    case 'chirp': {
      const { n, over, starts } = plan;
      const chirp = chirpOf(n);
      table.set(chirp.re, 0);
      table.set(chirp.im, padded(n));
      const filter = chirpFilter(n, over.n);
      table.set(filter.re, starts.filter);
      table.set(filter.im, starts.filter + over.n);
      fill(over, table.subarray(starts.over));
      return;
    }
    default:
      plan satisfies never;
  }
}

/**
 * Of each stage but the first, whose factors are all 1: w^(i·j) for i from 1 up to its radix and j
 * below what is transformed before it, w the root of both. Rows of real and imaginary parts by i.
 */
function fillStages(stages: Stages, table: Float64Array): void {
  const starts = stageStarts(stages);
  let below = 1;
  stages.radices.forEach((radix, s) => {
    if (below > 1)
      for (let i = 1; i < radix; i++)
        for (let j = 0; j < below; j++) {
          const [re, im] = root(i * j, radix * below);
          const at = starts[s]! + 2 * (i - 1) * padded(below) + j;
          table[at] = re;
          table[at + padded(below)] = im;
        }
    below *= radix;
  });
}
