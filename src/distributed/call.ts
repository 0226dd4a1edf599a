// What all engines know of a collective call: how its blocks are made, how it is called in messages, and the
// numbers by which ranks see whether they call the same.

import { DeviceError } from '../errors.ts';
import { dtypeBytes, realDTypes } from '../ir/dtype.ts';
import type { CollectiveCall, CollectiveMonoid } from '../runtime/communicator.ts';
import type { ElementType } from '../runtime/program.ts';

export function collectiveError(
  engine: string,
  problem: string,
  hint?: string,
  cause?: unknown,
): DeviceError {
  return new DeviceError('E_COLLECTIVE', engine, problem, {
    ...(hint === undefined ? {} : { hint }),
    cause,
  });
}

/** `ranks 0,2`, `rank 3`. */
export function ranksInWords(ranks: readonly number[]): string {
  return `${ranks.length === 1 ? 'rank' : 'ranks'} ${ranks.join()}`;
}

/** `allReduce sum of f32, 16 bytes, over ranks 0,1`; bytes are those of what a rank brings. */
export function describeCall({ action, dtype, group }: CollectiveCall, bytes: number): string {
  const detail = 'monoid' in action ? ` ${action.monoid}` : '';
  const how =
    action.kind === 'broadcast'
      ? ` from place ${action.root}`
      : action.kind === 'permute'
        ? ` ${action.pairs.map(([from, to]) => `${from}→${to}`).join(' ')}`
        : '';
  return `${action.kind}${detail}${how} of ${dtype}, ${bytes} bytes, over ${ranksInWords(group)}`;
}

const kinds = ['allReduce', 'allGather', 'reduceScatter', 'allToAll', 'permute', 'broadcast'] as const;
const monoids: readonly CollectiveMonoid[] = ['sum', 'prod', 'min', 'max', 'and', 'or'];
const dtypes: readonly ElementType[] = realDTypes;

/** How many numbers a signature has. */
export const signatureLength = 8;

/** Numbers of 32 bits that are the same on two ranks where they make the same call with blocks of the same size. */
export function signatureOf({ action, dtype, group }: CollectiveCall, bytes: number): readonly number[] {
  const pairs = action.kind === 'permute' ? action.pairs.flat() : [];
  return [
    kinds.indexOf(action.kind),
    'monoid' in action ? monoids.indexOf(action.monoid) : -1,
    dtypes.indexOf(dtype),
    bytes | 0,
    Math.floor(bytes / 2 ** 32),
    action.kind === 'broadcast' ? action.root : -1,
    hashOf(pairs),
    hashOf(group),
  ];
}

/** The call that a signature stands for, in words. */
export function describeSignature(words: ArrayLike<number>, group: readonly number[]): string {
  const [kind, monoid, dtype] = [kinds[words[0]!]!, monoids[words[1]!], dtypes[words[2]!]!];
  const bytes = (words[3]! >>> 0) + words[4]! * 2 ** 32;
  const detail = monoid === undefined ? '' : ` ${monoid}`;
  const root = words[5]! < 0 ? '' : ` from place ${words[5]}`;
  return `${kind}${detail}${root} of ${dtype}, ${bytes} bytes, over ${ranksInWords(group)}`;
}

/** FNV-1a over numbers of 32 bits. */
export function hashOf(values: readonly number[], seed = 0x811c9dc5): number {
  let hash = seed;
  for (const value of [...values, values.length])
    for (let shift = 0; shift < 32; shift += 8)
      hash = Math.imul(hash ^ ((value >>> shift) & 0xff), 0x01000193);
  return hash | 0;
}

/** The group of a call, and where this rank stands in it. */
export interface GroupPlace {
  /** Ranks in the group. */
  readonly count: number;
  /** This rank's place in the group. */
  readonly place: number;
}

/**
 * Where a rank stands in the group of a call. Throws E_COLLECTIVE where the group is none of it, or where the blocks do not have
 * the sizes that the action asks for.
 */
export function placeIn(
  engine: string,
  call: CollectiveCall,
  { rank, size }: { readonly rank: number; readonly size: number },
  from: { readonly length: number },
  to: { readonly length: number },
): GroupPlace {
  const { action, dtype, group } = call;
  const refuse = (problem: string): DeviceError =>
    collectiveError(engine, `rank ${rank}: ${describeCall(call, from.length)}: ${problem}`);
  const place = group.indexOf(rank);
  const count = group.length;
  if (place < 0) throw refuse('this rank is not among them');
  if (new Set(group).size !== count || group.some((other) => !(other >= 0 && other < size)))
    throw refuse(`a group has different ranks of 0 to ${size - 1}`);
  const unit = dtypeBytes(dtype);
  const part = action.kind === 'reduceScatter' || action.kind === 'allToAll' ? unit * count : unit;
  if (from.length % part !== 0) throw refuse(`its blocks are multiples of ${part} bytes`);
  const taken = {
    allReduce: from.length,
    allGather: from.length * count,
    reduceScatter: from.length / count,
    allToAll: from.length,
    permute: from.length,
    broadcast: from.length,
  }[action.kind];
  if (to.length !== taken) throw refuse(`it takes ${taken} bytes, and there is place for ${to.length}`);
  if ('monoid' in action && (dtype === 'bool') !== (action.monoid === 'and' || action.monoid === 'or'))
    throw refuse('`and` and `or` combine bool, and nothing else does');
  if (action.kind === 'broadcast' && !(action.root >= 0 && action.root < count))
    throw refuse(`the group has places 0 to ${count - 1}`);
  if (action.kind === 'permute') {
    const [froms, tos] = [action.pairs.map(([first]) => first), action.pairs.map(([, second]) => second)];
    const isList = (places: readonly number[]): boolean =>
      new Set(places).size === places.length && places.every((at) => at >= 0 && at < count);
    if (!isList(froms) || !isList(tos))
      throw refuse(`pairs name places 0 to ${count - 1}, once on each side`);
  }
  return { count, place };
}

const usualTimeout = 300;

/** Milliseconds that a rank waits for the others: `SINTER_COLLECTIVE_TIMEOUT` seconds, 300 by default. Throws E_VALUE. */
export function timeoutFrom(env: Readonly<Record<string, string | undefined>>): number {
  const given = env['SINTER_COLLECTIVE_TIMEOUT'] ?? '';
  if (given === '') return usualTimeout * 1000;
  const seconds = Number(given);
  if (seconds > 0) return seconds * 1000;
  throw new DeviceError(
    'E_VALUE',
    'SINTER_COLLECTIVE_TIMEOUT',
    `expected seconds, more than 0, got '${given}'`,
  );
}

/** What is said of ranks that are waited for in vain. */
export function lateness(missing: readonly number[], call: string, timeout: number): string {
  const did = missing.length === 1 ? 'has' : 'have';
  return `${ranksInWords(missing)} ${did} not come to ${call}, within ${timeout / 1000} s`;
}

export const latenessHint = 'SINTER_COLLECTIVE_TIMEOUT=SECONDS, where ranks may take longer';
