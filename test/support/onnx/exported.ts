// Exported models of functions: what they hold, and that ONNX Runtime and our importer compute from them what is expected.

import { expect } from 'vitest';
import type { Tensor } from '../../../src/index.ts';
import { unpackBytes, type HostArray } from '../../../src/ir/value.ts';
import { loadOnnx, type ExportedModel } from '../../../src/onnx/index.ts';
import type { Message } from '../../../src/onnx/schema.ts';
import { decode } from '../../../src/onnx/wire.ts';
import { readBytes } from '../../../src/tensor/evaluate/evaluate.ts';
import { handleOf } from '../../../src/tensor/tensor.ts';
import { runInPeer, type Arrays } from './runtime.ts';
import { expectClose } from '../random/graph.ts';

export const hostOf = async (tensor: Tensor): Promise<HostArray> =>
  unpackBytes(await readBytes(handleOf(tensor)), tensor.dtype, tensor.shape);

export function graphOf({ bytes }: ExportedModel): Message<'Graph'> {
  return decode('Model', bytes).graph!;
}

/** The operators of its nodes, in order. */
export const opsOf = (model: ExportedModel): string[] => graphOf(model).node.map(({ opType }) => opType!);

export const hostsOf = async (tensors: Readonly<Record<string, Tensor>>): Promise<Arrays> =>
  Object.fromEntries(
    await Promise.all(Object.entries(tensors).map(async ([name, x]) => [name, await hostOf(x)] as const)),
  );

/** ONNX Runtime and our importer give these outputs for these inputs. */
export async function expectOutputs(
  model: ExportedModel,
  inputs: Readonly<Record<string, Tensor>>,
  outputs: Readonly<Record<string, Tensor>>,
  tolerance = 1e-5,
): Promise<void> {
  const expected = await hostsOf(outputs);
  const found = await runInPeer(model.bytes, await hostsOf(inputs));
  const again = await hostsOf(await (await loadOnnx(model.bytes)).run(inputs));
  for (const results of [found, again]) {
    expect(Object.keys(results)).toEqual(Object.keys(expected));
    for (const [name, array] of Object.entries(expected)) expectClose(results[name]!, array, tolerance);
  }
}
