// Emitted modules on a real adapter, against the Loop interpreter: packing of every dtype, words shared by invocations, constants
// that WGSL would refuse, names it would refuse, scalars, barriers, random words.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  arithmetic,
  addInts,
  builtin,
  constant,
  less,
  LoopBuilder,
  mulInts,
  operation,
} from '../../../src/codegen/loop/builder.ts';
import type {
  Loop,
  LoopBuffer,
  LoopOp,
  RegisterType,
  Stmt,
  Value,
  Width,
} from '../../../src/codegen/loop/loop.ts';
import { interpretLoop } from '../../support/interpret/run.ts';
import { widened } from '../../../src/codegen/loop/register.ts';
import { verifyLoop } from '../../../src/codegen/loop/verify.ts';
import { emitWgsl, isTaken } from '../../../src/codegen/emit/wgsl/emit.ts';
import { integerFunctions } from '../../../src/codegen/emit/wgsl/prelude.ts';
import { mathFunctions } from '../../../src/codegen/emit/wgsl/prelude-math.ts';
import { memoryFunctions } from '../../../src/codegen/emit/wgsl/prelude-memory.ts';
import { wideFunctions } from '../../../src/codegen/emit/wgsl/prelude-wide.ts';
import { SinterError } from '../../../src/errors.ts';
import {
  dtypeBytes,
  realDTypes as dtypes,
  isInteger,
  integerRange,
  type DType,
} from '../../../src/ir/dtype.ts';
import { randomWords } from '../../../src/ir/interpret/random.ts';
import { emptyData, fromReal, hostArray, type HostData } from '../../../src/ir/value.ts';
import type { Device } from '../../../src/runtime/device.ts';
import { openWebGpu } from '../../../src/runtime/webgpu/open.ts';
import '../../../src/compile/all.ts';
import { runLoop, type Arrays } from '../run-loop.ts';
import { randomInt, randomReal } from '../values.ts';

let device: Device;
beforeAll(async () => {
  device = await openWebGpu('webgpu:software');
});
afterAll(() => device.destroy());

const global = (
  name: string,
  dtype: DType,
  size: number,
  access: LoopBuffer['access'] = 'read_write',
): LoopBuffer => ({ name, space: 'global', dtype, size, access });
const shared = (name: string, size: number): LoopBuffer => ({
  name,
  space: 'workgroup',
  dtype: 'f32',
  size,
  access: 'read_write',
});
const load = (buffer: string, index: Value, type: RegisterType, width: Width = 1, aligned = true): Value => ({
  kind: 'load',
  buffer,
  index,
  aligned,
  type,
  width,
});
const local = builtin('local', 0);
const group = builtin('workgroup', 0);

function makeLoop(buffers: readonly LoopBuffer[], body: readonly Stmt[], more: Partial<Loop> = {}): Loop {
  const base = { name: 'kernel', kind: 'test', header: ['a test'], usesScalars: false };
  return { ...base, buffers, body, grid: [1, 1, 1], workgroup: [1, 1, 1], ...more };
}

/** Runs on the device and in the interpreter from the same arrays, and compares every element of every buffer. */
async function agree(loop: Loop, arrays: Arrays, scalars: readonly number[] = []): Promise<Arrays> {
  verifyLoop(loop);
  const expected: Arrays = new Map([...arrays].map(([name, data]) => [name, data.slice()]));
  interpretLoop(loop, expected, scalars);
  const actual: Arrays = new Map(arrays);
  await runLoop(device, loop, actual, scalars);
  for (const buffer of loop.buffers) {
    if (buffer.space === 'global')
      expect([...actual.get(buffer.name)!], buffer.name).toEqual([...expected.get(buffer.name)!]);
  }
  return actual;
}

const narrow = dtypes.filter((dtype) => dtypeBytes(dtype) <= 4);
const stored = widened;

/** Edges of the dtype, then random elements. */
function elements(dtype: DType, count: number): HostData {
  if (dtype === 'bool') return Uint8Array.from({ length: count }, () => randomInt(2));
  if (isInteger(dtype)) {
    const [low, high] = integerRange(dtype).map(Number) as [number, number];
    const edges = [low, high, 0, 1, high - 1, low + 1];
    const random = (): number => low + randomInt(high - low + 1);
    return hostArray(
      dtype,
      [count],
      Array.from({ length: count }, (_, i) => edges[i] ?? random()),
    ).data;
  }
  const edges = [0, -0, 1, -1, Infinity, -Infinity, NaN, 65504, 6e-8, 6.1e-5, 1e-3];
  const normal = (): number => {
    const x = fromReal(dtype)(randomReal()) as number;
    return Math.abs(x) > 2 ** -126 ? x : 1;
  };
  return hostArray(
    dtype,
    [count],
    Array.from({ length: count }, (_, i) => edges[i] ?? normal()),
  ).data;
}

