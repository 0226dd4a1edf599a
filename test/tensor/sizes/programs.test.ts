// What a program with varying sizes computes is what the function computes at each size, and one
// program serves them.

import { beforeAll, describe, expect, test } from 'vitest';
import * as fc from 'fast-check';
import * as sn from '../../../src/index.ts';
import { checkLawAsync } from '../../support/property.ts';
import { loops } from './loops.ts';
import { programs as plain, type SizedProgram } from './programs.ts';

const programs = [...plain, ...loops];

const listed = (result: sn.Tensor | readonly sn.Tensor[]): readonly sn.Tensor[] =>
  result instanceof sn.Tensor ? [result] : result;

type Call = (...args: sn.Tensor[]) => sn.Tensor | readonly sn.Tensor[];

/** How many programs reading these compiled. */
async function compiledBy(tensors: readonly sn.Tensor[]): Promise<number> {
  const before = sn.stats().programs;
  for (const each of tensors) await each.data();
  return sn.stats().programs - before;
}

/** Compares one call with the function itself, both with the same random draws; gives the programs it compiled. */
async function checkCall({ fn, args }: SizedProgram, compiled: Call, size: number): Promise<number> {
  const given = args(size);
  sn.manualSeed(size);
  const wanted = listed((fn as unknown as Call)(...given));
  await compiledBy(wanted);
  sn.manualSeed(size);
  const got = listed(compiled(...given));
  const made = await compiledBy(got);
  expect(got.map(({ shape }) => shape)).toEqual(wanted.map(({ shape }) => shape));
  for (const [i, result] of got.entries()) {
    const [own, want] = [await result.data(), await wanted[i]!.data()] as [Float32Array, Float32Array];
    let far = 0;
    own.forEach((value, k) => {
      if (Object.is(value, want[k])) return;
      far = Math.max(far, Math.abs(value - want[k]!) / (1e-2 + Math.abs(want[k]!)));
    });
    expect(far, `result ${i} at size ${size}`).toBeLessThan(2e-4);
  }
  return made;
}

function compiledOf({ fn, dims }: SizedProgram): Call {
  return sn.compile(fn as never, { dims }) as unknown as Call;
}

describe('on the interpreter', () => {
  beforeAll(() => sn.setDevice('interpreter'));

  test.each(programs)('$name', async (program) => {
    const call = compiledOf(program);
    const { least = 1 } = program;
    const top = program.name === 'in groups' ? 50 : 200;
    let made = 0;
    const sizes = fc.uniqueArray(fc.integer({ min: Math.max(2, least), max: top }), {
      minLength: 3,
      maxLength: 3,
    });
    await checkLawAsync(2, sizes, async (drawn) => {
      for (const size of drawn) made += await checkCall(program, call, size);
    });
    expect(made).toBeLessThanOrEqual(3);
    // The ends of the range. One element may make another recording, which has a program of its own.
    await checkCall(program, call, least);
    await checkCall(program, call, top);
  });
});

describe.each(['wasm', 'webgpu:software'])('on %s', (device) => {
  beforeAll(() => sn.setDevice(device as 'wasm'));

  const some = device === 'wasm' ? programs : programs.filter((_, i) => i % 6 === 2);
  test.each(some)('$name', async (program) => {
    const call = compiledOf(program);
    for (const size of [Math.max(13, program.least ?? 1), 48]) await checkCall(program, call, size);
  });
});
