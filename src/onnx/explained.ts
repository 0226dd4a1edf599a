// Errors with the name of the node that they arose at.

import { SinterError } from '../errors.ts';
import type { GraphStep } from './plan.ts';

/** Gives errors the node's name. */
export function explained<T>(step: GraphStep, run: () => T): T {
  try {
    return run();
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    const code = error instanceof SinterError ? error.code : 'E_VALUE';
    const text = `onnx: ${step.label} (opset ${step.opset}): ${error.message}`;
    throw new SinterError(code, text, { cause: error });
  }
}
