// ONNX files for tests, written by the table of messages that the importer reads by.

import type { MessageName } from '../../../src/onnx/schema.ts';
import { encode as encodeMessage } from '../../../src/onnx/wire.ts';

/** A message as plain data; what is left out is not written. */
export type Draft = Readonly<Record<string, unknown>>;

/** The bytes of a message. */
export function encode(name: MessageName, draft: Draft): Uint8Array {
  return encodeMessage(name, draft);
}

export function port(name: string, elemType: number, shape: readonly (number | string)[]): Draft {
  const dim = shape.map((size) => (typeof size === 'string' ? { param: size } : { value: BigInt(size) }));
  return { name, type: { tensor: { elemType, shape: { dim } } } };
}

export function float(name: string, dims: readonly number[], values: readonly number[]): Draft {
  const rawData = new Uint8Array(Float32Array.from(values).buffer);
  return { name, dataType: 1, dims: dims.map(BigInt), rawData };
}

export function int64(name: string, dims: readonly number[], values: readonly bigint[]): Draft {
  return { name, dataType: 7, dims: dims.map(BigInt), int64Data: values };
}

export function attribute(name: string, value: number | readonly number[] | string | Draft): Draft {
  if (typeof value === 'number')
    return Number.isInteger(value) ? { name, type: 2, i: BigInt(value) } : { name, type: 1, f: value };
  if (typeof value === 'string') return { name, type: 3, s: new TextEncoder().encode(value) };
  if (Array.isArray(value)) return { name, type: 7, ints: value.map(BigInt) };
  return { name, type: 5, g: value };
}

export function node(
  opType: string,
  input: readonly string[],
  output: readonly string[],
  attributes: readonly Draft[] = [],
  domain = '',
  name = '',
): Draft {
  return { opType, input, output, attribute: attributes, domain, name };
}

/** What a graph is made of. */
export interface GraphParts {
  readonly inputs: readonly Draft[];
  readonly outputs: readonly Draft[];
  readonly initializers?: readonly Draft[];
  readonly nodes: readonly Draft[];
}

export function graph(parts: GraphParts): Draft {
  return {
    node: parts.nodes,
    input: parts.inputs,
    output: parts.outputs,
    initializer: parts.initializers ?? [],
  };
}

/** `domains`: others than the standard's, in their first version. */
export function model(of: Draft, opset = 21, domains: readonly string[] = []): Uint8Array {
  const others = domains.map((domain) => ({ domain, version: 1n }));
  return encode('Model', {
    irVersion: 10n,
    opsetImport: [{ version: BigInt(opset) }, ...others],
    graph: of,
  });
}

/** The bytes of a model that is one graph. */
export function modelOf(parts: GraphParts, opset?: number): Uint8Array {
  return model(graph(parts), opset);
}
