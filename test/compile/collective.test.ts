// Compiled programs over several processes, on every device that runs them: each rank compiles and runs the program of its own, and
// all together compute what the interpreter says of the graph over all of them.

import { afterAll, describe, expect, test } from 'vitest';
import { DeviceError } from '../../src/errors.ts';
import { allGather, allReduce, rankIndex } from '../../src/ir/collectives.ts';
import { add, binary, broadcast, constant, reshape, unary, where } from '../../src/ir/build.ts';
import { isCollective } from '../../src/ir/ops.ts';
import { checkLimits } from '../../src/runtime/limits.ts';
import { everyStep } from '../../src/runtime/program.ts';
import { openNativeDevice } from '../../src/runtime/native/node.ts';
import { compilerEnv, withoutCompiler } from '../runtime/native/machine.ts';
import { isQuick } from '../support/sample.ts';
import { simulate } from '../support/ranks/on-mesh.ts';
import { compileGraph, optimise, type CompiledGraph, type CompileOptions } from '../../src/compile.ts';
import { interpret } from '../../src/ir/interpret/interpret.ts';
import { packBytes } from '../../src/ir/value.ts';
import { topological, type Node } from '../../src/ir/graph.ts';
import { isCombinedByKernel } from '../../src/schedule/passes/collectives.ts';
import type { Device } from '../../src/runtime/device.ts';
import { interpreterBackend } from '../../src/runtime/interpreter/device.ts';
import { WasmDevice } from '../../src/runtime/wasm/device.ts';
import { targetOf, targetOfName } from '../../src/schedule/target.ts';
import { inStep } from '../support/ranks/world.ts';
import { given, mesh, ofLoops, ofType, onDevice, tolerances } from '../support/ranks/square.ts';
import { localProgram, stackedRanks, type LocalProgram } from '../support/ranks/program.ts';
import { checkLaw, checkLawAsync } from '../support/property.ts';
import { expectClose } from '../support/random/graph.ts';

const opened: Device[] = [await interpreterBackend.open(), await WasmDevice.open('wasm', { threads: 1 })];
if (withoutCompiler === undefined && !isQuick) {
  const options = { threads: 1, wait: true, env: compilerEnv, patience: 900_000 };
  opened.push(await openNativeDevice('native', options));
}
afterAll(() => Promise.all(opened.map((device) => device.destroy())));

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

const target = targetOfName('wasm')!;

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
    const ordersOn = (...names: readonly string[]): string[] =>
      names.flatMap((name) =>
        [0, 3].map((rank) => meetingsOf(compileGraph(graph, targetOfName(name)!, { rank })).join('\n')),
      );
    const orders = ordersOn('wasm', 'native', 'webgpu:software');
    expect(orders.length).toBe(6);
    expect(new Set(orders).size).toBe(1);
    // CUDA devices meet each other alone.
    expect(new Set(ordersOn('cuda')).size).toBe(1);
    const recorded = topological(graph.outputs).filter(({ op }) => isCollective(op));
    expect(orders[0]!.split('\n').filter((line) => line !== '').length).toBe(recorded.length);
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
  const on = targetOfName('webgpu')!;
  const { program } = compileGraph(graph, on, { rank: 0 });
  expect(() => checkLimits(program, { name: 'webgpu', limits: on.limits, combining: on.combining })).toThrow(
    /programs of several processes do not run on it\n {2}try: the devices cuda, native, wasm and interpreter/,
  );
});

test('kernels combine on every target that combines on a stream, and on no other', () => {
  const { graph } = ofType('f16');
  for (const combining of ['communicator', 'stream', 'nobody'] as const) {
    const combined = topological(graph.outputs).filter((node) =>
      isCombinedByKernel(node as Node, { combining }),
    );
    expect(combined.length > 0).toBe(combining === 'stream');
  }
});

test.each(['f16', 'bf16', 'i16', 'u16'] as const)('%s is combined by kernels on CUDA', (dtype) => {
  const cuda = targetOfName('cuda')!;
  const kinds = (rank: number): string[] =>
    [...everyStep(compileGraph(ofType(dtype).graph, cuda, { rank }).program.steps)].flatMap((step) =>
      step.kind === 'collective' ? [step.action.kind] : [],
    );
  expect(kinds(0)).not.toContain('allReduce');
  expect(kinds(0)).not.toContain('reduceScatter');
  expect(kinds(3)).toEqual(kinds(0));
});

test('a CUDA device refuses a program whose elements NCCL combines in another way', () => {
  const { graph } = ofType('f16');
  const { program } = compileGraph(graph, target, { rank: 0 });
  const { limits, combining } = targetOfName('cuda')!;
  expect(() =>
    checkLimits(
      {
        ...program,
        target: 'cuda',
        kernels: [],
        steps: program.steps.filter(({ kind }) => kind === 'collective'),
      },
      { name: 'cuda', limits, combining },
    ),
  ).toThrow(
    expect.objectContaining({
      code: 'E_UNSUPPORTED',
      message: expect.stringContaining('NCCL does not combine f16 by sum'),
    }) as Error,
  );
});

test('sums of many elements are exchanged in parts, also where these are not equal', () => {
  for (const size of [4096, 5001]) {
    const { graph } = given([['f16', [size]]], (b, x) => [allReduce(b, x, mesh, ['a', 'b'], 'sum')]);
    const { program } = compileGraph(graph, targetOfName('cuda')!, { rank: 1 });
    const part = Math.ceil(size / 4);
    expect(
      program.steps.flatMap((step) => (step.kind === 'collective' ? [[step.action.kind, step.sends]] : [])),
    ).toEqual([
      ['allToAll', 8 * part],
      ['allGather', 2 * part],
    ]);
  }
});
