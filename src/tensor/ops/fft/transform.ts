// Transforms of tensors along one axis and along several, as `torch.fft` has them: complex to
// complex, real to complex (the first half of the spectrum), and back.

import { showValue, TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import { cast, complex, conj, fullLike, imag, mul, real } from '../../../ir/build.ts';
import { isComplex } from '../../../ir/dtype.ts';
import type { GraphBuilder, Node } from '../../../ir/graph.ts';
import { normalizeAxes, normalizeAxis } from '../../../ir/shape.ts';
import { aTensor } from '../../expect.ts';
import type { Tensor } from '../../tensor.ts';
import { apply, show } from '../operand.ts';
import { halfRoots, partsType, tableOf } from './constants.ts';
import {
  complexTransform,
  eachPart,
  realInverse,
  realTransform,
  resized,
  type RealTables,
} from './formula.ts';

/**
 * Which of a transform and its inverse is scaled: the inverse by 1/n (`backward`, the default), both
 * by 1/√n (`ortho`), the other one (`forward`).
 *
 * @names FftNorm, fft.FftNorm
 */
export type FftNorm = 'backward' | 'ortho' | 'forward';

/** @names FftOptions, fft.FftOptions */
export interface FftOptions {
  /** Points of the transform: the signal is cut, or zeros follow. Its own length by default. */
  readonly n?: number;
  /** The axis; the last by default. */
  readonly dim?: number;
  /**
   * Which direction divides by the number of points: `backward`, the default, `forward`, or both by
   * its root (`ortho`).
   */
  readonly norm?: FftNorm;
}

/** @names FftnOptions, fft.FftnOptions */
export interface FftnOptions {
  /** Points along each axis, −1 for its own length; by default the sizes of x. */
  readonly s?: readonly number[];
  /** The axes; by default the last ones, as many as `s` has, or all. */
  readonly dim?: number | readonly number[];
  /** As in `FftOptions`; `backward` by default. */
  readonly norm?: FftNorm;
}

const norm = arg.oneOf('backward', 'ortho', 'forward');
const dim = arg.inside<number | readonly number[]>();
const one = arg.options<FftOptions>({ n: arg.count(1), dim: arg.inside(), norm });
const several = arg.options<FftnOptions>({ s: arg.inside(), dim, norm });

/** What a kind of transform gives: a complex spectrum, the half of a real signal's, or a real signal. */
type Kind = 'complex' | 'real' | 'toReal';

/** One transform along one axis: its kind, its length, and the sign and scale that it has. */
interface Step {
  readonly kind: Kind;
  readonly axis: number;
  readonly n: number;
  readonly inverse: boolean;
}

/** The factor of a transform of so many points in all. */
function scaleOf(n: number, inverse: boolean, by: FftNorm = 'backward'): number {
  if (by === 'ortho') return 1 / Math.sqrt(n);
  return (by === 'backward') === inverse ? 1 / n : 1;
}

/** Records steps one after another, and scales their result. */
function transformed(op: string, x: Tensor, steps: readonly Step[], scale: number): Tensor {
  const dtype = partsType(op, x);
  for (const { n, axis } of steps)
    if (n < 1) {
      const hint = 'n: the number of points';
      throw new TensorError(
        'E_SHAPE',
        op,
        `axis ${axis} of ${show(x)} makes a transform of ${n} points`,
        hint,
      );
    }
  const tables = steps.flatMap((step): readonly (Tensor | undefined)[] => [
    tableOf(usesHalf(step) ? step.n / 2 : step.n, dtype),
    usesHalf(step) ? halfRoots(step.n, dtype) : undefined,
  ]);
  return apply([x, ...tables] as readonly [Tensor, ...(Tensor | undefined)[]], (b, node, ...constants) => {
    let value = isComplex(x.dtype) ? node : cast(b, node, dtype);
    steps.forEach((step, i) => {
      const [table, roots] = [constants[2 * i] as Node, constants[2 * i + 1]];
      value = stepOf(b, value, step, { table, roots });
    });
    return scaled(b, value, scale);
  });
}

/** Whether a real signal is transformed as a complex one of half its length. */
function usesHalf({ kind, n }: Step): boolean {
  return kind !== 'complex' && n % 2 === 0;
}

function stepOf(b: GraphBuilder, x: Node, { kind, axis, n, inverse }: Step, tables: RealTables): Node {
  switch (kind) {
    case 'complex': {
      const given = eachPart({ re: real(b, x), im: imag(b, x) }, (part) => resized(b, part, axis, n));
      const { re, im } = complexTransform(b, given, tables.table, axis, inverse);
      return complex(b, re, im);
    }
    case 'real': {
      const { re, im } = realTransform(b, resized(b, x, axis, n), tables, axis);
      const spectrum = complex(b, re, im);
      return inverse ? conj(b, spectrum) : spectrum;
    }
    case 'toReal': {
      const size = Math.floor(n / 2) + 1;
      const half = inverse ? x : conj(b, x);
      const given = eachPart({ re: real(b, half), im: imag(b, half) }, (part) =>
        resized(b, part, axis, size),
      );
      return realInverse(b, given, n, tables, axis);
    }
    default:
      return kind satisfies never;
  }
}

function scaled(b: GraphBuilder, x: Node, scale: number): Node {
  if (scale === 1) return x;
  if (!isComplex(x.dtype)) return mul(b, x, scale);
  return complex(b, mul(b, real(b, x), scale), mul(b, imag(b, x), scale));
}

function checkReal(op: string, x: Tensor): void {
  if (!isComplex(x.dtype)) return;
  throw new TensorError('E_DTYPE', op, `expects real numbers: ${show(x)}`, 'real(x)');
}

function checkAxes(op: string, x: Tensor): void {
  if (x.rank > 0) return;
  throw new TensorError('E_SHAPE', op, `expects an axis to transform: ${show(x)}`, 'unsqueeze(x, 0)');
}

/** How a kind of transform goes along one axis: the points by default, and whether it is inverse. */
function along(op: string, kind: Kind, inverse: boolean, x: Tensor, options: FftOptions): Tensor {
  checkAxes(op, x);
  if (kind === 'real') checkReal(op, x);
  const { dim: asked = -1 } = options;
  const axis = normalizeAxis(op, asked, x.rank);
  const present = x.shape[axis]!;
  const n = options.n ?? (kind === 'toReal' ? 2 * (present - 1) : present);
  return transformed(op, x, [{ kind, axis, n, inverse }], scaleOf(n, inverse, options.norm));
}

type Along = (x: Tensor, options?: FftOptions) => Tensor;

/* @__NO_SIDE_EFFECTS__ */
function alongOne(op: string, kind: Kind, inverse: boolean): Along {
  const takes = arg.takes<Along>(['the operand', aTensor], ['options', one]);
  return (x, options = {}) => {
    takes(op, x, options);
    return along(op, kind, inverse, x, options);
  };
}

/**
 * The discrete Fourier transform Σⱼ xⱼ·e^(−2πi·jk/n) along an axis.
 *
 * @example
 * const x = sn.tensor([[1, 2, 0, -1], [0, 3, 1, 2]]);
 * sn.fft.fft(x);
 * @example <caption>size</caption>
 * const z = sn.complex(sn.tensor([[1, 2, 0], [0, 3, 1]]), sn.tensor([[0, 1, 0], [0, -1, 0]]));
 * sn.fft.fft(z, { n: 4 });
 */
export const fft: Along = alongOne('fft', 'complex', false);
/**
 * The inverse of `fft`.
 *
 * @example
 * const z = sn.complex(sn.tensor([[1, 2, 0], [0, 3, 1]]), sn.tensor([[0, 1, 0], [0, -1, 0]]));
 * sn.fft.ifft(z);
 */
export const ifft: Along = alongOne('ifft', 'complex', true);
/**
 * The first n/2 + 1 points of the transform of a real signal; the others are their conjugates.
 *
 * @example
 * const x = sn.tensor([[1, 2, 0, -1], [0, 3, 1, 2]]);
 * sn.fft.rfft(x);
 */
export const rfft: Along = alongOne('rfft', 'real', false);
/**
 * The inverse of `rfft`: a real signal, of 2·(points − 1) by default.
 *
 * @example
 * const z = sn.complex(sn.tensor([[1, 2, 0], [0, 3, 1]]), sn.tensor([[0, 1, 0], [0, -1, 0]]));
 * sn.fft.irfft(z);
 */
export const irfft: Along = alongOne('irfft', 'toReal', true);
/**
 * The real spectrum of a signal that is its own mirror image's conjugate, of which half is given.
 *
 * @example
 * const z = sn.complex(sn.tensor([[1, 2, 0], [0, 3, 1]]), sn.tensor([[0, 1, 0], [0, -1, 0]]));
 * sn.fft.hfft(z);
 */
export const hfft: Along = alongOne('hfft', 'toReal', false);
/**
 * The inverse of `hfft`.
 *
 * @example
 * const x = sn.tensor([[1, 2, 0, -1], [0, 3, 1, 2]]);
 * sn.fft.ihfft(x);
 */
export const ihfft: Along = alongOne('ihfft', 'real', true);

/** The axes of a transform of several, in order, and their sizes. */
function axesOf(
  op: string,
  x: Tensor,
  { s, dim: axes }: FftnOptions,
  fallback: readonly number[] | undefined,
  kind: Kind,
): { readonly axes: readonly number[]; readonly sizes: readonly number[] } {
  const isSize = (size: unknown): boolean =>
    Number.isSafeInteger(size) && ((size as number) > 0 || size === -1);
  // Array.from: holes are no sizes.
  if (s !== undefined && !(Array.isArray(s) && Array.from<unknown>(s).every(isSize)))
    throw new TensorError(
      'E_VALUE',
      op,
      `expects sizes of at least 1 as an array, got ${showValue(s)}`,
      's: [8, 8]',
    );
  const asked = typeof axes === 'number' ? [axes] : axes;
  const last = (count: number): readonly number[] => Array.from({ length: count }, (_, i) => i - count);
  const given = asked === undefined ? (fallback ?? last(s?.length ?? x.rank)) : asked;
  normalizeAxes(op, given, x.rank);
  const named = given.map((axis) => normalizeAxis(op, axis, x.rank));
  if (s !== undefined && s.length !== named.length) {
    const problem = `${s.length} sizes for ${named.length} axes of ${show(x)}`;
    throw new TensorError('E_SHAPE', op, problem, 'a size for each axis');
  }
  const sizes = named.map((axis, i) => {
    const size = s?.[i];
    if (size !== undefined && size !== -1) return size;
    const present = x.shape[axis]!;
    return kind === 'toReal' && i === named.length - 1 ? 2 * (present - 1) : present;
  });
  return { axes: named, sizes };
}

type Several = (x: Tensor, options?: FftnOptions) => Tensor;

/** Along several axes; the half of a spectrum is that of the last one. */
/* @__NO_SIDE_EFFECTS__ */
function alongSeveral(op: string, kind: Kind, inverse: boolean, fallback?: readonly number[]): Several {
  const takes = arg.takes<Several>(['the operand', aTensor], ['options', several]);
  return (x, options = {}) => {
    takes(op, x, options);
    if (kind === 'real') checkReal(op, x);
    const { axes, sizes } = axesOf(op, x, options, fallback, kind);
    if (kind !== 'complex' && axes.length === 0)
      throw new TensorError('E_AXIS', op, `expects at least one axis of ${show(x)}`, 'dim: [-1]');
    const steps = axes.map((axis, i): Step => ({
      kind: i === axes.length - 1 ? kind : 'complex',
      axis,
      n: sizes[i]!,
      inverse,
    }));
    // A real signal becomes complex first, and a spectrum real last.
    const ordered = kind === 'real' ? steps.toReversed() : steps;
    if (steps.length === 0 && !isComplex(x.dtype))
      return apply([x], (b, node) => {
        const re = cast(b, node, partsType(op, x));
        return complex(b, re, fullLike(b, re, 0));
      });
    const points = sizes.reduce((product, size) => product * size, 1);
    return transformed(op, x, ordered, scaleOf(points, inverse, options.norm));
  };
}

/**
 * `fft` along several axes: all by default.
 *
 * @example
 * const x = sn.tensor([[1, 2, 0, -1], [0, 3, 1, 2]]);
 * sn.fft.fftn(x);
 * @example <caption>cube</caption>
 * const x = sn.tensor([[1, 2, 0, -1], [0, 3, 1, 2]]);
 * sn.fft.fftn(x.reshape([2, 2, 2]));
 * @example <caption>axes</caption>
 * const x = sn.tensor([[1, 2, 0, -1], [0, 3, 1, 2]]);
 * sn.fft.fftn(x, { dim: [0] });
 */
export const fftn: Several = alongSeveral('fftn', 'complex', false);
/**
 * The inverse of `fftn`.
 *
 * @example
 * const z = sn.complex(sn.tensor([[1, 2, 0], [0, 3, 1]]), sn.tensor([[0, 1, 0], [0, -1, 0]]));
 * sn.fft.ifftn(z);
 */
export const ifftn: Several = alongSeveral('ifftn', 'complex', true);
/**
 * `rfft` along the last of several axes, `fft` along the others.
 *
 * @example
 * const x = sn.tensor([[1, 2, 0, -1], [0, 3, 1, 2]]);
 * sn.fft.rfftn(x);
 */
export const rfftn: Several = alongSeveral('rfftn', 'real', false);
/**
 * The inverse of `rfftn`.
 *
 * @example
 * const z = sn.complex(sn.tensor([[1, 2, 0], [0, 3, 1]]), sn.tensor([[0, 1, 0], [0, -1, 0]]));
 * sn.fft.irfftn(z);
 */
export const irfftn: Several = alongSeveral('irfftn', 'toReal', true);
/**
 * `fft` along all but the last of several axes, then `hfft` along that.
 *
 * @example
 * const z = sn.complex(sn.tensor([[1, 2, 0], [0, 3, 1]]), sn.tensor([[0, 1, 0], [0, -1, 0]]));
 * sn.fft.hfftn(z);
 */
export const hfftn: Several = alongSeveral('hfftn', 'toReal', false);
/**
 * The inverse of `hfftn`.
 *
 * @example
 * const x = sn.tensor([[1, 2, 0, -1], [0, 3, 1, 2]]);
 * sn.fft.ihfftn(x);
 */
export const ihfftn: Several = alongSeveral('ihfftn', 'real', true);

const plane = [-2, -1];
/**
 * `fftn` of the last two axes, or of those named.
 *
 * @example
 * const x = sn.tensor([[1, 2, 0, -1], [0, 3, 1, 2]]);
 * sn.fft.fft2(x);
 */
export const fft2: Several = alongSeveral('fft2', 'complex', false, plane);
/**
 * The inverse of `fft2`.
 *
 * @example
 * const z = sn.complex(sn.tensor([[1, 2, 0], [0, 3, 1]]), sn.tensor([[0, 1, 0], [0, -1, 0]]));
 * sn.fft.ifft2(z);
 */
export const ifft2: Several = alongSeveral('ifft2', 'complex', true, plane);
/**
 * `rfftn` of the last two axes, or of those named.
 *
 * @example
 * const x = sn.tensor([[1, 2, 0, -1], [0, 3, 1, 2]]);
 * sn.fft.rfft2(x);
 */
export const rfft2: Several = alongSeveral('rfft2', 'real', false, plane);
/**
 * The inverse of `rfft2`.
 *
 * @example
 * const z = sn.complex(sn.tensor([[1, 2, 0], [0, 3, 1]]), sn.tensor([[0, 1, 0], [0, -1, 0]]));
 * sn.fft.irfft2(z);
 */
export const irfft2: Several = alongSeveral('irfft2', 'toReal', true, plane);
/**
 * `hfftn` of the last two axes, or of those named.
 *
 * @example
 * const z = sn.complex(sn.tensor([[1, 2, 0], [0, 3, 1]]), sn.tensor([[0, 1, 0], [0, -1, 0]]));
 * sn.fft.hfft2(z);
 */
export const hfft2: Several = alongSeveral('hfft2', 'toReal', false, plane);
/**
 * The inverse of `hfft2`.
 *
 * @example
 * const x = sn.tensor([[1, 2, 0, -1], [0, 3, 1, 2]]);
 * sn.fft.ihfft2(x);
 */
export const ihfft2: Several = alongSeveral('ihfft2', 'real', true, plane);
