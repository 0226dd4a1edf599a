// Every operation against PyTorch's figures, forward and backward, as tests for a device.

import { beforeAll, describe, expect, test } from 'vitest';
import { setDevice } from '../../../src/tensor/storage/device.ts';
import { torchCases } from '../../support/torch/figures.ts';
import { calledFamilies, checkCase, isSupported } from './torch-check.ts';

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
