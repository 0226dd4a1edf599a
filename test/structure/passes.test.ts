// The table of passes in docs/design/passes.md is the list that the compiler runs.

import { expect, test } from 'vitest';
import { passes } from '../../src/schedule/passes/pipeline.ts';
import { readText } from './source.ts';

test('docs/design/passes.md lists every pass, in order', () => {
  const text = readText('docs/design/passes.md');
  const rows = [...text.matchAll(/^\| `(\w+)` +\| `[\w/-]+\.ts`/gm)].map(([, name]) => name);
  expect(rows).toEqual(passes.map(({ name }) => name));
});