describe.each(narrow)('%s in memory', (dtype) => {
  const type = stored(dtype);

  test.each([1, 2, 4] as const)('is loaded and stored unchanged, %i at a time', async (width) => {
    const size = 64;
    const b = new LoopBuilder(new Set(['y']));
    const at = b.let(mulInts(local, constant(width)), 'at');
    b.store('y', at, load('x', at, type, width), width === 4);
    const loop = makeLoop([global('x', dtype, size, 'read'), global('y', dtype, size)], b.body, {
      workgroup: [size / width, 1, 1],
    });
    const x = elements(dtype, size);
    const after = await agree(
      loop,
      new Map([
        ['x', x],
        ['y', emptyData(dtype, size)],
      ]),
    );
    expect(after.get('y')).toEqual(x);
  });

  test('one by one and by twos where four at a time are read more often', async () => {
    const b = new LoopBuilder(new Set(['y', 'z']));
    const at = b.let(mulInts(local, constant(4)), 'at');
    b.for('skip', constant(0), constant(8), 4, (skip) => {
      b.store('y', at, load('x', addInts(at, skip), type, 4), true);
    });
    b.store('z', addInts(at, constant(1)), load('x', addInts(at, constant(2)), type, 2), true);
    b.store('z', at, load('x', addInts(at, constant(3)), type), true);
    const [x, ...others] = [global('x', dtype, 68, 'read'), ...['y', 'z'].map((y) => global(y, dtype, 64))];
    const loop = makeLoop([x!, ...others], b.body, { workgroup: [16, 1, 1] });
    await agree(
      loop,
      new Map([
        ['x', elements(dtype, 68)],
        ...others.map(({ name }) => [name, elements(dtype, 64)] as const),
      ]),
    );
    if (dtypeBytes(dtype) === 2) expect(emitWgsl(loop, { scalarSlots: 0 })).toContain('x: array<vec2u, 17>');
  });

  test('is loaded from any offset', async () => {
    const b = new LoopBuilder(new Set(['y']));
    const from = b.let(addInts(mulInts(local, constant(3)), constant(1)), 'from');
    const at = b.let(mulInts(local, constant(4)), 'at');
    b.store('y', at, load('x', from, type, 4, false), true);
    const loop = makeLoop([global('x', dtype, 40, 'read'), global('y', dtype, 40)], b.body, {
      workgroup: [10, 1, 1],
    });
    await agree(
      loop,
      new Map([
        ['x', elements(dtype, 40)],
        ['y', emptyData(dtype, 40)],
      ]),
    );
  });

  test('invocations may write parts of one word at the same time', async () => {
    const size = 256;
    const b = new LoopBuilder(new Set(['y']));
    const at = b.let(addInts(mulInts(group, constant(64)), local), 'at');
    b.if(operation('ne', [operation('mod', [at, constant(5)], 'i32'), constant(0)], 'bool'), () =>
      b.store('y', at, load('x', at, type), false),
    );
    const loop = makeLoop([global('x', dtype, size, 'read'), global('y', dtype, size)], b.body, {
      grid: [4, 1, 1],
      workgroup: [64, 1, 1],
    });
    await agree(
      loop,
      new Map([
        ['x', elements(dtype, size)],
        ['y', elements(dtype, size)],
      ]),
    );
  });

  test('an owner may write parts of its word without atomics', async () => {
    const b = new LoopBuilder(new Set(['y']));
    const at = b.let(addInts(mulInts(local, constant(4)), constant(1)), 'at');
    b.store('y', at, load('x', at, type, 2, false), true);
    const loop = makeLoop([global('x', dtype, 32, 'read'), global('y', dtype, 32)], b.body, {
      workgroup: [8, 1, 1],
    });
    await agree(
      loop,
      new Map([
        ['x', elements(dtype, 32)],
        ['y', elements(dtype, 32)],
      ]),
    );
    expect(emitWgsl(loop, { scalarSlots: 0 })).not.toContain('atomic');
  });
});

