// A world of one rank: what it brings is what it takes.

import type { CollectiveCall, Communicator } from '../../runtime/communicator.ts';
import { placeIn } from '../call.ts';

export class AloneCommunicator implements Communicator {
  readonly description: string = 'one rank';
  readonly rank: number = 0;
  readonly size: number = 1;

  run(call: CollectiveCall, from: Uint8Array, to: Uint8Array): void {
    placeIn('alone', call, this, from, to);
    takeOwn(call, from, to);
  }
}

/** What a rank takes in a group of its own. */
export function takeOwn({ action }: CollectiveCall, from: Uint8Array, to: Uint8Array): void {
  if (action.kind === 'permute' && action.pairs.length === 0) to.fill(0);
  else if (from !== to) to.set(from);
}
