// Every operation against PyTorch's figures, forward and backward, as tests for a device.

import { beforeAll, describe, expect, test } from 'vitest';
import { setDevice } from '../../../src/tensor/device.ts';
import { torchCases } from '../../support/torch/figures.ts';
import { calledFamilies, checkCase, checkCases, isSupported } from './torch-check.ts';

/** Declares a test for every case, with `device` chosen. */
export function agreesWithTorch(device: string): void {
  beforeAll(() => setDevice(device));

  for (const family of calledFamilies()) {
    describe(`${family} agrees with PyTorch`, () => {
      for (const one of torchCases(family)) {
        const run = (): Promise<void> => checkCase(family, one);
        if (isSupported(one, device)) test(one.name, run);
        // Inputs of a dtype that the device lacks may be narrowed on the way to it, and then the figures hold.
        else
          test(`${one.name} is right or refused`, () =>
            run().catch((error: unknown) =>
              expect(String(error)).toMatch(/is not supported on|does not fit/),
            ));
      }
    });
  }
}

/** So many cases of an operation make a program. */
const atOnce = 12;

/**
 * The same with all cases of an operation in one program or a few, for a device that has every dtype and takes long to build a
 * program, however small.
 */
export function agreesWithTorchAtOnce(device: string): void {
  beforeAll(() => setDevice(device));

  for (const family of calledFamilies()) {
    describe(`${family} agrees with PyTorch`, () => {
      const all = torchCases(family);
      for (const op of new Set(all.map((one) => one.op))) {
        const cases = all.filter((one) => one.op === op);
        for (let from = 0; from < cases.length; from += atOnce) {
          const some = cases.slice(from, from + atOnce);
          test(`${family}/${op}#${from + 1} to #${from + some.length}`, () => checkCases(family, some));
        }
      }
    });
  }
}
