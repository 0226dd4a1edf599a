// Compiled programs over several processes, on every device that runs them: each rank compiles and runs the program of its own, and
// all together compute what the interpreter says of the graph over all of them.

import { afterAll, describe, expect, test } from 'vitest';
import { DeviceError } from '../../src/errors.ts';
import {
  allGather,
  allReduce,
  allToAll,
  broadcastRank,
  permuteRanks,
  rankIndex,
  reduceScatter,
} from '../../src/ir/collectives.ts';
import { add, binary, broadcast, cast, constant, mul, reshape, unary, where } from '../../src/ir/build.ts';
import { iterate } from '../../src/ir/control/iterate.ts';
import type { DType } from '../../src/ir/dtype.ts';
import { parseMesh } from '../../src/ir/mesh/mesh.ts';
import { isCollective } from '../../src/ir/ops.ts';
import { regionOf } from '../../src/ir/text/region.ts';
import { checkLimits } from '../../src/runtime/limits.ts';
import { everyStep } from '../../src/runtime/program.ts';
import { openNativeDevice } from '../../src/runtime/native/node.ts';
import { graphOf } from '../ir/arrays.ts';
import { compilerEnv, withoutCompiler } from '../runtime/native/machine.ts';
import { isQuick } from '../support/sample.ts';
import { randomArray } from '../support/random/values.ts';
import { simulate } from '../support/ranks/on-mesh.ts';
import { compileGraph, optimise, type CompiledGraph, type CompileOptions } from '../../src/compile.ts';
import { interpret } from '../../src/ir/interpret/interpret.ts';
import { unpackBytes, packBytes, type HostArray } from '../../src/ir/value.ts';
import { dims, GraphBuilder, topological, type Graph, type Node } from '../../src/ir/graph.ts';
import type { Communicator } from '../../src/runtime/communicator.ts';
import type { Device } from '../../src/runtime/device.ts';
import { interpreterBackend } from '../../src/runtime/interpreter/device.ts';
import { WasmDevice } from '../../src/runtime/wasm/device.ts';
import { targetOf, targetOfName } from '../../src/schedule/target.ts';
import { inStep } from '../support/ranks/world.ts';
import { localProgram, stackedRanks, type LocalProgram } from '../support/ranks/program.ts';
import { checkLaw, checkLawAsync } from '../support/property.ts';
import { expectClose } from '../support/random/graph.ts';

const opened: Device[] = [await interpreterBackend.open(), await WasmDevice.open('wasm', { threads: 1 })];
if (withoutCompiler === undefined && !isQuick) {
  const options = { threads: 1, wait: true, env: compilerEnv, patience: 900_000 };
  opened.push(await openNativeDevice('native', options));
}
afterAll(() => Promise.all(opened.map((device) => device.destroy())));

/** What a rank computes on a device. */
async function onDevice(
  device: Device,
  { program, host }: CompiledGraph,
  graph: Graph,
  inputs: readonly HostArray[],
  communicator: Communicator,
): Promise<HostArray[]> {
  device.join!(communicator);
  const loaded = device.load(program, host);
  const given = program.inputs.map((index, i) => {
    const buffer = device.allocate(program.buffers[index]!.bytes);
    device.write(buffer, packBytes(inputs[i]!));
    return buffer;
  });
  const fresh = loaded.allocateOutputs();
  const distinct = [...new Set(program.outputs)].filter((index) => program.buffers[index]!.role === 'output');
  const outputs = program.outputs.map((index) => {
    const at = distinct.indexOf(index);
    return at >= 0 ? fresh[at]! : given[program.inputs.indexOf(index)]!;
  });
  try {
    loaded.run(given, outputs, []);
    return await Promise.all(
      graph.outputs.map(async (node, i) => {
        const bytes = program.buffers[program.outputs[i]!]!.bytes;
        return unpackBytes(await device.read(outputs[i]!, bytes), node.dtype, dims(node));
      }),
    );
  } finally {
    loaded.destroy();
    for (const buffer of new Set([...given, ...outputs])) buffer.destroy();
  }
}

async function check(
  device: Device,
  { graph, mesh, inputs }: LocalProgram,
  tolerance: number,
  options: CompileOptions = {},
): Promise<void> {
  const compiled = inputs.map((_, rank) =>
    compileGraph(graph, targetOf(device.facts), { rank, check: true, ...options }),
  );
  const ranks = await inStep(mesh.size, (communicator) => {
    const { rank } = communicator;
    return onDevice(device, compiled[rank]!, graph, inputs[rank]!, communicator);
  });
  const expected = interpret(
    simulate(graph, mesh),
    graph.parameters.map((_, i) => stackedRanks(inputs.map((each) => each[i]!))),
  );
  graph.outputs.forEach((_, i) => {
    expectClose(stackedRanks(ranks.map((outputs) => outputs[i]!)), expected[i]!, tolerance);
  });
}

