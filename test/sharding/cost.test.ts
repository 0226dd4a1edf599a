// The modelled time of collectives against the formulas of the papers, worked out by hand.

import { describe, expect, it } from 'vitest';

import type { CollectiveOp } from '../../src/ir/ops.ts';
import { bytesSent, links, timeOfCollective, type Link } from '../../src/sharding/cost.ts';

const kinds: readonly CollectiveOp[] = [
  'allReduce',
  'allGather',
  'reduceScatter',
  'allToAll',
  'permuteRanks',
  'broadcastRank',
];
/** A second a byte, a thousand a message. */
const slow: Link = { bandwidth: 1, hop: 1000, start: 0 };

describe('bytes that a process sends', () => {
  it('of 8 processes with 800 bytes', () => {
    expect(kinds.map((kind) => bytesSent(kind, 8, 800))).toEqual([1400, 700, 700, 700, 800, 800]);
  });

  it('a sum is a scatter and a gather', () => {
    for (const ranks of [1, 2, 3, 4, 7, 64]) {
      const both = bytesSent('reduceScatter', ranks, 840) + bytesSent('allGather', ranks, 840);
      expect(bytesSent('allReduce', ranks, 840)).toBe(both);
    }
  });
});

describe('time of a collective', () => {
  it('is nothing for one process', () => {
    for (const kind of kinds)
      for (const link of Object.values(links)) expect(timeOfCollective(kind, 1, 1e9, link)).toBe(0);
  });

  it('counts the steps and the bytes of rings, and of trees where they take less', () => {
    const at = (kind: CollectiveOp, ranks: number, bytes: number): number =>
      timeOfCollective(kind, ranks, bytes, slow);
    // A ring of 8: 14 steps of a part of 8; trees: 2·3 steps, and twice the bytes.
    expect(at('allReduce', 8, 80_000)).toBe(14_000 + 140_000);
    expect(at('allReduce', 8, 800)).toBe(6000 + 1600);
    expect(at('allGather', 8, 800)).toBe(7000 + 700);
    expect(at('reduceScatter', 8, 800)).toBe(7000 + 700);
    expect(at('allToAll', 8, 800)).toBe(7000 + 700);
    expect(at('permuteRanks', 8, 800)).toBe(1000 + 800);
    expect(at('broadcastRank', 8, 800)).toBe(3000 + 800);
    expect(at('broadcastRank', 5, 800)).toBe(3000 + 800);
  });

  it('grows with the bytes and with the processes', () => {
    for (const kind of kinds) {
      for (const link of Object.values(links)) {
        const times = [2, 3, 4, 8, 64].map((ranks) => timeOfCollective(kind, ranks, 1e6, link));
        expect(times).toEqual(times.toSorted((a, b) => a - b));
        expect(timeOfCollective(kind, 8, 2e6, link)).toBeGreaterThan(timeOfCollective(kind, 8, 1e6, link));
      }
    }
  });

  it('nears the bandwidth of the link', () => {
    // Gradients of a billion weights in f32, by 8 GPUs: 2·7/8·4 GB at 450 GB/s.
    expect(timeOfCollective('allReduce', 8, 4e9, links.nvlink4)).toBeCloseTo((1.75 * 4) / 450, 4);
    expect(timeOfCollective('allReduce', 8, 4e9, links.infiniband400)).toBeCloseTo((1.75 * 4) / 50, 3);
  });
});
