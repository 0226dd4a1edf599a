// Weights of an exported model: what they are called, and how they lie in the file. Those that are
// stored in fewer bits stay as they are stored, and nodes of the file expand them: nothing is
// widened before a runtime does so.

import { isPacked, pack, type WeightFormat } from '../../aot/formats.ts';
import { membersOf } from '../../nn/module.ts';
import type { Handle } from '../../tensor/recording/handle.ts';
import { handleOf } from '../../tensor/tensor.ts';
import { typeOf } from '../element.ts';
import type { ModelEmitter, Val } from './emitter.ts';

/** A captured tensor with its elements. */
export interface ExportedWeight {
  readonly name: string;
  readonly dtype: Val['dtype'];
  readonly shape: readonly number[];
  readonly data: Uint8Array;
}

const block = 32;

/** What tensors are called by where they stand in a model, or in a record. */
export function namesIn(model: unknown): Map<Handle, string> {
  const names = new Map<Handle, string>();
  for (const { name, tensor } of membersOf(model)) {
    const handle = handleOf(tensor);
    if (!names.has(handle)) names.set(handle, name);
  }
  return names;
}

/** Adds a weight as it is stored, and what makes its values of that. */
export function bindWeight(e: ModelEmitter, weight: ExportedWeight, format: WeightFormat): Val {
  const { name, dtype, shape, data } = weight;
  if (!isPacked(format, weight)) return e.initializer(name, typeOf(dtype), shape, data);
  const [first, scales] = pack(format, weight);
  if (scales === undefined) return e.cast(e.initializer(name, 'float16', shape, first!.data), dtype);
  const isBytes = format === 'q8_0';
  // Levels are stored above 0; turning their upper bit over makes them signed.
  const upper = isBytes ? 0x80 : 0x88;
  const levels = first!.data.map((byte) => byte ^ upper);
  const count = scales.data.length / 2;
  const stored = e.initializer(`${name}.${format}`, isBytes ? 'int8' : 'int4', [count, block], levels);
  // f16 scales would give f16 values: products of 8 and 11 bits need f32.
  const scale = e.cast(e.initializer(`${name}.scale`, 'float16', [count, 1], scales.data), 'f32');
  const type = { dtype, shape: [count, block] };
  return e.reshape(e.node('DequantizeLinear', [stored, scale], type, { axis: 1, block_size: block }), shape);
}
