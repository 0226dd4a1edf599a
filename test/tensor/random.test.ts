// Random programs of lazy tensors against plain arrays: whatever is recorded, assigned, read, given up or compiled, in whatever
// order, a tensor's value is the one that an eager library would have computed.

import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { compile } from '../../src/tensor/compile/compile.ts';
import { setRetainedMemoryLimit } from '../../src/tensor/handle/memory.ts';
import { grad } from '../../src/tensor/derivative/transform.ts';
import type { Tensor, TensorLike } from '../../src/tensor/tensor.ts';
import { add, mul, spyDevice, sub, sum, turn, vec } from './support.ts';

type Step =
  | { readonly kind: 'make'; readonly value: number }
  | { readonly kind: 'add' | 'sub' | 'assign'; readonly a: number; readonly b: number }
  | { readonly kind: 'scale'; readonly a: number; readonly by: number }
  | { readonly kind: 'read' | 'dispose' | 'detach' | 'square' | 'donate'; readonly a: number }
  | { readonly kind: 'compiled'; readonly a: number; readonly by: number };

const index = fc.nat(30);
const small = fc.integer({ min: -3, max: 3 });
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant('make' as const), value: small }),
  fc.record({ kind: fc.constantFrom('add' as const, 'sub' as const, 'assign' as const), a: index, b: index }),
  fc.record({ kind: fc.constant('scale' as const), a: index, by: small }),
  fc.record({
    kind: fc.constantFrom(
      'read' as const,
      'dispose' as const,
      'detach' as const,
      'square' as const,
      'donate' as const,
    ),
    a: index,
  }),
  fc.record({ kind: fc.constant('compiled' as const), a: index, by: small }),
);

interface Pair {
  readonly lazy: Tensor;
  eager: number[];
}

const f32 = Math.fround;
const map2 = (a: Pair, b: Pair, fn: (x: number, y: number) => number): number[] =>
  a.eager.map((x, i) => f32(fn(x, b.eager[i]!)));

async function run(steps: readonly Step[]): Promise<void> {
  spyDevice();
  const shared = vec(1, 1);
  let calls = 0;
  // Reads and writes a captured tensor, and takes its number at run time.
  const compiled = compile((x: Tensor, by: TensorLike) => {
    shared.assign(add(shared, 1));
    return mul(add(x, shared), by);
  });
  const donating = compile((x: Tensor) => add(x, 1), { donate: [0] });
  const pool: Pair[] = [{ lazy: vec(1, 2), eager: [1, 2] }];
  const pick = (i: number): Pair => pool[i % pool.length]!;
  const give = (pair: Pair): void => {
    pool.splice(pool.indexOf(pair), 1);
    if (pool.length === 0) pool.push({ lazy: vec(1, 2), eager: [1, 2] });
  };
  for (const s of steps) {
    switch (s.kind) {
      case 'make':
        pool.push({ lazy: vec(s.value, 1), eager: [s.value, 1] });
        break;
      case 'add':
      case 'sub': {
        const [a, b] = [pick(s.a), pick(s.b)];
        const [lazy, eager] =
          s.kind === 'add'
            ? [add(a.lazy, b.lazy), map2(a, b, (x, y) => x + y)]
            : [sub(a.lazy, b.lazy), map2(a, b, (x, y) => x - y)];
        pool.push({ lazy, eager });
        break;
      }
      case 'assign': {
        const [a, b] = [pick(s.a), pick(s.b)];
        a.lazy.assign(b.lazy);
        a.eager = b.eager;
        break;
      }
      case 'scale': {
        const a = pick(s.a);
        pool.push({ lazy: mul(a.lazy, s.by), eager: a.eager.map((x) => f32(x * s.by)) });
        break;
      }
      case 'read': {
        const a = pick(s.a);
        expect(await a.lazy.array()).toEqual(a.eager);
        break;
      }
      case 'dispose': {
        const a = pick(s.a);
        a.lazy.dispose();
        give(a);
        break;
      }
      case 'detach': {
        const a = pick(s.a);
        pool.push({ lazy: a.lazy.detach(), eager: a.eager });
        break;
      }
      case 'square': {
        const a = pick(s.a);
        const lazy = grad((x: Tensor) => sum(mul(x, x)))(a.lazy);
        pool.push({ lazy, eager: a.eager.map((x) => f32(2 * x)) });
        break;
      }
      case 'compiled': {
        const a = pick(s.a);
        calls += 1;
        pool.push({
          lazy: compiled(a.lazy, s.by),
          eager: a.eager.map((x) => f32(f32(x + 1 + calls) * s.by)),
        });
        break;
      }
      case 'donate': {
        const a = pick(s.a);
        // A copy: donation takes the memory of every tensor that stands for the value.
        const own: Pair = { lazy: add(a.lazy, 0), eager: a.eager };
        pool.push({ lazy: donating(own.lazy), eager: own.eager.map((x) => f32(x + 1)) });
        expect(() => add(own.lazy, 1)).toThrow('was donated');
        break;
      }
      default:
        s satisfies never;
    }
  }
  for (const { lazy, eager } of [...pool].reverse()) expect(await lazy.array()).toEqual(eager);
  expect(await shared.array()).toEqual([1 + calls, 1 + calls]);
  await turn();
}

test('lazy tensors have the values of eager ones', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), (steps) => run(steps)),
    { numRuns: 300 },
  );
});

test('a read is right or refused when no value is kept for late readers', async () => {
  const budget = setRetainedMemoryLimit(0);
  try {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        await run(steps).catch((error: unknown) => {
          if (!/which was (overwritten|disposed)/.test(String(error))) throw error;
        });
      }),
      { numRuns: 200 },
    );
  } finally {
    setRetainedMemoryLimit(budget);
  }
});
