// A discrete Fourier transform of any length in double precision: what an `fft` means, and what the
// tables of Bluestein's algorithm are computed by. Mixed radix over prime factors (Stockham's
// autosort), Bluestein's convolution where one of them is large. Every root is taken by itself
// (roots.ts), so that errors grow with the number of stages alone.

import { nextSmooth, primeFactors, largestPrime } from './plan.ts';
import { root } from './roots.ts';

/** Real and imaginary parts of one line. */
export interface ComplexLine {
  readonly re: Float64Array;
  readonly im: Float64Array;
}

/** All roots of a length: e^(−2πi·k/n). */
function rootsOf(n: number): ComplexLine {
  const [re, im] = [new Float64Array(n), new Float64Array(n)];
  for (let k = 0; k < n; k++) [re[k], im[k]] = root(k, n) as [number, number];
  return { re, im };
}

/** Σⱼ xⱼ·e^(−2πi·jk/n), or with the other sign; not scaled. */
export function transformOf(n: number): (line: ComplexLine, inverse: boolean) => ComplexLine {
  const forward = (primeFactors(n).at(-1) ?? 1) > largestPrime ? chirpTransform(n) : stagesTransform(n);
  // The other sign: real and imaginary parts change places, before and after.
  return ({ re, im }, inverse) => {
    if (!inverse) return forward({ re, im });
    const swapped = forward({ re: im, im: re });
    return { re: swapped.im, im: swapped.re };
  };
}

/** Stages of prime radices: after one, `below` points of each line of its own are transformed. */
function stagesTransform(n: number): (line: ComplexLine) => ComplexLine {
  const roots = rootsOf(n);
  const radices = primeFactors(n);
  return (line) => {
    let from = { re: Float64Array.from(line.re), im: Float64Array.from(line.im) };
    let to = { re: new Float64Array(n), im: new Float64Array(n) };
    let below = 1;
    for (const radix of radices) {
      stage(from, to, { n, radix, below, roots });
      [from, to] = [to, from];
      below *= radix;
    }
    return from;
  };
}

interface Stage {
  readonly n: number;
  readonly radix: number;
  readonly below: number;
  readonly roots: ComplexLine;
}

function stage(from: ComplexLine, to: ComplexLine, { n, radix, below, roots }: Stage): void {
  const apart = n / (below * radix);
  for (let j = 0; j < below; j++) {
    for (let k = 0; k < radix; k++) {
      for (let p = 0; p < apart; p++) {
        let [re, im] = [0, 0];
        for (let i = 0; i < radix; i++) {
          const at = (j * radix + i) * apart + p;
          const turn = (i * (j + below * k) * apart) % n;
          const [c, s] = [roots.re[turn]!, roots.im[turn]!];
          re += from.re[at]! * c - from.im[at]! * s;
          im += from.re[at]! * s + from.im[at]! * c;
        }
        const out = (j + below * k) * apart + p;
        to.re[out] = re;
        to.im[out] = im;
      }
    }
  }
}

/** e^(−iπ·j²/n) for each j: what Bluestein's algorithm multiplies by, before and after. */
export function chirpOf(n: number): ComplexLine {
  const [re, im] = [new Float64Array(n), new Float64Array(n)];
  // j² modulo 2n, by its differences: the square itself may leave the integers of a double.
  let square = 0;
  for (let j = 0; j < n; j++) {
    [re[j], im[j]] = root(square, 2 * n) as [number, number];
    square = (square + 2 * j + 1) % (2 * n);
  }
  return { re, im };
}

/** The transform, of m points and divided by m, of the conjugate chirp that it is convolved with. */
export function chirpFilter(n: number, m: number): ComplexLine {
  const chirp = chirpOf(n);
  const [re, im] = [new Float64Array(m), new Float64Array(m)];
  for (let j = 0; j < n; j++) {
    re[j] = chirp.re[j]! / m;
    im[j] = -chirp.im[j]! / m;
    if (j > 0) [re[m - j], im[m - j]] = [re[j]!, im[j]!];
  }
  return transformOf(m)({ re, im }, false);
}

/**
 * jk = (j² + k² − (k − j)²)/2 makes a transform a convolution with a chirp (Bluestein, 1970), which
 * longer transforms of a smooth length do.
 */
function chirpTransform(n: number): (line: ComplexLine) => ComplexLine {
  const m = nextSmooth(2 * n - 1);
  const [chirp, filter, inner] = [chirpOf(n), chirpFilter(n, m), transformOf(m)];
  return (line) => {
    const padded = { re: new Float64Array(m), im: new Float64Array(m) };
    times(line, chirp, padded, n);
    const spectrum = inner(padded, false);
    times(spectrum, filter, spectrum, m);
    const found = inner(spectrum, true);
    const out = { re: new Float64Array(n), im: new Float64Array(n) };
    times(found, chirp, out, n);
    return out;
  };
}

function times(x: ComplexLine, y: ComplexLine, to: ComplexLine, count: number): void {
  for (let i = 0; i < count; i++) {
    const [a, b, c, d] = [x.re[i]!, x.im[i]!, y.re[i]!, y.im[i]!];
    to.re[i] = a * c - b * d;
    to.im[i] = a * d + b * c;
  }
}
