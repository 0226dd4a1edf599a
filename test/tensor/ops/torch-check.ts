// Whether an operation gives PyTorch's figures, forward and backward, on the device that is chosen. Without a test framework, so
// that it runs where there is none.

import { isFloat, type DType } from '../../../src/ir/dtype.ts';
import { hostArray, type HostData, type Scalar } from '../../../src/ir/value.ts';
import { compile } from '../../../src/tensor/compile/compile.ts';
import { mul, sum } from '../../../src/operations/index.ts';
import { fromHost } from '../../../src/tensor/record.ts';
import type { Tensor } from '../../../src/tensor/tensor.ts';
import { torchCall } from '../../support/torch/calls.ts';
import { torchFamilies, type TorchCase, type TorchTensor } from '../../support/torch/figures.ts';

/** Trained with, not called: tested by optim. */
const elsewhere = new Set(['optim', 'schedule']);
/** Pure movement, selection and whole-number arithmetic: results (not gradients, which may be sums) equal to the last bit. */
const exactFamilies = new Set(['movement', 'cast', 'integer']);

/** PyTorch's f64 kernels keep a constant in f32 here, or (softplus) leave out e⁻²⁰. */
const roughInTorch = new Set(['celu', 'hardsigmoid', 'softplus']);

/** The families of operations that are called. */
export function calledFamilies(): string[] {
  return torchFamilies().filter((name) => !elsewhere.has(name));
}

function equal(found: unknown, expected: unknown, what: string): void {
  if (!Object.is(found, expected))
    throw new Error(`${what}: got ${String(found)}, PyTorch ${String(expected)}`);
}

function toTensor({ dtype, shape, data }: TorchTensor): Tensor {
  return fromHost(hostArray(dtype, shape, data as ArrayLike<Scalar>).data, shape, dtype);
}

/** Relative to the value, and absolute relative to the largest value: rounding of intermediate results scales with both. */
const tolerances: Readonly<Record<string, readonly [relative: number, absolute: number]>> = {
  f64: [1e-11, 1e-12],
  f32: [2e-6, 1e-6],
  // One unit in the last place.
  f16: [2 ** -10, 6e-8],
  bf16: [2 ** -7, 1e-38],
};

type Bound = readonly [relative: number, absolute: number];

function boundOf(one: TorchCase, exact: boolean, dtype: DType): Bound {
  if (exact || !isFloat(dtype)) return [0, 0];
  return tolerances[dtype === 'f64' && roughInTorch.has(one.op) ? 'f32' : dtype]!;
}

function checkClose(what: string, found: HostData, expected: TorchTensor, [relative, absolute]: Bound): void {
  equal(found.length, expected.data.length, what);
  const finite = [...expected.data].map(Number).filter(Number.isFinite);
  const largest = Math.min(1e6, Math.max(1, ...finite.map(Math.abs)));
  for (let i = 0; i < found.length; i++) {
    const [got, want] = [found[i]!, expected.data[i]!];
    if (typeof got === 'bigint' || typeof want === 'bigint') {
      equal(BigInt(got), BigInt(want), `${what}[${i}]`);
      continue;
    }
    if (Object.is(got, want) || got === want) continue;
    const error = Math.abs(got - want);
    const allowed = relative * Math.abs(want) + absolute * largest;
    if (!(error <= allowed)) throw new Error(`${what}[${i}]: got ${got}, PyTorch ${want}, off by ${error}`);
  }
}

/** Positions are i32 here, i64 in PyTorch. */
function expectedDType(one: TorchCase, expected: TorchTensor): DType {
  const isPlace = expected.dtype === 'i64' && one.inputs.every((input) => input.dtype !== 'i64');
  return isPlace && one.op !== 'cast' ? 'i32' : expected.dtype;
}

/** What a case gives: its results, and the gradients of its inputs where PyTorch has some. */
interface Computed {
  readonly outputs: readonly Tensor[];
  readonly grads: readonly (Tensor | undefined)[];
}

function inputsOf(one: TorchCase): Tensor[] {
  return one.inputs.map((input) => {
    const x = toTensor(input);
    return one.grads !== undefined && isFloat(input.dtype) ? x.requiresGrad_() : x;
  });
}

/** `upstream` is the cotangent of the first result, where the case has gradients; `goesBack` says of a loss whether it has some. */
function compute(
  one: TorchCase,
  inputs: readonly Tensor[],
  upstream: Tensor | undefined,
  goesBack: (loss: Tensor) => boolean,
): Computed {
  const outputs = torchCall(one, inputs);
  const loss = upstream && sum(mul(outputs[0]!, upstream));
  if (loss !== undefined && goesBack(loss)) loss.backward();
  return { outputs, grads: inputs.map((input) => input.grad) };
}

const upstreamOf = (one: TorchCase): Tensor | undefined => one.upstream && toTensor(one.upstream);

async function compare(family: string, one: TorchCase, { outputs, grads }: Computed): Promise<void> {
  const exact = exactFamilies.has(family) && one.op !== 'div';
  equal(outputs.length, one.outputs.length, 'number of outputs');
  for (const [i, expected] of one.outputs.entries()) {
    const found = outputs[i]!;
    equal(found.dtype, expectedDType(one, expected), `dtype of output ${i}`);
    equal(found.shape.join(), expected.shape.join(), `shape of output ${i}`);
    checkClose(`output ${i}`, await found.data(), expected, boundOf(one, exact, found.dtype));
  }
  for (const [i, expected] of (one.grads ?? []).entries()) {
    if (expected === null) continue;
    const grad = grads[i];
    // What the result does not depend on has no gradient here, and one of zeros in PyTorch's figures.
    const data = grad === undefined ? new Float64Array(expected.data.length) : await grad.data();
    checkClose(`gradient of input ${i}`, data, expected, boundOf(one, false, expected.dtype));
  }
}

/** Rejects where a result or a gradient of the case is not PyTorch's, on the device that is chosen. */
export async function checkCase(family: string, one: TorchCase): Promise<void> {
  await compare(
    family,
    one,
    compute(one, inputsOf(one), upstreamOf(one), () => true),
  );
}

/** The same of several cases, as one compiled function and so one program: where a device takes long to build each. */
export async function checkCases(family: string, cases: readonly TorchCase[]): Promise<void> {
  const given = cases.map((one) => ({ inputs: inputsOf(one), upstream: upstreamOf(one) }));
  const found = compile((all: typeof given) =>
    // While a function is traced, what does not depend on its inputs, as x⁰, is a constant: its gradients are zeros.
    all.map(({ inputs, upstream }, i) => compute(cases[i]!, inputs, upstream, (loss) => loss.requiresGrad)),
  )(given);
  const problems: string[] = [];
  for (const [i, one] of cases.entries()) {
    await compare(family, one, found[i]!).catch((error: unknown) =>
      problems.push(`${one.name}: ${String(error)}`),
    );
  }
  if (problems.length > 0) throw new Error(problems.join('\n'));
}

/** Whether the device has the dtypes of a case; where it has not, the case must be refused: WebGPU lacks doubles. */
export function isSupported(one: TorchCase, device: string): boolean {
  const dtypes = [
    ...one.inputs.map((input) => input.dtype),
    ...one.outputs.map((output) => expectedDType(one, output)),
  ];
  return !(device.startsWith('webgpu') && dtypes.includes('f64'));
}
