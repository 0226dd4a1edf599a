// An ONNX model as a function to build: one entry, whose inputs are the model's, at the sizes that the file and `--dim` give.

import { zeros, type Tensor } from '../index.ts';
import { loadOnnx, type OnnxModel } from '../onnx/index.ts';
import type { EntryPoint } from '../aot/entry.ts';
import { handleOf } from '../tensor/tensor.ts';
import type { Handle } from '../tensor/handle.ts';
import { UsageError } from './command.ts';

export interface OnnxProgram {
  readonly point: EntryPoint;
  /** Its weights by name. */
  readonly names: ReadonlyMap<Handle, string>;
}

/** The model in a file as an entry called `run`. Throws UsageError where a size is open. */
export async function onnxProgram(file: string, dims: ReadonlyMap<string, number>): Promise<OnnxProgram> {
  const model = await loadOnnx(file);
  const example = Object.fromEntries(model.inputs.map((port) => [port.name, exampleOf(port, dims, file)]));
  const fn = model.toFunction();
  // Its inputs go by their own names: the argument has none.
  const run = (...[inputs]: [Record<string, Tensor>]): Record<string, Tensor> => fn(inputs);
  const names = new Map(Object.entries(model.parameters).map(([name, tensor]) => [handleOf(tensor), name]));
  return { point: { name: 'run', fn: run as EntryPoint['fn'], inputs: [example] }, names };
}

function exampleOf(
  { name, dtype, shape }: OnnxModel['inputs'][number],
  dims: ReadonlyMap<string, number>,
  file: string,
): Tensor {
  if (dtype === undefined || shape === undefined)
    throw new UsageError(`${file} does not tell the type of its input ${name}`);
  const open = shape.flatMap((dim) => (typeof dim === 'string' && !dims.has(dim) ? [dim] : []));
  if (open.length > 0) {
    const given = open.map((dim) => `${dim}=1`).join();
    throw new UsageError(
      `${file}: the input ${name} has open sizes: ${open.join(', ')}\n  try: --dim ${given}`,
    );
  }
  return zeros(
    shape.map((dim) => (typeof dim === 'string' ? dims.get(dim)! : dim)),
    { dtype },
  );
}
