// PyTorch's figures at the points where formulas break (test/fixtures/torch-edges.json, by scripts/edge-fixtures.py), and what Sinter
// gives there on the chosen device: every element that differs, with the operands that it was computed from.

import { readFileSync } from 'node:fs';
import { isFloat, type DType } from '../../../src/ir/dtype.ts';
import * as sn from '../../../src/index.ts';

type Stored = number | string | boolean;

export interface EdgeTensor {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly data: readonly number[];
}

/** A call and what it gives. Gradients are those of Σ weights·result over the float results, one an input, null where it has none. */
export interface Edge {
  readonly call: string;
  readonly inputs: readonly EdgeTensor[];
  readonly outputs: readonly EdgeTensor[];
  readonly gradients: readonly (EdgeTensor | null)[] | null;
  readonly weights: readonly number[];
}

/** An element that is not PyTorch's. */
export interface Difference {
  readonly call: string;
  /** `out0` for the first result, `grad1` for the gradient of the second input. */
  readonly part: string;
  readonly got: number;
  readonly want: number;
  /** The input elements that it depends on, as far as shapes tell: the same place, or its row. */
  readonly operands: readonly number[];
}

const special: Readonly<Record<string, number>> = { nan: NaN, inf: Infinity, '-inf': -Infinity, '-0': -0 };

function decoded(value: Stored): number {
  return typeof value === 'string' ? (special[value] ?? NaN) : Number(value);
}

interface StoredTensor {
  readonly dtype: string | number;
  readonly shape: readonly number[];
  readonly data: readonly Stored[];
}

function tensorOf({ dtype, shape, data }: StoredTensor, names: Readonly<Record<string, DType>>): EdgeTensor {
  const known = names[dtype] ?? (dtype as DType);
  return { dtype: known, shape, data: data.map(decoded).map(known === 'f32' ? Math.fround : (x) => x) };
}

/** The committed cases. */
export function torchEdges(): Edge[] {
  const file = new URL('../../fixtures/torch-edges.json', import.meta.url);
  const { sets, cases } = JSON.parse(readFileSync(file, 'utf8')) as {
    readonly sets: Readonly<Record<string, StoredTensor>>;
    readonly cases: readonly {
      readonly call: string;
      readonly in: readonly string[];
      readonly out: readonly StoredTensor[];
      readonly grad: readonly (StoredTensor | null)[] | null;
    }[];
  };
  return cases.map((one) => ({
    call: one.call,
    inputs: one.in.map((name) => tensorOf(sets[name]!, {})),
    outputs: one.out.map((x) => tensorOf(x, {})),
    gradients: one.grad?.map((x) => x && tensorOf(x, {})) ?? null,
    weights: [1, 2, 0.5],
  }));
}

const torchNames: Readonly<Record<string, DType>> = {
  '0': 'f32',
  float32: 'f32',
  float16: 'f16',
  bfloat16: 'bf16',
  float64: 'f64',
  int8: 'i8',
  uint8: 'u8',
  int16: 'i16',
  int32: 'i32',
  int64: 'i64',
};

/** The cases of a file of the other layout, whose gradients are those of plain sums. Calls that PyTorch refused are left out. */
export function sharedEdges(text: string): Edge[] {
  const cases = JSON.parse(text) as readonly {
    readonly js: string;
    readonly ins: readonly StoredTensor[];
    readonly outs?: readonly StoredTensor[];
    readonly grads?: readonly (StoredTensor | null)[] | null;
  }[];
  return cases.flatMap(({ js, ins, outs, grads }) => {
    if (outs === undefined) return [];
    const inputs = ins.map((x) => tensorOf(x, torchNames));
    const outputs = outs.map((x) => tensorOf(x, torchNames));
    const gradients = grads?.map((x) => x && tensorOf(x, torchNames)) ?? null;
    // Here the option of this one has another name.
    const call = js.replace('{norm:2}', '{p:2}');
    return [{ call, inputs, outputs, gradients, weights: [1] }];
  });
}

/** Relative, and absolute below 1: what roundings of intermediate results may come to. */
const tolerances: Readonly<Partial<Record<DType, number>>> = { f32: 1e-5, f16: 2 ** -10, bf16: 2 ** -7 };
const SMALLEST_NORMAL = 1.1754943508222875e-38;

const isTiny = (x: number): boolean => x !== 0 && Math.abs(x) < SMALLEST_NORMAL;

/**
 * Whether a value is the wanted one. The sign of zero does not count, subnormal results may be 0, and gradients may be off by what
 * roundings leave where terms cancel.
 */
