// Which frequencies the points of a transform stand for, and their order.

import * as arg from '../../../ir/arguments.ts';
import type { DType } from '../../../ir/dtype.ts';
import { normalizeAxes } from '../../../ir/shape.ts';
import { aTensor } from '../../expect.ts';
import type { Tensor } from '../../tensor.ts';
import { tensor } from '../creation/creation.ts';
import { roll } from '../shape/movement.ts';

/** @names FrequencyOptions, fft.FrequencyOptions */
export interface FrequencyOptions {
  /** The time between samples; 1 by default. */
  readonly d?: number;
  /** The result's dtype; f32 by default. */
  readonly dtype?: DType;
}

const takesFrequencies = arg.takes<typeof fftfreq>(
  ['the number of points', arg.count(1)],
  ['options', arg.options<FrequencyOptions>({ d: arg.number, dtype: arg.floatDType })],
);

/**
 * The frequencies of `fft`: 0, 1 … and −n/2 … −1, over n·d.
 *
 * @example
 * sn.fft.fftfreq(4, { dtype: 'f32' });
 */
export function fftfreq(n: number, options: FrequencyOptions = {}): Tensor {
  takesFrequencies('fftfreq', n, options);
  const { d = 1, dtype = 'f32' } = options;
  const half = Math.floor((n - 1) / 2);
  return tensor(
    Float64Array.from({ length: n }, (_, i) => (i <= half ? i : i - n) / (n * d)),
    { dtype },
  );
}

/**
 * The frequencies of `rfft`: 0 … n/2, over n·d.
 *
 * @example
 * sn.fft.rfftfreq(4, { dtype: 'f32' });
 */
export function rfftfreq(n: number, options: FrequencyOptions = {}): Tensor {
  takesFrequencies('rfftfreq', n, options);
  const { d = 1, dtype = 'f32' } = options;
  return tensor(
    Float64Array.from({ length: Math.floor(n / 2) + 1 }, (_, i) => i / (n * d)),
    { dtype },
  );
}

/** @names ShiftOptions, fft.ShiftOptions */
export interface ShiftOptions {
  /** The axes; all by default. */
  readonly dim?: number | readonly number[];
}

const takesShift = arg.takes<typeof fftshift>(
  ['the operand', aTensor],
  ['options', arg.options<ShiftOptions>({ dim: arg.inside() })],
);

function shifted(op: string, x: Tensor, options: ShiftOptions, by: (size: number) => number): Tensor {
  const axes = normalizeAxes(op, options.dim, x.rank);
  if (axes.length === 0) return x;
  return roll(
    x,
    axes.map((axis) => by(x.shape[axis]!)),
    axes,
  );
}

/**
 * The zero frequency in the middle, the negative ones before.
 *
 * @example
 * const v = sn.tensor([1, 2, 3, 4]);
 * sn.fft.fftshift(v);
 */
export function fftshift(x: Tensor, options: ShiftOptions = {}): Tensor {
  takesShift('fftshift', x, options);
  return shifted('fftshift', x, options, (size) => Math.floor(size / 2));
}

/**
 * The inverse of `fftshift`.
 *
 * @example
 * const v = sn.tensor([1, 2, 3, 4]);
 * sn.fft.ifftshift(v);
 */
export function ifftshift(x: Tensor, options: ShiftOptions = {}): Tensor {
  takesShift('ifftshift', x, options);
  return shifted('ifftshift', x, options, (size) => -Math.floor(size / 2));
}
