// Attention agrees with PyTorch, which computed in f64 (scripts/attention-fixtures.py), on every device here: results and
// gradients of q, k and v, of the lengths, head sizes, masks and values of attention.test.ts.

import { readFileSync } from 'node:fs';

import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import * as sn from '../../src/index.ts';
import type { Tensor } from '../../src/index.ts';
import type { HostArray } from '../../src/ir/value.ts';
import { fromHost } from '../../src/tensor/record.ts';
import { filled, gentle, magnitudes, maskOf, poisoned, scoresOf, steep, tame } from './attention-cases.ts';
import { everyDevice } from '../support/devices.ts';

type Three<T> = readonly [T, T, T];

/** As the script writes it: how the inputs are made, and some elements of the result and of the gradients of q, k and v. */
interface StoredCase {
  readonly name: string;
  readonly shapes: Three<readonly number[]>;
  readonly fill: 'tame' | 'steep' | 'gentle';
  readonly dtype: 'f32' | 'f16' | 'bf16';
  readonly mask: 'bool' | 'infinite' | 'least' | null;
  readonly causal: boolean;
  /** Written as plain operations. */
  readonly plain: boolean;
  readonly scale: number | null;
  readonly poison: Readonly<
    Partial<Record<'q' | 'k' | 'v', Readonly<Record<string, 'nan' | 'inf' | '-inf'>>>>
  >;
  readonly outputs: readonly {
    readonly at: readonly number[];
    readonly values: readonly (number | 'nan' | 'inf' | '-inf')[];
    /** Euclidean norm, without what is not finite. */
    readonly norm: number;
  }[];
}

const stored = JSON.parse(
  readFileSync(new URL('../fixtures/attention.json', import.meta.url), 'utf8'),
) as readonly StoredCase[];

const numbers = { nan: NaN, inf: Infinity, '-inf': -Infinity } as const;
const fills = { tame, steep, gentle } as const;
/** f32: roundings of long sums, and the device's exponential. Narrow results are rounded once. */
const tolerances = { f32: 2e-5, f16: 2 ** -10, bf16: 2 ** -7 } as const;

function inputOf({ shapes, fill, dtype, poison }: StoredCase, at: 0 | 1 | 2): HostArray {
  const values = filled(shapes[at], at === 2 && fill === 'steep' ? tame : fills[fill], at + 1, dtype);
  const odd = Object.entries(poison[(['q', 'k', 'v'] as const)[at]] ?? {});
  return poisoned(values, Object.fromEntries(odd.map(([place, value]) => [Number(place), numbers[value]])));
}

function attend(one: StoredCase, q: Tensor, keys: Tensor, values: Tensor, mask: Tensor | undefined): Tensor {
  const groups = one.shapes[0].length === 4 ? one.shapes[0][1]! / one.shapes[1][1]! : 1;
  const [k, v] =
    groups === 1 ? [keys, values] : [keys, values].map((x) => sn.repeatInterleave(x, groups, -3));
  const scale = one.scale ?? 1 / Math.sqrt(one.shapes[0].at(-1)!);
  if (one.plain) return sn.where(mask!, scoresOf(q, k!).mul(scale), -Infinity).softmax().matmul(v!);
  return sn.scaledDotProductAttention(q, k!, v!, { isCausal: one.causal, scale, ...(mask && { mask }) });
}

const tensorOf = ({ data, shape, dtype }: HostArray): Tensor => fromHost(data, shape, dtype);

describe.each(everyDevice)('on %s', (device) => {
  beforeAll(() => sn.setDevice(device));
  afterAll(() => sn.setDevice(undefined));

  test.each(stored.map((one) => [one.name, one] as const))('%s', async (_, one) => {
    const inputs = ([0, 1, 2] as const).map((at) => inputOf(one, at));
    const [q, k, v] = inputs.map(tensorOf) as [Tensor, Tensor, Tensor];
    const mask = one.mask && tensorOf(maskOf(one.mask, q.shape.at(-2)!, k.shape.at(-2)!));
    const { value, vjp } = sn.vjp(
      (x: Tensor, y: Tensor, z: Tensor) => attend(one, x, y, z, mask ?? undefined),
      ...([q, k, v] as const),
    );
    const upstream = filled(value.shape, tame, 99, one.dtype);
    const results = [value, ...vjp(tensorOf(upstream))];
    const found = await Promise.all(results.map(async (x) => (await x.data()) as Float32Array));
    const columns = magnitudes(inputs, upstream, one.scale ?? 1 / Math.sqrt(q.shape.at(-1)!));
    one.outputs.forEach(({ at, values, norm }, output) => {
      const most = columns[output]!;
      values.forEach((wanted, i) => {
        const [x, y] = [
          typeof wanted === 'number' ? wanted : numbers[wanted],
          Number(found[output]![at[i]!]),
        ];
        if (Object.is(x, y) || x === y) return;
        const apart = most[at[i]! % most.length]! * tolerances[one.dtype];
        const close = Math.abs(x - y) <= apart;
        expect(close, `output ${output} at ${at[i]}: ${y} instead of ${x}`).toBe(true);
      });
      let squares = 0;
      for (const x of found[output]!) if (Number.isFinite(x)) squares += x * x;
      const all = Math.max(...most) * tolerances[one.dtype] * Math.sqrt(found[output]!.length);
      expect(Math.abs(Math.sqrt(squares) - norm), `norm of output ${output}`).toBeLessThanOrEqual(all);
    });
  });
});
