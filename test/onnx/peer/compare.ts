// One model in ONNX Runtime and in ours, on the same inputs: element types, shapes and values must agree.

import { sizeOf } from '../../../src/ir/shape.ts';
import { packBytes, type HostArray } from '../../../src/ir/value.ts';
import { codeOf, typeOf } from '../../../src/onnx/element.ts';
import { loadOnnx, type OnnxModel } from '../../../src/onnx/index.ts';
import { fromHost } from '../../../src/tensor/record.ts';
import { graph, model, node, port, type Draft } from '../../support/onnx/file.ts';
import { runInPeer, type Arrays } from '../../support/onnx/runtime.ts';
import type { NodeCase } from './draw.ts';

/** What a model gave: its results in order, or why there are none. */
export type Outcome =
  | { readonly kind: 'results'; readonly results: readonly HostArray[] }
  | { readonly kind: 'refused'; readonly reason: string; readonly error: unknown };

/** Runs a file in ONNX Runtime, as it is written: without rewriting of graphs. */
export async function runPeer(file: Uint8Array, inputs: Arrays): Promise<Outcome> {
  try {
    const results = await runInPeer(file, inputs, { graphOptimizationLevel: 'disabled' });
    return { kind: 'results', results: Object.values(results) };
  } catch (error) {
    return { kind: 'refused', reason: String(error), error };
  }
}

/** Runs a file in ours. */
export async function runOurs(file: Uint8Array, inputs: Arrays): Promise<Outcome> {
  try {
    return await evaluate(await loadOnnx(file), inputs);
  } catch (error) {
    return refusal(error);
  }
}

function refusal(error: unknown): Outcome {
  return { kind: 'refused', reason: error instanceof Error ? (error.stack ?? '') : String(error), error };
}

/** Runs a model that is loaded already: it may have run on other sizes before. */
export async function evaluate(loaded: OnnxModel, inputs: Arrays): Promise<Outcome> {
  try {
    const given = Object.entries(inputs).map(
      ([name, { data, shape, dtype }]) => [name, fromHost(data, shape, dtype)] as const,
    );
    const values = await loaded.evaluate(Object.fromEntries(given));
    const results = await Promise.all(
      values.map(async ({ tensor }): Promise<HostArray> => {
        const { dtype, shape } = tensor;
        return { dtype, shape, data: await tensor.data() };
      }),
    );
    return { kind: 'results', results };
  } catch (error) {
    return refusal(error);
  }
}

/** The file of a case, and what it is given. */
export function modelOf({
  op,
  opset,
  domain = '',
  attributes = [],
  inputs,
  outputs = 1,
  unwanted = [],
  stored = [],
}: NodeCase): { file: Uint8Array; given: Arrays } {
  const name = (i: number): string => `x${i}`;
  const results = Array.from({ length: outputs }, (_, i) => (unwanted.includes(i) ? '' : `y${i}`));
  const ports: Draft[] = [];
  const initializers: Draft[] = [];
  const given: Record<string, HostArray> = {};
  inputs.forEach((array, i) => {
    if (array === undefined) return;
    const code = codeOf(typeOf(array.dtype));
    if (stored.includes(i)) {
      initializers.push({
        name: name(i),
        dataType: code,
        dims: array.shape.map(BigInt),
        rawData: packBytes(array),
      });
    } else {
      ports.push(port(name(i), code, array.shape));
      given[name(i)] = array;
    }
  });
  const used = inputs.map((array, i) => (array === undefined ? '' : name(i)));
  const body = graph({
    inputs: ports,
    outputs: results.filter((y) => y !== '').map((y) => ({ name: y })),
    initializers,
    nodes: [node(op, used, results, attributes, domain)],
  });
  return { file: model(body, opset, domain === '' ? [] : [domain]), given };
}

export const show = ({ dtype, shape }: HostArray): string => `${dtype}[${shape.join(',')}]`;

/** Where two results differ; undefined when they do not. */
export function differenceOf(
  actual: HostArray,
  expected: HostArray,
  tolerance: number | undefined,
): string | undefined {
  if (show(actual) !== show(expected)) return `expected ${show(expected)}, got ${show(actual)}`;
  const { dtype, shape, data } = expected;
  const isExact = !dtype.startsWith('f');
  const share = tolerance ?? (dtype === 'f16' ? 4e-3 : 1e-4);
  const largest = isExact
    ? 0
    : (data as Float32Array).reduce(
        (most, value) => (Number.isFinite(value) ? Math.max(most, Math.abs(value)) : most),
        0,
      );
  for (let i = 0; i < sizeOf(shape); i++) {
    const [a, b] = [actual.data[i]!, data[i]!];
    if (Object.is(a, b) || a === b) continue;
    if (isExact && tolerance === undefined) return `element ${i}: expected ${b}, got ${a}`;
    const difference = Math.abs(Number(a) - Number(b));
    const least = dtype === 'f64' && tolerance !== undefined ? 0 : 1e-6;
    const slack = isExact ? tolerance! : share * Math.max(1e-2 * largest, Math.abs(Number(b))) + least;
    if (!(difference <= slack)) return `element ${i}: expected ${b}, got ${a}`;
  }
  return undefined;
}
