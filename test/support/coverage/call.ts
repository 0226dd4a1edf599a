// Calls of rows: inputs made of their text in the dtype of a cell, and what comes of the call as a list of tensors.

import * as sn from '../../../src/index.ts';
import { Tensor } from '../../../src/index.ts';
import type { DType } from '../../../src/ir/dtype.ts';
import { dtypeKind, isComplex, isFloat } from '../../../src/ir/dtype.ts';
import { fromHostTensor, toHostTensor } from '../../../src/io/tensors.ts';
import type { HostTensor } from '../../../src/io/host.ts';
import { TreeNode } from '../../../src/tensor/tree.ts';
import type { Code, Row } from '../../../scripts/operations/rows.ts';

/** What a call gives: tensors, numbers and trees of them. */
export type Result = unknown;

/** The value of a piece of code over `sn` and named values. */
export function evaluate(code: Code, values: Readonly<Record<string, unknown>>): Result {
  const names = Object.keys(values);
  const run = new Function('sn', ...names, `return ${code};`) as (...args: readonly unknown[]) => Result;
  return run(sn, ...names.map((name) => values[name]));
}

/** The tensors of a result, numbers and booleans as tensors; members that are none (shapes) aside. */
export function tensorsOf(result: Result): Tensor[] {
  if (result instanceof Tensor) return [result];
  if (typeof result === 'boolean') return [sn.tensor(result)];
  if (typeof result === 'number') return [sn.tensor(result)];
  if (Array.isArray(result)) return result.flatMap(tensorsOf);
  if (result instanceof TreeNode || (typeof result === 'object' && result !== null))
    return Object.values(result as object).flatMap((at: unknown) =>
      typeof at === 'object' && at !== null ? tensorsOf(at) : [],
    );
  return [];
}

export type Inputs = Readonly<Record<string, HostTensor>>;

/** Inputs as the text says, computed by the reference interpreter, which has to be the current device. */
export async function givenOf(row: Row): Promise<Inputs> {
  const made: [string, HostTensor][] = [];
  for (const [name, code] of Object.entries(row.given)) {
    const value = evaluate(code, {});
    if (!(value instanceof Tensor)) throw new Error(`${row.name}: ${name} is no tensor: ${code}`);
    made.push([name, await toHostTensor(value)]);
  }
  return Object.fromEntries(made);
}

const isVaried = ({ dtype }: HostTensor): boolean => isFloat(dtype) || isComplex(dtype);

/** The inputs that take the dtype of a cell: floats; where there are none, all. */
export function varied(inputs: Inputs): ReadonlySet<string> {
  const all = Object.entries(inputs);
  const floats = all.filter(([, input]) => isVaried(input));
  return new Set((floats.length === 0 ? all : floats).map(([name]) => name));
}

function converted(x: Tensor, dtype: DType): Tensor {
  if (x.dtype === dtype) return x;
  if (dtypeKind(dtype) === 'complex' && !isComplex(x.dtype)) {
    // An imaginary part of its own, so that conjugates are seen.
    const real = x.cast(dtype === 'c128' ? 'f64' : 'f32');
    return sn.complex(real, real.mul(0.5));
  }
  return isComplex(x.dtype) && !isComplex(dtype) ? x.real().cast(dtype) : x.cast(dtype);
}

/** The inputs in a dtype; computed by the current device, which has to be the interpreter. */
export async function inputsIn(inputs: Inputs, dtype: DType): Promise<Inputs> {
  const names = varied(inputs);
  const made = Object.entries(inputs).map(async ([name, input]) => {
    const host = names.has(name) ? await toHostTensor(converted(fromHostTensor(input), dtype)) : input;
    return [name, host] as const;
  });
  return Object.fromEntries(await Promise.all(made));
}

/** The code of a row for a dtype: where no input carries one, the text names it. */
export function codeIn(row: Row, code: Code, dtype: DType): Code {
  return Object.keys(row.given).length > 0 ? code : code.replaceAll(`'f32'`, `'${dtype}'`);
}

/** Whether the dtype of a cell changes anything of a row. */
export function hasDtypes(row: Row): boolean {
  return Object.keys(row.given).length > 0 || row.call.includes(`'f32'`);
}

/** Tensors of the inputs, leaves of gradients where these exist. */
export function tensorsIn(inputs: Inputs, tracked: boolean): Record<string, Tensor> {
  return Object.fromEntries(
    Object.entries(inputs).map(([name, input]) => {
      const x = fromHostTensor(input);
      return [name, tracked && isVaried(input) ? x.requiresGrad_() : x];
    }),
  );
}

/** What a row gives for named tensors, seeded, so that random ones draw the same everywhere. */
export async function called(
  row: Row,
  dtype: DType,
  values: Readonly<Record<string, Tensor>>,
): Promise<Tensor[]> {
  sn.manualSeed(7);
  const result: unknown = await evaluate(codeIn(row, row.call, dtype), values);
  return tensorsOf(await comparable(row, result));
}

/** The same, where nothing has to be waited for. */
export function recorded(row: Row, dtype: DType, values: Readonly<Record<string, Tensor>>): Tensor[] {
  const result = evaluate(codeIn(row, row.sized ?? row.call, dtype), values);
  return tensorsOf(comparable(row, result));
}

function comparable(row: Row, result: Result): Result {
  return row.compared === undefined ? result : evaluate(row.compared, { y: result });
}
