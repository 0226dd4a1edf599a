// The programs whose kernels are compared between revisions: every counted workload, every operation's call and its gradient, and
// the golden programs, compiled for every target. Nothing runs on a device but what makes inputs, on the interpreter.

import { createHash } from 'node:crypto';
import { compileGraph } from '../../src/compile.ts';
import { manualSeed, setDevice, type Tensor } from '../../src/index.ts';
import { isFloat } from '../../src/ir/dtype.ts';
import type { Graph } from '../../src/ir/graph.ts';
import { cudaTarget, gpuTarget, softwareTarget, wasmTarget, type Target } from '../../src/schedule/target.ts';
import { traceFunction } from '../../src/tensor/derivative/transform.ts';
import { workloads } from '../../src/workloads/all.ts';
import { Sketch } from '../../test/codegen/cases.ts';
import { goldenPrograms } from '../../test/codegen/golden-programs.ts';
import { givenOf, recorded, tensorsIn, type Inputs } from '../../test/support/coverage/call.ts';
import { allRows, type Row } from '../operations/rows.ts';

/** The targets, by the name that stands in the manifest and in file names. */
const targets: Readonly<Record<string, Target>> = {
  'wgsl-gpu': gpuTarget,
  'wgsl-software': softwareTarget,
  cuda: cudaTarget,
  wasm: wasmTarget,
};

/** A program, and the kernels that are generated of it. */
export interface Replayed {
  /** `GROUP/NAME`. */
  readonly name: string;
  /** By target, all its kernels in the order in which they run, or what the compiler says instead. */
  readonly sources: () => Readonly<Record<string, string>>;
}

/** A program that is compiled for every target. */
interface Source {
  readonly name: string;
  readonly graph: () => Graph;
}

/** Every program. Call their `sources` one after another: tracing draws from one generator. */
export async function replayed(): Promise<readonly Replayed[]> {
  setDevice('interpreter');
  const counted = workloads.map(({ name, fn, args }): Source => ({
    name: `workload/${name}`,
    graph: () => traceFunction(fn as (...args: never[]) => unknown, args()).graph,
  }));
  const operations: Source[] = [];
  for (const row of allRows()) {
    if (row.eager !== undefined) continue;
    const inputs = await givenOf(row);
    operations.push({ name: `operation/${row.name}`, graph: () => operation(row, inputs) });
    operations.push({ name: `gradient/${row.name}`, graph: () => gradientOf(row, inputs) });
  }
  const golden = Object.entries(goldenPrograms).map(([name, [target, make]]): Replayed => {
    const sketch = new Sketch();
    const graph = (): Graph => sketch.graph(make(sketch));
    return { name: `golden/${name}`, sources: () => ({ [target.id]: sourceOf(graph, target) }) };
  });
  const everywhere = [...counted, ...operations].map(({ name, graph }): Replayed => {
    const entries = Object.entries(targets);
    const sources = (): Readonly<Record<string, string>> =>
      Object.fromEntries(entries.map(([id, target]) => [id, sourceOf(graph, target)]));
    return { name, sources };
  });
  return [...golden, ...everywhere];
}

function sourceOf(graph: () => Graph, target: Target): string {
  manualSeed(7);
  try {
    const { kernels } = compileGraph(graph(), target);
    return kernels.map(({ name, source }) => `// ${name}\n${source}`).join('\n');
  } catch (error) {
    // Below the first line stands where it was called.
    return `// refused: ${(error as Error).message.split('\n')[0]}`;
  }
}

/** A short hash of each target's kernels: the line of a program in the manifest. */
export function hashesOf(sources: Readonly<Record<string, string>>): string {
  const hash = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 8);
  return Object.entries(sources)
    .map(([id, text]) => `${id} ${text === '' ? 'none' : hash(text)}`)
    .join(', ');
}

function operation(row: Row, inputs: Inputs): Graph {
  const names = Object.keys(inputs);
  const values = tensorsIn(inputs, false);
  const fn = (...args: Tensor[]): readonly Tensor[] =>
    recorded(row, 'f32', Object.fromEntries(names.map((name, i) => [name, args[i]!])));
  return traceFunction(
    fn as (...args: never[]) => unknown,
    names.map((name) => values[name]!),
  ).graph;
}

function gradientOf(row: Row, inputs: Inputs): Graph {
  const names = Object.keys(inputs);
  const values = tensorsIn(inputs, false);
  const fn = (...args: Tensor[]): readonly Tensor[] => {
    const leaves = args.map((x) => (isFloat(x.dtype) ? x.detach().requiresGrad_() : x));
    const results = recorded(row, 'f32', Object.fromEntries(names.map((name, i) => [name, leaves[i]!])));
    const sums = results.filter(({ dtype, requiresGrad }) => isFloat(dtype) && requiresGrad);
    for (const result of sums) result.sum().backward();
    return leaves.flatMap(({ grad }) => (grad === undefined ? [] : [grad]));
  };
  return traceFunction(
    fn as (...args: never[]) => unknown,
    names.map((name) => values[name]!),
  ).graph;
}
