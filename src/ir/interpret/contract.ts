// Contractions in the reference interpreter: dot (einsum's two-operand core) and conv of any rank.
// Both become sums of products along two lists of offsets. Floats are summed in double and rounded
// once; integers wrap exactly.

import { isFloat, isWide, type DType } from '../dtype.ts';
import { offsetsOf, pick } from './view.ts';
import type { Attrs } from '../ops.ts';
import { sizeOf, stridesOf, type FixedShape } from '../shape.ts';
import { castArray, emptyData, type HostArray, type HostData, type Scalar } from '../value.ts';

/** Σ left[leftAt + leftSteps[i]] · right[rightAt + rightSteps[i]] over the first `count` steps. */
type SumProducts = (
  left: HostData,
  leftAt: number,
  leftSteps: Int32Array,
  right: HostData,
  rightAt: number,
  rightSteps: Int32Array,
  count: number,
) => Scalar;

const sumDoubles: SumProducts = (left, leftAt, leftSteps, right, rightAt, rightSteps, count) => {
  const [x, y] = [left as Float64Array, right as Float64Array];
  let sum = 0;
  for (let i = 0; i < count; i++) sum += x[leftAt + leftSteps[i]!]! * y[rightAt + rightSteps[i]!]!;
  return sum;
};

const sumInts: SumProducts = (left, leftAt, leftSteps, right, rightAt, rightSteps, count) => {
  const [x, y] = [left as Int32Array, right as Int32Array];
  let sum = 0;
  for (let i = 0; i < count; i++)
    sum = (sum + Math.imul(x[leftAt + leftSteps[i]!]!, y[rightAt + rightSteps[i]!]!)) | 0;
  return sum;
};

const sumWide: SumProducts = (left, leftAt, leftSteps, right, rightAt, rightSteps, count) => {
  const [x, y] = [left as BigInt64Array, right as BigInt64Array];
  let sum = 0n;
  for (let i = 0; i < count; i++) sum += x[leftAt + leftSteps[i]!]! * y[rightAt + rightSteps[i]!]!;
  return BigInt.asIntN(64, sum);
};

/**
 * Modular arithmetic does not care for the sign, so i32 and i64 sums serve the unsigned dtypes too.
 */
function accumulator(operand: DType, result: DType): { dtype: DType; sumProducts: SumProducts } {
  if (isFloat(operand) || isFloat(result)) return { dtype: 'f64', sumProducts: sumDoubles };
  if (isWide(operand) || isWide(result)) return { dtype: 'i64', sumProducts: sumWide };
  return { dtype: 'i32', sumProducts: sumInts };
}

/**
 * Generalised matrix product; `shape` is the result's: batch axes, left free axes, right free axes.
 */
export function dotGeneral(
  lhs: HostArray,
  rhs: HostArray,
  shape: FixedShape,
  attrs: Attrs<'dot'>,
): HostArray {
  const { dtype, sumProducts } = accumulator(lhs.dtype, attrs.dtype);
  const [x, y] = [castArray(lhs, dtype).data, castArray(rhs, dtype).data];
  const left = sides(lhs.shape, attrs.lhsBatch, attrs.lhsContract);
  const right = sides(rhs.shape, attrs.rhsBatch, attrs.rhsContract);
  const data = emptyData(dtype, sizeOf(shape));
  const count = left.contract.length;
  let at = 0;
  for (let b = 0; b < left.batch.length; b++) {
    for (let i = 0; i < left.free.length; i++) {
      const leftAt = left.batch[b]! + left.free[i]!;
      for (let j = 0; j < right.free.length; j++) {
        const rightAt = right.batch[b]! + right.free[j]!;
        data[at++] = sumProducts(x, leftAt, left.contract, y, rightAt, right.contract, count);
      }
    }
  }
  return castArray({ dtype, shape, data }, attrs.dtype);
}

