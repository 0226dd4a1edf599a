// Attention of few rows over many keys on the stand-in for CUDA, which has races and misaligned loads told: parts of the
// keys and their combination are what one kernel on another device computes.

import { expect, test } from 'vitest';
import * as sn from '../../src/index.ts';
import { onStandIn } from './standin/on-standin.ts';

interface Given {
  readonly heads: number;
  readonly keyHeads: number;
  readonly rows: number;
  readonly keys: number;
  readonly features: number;
  readonly dtype: 'f32' | 'f16';
}

/** Attention over a cache of which the last 700 positions are empty, on the current device, and its kernels. */
async function attend({ heads, keyHeads, rows, keys, features, dtype }: Given): Promise<[number[], number]> {
  sn.manualSeed(5);
  const random = (...shape: number[]): sn.Tensor => sn.randn(shape).cast(dtype);
  const inputs = [
    random(1, heads, rows, features),
    random(1, keyHeads, keys, features),
    random(1, keyHeads, keys, features),
    sn
      .arange(keys)
      .lt(keys - 700)
      .reshape([1, 1, 1, keys]),
  ] as const;
  for (const input of inputs) await input.data();
  const attention = sn.compile((q: sn.Tensor, k: sn.Tensor, v: sn.Tensor, mask: sn.Tensor) =>
    sn.scaledDotProductAttention(q, k, v, { mask, enableGqa: true }),
  );
  const before = sn.stats().dispatches;
  const values = [...(await attention(...inputs).data())].map(Number);
  return [values, sn.stats().dispatches - before];
}

onStandIn(
  'attention over parts of its keys',
  () => {
    test.each<Given>([
      { heads: 8, keyHeads: 2, rows: 1, keys: 4096, features: 64, dtype: 'f16' },
      { heads: 4, keyHeads: 4, rows: 2, keys: 4096, features: 64, dtype: 'f32' },
    ])('$heads heads of $keyHeads, $rows row(s), $keys keys of $features $dtype', async (given) => {
      sn.setDevice('cuda');
      const [split, kernels] = await attend(given);
      expect(kernels).toBe(2);
      sn.setDevice('wasm');
      const [whole] = await attend(given);
      sn.setDevice('cuda');
      const tolerance = given.dtype === 'f32' ? 1e-5 : 2e-3;
      split.forEach((value, i) => expect(Math.abs(value - whole[i]!)).toBeLessThan(tolerance));
    });
  },
  { check: true },
);
