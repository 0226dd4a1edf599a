// What a loop means: its region is interpreted once a turn, as long as the guard is not 0.

import { graphOf } from '../text/region.ts';
import type { Graph } from '../graph.ts';
import type { Attrs } from '../ops.ts';
import { sizeOf, type FixedShape } from '../shape.ts';
import { emptyData, hostArray, type HostArray } from '../value.ts';

/** All results of a loop: the last carries, then the stacked slices. */
export function runIteration(
  inputs: readonly HostArray[],
  { body, carries, stacked, trips, guard, reverse }: Attrs<'iterate'>,
  run: (graph: Graph, inputs: readonly HostArray[]) => HostArray[],
): HostArray[] {
  let held = inputs.slice(0, carries);
  const stacks = inputs.slice(carries, carries + stacked);
  const invariants = inputs.slice(carries + stacked);
  const given = body.graph.outputs.slice(carries).map(({ dtype, shape }): HostArray => {
    const whole = [trips, ...(shape as FixedShape)];
    return { dtype, shape: whole, data: emptyData(dtype, sizeOf(whole)) };
  });
  for (let turn = 0; turn < trips && held[guard]?.data[0] !== 0; turn++) {
    const at = reverse ? trips - 1 - turn : turn;
    const slices = stacks.map(({ dtype, shape, data }): HostArray => {
      const size = sizeOf(shape.slice(1));
      return { dtype, shape: shape.slice(1), data: data.slice(at * size, (at + 1) * size) };
    });
    const results = run(graphOf(body), [hostArray('i32', [], [at]), ...held, ...slices, ...invariants]);
    held = results.slice(0, carries);
    given.forEach(({ data }, i) => {
      const { data: slice } = results[carries + i]!;
      data.set(slice as Float32Array & BigInt64Array & BigUint64Array, at * slice.length);
    });
  }
  return [...held, ...given];
}
