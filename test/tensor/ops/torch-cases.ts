// Every operation against PyTorch's figures, forward and backward, as tests for a device.

import { beforeAll, describe, expect, test } from 'vitest';
import { setDevice } from '../../../src/tensor/device.ts';
import { torchCases } from '../../support/torch.ts';
import { calledFamilies, checkCase, isSupported } from './torch-check.ts';

/** Declares a test for every case, with `device` chosen. */
export function agreesWithTorch(device: string): void {
  beforeAll(() => setDevice(device));

  for (const family of calledFamilies()) {
    describe(`${family} agrees with PyTorch`, () => {
      for (const one of torchCases(family)) {
        const run = (): Promise<void> => checkCase(family, one);
        if (isSupported(one, device)) test(one.name, run);
        else test(`${one.name} is refused`, () => expect(run()).rejects.toThrow(/is not supported on/));
      }
    });
  }
}