interface Side {
  readonly batch: Int32Array;
  readonly contract: Int32Array;
  readonly free: Int32Array;
}

function sides(shape: FixedShape, batch: readonly number[], contract: readonly number[]): Side {
  const strides = stridesOf(shape);
  const free = shape
    .map((_, axis) => axis)
    .filter((axis) => !batch.includes(axis) && !contract.includes(axis));
  const offsets = (axes: readonly number[]): Int32Array => offsetsOf(pick(shape, axes), pick(strides, axes));
  return { batch: offsets(batch), contract: offsets(contract), free: offsets(free) };
}

/** Cross-correlation of [N,C,S…] with [O,C/groups,K…]; `shape` is the result's, [N,O,S'…]. */
export function convolve(
  input: HostArray,
  kernel: HostArray,
  shape: FixedShape,
  attrs: Attrs<'conv'>,
): HostArray {
  const { dtype, sumProducts } = accumulator(input.dtype, input.dtype);
  const [x, w] = [castArray(input, dtype).data, castArray(kernel, dtype).data];
  const [batches, outputs, ...places] = shape as [number, number, ...number[]];
  const channels = kernel.shape[1]!;
  const outputsPerGroup = outputs / attrs.groups;
  const [inputArea, kernelArea] = [sizeOf(input.shape.slice(2)), sizeOf(kernel.shape.slice(2))];
  const area = sizeOf(places);
  const data = emptyData(dtype, sizeOf(shape));
  const inputSteps = new Int32Array(channels * kernelArea);
  const kernelSteps = new Int32Array(channels * kernelArea);
  for (let place = 0; place < area; place++) {
    const taps = tapsAt(indexOf(place, places), input.shape.slice(2), kernel.shape.slice(2), attrs);
    let count = 0;
    for (let channel = 0; channel < channels; channel++) {
      for (const [inputOffset, kernelOffset] of taps) {
        inputSteps[count] = channel * inputArea + inputOffset;
        kernelSteps[count++] = channel * kernelArea + kernelOffset;
      }
    }
    for (let n = 0; n < batches; n++) {
      for (let o = 0; o < outputs; o++) {
        const group = Math.floor(o / outputsPerGroup);
        const inputAt = (n * attrs.groups + group) * channels * inputArea;
        const kernelAt = o * channels * kernelArea;
        data[(n * outputs + o) * area + place] = sumProducts(
          x,
          inputAt,
          inputSteps,
          w,
          kernelAt,
          kernelSteps,
          count,
        );
      }
    }
  }
  return castArray({ dtype, shape, data }, input.dtype);
}

/**
 * The pairs (offset in the input's area, offset in the kernel's area) that meet at one output
 * place.
 */
function tapsAt(
  place: readonly number[],
  inputShape: FixedShape,
  kernelShape: FixedShape,
  attrs: Attrs<'conv'>,
): (readonly [number, number])[] {
  let taps: (readonly [number, number])[] = [[0, 0]];
  place.forEach((index, axis) => {
    const [inputSize, kernelSize] = [inputShape[axis]!, kernelShape[axis]!];
    const [spread, dilation] = [attrs.lhsDilation[axis]!, attrs.rhsDilation[axis]!];
    const along: (readonly [number, number])[] = [];
    for (let k = 0; k < kernelSize; k++) {
      // Position in the dilated input; between its elements and outside of it lie zeros.
      const position = index * attrs.strides[axis]! + k * dilation - attrs.padLow[axis]!;
      const element = position / spread;
      if (Number.isInteger(element) && element >= 0 && element < inputSize) along.push([element, k]);
    }
    taps = taps.flatMap(([x, w]) => along.map(([i, k]) => [x * inputSize + i, w * kernelSize + k] as const));
  });
  return taps;
}

function indexOf(flat: number, shape: FixedShape): number[] {
  return stridesOf(shape).map((stride, axis) => Math.floor(flat / stride) % shape[axis]!);
}
