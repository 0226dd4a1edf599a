// How exact products of f32 are, for everything that is compiled from then on: the user's choice
// between exactness and the speed of matrix units.

import { showValue, TensorError } from '../errors.ts';
import { currentSession } from './session.ts';

/**
 * How products of f32 are computed: exactly, or with operands rounded to 11 bits where a device has
 * units for that.
 */
export type MatmulPrecision = 'f32' | 'tf32';

/**
 * Chooses how matrix products and convolutions of f32 are computed. `'f32'`, the default, keeps all
 * 24 bits. `'tf32'` rounds operands to 11 bits (a relative error of at most 5e-4 each) on devices
 * whose matrix units take them (CUDA from sm_80 on), and changes nothing elsewhere; sums stay f32.
 * Functions that are compiled already are compiled again when they are next called.
 */
export function setMatmulPrecision(precision: MatmulPrecision): void {
  if (precision !== 'f32' && precision !== 'tf32') {
    throw new TensorError(
      'E_VALUE',
      'setMatmulPrecision',
      `expects 'f32' or 'tf32': ${showValue(precision)}`,
    );
  }
  currentSession().matmulPrecision = precision;
}

/** What was chosen last. */
export function matmulPrecision(): MatmulPrecision {
  return currentSession().matmulPrecision;
}
