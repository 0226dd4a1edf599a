// The layout that ONNX Runtime gives convolutions on a CPU (com.microsoft.nchwc): channels in blocks of 8
// or 16, filled up with zeros. Here images stay with their channels first, filled up as well, and kernels
// are brought back into their order.

import * as sn from '../../../operations/index.ts';
import type { Tensor } from '../../../tensor/tensor.ts';
import type { Call, Row, Rows } from '../../call.ts';
import { conv } from '../conv.ts';
import { row } from '../row.ts';
import { refuse } from './attention.ts';
import { fusedConv } from './fused.ts';

/** The attribute by which each node is told how many channels a block has (layout.ts): one of a tool, which no operator has. */
export const blockAttribute = '__block';

function blockOf(call: Call): number {
  return call.attributes.int(blockAttribute, 0);
}

/** With the channels first, and zeros up to the end of a block. */
function reorderInput(call: Call): Tensor {
  const given = call.tensor(0);
  const x = call.attributes.int('channels_last', 0) === 1 ? sn.moveaxis(given, -1, 1) : given;
  const missing = -x.shape[1]! % blockOf(call);
  if (missing === 0) return x;
  return sn.pad(
    x,
    x.shape.map((_, axis): [number, number] => [0, axis === 1 ? blockOf(call) + missing : 0]),
  );
}

function reorderOutput(call: Call): Tensor {
  const { attributes } = call;
  const x = call.tensor(0);
  const channels = attributes.int('channels', 0);
  const cut = channels === 0 || channels === x.shape[1] ? x : sn.narrow(x, 1, 0, channels);
  return attributes.int('channels_last', 0) === 1 ? sn.moveaxis(cut, 1, -1) : cut;
}

/**
 * A kernel [outputs, inputs, height, width] whose elements lie in blocks of outputs, and of inputs unless
 * these are few or each has a kernel of its own.
 */
function kernel(call: Call): Tensor {
  const block = blockOf(call);
  const w = call.tensor(1);
  const [outputs, inputs, height, width] = w.shape as readonly [number, number, number, number];
  const groups = call.attributes.int('group', 1);
  const isFlat = groups === 1 ? inputs < block : inputs === 1 && groups === outputs;
  if (isFlat) {
    const blocks = sn.reshape(w, [outputs / block, inputs, height, width, block]);
    return sn.reshape(sn.permute(blocks, [0, 4, 1, 2, 3]), w.shape);
  }
  const blocks = sn.reshape(w, [outputs / block, inputs / block, height, width, block, block]);
  return sn.reshape(sn.permute(blocks, [0, 5, 1, 4, 2, 3]), w.shape);
}

/** Whole multiples in height and width, each element repeated. */
function upsample(call: Call): Tensor {
  const { attributes } = call;
  const scales = attributes.ints('scales') ?? [];
  refuse(call, 'mode', attributes.string('mode', 'nearest') === 'nearest');
  const places = 'coordinate_transformation_mode';
  refuse(call, places, attributes.string(places, 'asymmetric') === 'asymmetric');
  return scales.reduce(
    (x, scale, axis) => (scale === 1 ? x : sn.repeatInterleave(x, scale, axis)),
    call.tensor(0),
  );
}

/** A pool of the standard, from the first version of the domain on. */
function pool(op: string): Row {
  return { since: [1], run: (call) => conv[op]?.run(call) };
}

export const nchwc: Rows = {
  AveragePool: pool('AveragePool'),
  Conv: row([1], (call) => fusedConv(call, call.tensor(0), kernel(call), call.optional(2), call.optional(3))),
  GlobalAveragePool: pool('GlobalAveragePool'),
  GlobalMaxPool: pool('GlobalMaxPool'),
  MaxPool: pool('MaxPool'),
  ReorderInput: row([1], reorderInput),
  ReorderOutput: row([1], reorderOutput),
  Upsample: row([1], upsample),
};
