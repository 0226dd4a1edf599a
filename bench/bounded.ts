// What kernels cost of whose axes a run says how much there is, beside programs compiled for just that much: `npx tsx
// bench/bounded.ts [wasm | wasm:1 | wasm:2 | webgpu:software]`. Milliseconds a run, the least of many in turns, and the ratio.

import { compileGraph } from '../src/compile.ts';
import '../src/compile/all.ts';
import { below, bounded, broadcast, div, reduceKeep, sub, unary } from '../src/ir/build.ts';
import { dims, GraphBuilder, type Graph, type Node, type NodeOf } from '../src/ir/graph.ts';
import { hostArray, packBytes } from '../src/ir/value.ts';
import { sizeOf } from '../src/ir/shape.ts';
import type { Device } from '../src/runtime/device.ts';
import { openDevice } from '../src/runtime/registry.ts';
import { targetOf } from '../src/schedule/target.ts';

/** A program over a capacity; without a bound it uses all of it. */
type Make = (p: (...shape: number[]) => Node, b: GraphBuilder, capacity: number, n: Node | undefined) => Node;

const masked = (b: GraphBuilder, x: Node, axis: number, n: Node | undefined, fill = 0): Node =>
  n === undefined ? x : below(b, x, axis, n, fill);
const asked = (b: GraphBuilder, x: Node, axis: number, n: Node | undefined): Node =>
  n === undefined ? x : bounded(b, x, axis, n);

function softmax(b: GraphBuilder, x: Node): Node {
  const last = x.shape.length - 1;
  const powers = unary(b, 'exp', sub(b, x, broadcast(b, reduceKeep(b, 'max', x, [last]), dims(x))));
  return div(b, powers, broadcast(b, reduceKeep(b, 'sum', powers, [last]), dims(x)));
}

function product(
  b: GraphBuilder,
  x: Node,
  y: Node,
  i: number,
  j: number,
  batch: readonly number[] = [],
): Node {
  const attrs = {
    lhsBatch: batch,
    rhsBatch: batch,
    lhsContract: [i],
    rhsContract: [j],
    dtype: 'f32',
  } as const;
  return b.add('dot', [x, y], attrs) as Node;
}

const programs: Readonly<Record<string, Make>> = {
  'softmax of rows': (p, b, c, n) => asked(b, softmax(b, masked(b, p(512, c), 1, n, -Infinity)), 1, n),
  'sums of rows': (p, b, c, n) => reduceKeep(b, 'sum', masked(b, p(512, c), 1, n), [1]),
  'exp of rows': (p, b, c, n) => asked(b, unary(b, 'exp', p(c, 512)), 0, n),
  'product, bounded k': (p, b, c, n) =>
    product(b, masked(b, p(256, c), 1, n), masked(b, p(c, 256), 0, n), 1, 0),
  'product, bounded rows': (p, b, c, n) => asked(b, product(b, p(c, 256), p(256, 256), 1, 0), 0, n),
  'one query over keys': (p, b, c, n) => {
    const scores = masked(b, product(b, p(8, 1, 64), p(8, c, 64), 2, 2, [0]), 2, n, -Infinity);
    return product(b, softmax(b, scores), p(8, c, 64), 2, 1, [0]);
  },
  'attention among the first': (p, b, c, n) => {
    const scores = masked(b, product(b, p(2, c, 64), p(2, c, 64), 2, 2, [0]), 2, n, -Infinity);
    return asked(b, product(b, softmax(b, scores), masked(b, p(2, c, 64), 1, n), 2, 1, [0]), 1, n);
  },
};

function record(make: Make, capacity: number, isBounded: boolean): Graph {
  const b = new GraphBuilder();
  const parameters: NodeOf<'parameter'>[] = [];
  const add = (dtype: 'f32' | 'i32', shape: readonly number[]): Node => {
    const index = parameters.length;
    const made = b.add('parameter', [], { index, name: `p${index}`, dtype, shape });
    parameters.push(made);
    return made as Node;
  };
  const n = isBounded ? add('i32', []) : undefined;
  const output = make((...shape) => add('f32', shape), b, capacity, n);
  return { parameters, outputs: [output] };
}

/** A run of a program, of which `n` elements are asked for. */
function runner(device: Device, graph: Graph, n: number): () => Promise<void> {
  const { program, kernels } = compileGraph(graph, targetOf(device.facts));
  if (process.env['SHOW'] !== undefined)
    console.log(
      kernels.map(({ schedule, source }) => schedule + (process.env['SHOW'] === '2' ? source : '')),
    );
  const loaded = device.load(program);
  const buffers = program.buffers.map(({ role, bytes }) =>
    role === 'scratch' ? undefined : device.allocate(bytes),
  );
  const list = (at: readonly number[]): NonNullable<(typeof buffers)[number]>[] => at.map((i) => buffers[i]!);
  for (const [i, at] of program.inputs.entries()) {
    const { dtype } = graph.parameters[i]!;
    const shape = dims(graph.parameters[i] as Node);
    const values =
      dtype === 'i32' ? [n] : Float32Array.from({ length: sizeOf(shape) }, (_, k) => Math.sin(k));
    device.write(buffers[at]!, packBytes(hostArray(dtype, shape, values)));
  }
  return async () => {
    loaded.run(list(program.inputs), list(program.outputs), []);
    await device.read(buffers[program.outputs[0]!]!, 4);
  };
}

async function measure(runs: readonly (() => Promise<void>)[], rounds: number): Promise<number[]> {
  const least = runs.map(() => Infinity);
  for (let round = 0; round < rounds; round++)
    for (const [i, run] of runs.entries()) {
      const start = performance.now();
      await run();
      least[i] = Math.min(least[i]!, performance.now() - start);
    }
  return least;
}

const device = await openDevice(process.argv[2] ?? 'wasm');
const capacity = 2048;
const wanted = process.argv[3];
console.log(`${device.facts.name} (${device.facts.description}), capacity ${capacity}`);
for (const [name, make] of Object.entries(programs)) {
  if (wanted !== undefined && !name.includes(wanted)) continue;
  for (const n of [capacity / 64, capacity / 8, capacity]) {
    const runs = [runner(device, record(make, capacity, true), n), runner(device, record(make, n, false), n)];
    await measure(runs, 2);
    const [own, exact] = await measure(runs, 12);
    const figures = `${own!.toFixed(2)} ms, compiled for it ${exact!.toFixed(2)} ms: ${(own! / exact!).toFixed(2)}`;
    console.log(`${name.padEnd(28)} n = ${String(n).padEnd(5)} ${figures}`);
  }
}
process.exit(0);