test('a buffer written partly and wholly, and read back, is atomic throughout', async () => {
  const b = new LoopBuilder(new Set(['y']));
  const first = mulInts(local, constant(4));
  b.store('y', first, load('x', first, 'f32', 4), true);
  const second = b.let(addInts(local, constant(16)), 'second');
  b.store('y', second, operation('neg', [load('y', first, 'f32')], 'f32'), false);
  b.store('y', addInts(local, constant(20)), load('y', second, 'f32'), false);
  const loop = makeLoop([global('x', 'f16', 24, 'read'), global('y', 'f16', 24)], b.body, {
    workgroup: [4, 1, 1],
  });
  const source = emitWgsl(loop, { scalarSlots: 0 });
  for (const name of ['atomicStore', 'atomicLoad', 'atomicAnd', 'atomicOr']) expect(source).toContain(name);
  await agree(
    loop,
    new Map([
      ['x', elements('f16', 24)],
      ['y', elements('f16', 24)],
    ]),
  );
});

test('f32 stores to narrow floats round to nearest even', async () => {
  for (const dtype of ['f16', 'bf16'] as const) {
    const size = 4096;
    const values = Float32Array.from({ length: size }, (_, i) =>
      i % 2 === 0 ? randomReal() : (randomReal() % 70_000) * 2 ** -randomInt(30),
    ).map((x) => (Math.abs(x) < 2 ** -126 ? 65520 : x));
    const b = new LoopBuilder(new Set(['y', 'z']));
    const at = b.let(mulInts(addInts(mulInts(group, constant(64)), local), constant(4)), 'at');
    b.store('y', at, load('x', at, 'f32', 4), true);
    for (let lane = 0; lane < 4; lane++)
      b.store('z', addInts(at, constant(lane)), load('x', addInts(at, constant(lane)), 'f32'), false);
    const loop = makeLoop(
      [global('x', 'f32', size, 'read'), global('y', dtype, size), global('z', dtype, size)],
      b.body,
      { grid: [16, 1, 1], workgroup: [64, 1, 1] },
    );
    const empty = emptyData(dtype, size);
    const after = await agree(
      loop,
      new Map([
        ['x', values],
        ['y', empty],
        ['z', empty.slice()],
      ]),
    );
    expect(after.get('y')).toEqual(values.map(fromReal(dtype) as (x: number) => number));
  }
});

describe('the form of an array', () => {
  const copy = (index: Value, aligned: boolean, width: Width, size = 16): string => {
    const b = new LoopBuilder(new Set(['y']));
    b.store('y', index, load('x', index, 'f32', width, aligned), true);
    const loop = makeLoop([global('x', 'f32', size, 'read'), global('y', 'f32', size)], b.body, {
      workgroup: [2, 1, 1],
    });
    return emitWgsl(loop, { scalarSlots: 0 });
  };

  test('is vec4 where four aligned elements are read or written at once', () => {
    const source = copy(mulInts(local, constant(4)), true, 4);
    expect(source).toContain('x: array<vec4f, 4>;');
    expect(source).toContain('y: array<vec4f, 4>;');
    expect(source).toContain('y[i32(local_id.x)] = x[i32(local_id.x)];');
  });

  test('covers a size that is no multiple of four', () => {
    expect(copy(mulInts(local, constant(4)), true, 4, 13)).toContain('x: array<vec4f, 4>;');
  });

  test('is by elements where a vector may start anywhere', () => {
    const source = copy(addInts(mulInts(local, constant(4)), constant(2)), false, 4);
    expect(source).toContain('x: array<f32, 16>;');
    expect(source).toContain('y: array<f32, 16>;');
  });

  test('is by elements when anything less than a vector is written: a component write may rewrite the vector', () => {
    const b = new LoopBuilder(new Set(['y']));
    const at = mulInts(local, constant(4));
    b.store('y', at, load('x', at, 'f32', 4), true);
    b.store('y', addInts(at, constant(1)), constant(1, 'f32'), true);
    const source = emitWgsl(makeLoop([global('x', 'f32', 16, 'read'), global('y', 'f32', 16)], b.body), {
      scalarSlots: 0,
    });
    expect(source).toContain('x: array<vec4f, 4>;');
    expect(source).toContain('y: array<f32, 16>;');
  });

  test('follows the accesses in the innermost loops', async () => {
    const b = new LoopBuilder(new Set(['y']));
    const sum = b.var('sum', load('x', constant(3), 'f32'));
    b.for('k', constant(0), constant(16), 4, (k) =>
      b.assign(
        sum,
        operation(
          'add',
          [sum, { kind: 'lane', arg: load('x', k, 'f32', 4), lane: 2, type: 'f32', width: 1 }],
          'f32',
        ),
      ),
    );
    b.store('y', constant(0), sum, true);
    const loop = makeLoop([global('x', 'f32', 16, 'read'), global('y', 'f32', 1)], b.body);
    expect(emitWgsl(loop, { scalarSlots: 0 })).toContain('x: array<vec4f, 4>;');
    const x = Float32Array.from({ length: 16 }, (_, i) => i * i);
    await agree(
      loop,
      new Map([
        ['x', x],
        ['y', new Float32Array(1)],
      ]),
    );
  });
});

