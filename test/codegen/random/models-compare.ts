// When two results of a model are equal: within what rounding explains, given how the model amplifies it.

import { isFloat } from '../../../src/ir/dtype.ts';
import { interpret } from '../../../src/ir/interpret/interpret.ts';
import { hostArray, type HostArray } from '../../../src/ir/value.ts';
import { wordsFrom } from '../../support/random/values.ts';
import type { Model } from './models.ts';

/**
 * How far apart two correct results of a model may lie, relative to the largest element of the result: sums of tens of terms
 * behind each other in ten layers, each in another order, and the device's functions, which are off by up to 1e-6 each. What
 * vanishes identically, as the gradient of a key's bias, is a sum of terms as large as other results: 1e-6 of the largest of all.
 */
const tolerance = 1e-4;

/**
 * Throws unless both agree. Where they do not, the model may be steep: at a kink (a tie of maxima, relu at 0), or where a norm
 * divides by almost nothing. Then the unfused results move as far when inputs change in their last bits; what they move by
 * counts as their precision.
 */
export function expectEqual(
  { graph, inputs }: Model,
  actual: readonly HostArray[],
  expected: readonly HostArray[],
): void {
  const vanishing = 1e-6 * Math.max(1, ...expected.map(({ data }) => largestOf(data as Float32Array)));
  const apart = (spread: readonly (readonly number[])[]): string | undefined => {
    for (const [output, { dtype, shape, data }] of expected.entries()) {
      const got = actual[output]!;
      if (got.dtype !== dtype || String(got.shape) !== String(shape))
        return `output ${output} is ${got.dtype}[${got.shape}] instead of ${dtype}[${shape}]`;
      const largest = largestOf(data as Float32Array);
      const own = largest * tolerance + vanishing;
      for (let i = 0; i < data.length; i++) {
        const [x, y] = [Number(data[i]), Number(got.data[i])];
        const most = isFloat(dtype) ? own + 8 * (spread[output]?.[i] ?? 0) : 0;
        if (!Object.is(x, y) && x !== y && !(Math.abs(x - y) <= most))
          return `element ${i} of output ${output}, ${dtype}[${shape}]: ${y} instead of ${x}, of at most ${largest}`;
      }
    }
    return undefined;
  };
  if (apart([]) === undefined) return;
  const problem = apart(spreadOf({ graph, inputs }, expected));
  if (problem !== undefined) throw new Error(problem);
}

function largestOf(data: Float32Array): number {
  let most = 0;
  for (const x of data) if (Number.isFinite(x)) most = Math.max(most, Math.abs(x));
  return most;
}

/** How far each element of the unfused results moves when floats among the inputs change by 2⁻²¹ of themselves. */
function spreadOf(
  { graph, inputs }: Pick<Model, 'graph' | 'inputs'>,
  expected: readonly HostArray[],
): number[][] {
  const spread = expected.map(({ data }) => Array.from({ length: data.length }, () => 0));
  for (let trial = 1; trial <= 6; trial++) {
    const words = wordsFrom(trial);
    const moved = inputs.map((input) => {
      if (!isFloat(input.dtype)) return input;
      const values = Array.from(
        input.data as Float32Array,
        (x) => x * (1 + (words() & 1 ? 1 : -1) * 2 ** -21),
      );
      return hostArray(input.dtype, input.shape, values);
    });
    interpret(graph, moved).forEach(({ data }, output) =>
      data.forEach((x, i) => {
        const distance = Math.abs(Number(x) - Number(expected[output]!.data[i]));
        if (distance > spread[output]![i]!) spread[output]![i] = distance;
      }),
    );
  }
  return spread;
}
