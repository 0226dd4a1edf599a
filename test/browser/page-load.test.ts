// Time from the opening of a page to a network's first result, of a bundle and of ONNX Runtime Web in the same browser, for whoever reads
// the log. `npx tsx bench/page-load.ts` measures more of it.

import { afterAll, expect, test } from 'vitest';
import { comparePages, pageTable } from '../../bench/page-load.ts';
import { setDevice } from '../../src/index.ts';
import { missingNetworks } from '../support/onnx/networks.ts';

afterAll(() => setDevice(undefined));

test('a bundle computes what ONNX Runtime Web computes, of fewer bytes', async ({ skip }) => {
  if (missingNetworks !== undefined) skip(missingNetworks);
  const plan = { machines: ['wasm'], threads: 2, repeat: 2, later: 5 } as const;
  const comparisons = await comparePages('squeezenet', plan);
  console.log(pageTable(comparisons));
  const [{ best, problems, ratio }] = comparisons as [(typeof comparisons)[number]];
  expect(problems).toEqual([]);
  expect(best.sinter!.bytes).toBeLessThan(best['ort-web']!.bytes);
  expect(ratio).toBeGreaterThan(0);
});
