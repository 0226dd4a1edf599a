// Results whose size the data say: read from the device, so that no function that is recorded as a whole can have them.

import { TensorError } from '../../errors.ts';
import { currentTrace } from '../handle/recording.ts';
import type { Tensor } from '../tensor.ts';

/** A count on the device as a number. @internal */
export async function readCount(count: Tensor): Promise<number> {
  return Number(await count.item());
}

/** Refuses results of unknown sizes in functions that are compiled or differentiated. @internal */
export function checkReadable(op: string, option: string = 'size'): void {
  if (currentTrace() === undefined) return;
  const problem = 'the size of the result is known only when the function runs';
  throw new TensorError(
    'E_UNSUPPORTED',
    op,
    problem,
    `{ ${option}: n } for a fixed size, or call it outside`,
  );
}
