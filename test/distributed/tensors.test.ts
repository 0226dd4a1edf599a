// Tensors that two ranks hold together, as each of them sees them.

import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const cli = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const script = fileURLToPath(new URL('./children/tensors.ts', import.meta.url));

test('each rank has its part, and both know the whole', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [cli, 'launch', '-n', '2', script]);
  const lines = stdout.trim().split('\n').toSorted();
  const ranks = lines.map(
    (line, rank) => JSON.parse(line.replace(`[${rank}] `, '')) as Record<string, unknown>,
  );
  const both = {
    shape: [4, 2],
    layout: ['data', null],
    shown: expect.stringContaining('[data, null] of data=2'),
    whole: [0, 1, 2, 3, 4, 5, 6, 7],
    own: [0, 0, 1, 1],
    first: [0, 0],
    total: 28,
    looked: 9,
    lookedAtParts: 9,
    outsideOfParts: 'E_INDEX',
    places: [0, 0, 1, 1],
    gradOutside: 'E_UNSUPPORTED',
    gradOfGather: 'E_UNSUPPORTED',
    ring: true,
    apart: 3,
    add: 'E_STATE',
    read: 'E_STATE',
    uneven: 'E_SHAPE',
    unknown: 'E_SHAPE',
    meshes: 'E_VALUE',
    worlds: 'E_STATE',
  };
  expect(ranks).toMatchObject([
    { ...both, part: [0, 1, 2, 3], columns: [0, 2, 4, 6], squares: [1, 13], outside: 'none' },
    // The index that is outside its axis is in the part of the second rank.
    { ...both, part: [4, 5, 6, 7], columns: [1, 3, 5, 7], squares: [41, 85], outside: 'E_INDEX' },
  ]);
});
