// Files of the ONNX format in ONNX Runtime, on the CPU: the peer that exported models are checked against.

import ort from 'onnxruntime-node';
import type { DType } from '../../../src/ir/dtype.ts';
import { f16FromBits, packBytes, type HostArray } from '../../../src/ir/value.ts';

export type Arrays = Readonly<Record<string, HostArray>>;

/** It takes and gives no bf16. */
const names: Readonly<Partial<Record<DType, ort.Tensor.Type>>> = {
  f32: 'float32',
  f64: 'float64',
  f16: 'float16',
  bool: 'bool',
  u8: 'uint8',
  i8: 'int8',
  u16: 'uint16',
  i16: 'int16',
  u32: 'uint32',
  i32: 'int32',
  u64: 'uint64',
  i64: 'int64',
};

function toPeer({ dtype, shape, data }: HostArray): ort.Tensor {
  const type = names[dtype];
  if (type === undefined) throw new Error(`ONNX Runtime takes no ${dtype}`);
  if (dtype !== 'f16') return new ort.Tensor(type, data as Float32Array, shape);
  return new ort.Tensor(type, new Uint16Array(packBytes({ dtype, shape, data }).buffer), shape);
}

function fromPeer({ type, dims, data }: ort.Tensor): HostArray {
  const [dtype] = Object.entries(names).find(([, name]) => name === type) as [DType, string];
  if (dtype !== 'f16') return { dtype, shape: dims, data: data as Float32Array };
  const bits = new Uint16Array((data as Uint16Array).buffer, (data as Uint16Array).byteOffset, data.length);
  return { dtype, shape: dims, data: Float32Array.from(bits, f16FromBits) };
}

/** Runs a file, from bytes or from its path; gives its outputs by name. Rejects where the runtime refuses it. */
export async function runInPeer(
  file: Uint8Array | string,
  inputs: Arrays,
  options: ort.InferenceSession.SessionOptions = {},
): Promise<Arrays> {
  const settings = {
    logSeverityLevel: 4,
    intraOpNumThreads: 1,
    // All but changes of layout: 1.30 ends the process in these (NchwcTransformer) for some products between casts from and to bf16.
    graphOptimizationLevel: 'extended',
    ...options,
  } as const;
  const session = await (typeof file === 'string'
    ? ort.InferenceSession.create(file, settings)
    : ort.InferenceSession.create(file, settings));
  try {
    const given = Object.fromEntries(Object.entries(inputs).map(([name, x]) => [name, toPeer(x)]));
    const results = await session.run(given);
    return Object.fromEntries(session.outputNames.map((name) => [name, fromPeer(results[name]!)]));
  } finally {
    await session.release();
  }
}
