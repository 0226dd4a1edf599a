// Weights of 2, 4 and 8 bits in blocks of com.microsoft: several numbers a byte, the first in its low
// bits, each block along a line with a scale and perhaps a zero. They are widened where they are read.

import * as sn from '../../../operations/index.ts';
import type { Tensor } from '../../../tensor/tensor.ts';
import type { Call, Rows } from '../../call.ts';
import { Value } from '../../value.ts';
import { row } from '../row.ts';

/** Bytes as the numbers in them, along the last axis: [.., n] to [.., n·8/bits], in i32. */
export function unpacked(bytes: Tensor, bits: number): Tensor {
  const wide = sn.cast(bytes, 'i32');
  if (bits === 8) return wide;
  const mask = 2 ** bits - 1;
  const parts = Array.from({ length: 8 / bits }, (_, i) =>
    sn.bitwiseAnd(i === 0 ? wide : sn.bitwiseRightShift(wide, i * bits), mask),
  );
  return sn.reshape(sn.stack(parts, -1), [...bytes.shape.slice(0, -1), bytes.shape.at(-1)! * parts.length]);
}

/** How many bits an attribute says that a number has. */
export function bitsOf(call: Call, name: string, otherwise: number): number {
  const bits = call.attributes.int(name, otherwise);
  if (bits !== 2 && bits !== 4 && bits !== 8)
    call.fail(`attribute '${name}' is ${bits}: 2, 4 and 8 are supported`);
  return bits;
}

/** Lines of numbers as floats: [.., blocks, size] with a scale a block, and a zero or one for all. */
export function widenedBlocks(numbers: Tensor, scales: Tensor, zeros: Tensor | number): Tensor {
  const perBlock = (x: Tensor): Tensor => sn.unsqueeze(x, -1);
  const wide = sn.cast(numbers, 'f32');
  const zero = typeof zeros === 'number' ? zeros : perBlock(sn.cast(zeros, 'f32'));
  return sn.mul(sn.sub(wide, zero), perBlock(sn.cast(scales, 'f32')));
}

/** [N, K] in f32 of a MatMulNBits node. */
function weights(call: Call): Tensor {
  const { attributes } = call;
  const [k, n, block] = [attributes.int('K', 0), attributes.int('N', 0), attributes.int('block_size', 0)];
  const bits = bitsOf(call, 'bits', 4);
  if (attributes.int('weight_prepacked', 0) !== 0)
    call.fail("attribute 'weight_prepacked': layouts of other devices are not supported");
  if (call.inputs[4] !== undefined) call.fail("input 'g_idx' is not supported");
  const blocks = Math.ceil(k / block);
  const numbers = unpacked(sn.reshape(call.tensor(1), [n, blocks, (block * bits) / 8]), bits);
  const scales = sn.reshape(call.tensor(2), [n, blocks]);
  const given = call.optional(3);
  let zeros: Tensor | number = 2 ** (bits - 1);
  if (given !== undefined && given.dtype === 'u8') {
    const lines = sn.reshape(given, [n, Math.ceil((blocks * bits) / 8)]);
    zeros = sn.narrow(unpacked(lines, bits), 1, 0, blocks);
  } else if (given !== undefined) zeros = sn.reshape(given, [n, blocks]);
  const wide = sn.reshape(widenedBlocks(numbers, scales, zeros), [n, blocks * block]);
  return k === blocks * block ? wide : sn.narrow(wide, 1, 0, k);
}

function matMulBits(call: Call): Tensor {
  const a = call.tensor(0);
  const product = sn.matmul(a, sn.transpose(sn.cast(weights(call), a.dtype)));
  const bias = call.optional(5);
  return bias === undefined ? product : sn.add(product, bias);
}

/** Rows of a table of blocks; places outside of it give zeros. */
function gatherBlocks(call: Call): Value {
  const { attributes } = call;
  const scales = call.value(2);
  const type = call.type(0);
  const isPacked = type === 'uint8';
  const bits = isPacked ? bitsOf(call, 'bits', 4) : 8;
  const data = call.tensor(0);
  if (!isPacked && type !== 'int4' && type !== 'uint4') call.fail(`data of ${type} is not supported`);
  const rank = data.rank;
  const axis = call.axis(attributes.int('gather_axis', 0), rank);
  const along = call.axis(attributes.int('quantize_axis', 1), rank);
  const block = attributes.int('block_size', 128);
  const size = data.shape[axis]!;
  const given = sn.cast(call.tensor(1), 'i32');
  const place = sn.reshape(sn.where(sn.lt(given, 0), sn.add(given, size), given), [given.size]);
  const isThere = sn.logicalAnd(sn.ge(place, 0), sn.lt(place, size));
  const safe = sn.clamp(place, 0, Math.max(0, size - 1));
  // The axis of places may be the one with blocks: then their scales are taken element by element.
  const rows = (x: Tensor, from: Tensor): Tensor => sn.indexSelect(x, axis, from);
  const isBlocked = axis === along;
  const scaleRow = isBlocked ? sn.div(safe, block, { rounding: 'trunc' }) : safe;
  const spread = (x: Tensor, length: number): Tensor =>
    isBlocked ? x : sn.narrow(sn.repeatInterleave(x, block, along), along, 0, length);
  const zeroBytes = call.optional(3);
  const numbers = isPacked ? unpacked(rows(data, safe), bits) : sn.cast(rows(data, safe), 'i32');
  const length = numbers.shape[along]!;
  const ownScales = call.tensor(2);
  const unpackedZeros =
    zeroBytes === undefined
      ? undefined
      : isPacked
        ? sn.narrow(unpacked(zeroBytes, bits), -1, 0, ownScales.shape.at(-1)!)
        : sn.cast(zeroBytes, 'i32');
  const zero =
    unpackedZeros === undefined
      ? isPacked
        ? 2 ** (bits - 1)
        : 0
      : spread(rows(unpackedZeros, scaleRow), length);
  const scale = spread(rows(sn.cast(ownScales, 'f32'), scaleRow), length);
  const wide = sn.mul(sn.cast(sn.sub(numbers, zero), 'f32'), scale);
  const there = sn.reshape(
    isThere,
    wide.shape.map((_, i) => (i === axis ? given.size : 1)),
  );
  const out = sn.cast(sn.where(there, wide, 0), ownScales.dtype);
  const shape = [...wide.shape.slice(0, axis), ...given.shape, ...wide.shape.slice(axis + 1)];
  return Value.of(sn.reshape(out, shape), scales.type);
}

export const blocks: Rows = {
  GatherBlockQuantized: row([1], gatherBlocks),
  MatMulNBits: row([1], matMulBits),
};