describe('constants', () => {
  const one = async (value: Value): Promise<number> => {
    const loop = makeLoop(
      [global('y', value.type === 'bool' ? 'u32' : value.type, 4)],
      [
        {
          kind: 'store',
          buffer: 'y',
          index: constant(0),
          value: value.type === 'bool' ? operation('cast', [value], 'u32') : value,
          owned: true,
        },
      ],
    );
    const after = await agree(loop, new Map([['y', emptyData(loop.buffers[0]!.dtype, 4)]]));
    return after.get('y')![0] as number;
  };

  test.each([
    ...[
      0,
      -0,
      1,
      -1.5,
      0.1,
      1e-30,
      3.4028234663852886e38,
      -3.4028234663852886e38,
      1e21,
      1e20,
      Infinity,
      -Infinity,
      NaN,
    ].map((value) => ['f32', value] as const),
    ...[0, -1, 2147483647, -2147483648].map((value) => ['i32', value] as const),
    ...[0, 1, 4294967295].map((value) => ['u32', value] as const),
    ...[0, 1].map((value) => ['bool', value] as const),
  ])('%s %d is written exactly', async (type, value) => {
    expect(await one(constant(value, type))).toBe(type === 'f32' ? Math.fround(value) : value);
  });

  const f = (value: number): Value => constant(value, 'f32');
  test.each([
    ['1 / 0', operation('div', [f(1), f(0)], 'f32')],
    ['0 / 0', operation('div', [f(0), f(0)], 'f32')],
    ['3e38 · 10', operation('mul', [f(3e38), f(10)], 'f32')],
    ['log 0', operation('log', [f(0)], 'f32')],
    ['sqrt −1', operation('sqrt', [f(-1)], 'f32')],
    ['rsqrt 0', operation('rsqrt', [f(0)], 'f32')],
    ['exp 1000', operation('exp', [f(1000)], 'f32')],
    ['∞ − ∞', operation('sub', [f(Infinity), f(Infinity)], 'f32')],
    ['a huge float to i32', operation('cast', [f(1e30)], 'i32')],
    ['−1.0 to u32', operation('cast', [f(-1)], 'u32')],
    ['7 / 0', operation('div', [constant(7), constant(0)], 'i32')],
    ['7 % 0', operation('mod', [constant(7), constant(0)], 'i32')],
    ['−2³¹ / −1', operation('div', [constant(-2147483648), constant(-1)], 'i32')],
    ['2³¹ − 1 + 1', arithmetic('add', [constant(2147483647), constant(1)], 'i32')],
    ['−(−2³¹)', arithmetic('neg', [constant(-2147483648)], 'i32')],
    ['0u − 1u', operation('sub', [constant(0, 'u32'), constant(1, 'u32')], 'u32')],
    ['1u << 32u', operation('shl', [constant(1, 'u32'), constant(32, 'u32')], 'u32')],
    ['−1 >> 40', operation('shr', [constant(-1), constant(40)], 'i32')],
    ['bits of ∞', operation('bitcast', [constant(0x7f800000, 'u32')], 'f32')],
    ['−(−1.0)', operation('neg', [f(-1)], 'f32')],
    ['pow(0, −1)', operation('pow', [f(0), f(-1)], 'f32')],
    ['where', operation('where', [constant(1, 'bool'), f(2), f(3)], 'f32')],
    ['NaN ≠ NaN', operation('ne', [f(NaN), f(NaN)], 'bool')],
  ] as const)('%s is left to run time', async (_, value) => {
    await one(value);
  });
});

