// Short-time transforms: spectra of overlapping frames of a signal, and the signal that has them.

import { TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import { isComplex, isInexact, partType } from '../../../ir/dtype.ts';
import { aTensor } from '../../expect.ts';
import type { Tensor } from '../../tensor.ts';
import { div, mul } from '../elementwise/arithmetic.ts';
import { cast } from '../elementwise/cast.ts';
import { ones } from '../creation/creation.ts';
import { show } from '../operand.ts';
import { sum } from '../reduce/reduce.ts';
import { narrow } from '../shape/indexing.ts';
import { pad } from '../shape/movement.ts';
import { broadcastTo, reshape, transpose, unfold } from '../shape/view.ts';
import { partsType } from './constants.ts';
import { fft, ifft, irfft, rfft, type FftNorm } from './transform.ts';

interface FrameOptions {
  /** Elements from frame to frame; a quarter of the points by default. */
  readonly hopLength?: number;
  /** Elements of the window, which zeros surround; as many as there are points by default. */
  readonly winLength?: number;
  /** Weights of a frame's elements; ones by default. */
  readonly window?: Tensor;
  /** Frame t is centred at t·hopLength: the signal is padded on both sides. True by default. */
  readonly center?: boolean;
  /** Spectra are divided by the root of the number of points. */
  readonly normalized?: boolean;
  /** The first half of each spectrum: by default where signal and window are real. */
  readonly onesided?: boolean;
}

/** @names StftOptions */
export interface StftOptions extends FrameOptions {
  /** What is beyond the signal's ends; `reflect` by default. */
  readonly padMode?: 'constant' | 'reflect' | 'replicate' | 'circular';
}

/** @names IstftOptions */
export interface IstftOptions extends FrameOptions {
  /** Elements of the signal; all that the frames cover by default. */
  readonly length?: number;
  /** A complex signal; only of whole spectra; false by default. */
  readonly returnComplex?: boolean;
}

const frames = {
  hopLength: arg.count(1),
  winLength: arg.count(1),
  window: aTensor,
  center: arg.flag,
  normalized: arg.flag,
  onesided: arg.flag,
};

const takesStft = arg.takes<typeof stft>(
  ['the signal', aTensor],
  ['the number of points', arg.count(1)],
  [
    'options',
    arg.options<StftOptions>({
      ...frames,
      padMode: arg.oneOf('constant', 'reflect', 'replicate', 'circular'),
    }),
  ],
);

/** Points, hop and the window of a call. */
interface Frames {
  readonly n: number;
  readonly hop: number;
  readonly window: Tensor | undefined;
}

function framesOf(op: string, n: number, options: FrameOptions): Frames {
  const { hopLength = Math.max(1, Math.floor(n / 4)), winLength = n, window } = options;
  const fail = (problem: string, hint: string): never => {
    throw new TensorError('E_SHAPE', op, problem, hint);
  };
  if (winLength > n)
    fail(`a window of ${winLength} elements for ${n} points`, 'winLength: at most the points');
  if (window !== undefined && (window.rank !== 1 || window.shape[0] !== winLength))
    fail(`expects a window of ${winLength} elements: ${show(window)}`, 'winLength: the window’s length');
  if (window === undefined && winLength === n) return { n, hop: hopLength, window: undefined };
  const before = Math.floor((n - winLength) / 2);
  const given = window ?? ones([winLength]);
  const weights = isInexact(given.dtype) ? given : cast(given, 'f32');
  return { n, hop: hopLength, window: pad(weights, [[before, n - winLength - before]]) };
}

const framesNorm = (options: FrameOptions): { readonly norm: FftNorm } => ({
  norm: options.normalized === true ? 'ortho' : 'backward',
});

/**
 * Spectra of the frames of a signal [.., time]: c64[.., frequency, frame].
 *
 * @names stft
 * @jax jax.scipy.signal.stft
 * @example
 * const v = sn.tensor([1, 2, 3, 4]);
 * const signal = sn.linspace(0, 1.75, 8);
 * sn.stft(signal, 4, { window: v });
 */
export function stft(x: Tensor, n: number, options: StftOptions = {}): Tensor {
  takesStft('stft', x, n, options);
  const { center = true, padMode = 'reflect' } = options;
  if (x.rank !== 1 && x.rank !== 2) {
    const problem = `expects a signal or a batch of them: ${show(x)}`;
    throw new TensorError('E_SHAPE', 'stft', problem, 'reshape(x, [-1, x.shape.at(-1)])');
  }
  const parts = partsType('stft', x);
  const { hop, window } = framesOf('stft', n, options);
  const half = Math.floor(n / 2);
  // Integers become floats before a window weights them, so that nothing wraps.
  const given = isInexact(x.dtype) ? x : cast(x, parts);
  const signal = center ? pad(given, [[half, half]], { mode: padMode }) : given;
  const length = signal.shape.at(-1)!;
  if (length < n) {
    const problem = `frames of ${n} points do not fit ${length} elements: ${show(x)}`;
    throw new TensorError('E_SHAPE', 'stft', problem, 'fewer points, or center: true');
  }
  const cut = unfold(signal, signal.rank - 1, n, hop);
  const weighted = window === undefined ? cut : mul(cut, window);
  const isReal = !isComplex(weighted.dtype);
  const { onesided = isReal } = options;
  if (onesided && !isReal) {
    const problem = `a complex signal has no half of a spectrum: ${show(x)}`;
    throw new TensorError('E_DTYPE', 'stft', problem, 'onesided: false');
  }
  return transpose(
    onesided ? rfft(weighted, framesNorm(options)) : fft(weighted, framesNorm(options)),
    -2,
    -1,
  );
}

const takesIstft = arg.takes<typeof istft>(
  ['the spectra', aTensor],
  ['the number of points', arg.count(1)],
  ['options', arg.options<IstftOptions>({ ...frames, length: arg.count(1), returnComplex: arg.flag })],
);

/**
 * The signal whose frames have these spectra [.., frequency, frame], in the sense of least squares
 * (Griffin and Lim, 1984): frames are weighted by the window and added, and divided by the sum of
 * its squares. Where no window reaches, the result is not a number.
 *
 * @names istft
 * @jax jax.scipy.signal.istft
 * @example
 * const v = sn.tensor([1, 2, 3, 4]);
 * const signal = sn.linspace(0, 1.75, 8);
 * sn.istft(sn.stft(signal, 4, { window: v }), 4, { window: v });
 */
export function istft(x: Tensor, n: number, options: IstftOptions = {}): Tensor {
  takesIstft('istft', x, n, options);
  const { center = true, returnComplex = false, length } = options;
  const { hop, window } = framesOf('istft', n, options);
  const { onesided = !returnComplex && x.shape.at(-2) !== n } = options;
  const points = onesided ? Math.floor(n / 2) + 1 : n;
  if ((x.rank !== 2 && x.rank !== 3) || x.shape.at(-2) !== points || !isComplex(x.dtype)) {
    const problem = `expects spectra [${points}, frames] of complex numbers: ${show(x)}`;
    throw new TensorError('E_SHAPE', 'istft', problem, `onesided: ${String(!onesided)}`);
  }
  if (onesided && returnComplex) {
    const problem = 'halves of spectra are those of real signals';
    throw new TensorError('E_VALUE', 'istft', problem, 'onesided: false');
  }
  const turned = transpose(x, -2, -1);
  const scaling = framesNorm(options);
  // A real signal follows from the first half of its spectrum.
  const cut = returnComplex
    ? ifft(turned, scaling)
    : irfft(narrow(turned, -1, 0, Math.floor(n / 2) + 1), { n, ...scaling });
  const weighted = window === undefined ? cut : mul(cut, window);
  const weights = window === undefined ? ones([n], { dtype: partType(cut.dtype) }) : mul(window, window);
  const count = cut.shape.at(-2)!;
  const added = overlapped(weighted, hop);
  const total = overlapped(broadcastTo(weights, [count, n]), hop);
  const start = center ? Math.floor(n / 2) : 0;
  const covered = added.shape.at(-1)!;
  const end = length !== undefined ? start + length : covered - (center ? Math.floor(n / 2) : 0);
  if (end <= start) {
    const problem = `${count} frames ${hop} apart leave nothing between the ends: ${show(x)}`;
    throw new TensorError('E_SHAPE', 'istft', problem, 'center: false');
  }
  const kept = Math.min(end, covered) - start;
  const result = div(narrow(added, -1, start, kept), narrow(total, -1, start, kept));
  return end > covered ? pad(result, [[0, end - covered]]) : result;
}

/** Frames [.., frame, element] added where they overlap, `hop` apart. */
function overlapped(x: Tensor, hop: number): Tensor {
  const [count, n] = x.shape.slice(-2) as [number, number];
  const lead = x.shape.slice(0, -2);
  const rows = Math.ceil(n / hop);
  const none = lead.map(() => [0, 0] as const);
  // Blocks of one hop: block r of frame t belongs at t + r. As [block, frame, element], with as many
  // zeros behind each block's frames as there are blocks, a flat line of which the end is cut off
  // has block r one place further on with every row.
  const whole = pad(x, [[0, rows * hop - n]]);
  const blocks = transpose(reshape(whole, [...lead, count, rows, hop]), -3, -2);
  const spread = pad(blocks, [...none, [0, 0], [0, rows], [0, 0]]);
  const line = reshape(spread, [...lead, rows * (count + rows), hop]);
  const width = count + rows - 1;
  const skewed = reshape(narrow(line, -2, 0, rows * width), [...lead, rows, width, hop]);
  const all = reshape(sum(skewed, -3), [...lead, width * hop]);
  return narrow(all, -1, 0, (count - 1) * hop + n);
}
