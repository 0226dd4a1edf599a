// Graphs written as ONNX files, and what runtimes make of them: ONNX Runtime, and our own importer.

import { cast } from '../../../src/ir/build.ts';
import { dims, GraphBuilder, rewrite, type Graph, type Node, type NodeOf } from '../../../src/ir/graph.ts';
import { unpackBytes, type HostArray } from '../../../src/ir/value.ts';
import { writeModel } from '../../../src/onnx/export/file.ts';
import { spellGraph } from '../../../src/onnx/export/graph.ts';
import { loadOnnx } from '../../../src/onnx/index.ts';
import { fromHost } from '../../../src/tensor/record.ts';
import { readBytes } from '../../../src/tensor/evaluate/evaluate.ts';
import { handleOf } from '../../../src/tensor/tensor.ts';
import { runInPeer } from './runtime.ts';

/** The graph as a file: parameters `p0`, `p1`, …, outputs `y0`, `y1`, …. */
export function fileOf(graph: Graph, opset = 21): Uint8Array {
  const inputs = graph.parameters.map(({ dtype, shape }, i) => ({
    name: `p${i}`,
    dtype,
    shape: shape as readonly number[],
  }));
  const outputs = graph.outputs.map((node, i) => ({ name: `y${i}`, dtype: node.dtype, shape: dims(node) }));
  const taken = inputs.map(({ name }) => name);
  const names = outputs.map(({ name }) => name);
  const spelled = spellGraph(graph, opset, (_, i) => inputs[i]!, names, taken);
  return writeModel({ ...spelled, name: 'test', opset, inputs, outputs }, undefined).bytes;
}

/** The same program with f32 where bf16 goes in and out, which the runtime's own arrays cannot hold. */
export function withoutBf16(graph: Graph): Graph {
  const b = new GraphBuilder();
  const parameters: NodeOf<'parameter'>[] = [];
  const replaced = new Map<Node, Node>();
  for (const parameter of graph.parameters) {
    const { attrs, dtype } = parameter;
    const given = b.add('parameter', [], { ...attrs, dtype: dtype === 'bf16' ? 'f32' : dtype });
    parameters.push(given);
    replaced.set(parameter as Node, cast(b, given as Node, dtype));
  }
  const { outputs } = rewrite(graph, (node) => replaced.get(node), b);
  return {
    parameters,
    outputs: outputs.map((node) => (node.dtype === 'bf16' ? cast(b, node, 'f32') : node)),
  };
}

/** What ONNX Runtime gives for a file of `fileOf`. */
export async function inPeer(file: Uint8Array, inputs: readonly HostArray[]): Promise<HostArray[]> {
  const given = Object.fromEntries(inputs.map((x, i) => [`p${i}`, x]));
  return Object.values(await runInPeer(file, given));
}

/** What our importer gives for it, on the current device. */
export async function inOurs(file: Uint8Array, inputs: readonly HostArray[]): Promise<HostArray[]> {
  const model = await loadOnnx(file);
  const given = inputs.map(({ data, shape, dtype }, i) => [`p${i}`, fromHost(data, shape, dtype)] as const);
  const results = Object.values(await model.run(Object.fromEntries(given)));
  return Promise.all(
    results.map(async (tensor) => unpackBytes(await readBytes(handleOf(tensor)), tensor.dtype, tensor.shape)),
  );
}
