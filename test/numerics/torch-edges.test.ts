// The public functions at NaN, infinities, both zeros, subnormals, the ends of the range, equal elements and nothing at all give what
// PyTorch gives, results and gradients, on every device here; but for what the table of docs/pytorch.md says, row by row.

import { existsSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import * as sn from '../../src/index.ts';
import { known, knownRow } from '../support/torch/edges-known.ts';
import { needsWholeFile } from '../support/sample.ts';
import {
  differencesOf,
  meetsTiny,
  sharedEdges,
  torchEdges,
  type Difference,
  type Edge,
} from '../support/torch/edges.ts';

const shared = new URL('../../../shared/trial/edges/cases.json', import.meta.url);
const others = existsSync(shared) ? sharedEdges(readFileSync(shared, 'utf8')) : [];
if (others.length === 0)
  console.log(
    'the cases of the trial are not here: only those of test/fixtures run, and not all of the table is met',
  );

const edges: readonly Edge[] = [...torchEdges(), ...others];

/** Rows of the table that some device met. */
const met = new Set<unknown>();

function show({ call, part, operands, got, want }: Difference): string {
  return `${call} ${part} at (${operands.slice(0, 9).join(', ')}): ${got}, PyTorch ${want}`;
}

describe.each(['interpreter', 'wasm', 'webgpu:software'])('on %s', (device) => {
  beforeAll(() => sn.setDevice(device));
  afterAll(() => sn.setDevice(undefined));

  const isGpu = device.startsWith('webgpu');

  test(`${edges.length} calls at the edges`, async () => {
    const wrong: string[] = [];
    for (const edge of edges) {
      for (const difference of await differencesOf(edge)) {
        if (isGpu && meetsTiny(difference)) continue;
        const row = knownRow(difference);
        if (row === undefined) wrong.push(show(difference));
        else met.add(row);
      }
    }
    expect(wrong).toEqual([]);
  });
});

test.skipIf(others.length === 0)('every row of what is meant otherwise is met on some device', (context) => {
  needsWholeFile(context);
  expect(known.filter((row) => !met.has(row)).map(({ why, calls }) => `${why}: ${calls}`)).toEqual([]);
});
