// The edges of what is written for one process. `partition` (sharding/) makes them of a program over whole tensors; one process
// alone has all of a value, and its part is the value itself.

import { TensorError } from '../errors.ts';
import type { Node } from './graph.ts';
import { sameShape } from './shape.ts';

/** Throws E_STATE where an edge is left between a value and a part of it: no mesh was there when the program was made. */
export function checkEdge({ op, shape, inputs }: Node): void {
  if ((op !== 'toPart' && op !== 'toWhole') || sameShape(shape, inputs[0]!.shape)) return;
  const problem = 'a process has only a part of this value';
  throw new TensorError('E_STATE', op, problem, 'compile the function that calls shardMap');
}