const mesh = parseMesh('a=2,b=2')!;
const target = targetOfName('wasm')!;

/** One program of random inputs of these types. */
function given(
  types: readonly (readonly [DType, readonly number[]])[],
  build: (b: GraphBuilder, ...nodes: Node[]) => Node[],
): LocalProgram {
  const inputs = Array.from({ length: mesh.size }, (_, rank) =>
    types.map(([dtype, shape], i) => randomArray(dtype, shape, 7 * rank + i, 'tame')),
  );
  return { mesh, graph: graphOf(inputs[0]!, build), inputs };
}

/** A program with all collectives, of values of this type. */
function ofType(dtype: DType): LocalProgram {
  const fold = dtype === 'bool' ? 'or' : 'sum';
  return given([[dtype, [8, 3]]], (b, x) => [
    allReduce(b, x, mesh, ['a', 'b'], fold),
    allGather(b, x, mesh, ['b', 'a']),
    reduceScatter(b, x, mesh, ['a'], fold),
    allToAll(b, x, mesh, ['b']),
    permuteRanks(
      b,
      x,
      mesh,
      ['a', 'b'],
      [
        [0, 3],
        [3, 1],
      ],
    ),
    broadcastRank(b, x, mesh, ['a'], 1),
  ]);
}

/** A loop that meets in its iterations, between other collectives. */
function ofLoops(trips: number): LocalProgram {
  return given(
    [
      ['f32', [2]],
      ['f32', [trips, 2]],
    ],
    (b, first, rows) => {
      const inside = new GraphBuilder();
      const parameter = (index: number, dtype: DType, shape: readonly number[]) =>
        inside.add('parameter', [], { index, name: `p${index}`, dtype, shape });
      const parameters = [parameter(0, 'i32', []), parameter(1, 'f32', [2]), parameter(2, 'f32', [2])];
      const [, x, row] = parameters as unknown as readonly [Node, Node, Node];
      const place = broadcast(inside, cast(inside, rankIndex(inside, mesh, ['b']), 'f32'), [2]);
      const sum = allReduce(inside, mul(inside, x, place), mesh, ['a'], 'sum');
      const next = unary(inside, 'sin', add(inside, sum, row));
      const body = regionOf({
        parameters,
        outputs: [next, permuteRanks(inside, next, mesh, ['b'], [[1, 0]])],
      });
      const before = allReduce(b, first, mesh, ['b'], 'sum');
      const attrs = { body, carries: 1, stacked: 1, trips, reverse: false, recompute: false, guard: -1 };
      const [last, stack] = iterate(b, [first, rows], attrs);
      return [last!, allReduce(b, stack!, mesh, ['a'], 'max'), before];
    },
  );
}

const tolerances: Partial<Record<DType, number>> = {
  f16: 4e-3,
  bf16: 3e-2,
  f32: 1e-4,
  f64: 1e-12,
  c64: 1e-4,
};

describe.each(opened.map((device) => [device.facts.name, device] as const))('%s', (name, device) => {
  const runs = name === 'native' ? 4 : 40;
  test.each(['f32', 'f64', 'i32'] as const)('random programs of %s', async (dtype) => {
    const tolerance = { f32: 1e-3, f64: 1e-9, i32: 0 }[dtype];
    await checkLawAsync(runs, localProgram({ dtype }), (program) => check(device, program, tolerance));
  });

  test.each(['bool', 'i8', 'u16', 'u32', 'i64', 'f16', 'bf16', 'f64', 'c64'] as const)(
    'every collective of %s',
    async (dtype) => {
      await check(device, ofType(dtype), tolerances[dtype] ?? 0);
    },
  );

  test.each([1, 2, 5])('a loop of %i iterations that meets in each', async (trips) => {
    await check(device, ofLoops(trips), 1e-5);
  });

  test('numbers, constants and results that come from collectives alone', async () => {
    const program = given(
      [
        ['f32', []],
        ['f32', [4]],
      ],
      (b, number, x) => [
        allReduce(b, number, mesh, ['a'], 'sum'),
        allReduce(b, broadcast(b, constant(b, 3, 'f32'), [4]), mesh, ['a', 'b'], 'sum'),
        add(b, broadcast(b, allReduce(b, number, mesh, ['b'], 'max'), [4]), x),
        allGather(b, reshape(b, allReduce(b, x, mesh, ['a'], 'sum'), [2, 2]), mesh, ['b']),
      ],
    );
    await check(device, program, 1e-5);
  });

  test('without other processes it says what to call', async () => {
    const alone = name === 'interpreter' ? await interpreterBackend.open() : undefined;
    const of = alone ?? (await WasmDevice.open('wasm', { threads: 1 }));
    const { graph, inputs } = ofType('f32');
    const { program, host } = compileGraph(graph, targetOf(of.facts), {});
    const loaded = of.load(program, host);
    const given = program.inputs.map((index) => of.allocate(program.buffers[index]!.bytes));
    given.forEach((buffer, i) => of.write(buffer, packBytes(inputs[0]![i]!)));
    const outputs = loaded.allocateOutputs();
    const run = async (): Promise<unknown> => {
      loaded.run(given, outputs, []);
      return of.read(outputs[0]!, 4);
    };
    await expect(run()).rejects.toThrow(
      /the program needs 4 processes: the device has joined none\n {2}try: join of/,
    );
    of.join!({ description: 'one', rank: 0, size: 1, run: () => undefined });
    await expect(run()).rejects.toThrow(/needs 4 processes: the device has joined 1/);
    await of.destroy();
  });
});

