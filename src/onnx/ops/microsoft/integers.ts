// Products of bytes of com.microsoft: summed in i32, and scaled to floats or to bytes again.

import * as sn from '../../../operations/index.ts';
import type { Tensor } from '../../../tensor/tensor.ts';
import type { Call, Rows } from '../../call.ts';
import { Value } from '../../value.ts';
import { centred, factor, quantised, toBytes } from '../quantise.ts';
import { lstmLayer } from '../recurrent.ts';
import { row } from '../row.ts';

/** An operand of bytes, with its scale, and its zero where it has one. */
export interface Quantised {
  readonly value: Tensor;
  readonly scale: Tensor;
  readonly zero: Tensor | undefined;
}

/** A right operand, centred: it may be multiplied with often. */
interface Centred {
  readonly whole: Tensor;
  readonly scale: Tensor;
}

function prepared({ value, scale, zero }: Quantised): Centred {
  return { whole: centred(value, zero, 'right'), scale: factor(scale, 'right') };
}

function productWith(a: Quantised, b: Centred): Tensor {
  const sum = sn.matmul(centred(a.value, a.zero, 'left'), b.whole);
  return sn.mul(sn.cast(sum, 'f32'), sn.mul(factor(a.scale, 'left'), b.scale));
}

/** a·b in f32: one scale and zero of a for all, those of b for all or for each column. */
export function scaledProduct(a: Quantised, b: Quantised, bias?: Tensor): Tensor {
  const product = productWith(a, prepared(b));
  return bias === undefined ? product : sn.add(product, bias);
}

/** Floats as bytes by a scale and zero that fit them. */
export function asBytes(x: Tensor): Quantised {
  const { value, scale, zero } = toBytes(x);
  return { value: value.tensor, scale, zero: zero.tensor };
}

function dynamicMatMul(call: Call): Tensor {
  const b = { value: call.tensor(1), scale: call.tensor(2), zero: call.optional(3) };
  return scaledProduct(asBytes(call.tensor(0)), b, call.optional(4));
}

function integerToFloat(call: Call): Tensor {
  const a = { value: call.tensor(0), scale: call.tensor(2), zero: call.optional(4) };
  const b = { value: call.tensor(1), scale: call.tensor(3), zero: call.optional(5) };
  return scaledProduct(a, b, call.optional(6));
}

/** alpha·(A·B + C), whose C counts in steps of the product's scale. */
function qGemm(call: Call): Tensor | Value {
  const { attributes } = call;
  const turned = (place: number, name: string): Tensor => {
    const x = call.tensor(place);
    return attributes.int(name, 0) === 0 ? x : sn.transpose(x);
  };
  const a = centred(turned(0, 'transA'), call.tensor(2), 'left');
  const b = centred(turned(3, 'transB'), call.tensor(5), 'right');
  const [sum, c] = [sn.matmul(a, b), call.optional(6)];
  const scale = sn.mul(sn.reshape(call.tensor(1), []), factor(call.tensor(4), 'right'));
  const whole = c === undefined ? sum : sn.add(sum, c);
  const alpha = attributes.float('alpha', 1);
  const out = sn.mul(sn.cast(whole, 'f32'), alpha === 1 ? scale : sn.mul(scale, alpha));
  const [outScale, outZero] = [7, 8].map((place) => call.optional(place));
  if (outScale === undefined) return out;
  const type = call.inputs[8]?.type ?? call.type(0);
  return quantised(out, sn.reshape(outScale, []), outZero && sn.reshape(outZero, []), type);
}

/** Without zeros: elements of 16 bits, whose products are i32, or u32 where both have no sign. */
function matMul16(call: Call): Tensor {
  const wide = call.tensor(0).dtype === 'u16' && call.tensor(1).dtype === 'u16' ? 'u32' : 'i32';
  return sn.matmul(sn.cast(call.tensor(0), wide), sn.cast(call.tensor(1), wide));
}

function mulInteger(call: Call): Tensor {
  const [a, b] = [0, 2].map((place) => centred(call.tensor(place), call.optional(place + 1), 'right'));
  return sn.mul(a!, b!);
}

/**
 * A layer whose weights are bytes, [directions, inputs, gates·hidden]: what comes in is made bytes as a
 * whole, the state at each step.
 */
function dynamicLstm(call: Call): (Tensor | undefined)[] {
  const whole = asBytes(call.tensor(0));
  return lstmLayer(call, (_, d) => {
    const weightsAt = (value: number, scale: number): Centred => {
      const own = (place: number): Tensor => sn.select(call.tensor(place), 0, d);
      return prepared({ value: own(value), scale: own(scale), zero: own(scale + 1) });
    };
    const [w, r] = [weightsAt(1, 8), weightsAt(2, 10)];
    return {
      w: w.whole,
      r: r.whole,
      byInput: (x) => {
        const bytes = quantised(x, whole.scale, whole.zero, 'uint8');
        return productWith({ ...whole, value: bytes.tensor }, w);
      },
      byState: (h) => productWith(asBytes(h), r),
    };
  });
}

export const integers: Rows = {
  DynamicQuantizeLSTM: row([1], dynamicLstm),
  DynamicQuantizeMatMul: row([1], dynamicMatMul),
  MatMulInteger16: row([1], matMul16),
  MatMulIntegerToFloat: row([1], integerToFloat),
  MulInteger: row([1], mulInteger),
  QGemm: row([1], qGemm),
};
