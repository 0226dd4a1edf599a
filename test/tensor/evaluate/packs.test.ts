// Packs under tensors: whatever is done to tensors that lie together (steps over some of them, copies kept, values assigned,
// one updated by another, disposal), each has the value that arithmetic on plain arrays gives it.

import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { compile } from '../../../src/tensor/compile/compile.ts';
import { device, setDevice, synchronize } from '../../../src/tensor/device.ts';
import { add, mul, sub } from '../../../src/operations/index.ts';
import { tensor } from '../../../src/tensor/ops/creation/creation.ts';
import type { Tensor } from '../../../src/tensor/tensor.ts';
import { noGrad } from '../../../src/tensor/derivative/transform.ts';
import { seed } from '../../support/property.ts';
import { everyDevice } from '../../support/devices.ts';

/** Two of each size, so that one can be added to the other. */
const sizes = [1, 1, 3, 3, 64, 64, 257, 257, 20, 20];

type Command =
  /** One step over these tensors, by a program of theirs, that may write over them. */
  | { readonly kind: 'step'; readonly which: readonly number[]; readonly donate: boolean }
  /** The value is kept under another name. */
  | { readonly kind: 'keep'; readonly at: number }
  /** What was kept longest is compared, and given up. */
  | { readonly kind: 'drop' }
  | { readonly kind: 'assign'; readonly at: number; readonly value: number }
  | { readonly kind: 'read'; readonly at: number }
  /** x += y in place, of two tensors of one size. */
  | { readonly kind: 'accumulate'; readonly at: number };

const at = fc.nat({ max: sizes.length - 1 });
const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('step' as const),
      which: fc.uniqueArray(at, { minLength: 2, maxLength: sizes.length }),
      donate: fc.boolean(),
    }),
  },
  fc.record({ kind: fc.constant('keep' as const), at }),
  fc.record({ kind: fc.constant('drop' as const) }),
  fc.record({ kind: fc.constant('assign' as const), at, value: fc.integer({ min: -8, max: 8 }) }),
  fc.record({ kind: fc.constant('read' as const), at }),
  fc.record({ kind: fc.constant('accumulate' as const), at }),
);

/** p − v/4 with v = v/2 + p/8: small powers of two, so that f32 arithmetic in any order is nearly exact. */
const rule = (ps: Tensor[], vs: Tensor[]): [Tensor[], Tensor[]] => {
  const moved = vs.map((v, i) => add(mul(v, 0.5), mul(ps[i]!, 0.125)));
  return [ps.map((p, i) => sub(p, mul(moved[i]!, 0.25))), moved];
};
const steps = { plain: compile(rule), donated: compile(rule, { donate: [0, 1] }) };
const accumulate = compile((x: Tensor, y: Tensor) => add(x, y), { donate: [0] });

const plain = (x: Tensor): Promise<number[]> => x.data().then((data) => Array.from(data as Float32Array));

function expectNear(actual: readonly number[], expected: readonly number[]): void {
  expect(actual.length).toBe(expected.length);
  actual.forEach((value, i) =>
    expect(Math.abs(value - expected[i]!)).toBeLessThanOrEqual(1e-4 * (1 + Math.abs(expected[i]!))),
  );
}

async function follow(commands: readonly Command[]): Promise<void> {
  const start = (size: number, shift: number): number[] =>
    Array.from({ length: size }, (_, i) => ((i * 7 + shift * 13) % 32) / 4 - 4);
  const values = sizes.map(start);
  const momenta = sizes.map((size) => new Array<number>(size).fill(0));
  const ps = values.map((value) => tensor(Float32Array.from(value)));
  const vs = momenta.map((value) => tensor(Float32Array.from(value)));
  const kept: { readonly tensor: Tensor; readonly value: readonly number[] }[] = [];
  for (const one of commands) {
    switch (one.kind) {
      case 'step': {
        const { which, donate } = one;
        const run = donate ? steps.donated : steps.plain;
        const [nextPs, nextVs] = run(
          which.map((i) => ps[i]!),
          which.map((i) => vs[i]!),
        );
        which.forEach((i, place) => {
          if (!donate) for (const old of [ps[i]!, vs[i]!]) old.dispose();
          [ps[i], vs[i]] = [nextPs[place]!, nextVs[place]!];
          momenta[i] = momenta[i]!.map((v, k) => v / 2 + values[i]![k]! / 8);
          values[i] = values[i]!.map((p, k) => p - momenta[i]![k]! / 4);
        });
        break;
      }
      case 'keep':
        kept.push({ tensor: ps[one.at]!.detach(), value: values[one.at]! });
        break;
      case 'drop': {
        const first = kept.shift();
        if (first === undefined) break;
        expectNear(await plain(first.tensor), first.value);
        first.tensor.dispose();
        break;
      }
      case 'assign': {
        const size = sizes[one.at]!;
        values[one.at] = start(size, one.value);
        noGrad(() => ps[one.at]!.assign(tensor(Float32Array.from(values[one.at]!))));
        break;
      }
      case 'read':
        expectNear(await plain(ps[one.at]!), values[one.at]!);
        break;
      case 'accumulate': {
        const other = one.at ^ 1;
        ps[one.at] = accumulate(ps[one.at]!, ps[other]!);
        values[one.at] = values[one.at]!.map((x, k) => x + values[other]![k]!);
        break;
      }
      default:
        one satisfies never;
    }
  }
  for (const [i, value] of values.entries()) expectNear(await plain(ps[i]!), value);
  for (const [i, value] of momenta.entries()) expectNear(await plain(vs[i]!), value);
  for (const { tensor: copy, value } of kept) expectNear(await plain(copy), value);
  for (const old of [...ps, ...vs, ...kept.map((one) => one.tensor)]) old.dispose();
}

describe.each(everyDevice)('on %s', (name) => {
  beforeAll(() => setDevice(name));
  afterAll(() => setDevice(undefined));

  test('tensors keep their values, whatever shares their memory', async () => {
    await fc.assert(fc.asyncProperty(fc.array(command, { minLength: 4, maxLength: 16 }), follow), {
      numRuns: name === 'interpreter' ? 40 : 60,
      seed,
    });
    await synchronize();
    expect(await (await device()).finish()).toBeUndefined();
  });
});
