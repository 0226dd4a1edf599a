// Every operation against PyTorch's figures on a device, or some of them spread over all. Comes in: a device's name and what to run;
// goes out: counts, and what failed. No test framework, and nothing of Node but the files of the figures: pages run this too.

import { setDevice } from '../../src/tensor/device.ts';
import { torchCases } from '../support/torch/figures.ts';
import { calledFamilies, checkCase, isSupported } from '../tensor/ops/torch-check.ts';

export interface OperationChoice {
  /** Families of operations; all without. */
  readonly families?: readonly string[];
  /** So many cases, spread over those of the families that the device has the dtypes of; all without. */
  readonly spread?: number;
  /** Told of each family when it is done. */
  readonly say?: (line: string) => void;
}

export interface OperationCounts {
  readonly passed: number;
  /** Cases whose dtypes the device lacks, and that were refused as they should be. */
  readonly refused: number;
  readonly failed: readonly { readonly name: string; readonly error: string }[];
}

/** Runs the chosen operations; whatever fails is in the result. */
export async function runOperations(device: string, choice: OperationChoice = {}): Promise<OperationCounts> {
  setDevice(device);
  const known = calledFamilies();
  const families = choice.families ?? known;
  const strange = families.find((family) => !known.includes(family));
  if (strange !== undefined) throw new Error(`there is no family ${strange}: expected ${known.join(', ')}`);
  const failed: { name: string; error: string }[] = [];
  let passed = 0;
  let refused = 0;
  const { spread } = choice;
  const total =
    spread === undefined
      ? 0
      : families.flatMap((family) => torchCases(family).filter((one) => isSupported(one, device))).length;
  let at = 0;
  const isChosen = (): boolean => {
    if (spread === undefined) return true;
    at += 1;
    return Math.floor((at * spread) / total) > Math.floor(((at - 1) * spread) / total);
  };
  for (const family of families) {
    for (const one of torchCases(family)) {
      const supported = isSupported(one, device);
      if (spread === undefined ? false : !supported || !isChosen()) continue;
      try {
        await checkCase(family, one);
        passed += 1;
      } catch (error) {
        const text = error instanceof Error ? error.message : String(error);
        // Inputs of a dtype that the device lacks may also be narrowed on the way to it, and then the figures hold.
        if (!supported && /is not supported on|does not fit/.test(text)) refused += 1;
        else {
          failed.push({ name: one.name, error: text });
          choice.say?.(`FAILED ${one.name}: ${text}`);
        }
      }
    }
    choice.say?.(`${family}: ${passed} passed, ${failed.length} failed, ${refused} refused so far`);
  }
  return { passed, refused, failed };
}