test('operators keep their order without needless parentheses', async () => {
  const x = load('x', constant(0), 'i32');
  const y = load('x', constant(1), 'i32');
  const z = load('x', constant(2), 'i32');
  const op = (name: LoopOp, ...args: Value[]): Value => operation(name, args, args[args.length - 1]!.type);
  const test2 = (name: LoopOp, ...args: Value[]): Value => operation(name, args, 'bool');
  const seven = constant(7);
  const values: [Value, string][] = [
    [op('mul', op('add', x, y), z), '(x[0] + x[1]) * x[2]'],
    [op('add', x, op('mul', y, z)), 'x[0] + x[1] * x[2]'],
    [op('sub', x, op('sub', y, z)), 'x[0] - (x[1] - x[2])'],
    [op('sub', op('sub', x, y), z), 'x[0] - x[1] - x[2]'],
    [op('mul', x, op('div', y, seven)), 'x[0] * (x[1] / 7)'],
    [op('shl', op('add', x, y), constant(3)), '(x[0] + x[1]) << 3u'],
    [op('and', op('or', x, y), op('xor', y, z)), '(x[0] | x[1]) & (x[1] ^ x[2])'],
    [op('neg', op('neg', x)), '-(-x[0])'],
    [op('not', op('add', x, y)), '~(x[0] + x[1])'],
    [op('sub', x, constant(-3)), 'x[0] - -3'],
    [
      operation('where', [test2('lt', x, y), x, op('shr', y, constant(1))], 'i32'),
      'select((x[1] >> 1u), x[0], x[0] < x[1])',
    ],
    [
      op(
        'cast',
        test2(
          'and',
          test2('and', test2('lt', x, y), test2('le', y, z)),
          test2('or', test2('eq', x, z), test2('ne', x, y)),
        ),
        x,
      ),
      'i32(x[0] < x[1] && x[1] <= x[2] && (x[0] == x[2] || x[0] != x[1]))',
    ],
  ];
  const fixed = values.map(([value]): Value =>
    value.kind === 'op' && value.op === 'cast' ? { ...value, args: [value.args[0]!], type: 'i32' } : value,
  );
  const loop = makeLoop(
    [global('x', 'i32', 4, 'read'), global('y', 'i32', values.length)],
    fixed.map((value, i) => ({ kind: 'store', buffer: 'y', index: constant(i), value, owned: true })),
  );
  const source = emitWgsl(loop, { scalarSlots: 0 });
  values.forEach(([, text], i) => expect(source).toContain(`y[${i}] = ${text};`));
  await agree(
    loop,
    new Map([
      ['x', Int32Array.from([-19, 5, 12, 0])],
      ['y', new Int32Array(values.length)],
    ]),
  );
});

test('names that WGSL reserves, or that clash, still compile', async () => {
  const b = new LoopBuilder(new Set(['final']));
  const names = [
    'target',
    'max',
    'select',
    'x',
    'vec4f',
    'tanh_f32',
    'is_nan_f32',
    'kernel',
    'i32',
    '__odd',
    '_',
    'loop',
    'scalars',
  ];
  let sum: Value = constant(0, 'f32');
  const body: Stmt[] = [];
  names.forEach((name, i) => {
    const value = operation('tanh', [operation('max', [load('x', constant(i), 'f32'), sum], 'f32')], 'f32');
    body.push({ kind: 'let', name, value });
    sum = { kind: 'variable', name, type: 'f32', width: 1 };
  });
  body.push({
    kind: 'store',
    buffer: 'final',
    index: constant(0),
    value: operation('mul', [sum, constant(0, 'f32')], 'f32'),
    owned: true,
  });
  expect(b.body).toEqual([]);
  await agree(
    makeLoop([global('x', 'f32', 16, 'read'), global('final', 'f32', 4)], body),
    new Map([
      ['x', new Float32Array(16).fill(0.5)],
      ['final', new Float32Array(4)],
    ]),
  );
});