test('a failed collective is a failure of the device, at the next read', async () => {
  const device = await WasmDevice.open('wasm', { threads: 1 });
  device.join({
    description: 'broken',
    rank: 0,
    size: 4,
    run: () => {
      throw new DeviceError('E_COLLECTIVE', 'wasm', 'rank 2 has ended in allReduce');
    },
  });
  const { graph } = ofType('f32');
  const { program } = compileGraph(graph, targetOf(device.facts), {});
  const loaded = device.load(program);
  const inputs = program.inputs.map((index) => device.allocate(program.buffers[index]!.bytes));
  const outputs = loaded.allocateOutputs();
  loaded.run(inputs, outputs, []);
  await expect(device.read(outputs[0]!, 4)).rejects.toMatchObject({ code: 'E_COLLECTIVE' });
  await device.destroy();
});

/** The collectives of a program, in order. */
const meetingsOf = ({ program }: CompiledGraph): string[] =>
  [...everyStep(program.steps)].flatMap((step) =>
    step.kind === 'collective' ? [JSON.stringify([step.action, step.ranks, step.axes, step.sends])] : [],
  );

test('all processes meet in one order, whatever they run and whoever they are', () => {
  checkLaw(60, localProgram({ steps: 10, dtype: 'f32', meshes: ['a=2,b=2'] }), ({ graph }) => {
    const orders = ['wasm', 'native', 'cuda', 'webgpu:software'].flatMap((name) => {
      const on = targetOfName(name);
      if (on === undefined) return [];
      return [0, 3].map((rank) => meetingsOf(compileGraph(graph, on, { rank })).join('\n'));
    });
    expect(orders.length).toBe(8);
    expect(new Set(orders).size).toBe(1);
    const recorded = topological(graph.outputs).filter(({ op }) => isCollective(op));
    expect(orders[0]!.split('\n').length).toBe(recorded.length);
  });
});

test('a choice by the place of a process drops no collective', () => {
  const program = given([['f32', [4]]], (b, x) => {
    const isFirst = binary(b, 'eq', rankIndex(b, mesh, ['a', 'b']), 0);
    return [where(b, broadcast(b, isFirst, [4]), allReduce(b, x, mesh, ['a', 'b'], 'sum'), x)];
  });
  for (const rank of [0, 1, 2, 3])
    expect(meetingsOf(compileGraph(program.graph, target, { rank }))).toHaveLength(1);
});

test('the part at the place of a process is a slice', () => {
  const { graph } = given([['f32', [4, 5]]], (b, x) => {
    const at = broadcast(b, rankIndex(b, mesh, ['b', 'a']), [1, 5]);
    return [unary(b, 'sin', b.add('gather', [x, at], { axis: 0 }) as Node)];
  });
  const ops = [1, 2].map((rank) => optimise(graph, { ...target, rank }, true).outputs[0]!.inputs[0]!);
  expect(ops.map(({ op, attrs }) => [op, (attrs as { start: unknown }).start])).toEqual([
    ['slice', [2, 0]],
    ['slice', [1, 0]],
  ]);
});

test('a place is asked for where a program is for no process', () => {
  const { graph } = given([], (b) => [rankIndex(b, mesh, ['a'])]);
  expect(() => compileGraph(graph, target)).toThrow(expect.objectContaining({ code: 'E_STATE' }) as Error);
  expect(() => compileGraph(graph, target, { rank: 4 })).toThrow(/the mesh a=2,b=2 has no process 4/);
});

test('a sum over processes is written over what is given away for it', () => {
  const { graph } = given([['f32', [8]]], (b, x) => [allReduce(b, x, mesh, ['a'], 'sum')]);
  const { program } = compileGraph(graph, target, { donate: new Map([[0, 0]]) });
  expect(program.donated).toEqual([{ output: 0, input: 0 }]);
  const [step] = program.steps;
  expect(step?.kind === 'collective' && step.from === step.to).toBe(true);
});

test('devices that run no collectives refuse them', () => {
  const { graph } = ofType('f32');
  for (const name of ['cuda', 'webgpu']) {
    const on = targetOfName(name)!;
    const { program } = compileGraph(graph, on, { rank: 0 });
    expect(() => checkLimits(program, { name, limits: on.limits })).toThrow(
      /programs of several processes do not run on it\n {2}try: the devices native, wasm and interpreter/,
    );
  }
});
