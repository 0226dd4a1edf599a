// Processes of a mesh in one process, without threads: every rank runs until it comes to a collective that it does not know the
// result of, and is ended there. Once all ranks have come, what each takes is known, and all run again, a collective further.
// Runs have to be repeatable, and all ranks are held to meet in one order.

import { combineMonoid } from '../../../src/ir/interpret/scalar.ts';
import { hostArray, packBytes, unpackBytes, type HostArray, type Scalar } from '../../../src/ir/value.ts';
import type { CollectiveAction, CollectiveCall, Communicator } from '../../../src/runtime/communicator.ts';

/** A call that a rank waits in. */
interface Waiting {
  readonly call: CollectiveCall;
  readonly from: Uint8Array;
  readonly bytes: number;
}

class Pause extends Error {}

/** What `run` gives for each rank of a world of this size. */
export async function inStep<T>(
  size: number,
  run: (communicator: Communicator) => T | Promise<T>,
): Promise<readonly T[]> {
  const known = Array.from({ length: size }, (): Uint8Array[] => []);
  for (;;) {
    const waiting = new Map<number, Waiting>();
    const ended: T[] = [];
    for (let rank = 0; rank < size; rank++) {
      let next = 0;
      const communicator: Communicator = {
        description: 'a world in step',
        rank,
        size,
        run: (call, from, to) => {
          if (waiting.has(rank)) throw new Pause();
          const result = known[rank]![next++];
          if (result === undefined) {
            waiting.set(rank, { call, from: from.slice(), bytes: to.length });
            throw new Pause();
          }
          if (result.length !== to.length) throw new Error(`${result.length} bytes for ${to.length}`);
          to.set(result);
        },
      };
      try {
        ended[rank] = await run(communicator);
      } catch (error) {
        if (!waiting.has(rank)) throw error;
      }
    }
    if (waiting.size === 0) return ended;
    const taken = Array.from(waiting, ([rank, { call }]) => [rank, resultOf(waiting, call, rank)] as const);
    for (const [rank, bytes] of taken) known[rank]!.push(bytes);
  }
}

function resultOf(waiting: ReadonlyMap<number, Waiting>, call: CollectiveCall, rank: number): Uint8Array {
  const group = call.group.map((member) => {
    const other = waiting.get(member);
    if (other === undefined) throw new Error(`rank ${member} has ended: rank ${rank} is in ${show(call)}`);
    if (show(other.call) !== show(call))
      throw new Error(`rank ${rank} is in ${show(call)}, and rank ${member} in ${show(other.call)}`);
    return elements(other.from, call.dtype);
  });
  const result = packBytes(collective(call.action, group, call.group.indexOf(rank)));
  const { bytes } = waiting.get(rank)!;
  if (result.length !== bytes) throw new Error(`${show(call)} gives ${result.length} bytes, not ${bytes}`);
  return result;
}

const show = (call: CollectiveCall): string => JSON.stringify(call);

function elements(bytes: Uint8Array, dtype: CollectiveCall['dtype']): HostArray {
  const width = packBytes(hostArray(dtype, [1], [0])).length;
  return unpackBytes(bytes, dtype, [bytes.length / width]);
}

/** What the rank at a place of a group takes, by the definitions of `CollectiveAction`. */
export function collective(action: CollectiveAction, group: readonly HostArray[], place: number): HostArray {
  const { dtype } = group[0]!;
  const lists = group.map(({ data }): Scalar[] => Array.from(data as Float64Array));
  const list = (values: readonly Scalar[]): HostArray => hostArray(dtype, [values.length], values);
  const part = (values: readonly Scalar[], at: number): readonly Scalar[] => {
    const size = values.length / group.length;
    return values.slice(at * size, (at + 1) * size);
  };
  const combined = (monoid: Parameters<typeof combineMonoid>[0]): Scalar[] => {
    const { identity, combine } = combineMonoid(monoid, dtype);
    return lists[0]!.map((_, i) => lists.reduce((sum, values) => combine(sum, values[i]!), identity));
  };
  switch (action.kind) {
    case 'allReduce':
      return list(combined(action.monoid));
    case 'allGather':
      return list(lists.flat());
    case 'reduceScatter':
      return list(part(combined(action.monoid), place));
    case 'allToAll':
      return list(lists.flatMap((values) => part(values, place)));
    case 'permute': {
      const pair = action.pairs.find(([, to]) => to === place);
      return pair === undefined ? list(lists[0]!.map((value) => zeroLike(value))) : group[pair[0]]!;
    }
    case 'broadcast':
      return group[action.root]!;
  }
}

const zeroLike = (value: Scalar): Scalar => (typeof value === 'bigint' ? 0n : 0);
