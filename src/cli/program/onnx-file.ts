// An ONNX model as a function to build: one entry, whose inputs are the model's, at the sizes that
// the file and `--dim` give, without those that `--fix` gives.

import { zeros, type Tensor } from '../../index.ts';
import type { ModelInputs } from '../../onnx/ports/port.ts';
import { NeedsData } from '../../onnx/model.ts';
import { loadOnnx, type OnnxModel } from '../../onnx/index.ts';
import type { EntryPoint } from '../../aot/entry.ts';
import type { Sizes } from '../../bundle-runtime/manifest.ts';
import { valueOf, type Value } from '../../tensor/values.ts';
import { UsageError } from '../command.ts';
import { literalTensor } from './literal.ts';

export interface OnnxProgram {
  /** The entry `run` at some sizes. Throws UsageError where others are open. */
  at(sizes: Sizes): EntryPoint;
  /** Its weights by name. */
  readonly names: ReadonlyMap<Value, string>;
}

type Port = OnnxModel['inputs'][number];
type Named = Readonly<Record<string, Tensor>>;

/**
 * The model in a file. `fixes`: inputs that are the same in every call, as `NAME=1,2,3`. Throws
 * UsageError at names that it has not.
 */
export async function onnxProgram(
  file: string,
  dims: Iterable<string>,
  fixes: readonly string[] = [],
): Promise<OnnxProgram> {
  const model = await loadOnnx(file);
  const fixed = fixedInputs(model, fixes, file);
  const open = model.inputs.filter(({ name }) => !Object.hasOwn(fixed, name));
  checkDims(open, dims, file);
  const record = model.toFunction({ fixed });
  // Inputs go by their own names: the argument has none.
  const run = (...[inputs]: [Named]): unknown => withFixHint(file, () => record(inputs));
  return {
    at: (sizes) => ({
      name: 'run',
      fn: run as EntryPoint['fn'],
      inputs: [Object.fromEntries(open.map((port) => [port.name, exampleOf(port, sizes, file)]))],
    }),
    names: new Map(Object.entries(model.parameters).map(([name, tensor]) => [valueOf(tensor), name])),
  };
}

function fixedInputs({ inputs }: OnnxModel, fixes: readonly string[], file: string): ModelInputs {
  return Object.fromEntries(
    fixes.map((fix) => {
      const [, name = '', values = ''] = /^([^=]+)=(.*)$/.exec(fix) ?? [];
      const port = inputs.find((one) => one.name === name);
      if (port === undefined) {
        const problem = name === '' ? `expects NAME=1,2,3, got '${fix}'` : `${file} has no input '${name}'`;
        throw new UsageError(`--fix: ${problem}: it has ${inputs.map((one) => one.name).join(', ')}`);
      }
      const value = values === '' ? undefined : literalTensor(values, port.dtype ?? 'f32', port.shape);
      if (value === undefined)
        throw new UsageError(
          `--fix: expects numbers for ${name}, got '${values}'\n  try: --fix ${name}=1,2,3`,
        );
      return [name, value];
    }),
  );
}

/** Throws UsageError at a size that no input has. */
function checkDims(ports: readonly Port[], dims: Iterable<string>, file: string): void {
  const open = new Set(ports.flatMap(({ shape }) => shape?.filter((size) => typeof size === 'string') ?? []));
  for (const name of dims) {
    if (open.has(name)) continue;
    const known = open.size === 0 ? 'all sizes are fixed' : `open are ${[...open].join(', ')}`;
    throw new UsageError(`--dim: no input of ${file} has a size called '${name}': ${known}`);
  }
}

/** Calls `record`. Where that needs the elements of inputs, the error says how to give them. */
function withFixHint<T>(file: string, record: () => T): T {
  try {
    return record();
  } catch (error) {
    if (!(error instanceof NeedsData)) throw error;
    const fixes = error.inputs.map((name) => `--fix ${name}=1,2,3`).join(' ');
    const hint =
      fixes === ''
        ? 'a model in which no shape follows from elements, or loadOnnx(…) and model.run(…), which read them'
        : `${fixes}, values that are the same in every call`;
    throw new UsageError(`${file}: ${error.message.split('\n')[0]}\n  try: ${hint}`);
  }
}

function exampleOf({ name, dtype, shape }: Port, sizes: Sizes, file: string): Tensor {
  if (dtype === undefined || shape === undefined)
    throw new UsageError(`${file} does not tell the type of its input ${name}`);
  const open = shape.filter((dim) => typeof dim === 'string' && !Object.hasOwn(sizes, dim));
  if (open.length > 0) {
    const given = open.map((dim) => `${dim}=1`).join();
    throw new UsageError(
      `${file}: the input ${name} has open sizes: ${open.join(', ')}\n  try: --dim ${given}`,
    );
  }
  return zeros(
    shape.map((dim) => (typeof dim === 'string' ? sizes[dim]! : dim)),
    { dtype },
  );
}