test('every builtin that generated code calls is kept from variables', () => {
  const templates = [...integerFunctions, ...mathFunctions, ...memoryFunctions];
  const own = new Set(templates.map((text) => /^(?:fn|struct) (\w+)/.exec(text)![1]!));
  const called = templates.flatMap((text) =>
    [...text.matchAll(/\b(\w+)(?:<\w+>)?\(/g)].map((found) => found[1]!),
  );
  const builtins = called.filter(
    (name) => !own.has(name) && !/^[FIUB]$|_(?:[fiu]32|bool)(?:x\d)?$/.test(name),
  );
  expect(builtins.length).toBeGreaterThan(50);
  expect(builtins.filter((name) => !isTaken(name) && !own.has(name) && name !== 'if')).toEqual([]);
});

test('functions that pages have from the start call none of those that they load', () => {
  const later = [...mathFunctions, ...memoryFunctions, ...wideFunctions].map(
    (text) => /^(?:fn|struct) (\w+)/.exec(text)![1]!,
  );
  const words = integerFunctions.flatMap((text) => text.match(/\w+/g) ?? []);
  expect(later.length).toBeGreaterThan(20);
  expect(words.filter((word) => later.includes(word))).toEqual([]);
});

// SwiftShader takes minutes to compile a dozen branches after one another within a loop, and the body of
// a scan has one function of each lane: `||`, `&&` and a second return are branches too.
test('functions select, and do not branch', () => {
  const texts = [...integerFunctions, ...mathFunctions, ...wideFunctions];
  const branching = texts.filter(
    (text) => /\|\||&&|\bif\b/.test(text) || text.split(/\breturn\b/).length > 2,
  );
  expect(branching.map((text) => /^fn (\w+)/.exec(text)![1])).toEqual(['reduce_F']);
});

test('a deep expression is cut into pieces that WGSL accepts', async () => {
  let value: Value = load('x', constant(0), 'i32');
  for (let i = 0; i < 600; i++)
    value = arithmetic(
      i % 2 === 0 ? 'mul' : 'add',
      [constant((i % 3) + 1), arithmetic('sub', [value, constant(i)], 'i32')],
      'i32',
    );
  const loop = makeLoop(
    [global('x', 'i32', 4, 'read'), global('y', 'i32', 4)],
    [{ kind: 'store', buffer: 'y', index: constant(0), value, owned: true }],
  );
  const source = emitWgsl(loop, { scalarSlots: 0 });
  expect(Math.max(...source.split('\n').map((line) => line.length))).toBeLessThan(400);
  await agree(
    loop,
    new Map([
      ['x', Int32Array.from([3, 0, 0, 0])],
      ['y', new Int32Array(4)],
    ]),
  );
});

test('scalars of every type are read from their words', async () => {
  const types = ['f32', 'i32', 'u32', 'bool', 'f32', 'bool'] as const;
  const values = [1.5, -7, 4294967290, 1, -0.25, 0];
  const read = (slot: number): Value => ({ kind: 'scalar', slot, type: types[slot]!, width: 1 });
  const body = types.map((type, slot): Stmt => ({
    kind: 'store',
    buffer: type,
    index: constant(slot),
    value: read(slot),
    owned: false,
  }));
  const loop = makeLoop(
    [...new Set(types)].map((type) => global(type, type, 8)),
    body,
    { usesScalars: true },
  );
  // Buffer names that are types are renamed.
  const arrays: Arrays = new Map([...new Set(types)].map((type) => [type, emptyData(type, 8)]));
  const expected: Arrays = new Map([...arrays].map(([name, data]) => [name, data.slice()]));
  interpretLoop(loop, expected, values);
  await runLoop(
    device,
    loop,
    arrays,
    values,
    types.map((dtype, i) => ({ name: `s${i}`, dtype })),
  );
  expect(arrays).toEqual(expected);
  expect(arrays.get('i32')![1]).toBe(-7);
  expect(arrays.get('u32')![2]).toBe(4294967290);
});

test('random words equal the reference at every position, one or four at a time', async () => {
  const key: [number, number] = [0xdeadbeef, 0x12345678];
  // The counter's low word overflows within the range.
  const counter: [number, number] = [0xfffffff0, 7];
  const args = [...key, ...counter].map((word) => constant(word, 'u32'));
  const b = new LoopBuilder(new Set(['y', 'z']));
  const at = b.let(addInts(mulInts(group, constant(64)), local), 'at');
  const word = (index: Value, width: Width): Value => ({
    kind: 'op',
    op: 'philox',
    args: [...args, index],
    type: 'u32',
    width,
  });
  b.store('y', at, word(at, 1), true);
  b.if(less(at, constant(64)), () =>
    b.store('z', mulInts(at, constant(4)), word(mulInts(at, constant(4)), 4), true),
  );
  const loop = makeLoop([global('y', 'u32', 256), global('z', 'u32', 256)], b.body, {
    grid: [4, 1, 1],
    workgroup: [64, 1, 1],
  });
  const after = await agree(
    loop,
    new Map([
      ['y', new Uint32Array(256)],
      ['z', new Uint32Array(256)],
    ]),
  );
  expect(after.get('y')).toEqual(randomWords(key, counter, 256));
  expect(after.get('z')).toEqual(randomWords(key, counter, 256));
});

test('a tree sum in workgroup memory, two dimensions of workgroups and invocations', async () => {
  const b = new LoopBuilder(new Set(['part', 'y']));
  const item = b.let(addInts(local, mulInts(builtin('local', 1), constant(8))), 'item');
  const block = b.let(addInts(group, mulInts(builtin('workgroup', 1), constant(3))), 'block');
  b.store('part', item, load('x', addInts(mulInts(block, constant(32)), item), 'f32'), true);
  b.barrier();
  for (let half = 16; half >= 1; half /= 2) {
    b.if(less(item, constant(half)), () =>
      b.store(
        'part',
        item,
        operation(
          'add',
          [load('part', item, 'f32'), load('part', addInts(item, constant(half)), 'f32')],
          'f32',
        ),
        true,
      ),
    );
    b.barrier();
  }
  b.if(operation('eq', [item, constant(0)], 'bool'), () =>
    b.store('y', block, load('part', item, 'f32'), true),
  );
  const loop = makeLoop(
    [global('x', 'f32', 192, 'read'), global('y', 'f32', 6), shared('part', 32)],
    b.body,
    {
      grid: [3, 2, 1],
      workgroup: [8, 4, 1],
    },
  );
  const x = Float32Array.from({ length: 192 }, (_, i) => i);
  const after = await agree(
    loop,
    new Map([
      ['x', x],
      ['y', new Float32Array(6)],
    ]),
  );
  expect([...after.get('y')!].map(Number)).toEqual([496, 1520, 2544, 3568, 4592, 5616]);
});

test('invocations that exchange values through storage are ordered by its barrier', async () => {
  const b = new LoopBuilder(new Set(['y']));
  b.store('y', local, operation('cast', [local], 'f32'), true);
  b.barrier();
  const other = b.let(load('y', operation('sub', [constant(7), local], 'i32'), 'f32'), 'other');
  b.barrier();
  b.store('y', local, other, true);
  const loop = makeLoop([global('y', 'f32', 8)], b.body, { workgroup: [8, 1, 1] });
  expect(emitWgsl(loop, { scalarSlots: 0 })).toContain('storageBarrier();');
  const after = await agree(loop, new Map([['y', new Float32Array(8)]]));
  expect([...after.get('y')!]).toEqual([7, 6, 5, 4, 3, 2, 1, 0]);
});

test('loop bounds are taken once, before the first turn', async () => {
  const b = new LoopBuilder(new Set(['y']));
  b.for('k', constant(0), load('y', constant(0), 'i32'), 1, (k) =>
    b.store('y', constant(0), operation('add', [load('y', constant(0), 'i32'), k], 'i32'), true),
  );
  const after = await agree(
    makeLoop([global('y', 'i32', 4)], b.body),
    new Map([['y', Int32Array.from([4, 0, 0, 0])]]),
  );
  expect(after.get('y')![0]).toBe(10);
});

test('f64 buffers are refused, with what can hold them', () => {
  const loop = makeLoop([global('wide', 'f64', 4)], []);
  const emit = (): string => emitWgsl(loop, { scalarSlots: 0 });
  expect(emit).toThrow(SinterError);
  expect(emit).toThrow(/kernel.*wide.*f64[^]*interpreter/);
});

describe('integers of 64 bits', () => {
  const ends = [0n, 1n, -1n, 2n ** 32n, 2n ** 32n - 1n, -(2n ** 32n), 2n ** 63n - 1n, -(2n ** 63n)];
  const numbers = BigInt64Array.from({ length: 64 }, (_, i) => ends[i % 8]! + BigInt(Math.floor(i / 8)));

  test('sums that invocations add to at once lose no carry, whatever else is in the words', async () => {
    const b = new LoopBuilder(new Set(['sums', 'bits']));
    const own = b.let(load('x', local, 'i64'), 'own');
    for (let turn = 0; turn < 3; turn++)
      b.atomic('add', 'sums', operation('floorMod', [local, constant(3)], 'i32'), own);
    b.atomic('or', 'bits', constant(0), own);
    b.atomic('and', 'bits', constant(1), own);
    const loop = makeLoop(
      [global('x', 'i64', 64, 'read'), global('sums', 'i64', 3), global('bits', 'i64', 2)],
      b.body,
      {
        workgroup: [64, 1, 1],
      },
    );
    const after = await agree(
      loop,
      new Map<string, HostData>([
        ['x', numbers.map((x) => x * 3n + 1n)],
        ['sums', BigInt64Array.of(5n, 2n ** 32n - 1n, -1n)],
        ['bits', BigInt64Array.of(0n, -1n)],
      ]),
    );
    expect([...after.get('bits')!]).toEqual([-1n, 0n]);
  });

  test('wait in workgroup memory, alone and as vectors, and may change places', async () => {
    const b = new LoopBuilder(new Set(['y', 'held']));
    const at = b.let(mulInts(local, constant(4)), 'at');
    const x = b.let(load('x', at, 'i64', 4), 'x');
    b.store('held', at, operation('add', [x, constant(2n ** 62n + 1n, 'i64', 4)], 'i64'), true);
    b.barrier();
    const other = b.let(load('held', addInts(constant(60), mulInts(at, constant(-1))), 'i64', 4), 'other');
    const sum = b.var('sum', x);
    b.for('k', constant(0), constant(3), 1, () => {
      b.assign(sum, operation('mul', [sum, other], 'i64'));
      const lanes = [3, 2, 1, 0].map((lane): Value => ({
        kind: 'lane',
        arg: sum,
        lane,
        type: 'i64',
        width: 1,
      }));
      b.assign(sum, { kind: 'vector', args: lanes, type: 'i64', width: 4 });
    });
    b.store('y', at, sum, true);
    b.store('less', at, operation('lt', [x, other], 'bool'), true);
    const held: LoopBuffer = { ...shared('held', 64), dtype: 'i64' };
    const loop = makeLoop(
      [global('x', 'i64', 64, 'read'), global('y', 'i64', 64), global('less', 'bool', 64), held],
      b.body,
      { workgroup: [16, 1, 1] },
    );
    await agree(
      loop,
      new Map<string, HostData>([
        ['x', numbers],
        ['y', new BigInt64Array(64)],
        ['less', new Uint8Array(64)],
      ]),
    );
  });

  test('the text of a small kernel', async () => {
    const b = new LoopBuilder(new Set(['y']));
    const at = b.let(mulInts(local, constant(4)), 'at');
    const ids = b.let(load('ids', at, 'i64', 4), 'ids');
    const shifted = b.let(operation('add', [ids, constant(-(2n ** 40n), 'i64', 4)], 'i64'), 'shifted');
    b.store('y', at, operation('max', [shifted, constant(0n, 'i64', 4)], 'i64'), true);
    const loop = makeLoop([global('ids', 'i64', 256, 'read'), global('y', 'i64', 256)], b.body, {
      name: 'map_ids',
      header: ['map kernel; 4 elements per invocation', 'ids: i64[256]'],
      workgroup: [64, 1, 1],
    });
    await expect(emitWgsl(loop, { scalarSlots: 0 })).toMatchFileSnapshot(
      '../../golden/wgsl/emit-map-i64.wgsl',
    );
  });
});

test('the text of a small kernel', async () => {
  const b = new LoopBuilder(new Set(['y', 'mask']));
  const id = b.let(addInts(mulInts(group, constant(64)), local), 'id');
  b.if(less(id, constant(250)), () => {
    const at = b.let(mulInts(id, constant(4)), 'at');
    b.comment('four neighbours at once');
    const x = b.let(load('x', at, 'f32', 4), 'x');
    const scaled = b.let(
      operation('mul', [x, { kind: 'scalar', slot: 1, type: 'f32', width: 1 }], 'f32'),
      'scaled',
    );
    b.store('y', at, operation('tanh', [scaled], 'f32'), true);
    b.store('mask', at, operation('lt', [constant(0, 'f32'), scaled], 'bool'), true);
  });
  const loop = makeLoop(
    [global('x', 'f32', 1000, 'read'), global('y', 'f16', 1000), global('mask', 'bool', 1000)],
    b.body,
    {
      name: 'map_tanh',
      header: ['map kernel; 4 elements per invocation', 'x: f32[1000]'],
      usesScalars: true,
      grid: [4, 1, 1],
      workgroup: [64, 1, 1],
    },
  );
  await expect(emitWgsl(loop, { scalarSlots: 2 })).toMatchFileSnapshot(
    '../../golden/wgsl/emit-map-tanh.wgsl',
  );
});
