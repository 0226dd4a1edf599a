// The weights of a model in C as one run of bytes, which `init` checks: a head of 64 bytes, the weights that
// no call changes, and the first values of the state up to where zeros follow.

import { alignment, stateHead } from './memory.ts';
import type { CModel } from './model.ts';

/** The first eight bytes of a file of weights. */
export const magic = 'SINTERC1';

/** Bytes of the head: the magic, the hash of the layout, the hash of all that follows, and their number. */
export const headBytes: number = alignment;

export interface WeightsImage {
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Of names, types and places: a file with another is for another model. */
  readonly layout: bigint;
}

/** The bytes of a file of weights. */
export function weightsImage({ weights, memory }: CModel): WeightsImage {
  const body = new Uint8Array(memory.bytes.weights + memory.storedState);
  for (const { place, data } of weights) {
    const start = place.region === 'weights' ? place.offset : memory.bytes.weights + place.offset - stateHead;
    // What lies behind the end is zero, as it is in the state.
    if (start < body.length) body.set(data, start);
  }
  const layout = layoutHash({ weights, memory });
  const bytes = new Uint8Array(headBytes + body.length);
  const view = new DataView(bytes.buffer);
  bytes.set(new TextEncoder().encode(magic));
  view.setBigUint64(8, layout, true);
  view.setBigUint64(16, hashOf(body), true);
  view.setBigUint64(24, BigInt(body.length), true);
  bytes.set(body, headBytes);
  return { bytes, layout };
}

function layoutHash({ weights, memory }: Pick<CModel, 'weights' | 'memory'>): bigint {
  const text = JSON.stringify([
    weights.map(({ title, dtype, shape, place }) => [title, dtype, shape, place.region, place.offset]),
    memory.bytes.weights,
    memory.bytes.state,
    memory.storedState,
  ]);
  const letters = new TextEncoder().encode(text);
  const padded = new Uint8Array(8 * Math.ceil(letters.length / 8));
  padded.set(letters);
  return hashOf(padded);
}

/**
 * A hash of whole words of 64 bits, of which the written code has a copy: two lanes of 32 bits, each of
 * which keeps apart what differs in one word.
 */
export function hashOf(bytes: Uint8Array): bigint {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let [low, high] = [0x811c9dc5, 0x9747b28c];
  for (let i = 0; i < bytes.length; i += 8) {
    low = Math.imul(low ^ view.getUint32(i, true), 0x01000193);
    low ^= low >>> 15;
    high = Math.imul(high ^ view.getUint32(i + 4, true), 0x85ebca6b);
    high ^= high >>> 13;
  }
  return (BigInt(high >>> 0) << 32n) | BigInt(low >>> 0);
}

/** The bytes as C, in words of 64 bits. */
export function weightsText({ prefix, producer }: CModel, { bytes }: WeightsImage): string {
  const view = new DataView(bytes.buffer);
  const lines: string[] = [];
  for (let i = 0; i < bytes.length; i += 64) {
    const words: string[] = [];
    for (let k = i; k < Math.min(bytes.length, i + 64); k += 8)
      words.push(`0x${view.getBigUint64(k, true).toString(16)}u`);
    lines.push(`  ${words.join(', ')},`);
  }
  return `/* Made by ${producer}: the bytes of ${prefix}.bin. */
#include "${prefix}.h"

const uint64_t ${prefix}_weights[${bytes.length / 8}] __attribute__((aligned(${alignment}))) = {
${lines.join('\n')}
};
`;
}
