// What every reader of a byte format must survive, and random host tensors to feed the writers.

import * as fc from 'fast-check';
import { expect } from 'vitest';
import { ParseError, SinterError } from '../../src/errors.ts';
import { packedBytes, type HostTensor } from '../../src/io/host.ts';
import type { DType } from '../../src/ir/dtype.ts';

/** Tensors of random bits: rank 0 to 4, sizes 0 to 4. */
export function hostTensor(dtypes: readonly DType[]): fc.Arbitrary<HostTensor> {
  const shape = fc.array(fc.nat(4), { maxLength: 4 });
  return fc.record({ dtype: fc.constantFrom(...dtypes), shape }).chain(({ dtype, shape }) => {
    const length = packedBytes(dtype, shape)!;
    const data = fc.uint8Array({ minLength: length, maxLength: length, max: dtype === 'bool' ? 1 : 255 });
    return data.map((data) => ({ dtype, shape, data }));
  });
}

/** Every proper prefix of a valid file is refused with E_FORMAT and a message that counts bytes. */
export function refusesEveryPrefix(file: Uint8Array, read: (bytes: Uint8Array) => unknown): void {
  for (let length = 0; length < file.length; length++) {
    const fault = failure(() => read(file.slice(0, length)));
    expect(fault, `the first ${length} bytes`).toBeInstanceOf(ParseError);
    expect(fault).toMatchObject({ code: 'E_FORMAT', message: expect.stringMatching(/\d/) });
  }
}

/** Damage gives a ParseError or tensors that hold the bytes they claim, and nothing else. */
export function survivesDamage(
  file: Uint8Array,
  read: (bytes: Uint8Array) => Iterable<HostTensor>,
  numRuns = 2000,
): void {
  const flips = fc.array(fc.tuple(fc.nat(file.length - 1), fc.nat(255)), { minLength: 1, maxLength: 6 });
  fc.assert(
    fc.property(flips, fc.nat(3), (flips, cut) => {
      const bytes = file.slice(0, cut === 0 ? file.length - 1 : file.length);
      for (const [at, value] of flips) if (at < bytes.length) bytes[at] = value;
      let tensors: readonly HostTensor[];
      try {
        tensors = [...read(bytes)];
      } catch (fault) {
        if (fault instanceof SinterError && fault.code === 'E_FORMAT') return;
        throw fault;
      }
      for (const { dtype, shape, data } of tensors) expect(data.length).toBe(packedBytes(dtype, shape));
    }),
    { numRuns },
  );
}

/** What `run` throws. */
export function failure(run: () => unknown): unknown {
  try {
    run();
  } catch (fault) {
    return fault;
  }
  throw new Error('nothing was thrown');
}
