// Signals: Fourier transforms, windows, and the filters of a mel scale.

import { isFloat } from '../../ir/dtype.ts';
import { emptyData } from '../../ir/value.ts';
import * as sn from '../../operations/index.ts';
import { cosineSum } from '../../tensor/ops/fft/windows.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import type { Call, Row, Rows } from '../call.ts';
import { hostType } from '../element.ts';
import { knownData, type Value } from '../value.ts';
import { wantedType } from './convert.ts';
import { hosted } from './row.ts';

interface Transform {
  readonly call: Call;
  readonly length: number;
  readonly isInverse: boolean;
  readonly isOneSided: boolean;
}

/** The transform of the last axis of a complex signal (the imaginary part may be absent). */
function transform(re: Tensor, im: Tensor | undefined, how: Transform): [re: Tensor, im: Tensor] {
  const { call, length, isInverse, isOneSided } = how;
  call.count(length);
  // Transforms are of 32 bits or 64.
  const isHalf = re.dtype === 'f16' || re.dtype === 'bf16';
  const part = (x: Tensor): Tensor => (isHalf ? sn.cast(x, 'f32') : x);
  const z = im === undefined ? part(re) : sn.complex(part(re), part(im));
  const n = { n: length };
  if (isInverse && isOneSided) {
    const real = sn.cast(sn.fft.irfft(z, n), re.dtype);
    return [real, sn.zerosLike(real)];
  }
  const whole = isInverse
    ? sn.fft.ifft(z, n)
    : isOneSided && im === undefined
      ? sn.fft.rfft(z, n)
      : sn.fft.fft(z, n);
  const found = isOneSided ? sn.narrow(whole, -1, 0, Math.floor(length / 2) + 1) : whole;
  return [sn.cast(sn.real(found), re.dtype), sn.cast(sn.imag(found), re.dtype)];
}

function dft(call: Call): Tensor {
  const { attributes } = call;
  const x = call.tensor(0);
  const given = call.opset >= 20 ? (call.number(2) ?? -2) : attributes.int('axis', 1);
  const axis = call.axis(given, x.rank);
  const isInverse = attributes.int('inverse', 0) === 1;
  const isOneSided = attributes.int('onesided', 0) === 1;
  const present = x.shape[axis]!;
  const length = call.number(1) ?? (isInverse && isOneSided ? (present - 1) * 2 : present);
  const last = sn.moveaxis(x, axis, -2);
  const isComplex = x.shape.at(-1) === 2;
  const im = isComplex ? sn.select(last, -1, 1) : undefined;
  const [re, imaginary] = transform(sn.select(last, -1, 0), im, { call, length, isInverse, isOneSided });
  const isReal = isInverse && isOneSided;
  const out = isReal ? sn.unsqueeze(re, re.rank) : sn.stack([re, imaginary], -1);
  return sn.moveaxis(out, -2, axis);
}

/** Transforms of overlapping frames, [batch, frames, frequencies, 2]. */
function stft(call: Call): Tensor {
  const signal = call.tensor(0);
  const step = call.needed(1);
  const window = call.optional(2);
  const length = call.number(3) ?? window?.size ?? call.fail('neither a window nor a frame length is given');
  const isOneSided = call.attributes.int('onesided', 1) === 1;
  const isComplex = signal.rank === 3 && signal.shape[2] === 2;
  const part = (i: number): Tensor => {
    const line = signal.rank === 3 ? sn.select(signal, 2, i) : signal;
    const frames = sn.unfold(line, 1, length, step);
    return window === undefined ? frames : sn.mul(frames, window);
  };
  const [re, im] = transform(part(0), isComplex ? part(1) : undefined, {
    call,
    length,
    isInverse: false,
    isOneSided,
  });
  return sn.stack([re, im], -1);
}

/** Σ aⱼ·cos(2πjn/N) with alternating signs. */
function window(...terms: readonly number[]): Row {
  return hosted([17], [0], (call): Value => {
    const size = call.count(call.needed(0));
    const period = call.attributes.int('periodic', 1) === 1 ? size : size - 1;
    const type = wantedType(call.attributes.int('output_datatype', 1));
    const data = emptyData(hostType(type), size);
    const weight = cosineSum(...terms);
    for (let n = 0; n < size; n++) {
      const value = weight(n / period);
      data[n] = isFloat(hostType(type)) ? value : Math.trunc(value);
    }
    return knownData(type, [size], data);
  });
}

/** Triangular filters, evenly wide in mels, as a matrix [frequencies, filters]. */
function melWeights(call: Call): Value {
  const [count, length, rate, low, high] = [0, 1, 2, 3, 4].map((place) => call.needed(place)) as [
    number,
    number,
    number,
    number,
    number,
  ];
  const type = wantedType(call.attributes.int('output_datatype', 1));
  const bins = Math.floor(length / 2) + 1;
  call.count(bins * call.count(count));
  const mel = (hertz: number): number => 2595 * Math.log10(1 + hertz / 700);
  const step = (mel(high) - mel(low)) / (count + 2);
  const edges = Array.from({ length: count + 2 }, (_, i) =>
    Math.floor(((length + 1) * (700 * (10 ** ((mel(low) + i * step) / 2595) - 1))) / rate),
  );
  const data = emptyData(hostType(type), bins * count);
  for (let i = 0; i < count; i++) {
    const [left, middle, right] = [edges[i]!, edges[i + 1]!, edges[i + 2]!];
    if (left === middle) data[middle * count + i] = 1;
    else for (let j = left; j <= middle; j++) data[j * count + i] = (j - left) / (middle - left);
    for (let j = middle; j < right; j++) data[j * count + i] = (right - j) / (right - middle);
  }
  return knownData(type, [bins, count], data);
}

export const signal: Rows = {
  BlackmanWindow: window(0.42, 0.5, 0.08),
  DFT: hosted([17, 20], [1, 2], dft),
  HammingWindow: window(25 / 46, 21 / 46),
  HannWindow: window(0.5, 0.5),
  MelWeightMatrix: hosted([17], 'all', melWeights),
  STFT: hosted([17], [1, 3], stft),
};