function agrees(got: number, want: number, dtype: DType, isGradient: boolean): boolean {
  if (got === want || (Number.isNaN(got) && Number.isNaN(want))) return true;
  const relative = tolerances[dtype];
  if (relative === undefined || !Number.isFinite(got) || !Number.isFinite(want)) return false;
  const absolute =
    dtype === 'f32' ? (isGradient ? 5e-7 : 2e-7 * Math.min(1, Math.abs(want) * 1e30) + 1e-26) : 6e-8;
  return Math.abs(got - want) <= relative * Math.abs(want) + absolute + SMALLEST_NORMAL;
}

/** The elements of the inputs that element `i` of a tensor of this shape is made of. */
function operandsAt(inputs: readonly EdgeTensor[], { shape, data }: EdgeTensor, i: number): number[] {
  return inputs.flatMap((input) => {
    const row = input.shape.at(-1) ?? 1;
    if (input.data.length === data.length && shape.length <= 1) return [input.data[i]!];
    if (input.data.length === data.length) {
      const from = Math.floor(i / row) * row;
      return input.data.slice(from, from + row);
    }
    if (input.data.length === data.length * row) return input.data.slice(i * row, (i + 1) * row);
    return [...input.data];
  });
}

function compare(edge: Edge, part: string, got: readonly number[], want: EdgeTensor): Difference[] {
  if (got.length !== want.data.length)
    throw new Error(`${edge.call}: ${part} has ${got.length} elements, PyTorch's ${want.data.length}`);
  return want.data.flatMap((value, i) => {
    if (agrees(got[i]!, value, want.dtype, part.startsWith('grad'))) return [];
    return [{ call: edge.call, part, got: got[i]!, want: value, operands: operandsAt(edge.inputs, want, i) }];
  });
}

/** What stands between parameters and the public functions: the call's own text. */
function callOf(text: string): (...operands: readonly sn.Tensor[]) => sn.Tensor | readonly sn.Tensor[] {
  // The texts are written by scripts of this project, and say more plainly what is called than a table of 300 functions.
  // oxlint-disable-next-line no-new-func
  const call = new Function('sn', 'a', 'b', 'c', `return ${text}`) as (
    library: typeof sn,
    ...operands: readonly sn.Tensor[]
  ) => sn.Tensor | readonly sn.Tensor[];
  return (...operands) => call(sn, ...operands);
}

const held = (dtype: DType): DType => (dtype === 'i64' ? 'i32' : dtype);

/** Every element of the results and gradients of a call that is not PyTorch's. */
export async function differencesOf(edge: Edge): Promise<Difference[]> {
  const inputs = edge.inputs.map(({ dtype, shape, data }, i) => {
    const x = sn.tensor([...data], { dtype: held(dtype), shape });
    return edge.gradients?.[i] == null ? x : x.requiresGrad_();
  });
  const result = callOf(edge.call)(...inputs);
  const outputs: readonly sn.Tensor[] = Array.isArray(result) ? result : [result as sn.Tensor];
  const found: Difference[] = [];
  for (const [i, want] of edge.outputs.entries()) {
    const output = outputs[i]!;
    if (![want.dtype, held(want.dtype)].includes(output.dtype) || String(output.shape) !== String(want.shape))
      throw new Error(
        `${edge.call}: gives ${output.dtype}[${output.shape}], PyTorch ${want.dtype}[${want.shape}]`,
      );
    found.push(...compare(edge, `out${i}`, Array.from(await output.data(), Number), want));
  }
  const tracked = inputs.filter((x) => x.requiresGrad);
  if (tracked.length === 0) return found;
  const smooth = outputs.filter((x) => isFloat(x.dtype) && x.requiresGrad);
  const seeds = smooth.map(({ dtype, shape, size }) =>
    sn.tensor(
      Array.from({ length: size }, (_, i) => edge.weights[i % edge.weights.length]!),
      { dtype, shape },
    ),
  );
  const gradients = sn.gradients(smooth, tracked, seeds);
  for (const [i, want] of (edge.gradients ?? []).entries()) {
    if (want === null) continue;
    const values = Array.from(await gradients[tracked.indexOf(inputs[i]!)]!.data(), Number);
    found.push(...compare(edge, `grad${i}`, values, want));
  }
  return found;
}

/** Whether a difference may come of numbers below the normal ones, which a GPU may take for 0. */
export function meetsTiny({ operands, want, got }: Difference): boolean {
  return operands.some(isTiny) || isTiny(want) || isTiny(got);
}
