// The modelled time of collectives against the formulas of the papers, worked out by hand.

import { describe, expect, it } from 'vitest';

import type { CollectiveOp } from '../../src/ir/ops.ts';
import { meshOf } from '../../src/ir/mesh/mesh.ts';
import {
  bytesSent,
  clusters,
  links,
  planningMachine,
  spreadOver,
  timeOfCollective,
  timeOverAxes,
  type ClusterModel,
  type Link,
} from '../../src/sharding/cost.ts';
import { movesBetween } from '../../src/sharding/reshard.ts';
import { timeOfMoves } from '../../src/sharding/time.ts';

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

describe('time of a collective over axes of a mesh', () => {
  const mesh = meshOf([
    { name: 'data', size: 4 },
    { name: 'model', size: 8 },
  ]);
  /** Nodes of 8: ten bytes a second and a second a message inside, one byte and 100 s between. */
  const cluster: ClusterModel = {
    node: 8,
    inside: { bandwidth: 10, hop: 1, start: 5 },
    between: { bandwidth: 1, hop: 100, start: 7 },
  };

  it('finds the nodes that a group spans', () => {
    expect(spreadOver(mesh, ['model'], 8)).toEqual({ local: 8, nodes: 1 });
    expect(spreadOver(mesh, ['data'], 8)).toEqual({ local: 1, nodes: 4 });
    expect(spreadOver(mesh, ['data', 'model'], 8)).toEqual({ local: 8, nodes: 4 });
    expect(spreadOver(mesh, ['model'], 4)).toEqual({ local: 4, nodes: 2 });
    expect(spreadOver(mesh, ['data', 'model'], Infinity)).toEqual({ local: 32, nodes: 1 });
  });

  it('uses the links that an axis crosses', () => {
    for (const kind of kinds) {
      const over = (names: readonly string[]): number => timeOverAxes(kind, mesh, names, 1e6, cluster);
      expect(over(['model'])).toBe(timeOfCollective(kind, 8, 1e6, cluster.inside));
      expect(over(['data'])).toBe(timeOfCollective(kind, 4, 1e6, cluster.between));
    }
  });

  it('runs over both levels at once: their messages add up, and the slower bytes count', () => {
    const over = (kind: CollectiveOp, bytes: number): number =>
      timeOverAxes(kind, mesh, ['data', 'model'], bytes, cluster);
    // Of 32 MB an eighth goes between nodes: 2·3/4·4e6 bytes by rings of 4, and rings of 8 inside.
    expect(over('allReduce', 32e6)).toBe(7 + 14 + 600 + 6e6);
    expect(over('allGather', 32e6)).toBe(7 + 7 + 300 + 3e6);
    expect(over('reduceScatter', 32e6)).toBe(7 + 7 + 300 + 3e6);
    // To each of 24 processes of other nodes goes a part of 32.
    expect(over('allToAll', 32e6)).toBe(7 + 7 + 300 + 24e6);
    expect(over('broadcastRank', 32e6)).toBe(7 + 3 + 200 + 4e6);
    expect(over('permuteRanks', 32e6)).toBe(7 + 100 + 32e6);
  });

  it('takes no less in more nodes', () => {
    for (const kind of kinds) {
      const times = [1, 2, 4, 16, 128].map((nodes) => {
        const grid = meshOf([{ name: 'data', size: 8 * nodes }]);
        return timeOverAxes(kind, grid, ['data'], 1e8, clusters.h100);
      });
      expect(times).toEqual(times.toSorted((a, b) => a - b));
    }
  });
});

it('moves are compared by the same formulas', () => {
  const mesh = meshOf([{ name: 'data', size: 8 }]);
  const value = { shape: [64, 100], dtype: 'f32' } as const;
  const [split, full] = [
    [['data'], []],
    [[], []],
  ];
  const sum = { over: ['data'], monoid: 'sum' } as const;
  const time = (kind: CollectiveOp): number => timeOfCollective(kind, 8, 25_600, planningMachine.link);
  const none = undefined;
  const moved = (
    ...layouts: readonly [Parameters<typeof movesBetween>[2], Parameters<typeof movesBetween>[3]]
  ): number => timeOfMoves(movesBetween(mesh, value, ...layouts));
  expect(moved({ split, pending: none }, { split: full, pending: none })).toBe(time('allGather'));
  expect(moved({ split: full, pending: sum }, { split, pending: none })).toBe(time('reduceScatter'));
  expect(moved({ split: full, pending: sum }, { split: full, pending: none })).toBe(time('allReduce'));
  expect(moved({ split: full, pending: none }, { split, pending: none })).toBe(0);
});
