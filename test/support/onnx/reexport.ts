// Backend tests of the ONNX project, imported, exported again and run in ONNX Runtime: what comes out must be what the case expects.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Tensor } from '../../../src/index.ts';
import { isFloat } from '../../../src/ir/dtype.ts';
import type { HostArray } from '../../../src/ir/value.ts';
import { typeOf } from '../../../src/onnx/element.ts';
import { exportOnnx, loadOnnx, type ExportedModel, type OnnxModel } from '../../../src/onnx/index.ts';
import { fromHost } from '../../../src/tensor/record.ts';
import { difference, readPb } from './conformance.ts';
import { graphOf } from './exported.ts';
import { runInPeer, type Arrays } from './runtime.ts';

/** The model with these inputs as the file has them, and the others fixed. */
async function exported(
  model: OnnxModel,
  inputs: Arrays,
  isFree: (x: HostArray) => boolean,
): Promise<ExportedModel> {
  const entries = Object.entries(inputs);
  const fixed = entries.filter(([, x]) => !isFree(x)).map(([name, x]) => [name, x.data] as const);
  const free = entries.filter(([, x]) => isFree(x));
  const example = free.map(([name, { data, shape, dtype }]) => [name, fromHost(data, shape, dtype)] as const);
  const call = model.toFunction({ fixed: Object.fromEntries(fixed) });
  const fn = (...[given]: [Record<string, Tensor>]): Record<string, Tensor> => call(given);
  return exportOnnx(fn, [Object.fromEntries(example)], { opset: 26 });
}

/** How a case fares: `walked` where its shapes depend on what it computes, so that no function of tensors is the model. */
export async function reexported(
  folder: string,
): Promise<'passed' | 'walked' | { readonly problem: string }> {
  const model = await loadOnnx(join(folder, 'model.onnx'));
  const at = (kind: string, i: number): string => join(folder, 'test_data_set_0', `${kind}_${i}.pb`);
  const given = model.inputs.flatMap(({ name }, i) =>
    existsSync(at('input', i)) ? [[name, readPb(at('input', i)).array] as const] : [],
  );
  const inputs = Object.fromEntries(given);
  if (given.some(([, { dtype }]) => dtype === 'bf16')) return 'walked';
  // First with all inputs, then without those that shapes may be computed from.
  for (const isFree of [
    () => true,
    (x: HostArray) => isFloat(x.dtype),
    (x: HostArray) => x.data.length > 8,
  ]) {
    const file = await exported(model, inputs, isFree).catch((error: Error) => error);
    if (file instanceof Error) {
      if (file.message.includes('needs the elements')) continue;
      return { problem: file.message };
    }
    const ports = new Set(graphOf(file).input.map(({ name }) => name!));
    const free = Object.fromEntries(given.filter(([name]) => ports.has(name)));
    const found = Object.values(await runInPeer(file.bytes, free));
    for (const [i, array] of found.entries()) {
      if (!existsSync(at('output', i))) continue;
      const { array: expected } = readPb(at('output', i));
      const typed = (one: HostArray): { type: ReturnType<typeof typeOf>; array: HostArray } => ({
        type: typeOf(one.dtype),
        array: one,
      });
      const problem = difference(typed(array), typed(expected), false);
      if (problem !== undefined) return { problem };
    }
    return 'passed';
  }
  return 'walked';
}
