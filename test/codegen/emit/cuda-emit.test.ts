// CUDA C as text: what is spelled how, what a module holds, and that a program has the kernels it has in WGSL.

import { describe, expect, test } from 'vitest';

import {
  addInts,
  builtin,
  constant,
  less,
  LoopBuilder,
  mulInts,
  operation,
} from '../../../src/codegen/loop/builder.ts';
import { emitCuda, isTaken } from '../../../src/codegen/emit/cuda/emit.ts';
import { definitions } from '../../../src/codegen/emit/cuda/prelude-functions.ts';
import type { Loop, LoopBuffer, LoopOp, RegisterType, Value, Width } from '../../../src/codegen/loop/loop.ts';
import { compileGraph } from '../../../src/compile.ts';
import * as sn from '../../../src/index.ts';
import type { Tensor } from '../../../src/index.ts';
import type { DType } from '../../../src/ir/dtype.ts';
import { lower } from '../../../src/explain/explain.ts';
import { cudaTarget, type Target } from '../../../src/schedule/target.ts';
import { traceFunction } from '../../../src/tensor/derivative/transform.ts';
import { workloads } from '../../../src/workloads/all.ts';
import { Sketch } from '../cases.ts';
import { mapLoop } from '../run-loop.ts';

/** The lines of the entry point. */
function bodyOf(source: string): string[] {
  const from = source.indexOf('extern "C"');
  return source
    .slice(source.indexOf('{\n', from) + 2, source.lastIndexOf('\n}\n\n}'))
    .split('\n')
    .map((line) => line.trim());
}

/** How one operation on whole arrays is written. */
function spelled(
  op: LoopOp,
  args: readonly RegisterType[],
  result: RegisterType,
  last?: number,
  width: Width = 1,
): string {
  const row = last === undefined ? { op, args, result } : { op, args, result, last };
  const line = bodyOf(emitCuda(mapLoop(row, width, 256)).source).find((text) => text.includes(' result = '));
  return line!.replace(/^.* result = /, '');
}

const local = builtin('local', 0);

function loopOf(buffers: readonly LoopBuffer[], build: (b: LoopBuilder) => void, threads = 64): Loop {
  const b = new LoopBuilder(
    new Set(buffers.filter(({ access }) => access === 'read_write').map(({ name }) => name)),
  );
  build(b);
  return {
    name: 'probe',
    kind: 'map',
    header: ['a probe'],
    buffers,
    usesScalars: false,
    grid: [1, 1, 1],
    workgroup: [threads, 1, 1],
    body: b.body,
  };
}

function buffer(
  name: string,
  dtype: DType,
  access: LoopBuffer['access'],
  space: LoopBuffer['space'] = 'global',
): LoopBuffer {
  return { name, dtype, access, space, size: 256 };
}

function load(name: string, index: Value, type: RegisterType, width: Width = 1, aligned = true): Value {
  return { kind: 'load', buffer: name, index, type, width, aligned };
}

describe('operations', () => {
  test('are CUDA functions where those mean the same', () => {
    expect(spelled('exp', ['f32'], 'f32')).toBe('expf(v0);');
    expect(spelled('erf', ['f32'], 'f32')).toBe('erff(v0);');
    expect(spelled('round', ['f32'], 'f32')).toBe('rintf(v0);');
    expect(spelled('mod', ['f32', 'f32'], 'f32')).toBe('fmodf(v0, v1);');
    expect(spelled('where', ['bool', 'f32', 'f32'], 'f32')).toBe('v0 ? v1 : v2;');
    expect(spelled('packBf16', ['f32', 'f32'], 'u32')).toBe('pack_bf16(v0, v1);');
    expect(spelled('recipNormal', ['f32'], 'f32')).toBe('recip_normal(v0);');
    expect(spelled('bitcast', ['f32'], 'u32')).toBe('__float_as_uint(v0);');
  });

  test('wrap around where the result is not known to fit', () => {
    expect(spelled('add', ['i32', 'i32'], 'i32')).toBe('add_i32(v0, v1);');
    expect(spelled('neg', ['i32'], 'i32')).toBe('neg_i32(v0);');
    expect(spelled('add', ['u32', 'u32'], 'u32')).toBe('v0 + v1;');
    expect(bodyOf(emitCuda(mapLoop({ op: 'neg', args: ['f32'], result: 'f32' }, 1, 256)).source)[0]).toBe(
      'const int id = int(blockIdx.x) * 64 + int(threadIdx.x);',
    );
  });

  test('divide plainly by constants that cannot go wrong only', () => {
    expect(spelled('div', ['i32', 'i32'], 'i32', 3)).toBe('v0 / 3;');
    expect(spelled('div', ['i32', 'i32'], 'i32', -1)).toBe('div_i32(v0, -1);');
    expect(spelled('mod', ['u32', 'u32'], 'u32')).toBe('mod_u32(v0, v1);');
    expect(spelled('floorDiv', ['i32', 'i32'], 'i32', 8)).toBe('v0 >> 3;');
    expect(spelled('shl', ['u32', 'u32'], 'u32', 5)).toBe('v0 << 5u;');
    expect(spelled('shl', ['u32', 'u32'], 'u32', 32)).toBe('shl_u32(v0, 32u);');
  });

  test('on vectors are operators, or functions over their lanes', () => {
    expect(spelled('mul', ['f32', 'f32'], 'f32', undefined, 4)).toBe('v0 * v1;');
    expect(spelled('tanh', ['f32'], 'f32', undefined, 4)).toBe('tanh_f32x4(v0);');
    expect(spelled('pow', ['f32', 'f32'], 'f32', 2, 4)).toBe('square_f32x4(v0);');
    expect(spelled('lt', ['i32', 'i32'], 'bool', undefined, 2)).toBe('v0 < v1;');
    const { source } = emitCuda(mapLoop({ op: 'tanh', args: ['f32'], result: 'f32' }, 4, 256));
    expect(source).toContain('return float4{tanhf(a.x), tanhf(a.y), tanhf(a.z), tanhf(a.w)};');
  });
});

test('constant bits take the place of others in one instruction', () => {
  const four = (...bits: readonly number[]): Value => ({
    kind: 'vector',
    args: bits.map((each) => constant(each, 'u32')),
    type: 'u32',
    width: 4,
  });
  const words = load('words', local, 'u32', 4);
  const buffers = [buffer('words', 'u32', 'read'), buffer('out', 'u32', 'read_write')];
  const lineOf = (bits: Value): string => {
    const masked = operation('and', [words, four(15, 240, 15, 240)], 'u32');
    const joined = operation('or', [masked, bits], 'u32');
    return bodyOf(emitCuda(loopOf(buffers, (b) => b.store('out', local, joined, true))).source).join(' ');
  };
  expect(lineOf(four(256, 512, 1024, 2048))).toContain('and_or_u32x4(');
  // Of what is no constant, the compiler makes one instruction by itself.
  expect(lineOf(words)).not.toContain('and_or');
});

test('products of one tile share its descriptor, and what warps have alike is known to be', () => {
  const target: Target = { ...cudaTarget, warpgroups: true, cores: { count: 132, invocations: 2048 } };
  const make = (): Tensor => sn.zeros([512, 512], { dtype: 'bf16' });
  const { graph } = traceFunction((x: Tensor, y: Tensor) => x.matmul(y), [make(), make()]);
  const [product] = compileGraph(graph, target, { inspect: true }).kernels;
  const body = bodyOf(product!.source).join('\n');
  const sides = [...body.matchAll(/tile_descriptor\((\w+ \+ \w+), \d+, (\d+)\)/g)];
  expect(new Set(sides.map(([, , bytes]) => bytes)).size).toBeGreaterThan(3);
  expect(new Set(sides.map(([, from]) => from)).size).toBe(2);
  expect(body).toContain('const int thread_y = of_warp(int(threadIdx.y));');
  expect(body.match(/threadIdx\.y/g)).toHaveLength(1);
});

test.each([
  [NaN, '__int_as_float(0x7fc00000)'],
  [Infinity, '__int_as_float(0x7f800000)'],
  [-Infinity, '-__int_as_float(0x7f800000)'],
  [-0, '-0.0f'],
  [0.1, '0.10000000149011612f'],
  [1e10, '10000000000.0f'],
  [3.4028234663852886e38, '3.4028234663852886e+38f'],
])('the constant %s is %s', (value, text) => {
  const loop = loopOf([buffer('out', 'f32', 'read_write')], (b) =>
    b.store('out', local, constant(value, 'f32'), true),
  );
  expect(bodyOf(emitCuda(loop).source)).toEqual([`out[int(threadIdx.x)] = ${text};`]);
});

describe('memory', () => {
  test.each([
    ['f32', 'f32', 'float'],
    ['f16', 'f32', 'f16'],
    ['bf16', 'f32', 'bf16'],
    ['i8', 'i32', 'i8'],
    ['u16', 'u32', 'u16'],
    ['bool', 'bool', 'u8'],
  ] as const)('%s is addressed as it is', (dtype, type, spelling) => {
    const loop = loopOf([buffer('x', dtype, 'read'), buffer('out', dtype, 'read_write')], (b) => {
      const at = b.let(mulInts(local, constant(4)), 'at');
      b.store('out', at, load('x', at, type, 4), false);
      b.store('out', local, load('x', local, type), false);
    });
    const { source } = emitCuda(loop);
    expect(source).toContain(`probe(const ${spelling} *__restrict__ x, ${spelling} *out) {`);
    expect(bodyOf(source)[1]).toBe(`store_${dtype}x4(out + at, load_${dtype}x4(x + at));`);
  });

  test('vectors that may straddle are read and written one by one', () => {
    const loop = loopOf([buffer('x', 'f32', 'read'), buffer('out', 'f32', 'read_write')], (b) => {
      const at = b.let(addInts(local, constant(1)), 'at');
      b.store('out', at, b.let(load('x', at, 'f32', 4, false), 'v'), false);
    });
    expect(bodyOf(emitCuda(loop).source).slice(1)).toEqual([
      'const float4 v = float4{x[at], x[at + 1], x[at + 2], x[at + 3]};',
      'out[at] = v.x;',
      'out[at + 1] = v.y;',
      'out[at + 2] = v.z;',
      'out[at + 3] = v.w;',
    ]);
  });

  test('of a workgroup is declared up to 48 KiB, and asked for at the launch beyond', () => {
    const shared = (size: number): Loop =>
      loopOf(
        [
          { ...buffer('tile', 'f32', 'read_write', 'workgroup'), size },
          { ...buffer('keys', 'u32', 'read_write', 'workgroup'), size: 6 },
        ],
        (b) => b.store('tile', local, constant(0, 'f32'), true),
      );
    const small = emitCuda(shared(12_280));
    expect(small.sharedBytes).toBeUndefined();
    expect(bodyOf(small.source)).toContain('__shared__ __align__(16) float tile[12280];');
    const large = emitCuda(shared(12_282));
    expect(large.sharedBytes).toBe(49_168);
    expect(bodyOf(large.source).slice(0, 3)).toEqual([
      'extern __shared__ __align__(16) unsigned char probe_memory[];',
      'float *const tile = reinterpret_cast<float *>(probe_memory);',
      'unsigned *const keys = reinterpret_cast<unsigned *>(probe_memory + 49136);',
    ]);
  });
});

describe('warps', () => {
  const reduction = (threads: number): string =>
    emitCuda(
      loopOf(
        [buffer('out', 'f32', 'read_write')],
        (b) => {
          const sum = b.subgroupReduce('max', constant(1, 'f32'), 'most');
          b.if(less(local, constant(1)), () => b.store('out', local, sum, true));
        },
        threads,
      ),
    ).source;

  test('that are whole exchange with partners', () => {
    expect(reduction(64)).toContain('__shfl_xor_sync(0xffffffffu, x, apart)');
    expect(bodyOf(reduction(64))[0]).toBe('const float most = warp_max_f32(1.0f);');
  });

  test('that may lack lanes gather from those there are', () => {
    expect(reduction(40)).toContain('__shfl_down_sync(all, x, apart)');
    expect(bodyOf(reduction(40))[0]).toBe('const float most = warp_part_max_f32(1.0f, threadIdx.x, 40u);');
  });
});

describe('a module', () => {
  const sketch = new Sketch();
  const { program } = compileGraph(sketch.graph([sketch.softmax(sketch.input([64, 256]), 1)]), cudaTarget, {
    check: true,
  });
  const { name, source } = program.kernels[0]!;

  test('stands in a namespace of its own and includes nothing', () => {
    expect(program.target).toBe('cuda');
    expect(source).toContain(`namespace ${name}_module {`);
    expect(source).toContain(`extern "C" __global__ void __launch_bounds__(64)\n${name}(`);
    expect(source).not.toMatch(/#include|INFINITY|\bNAN\b|std::|uint32_t/);
  });

  test('defines each function once, before it is called', () => {
    const defined = [...source.matchAll(/^__device__ \w+ \w+ (\w+|operator\S)\((.*)\)/gm)].map(
      ([text]) => text,
    );
    expect(new Set(defined).size).toBe(defined.length);
    for (const called of definitions.keys()) {
      const at = source.search(new RegExp(`\\b${called}\\(`));
      if (at < 0) continue;
      expect(source.slice(0, at), called).toMatch(/__device__ \w+ [\w ]+ $/);
    }
  });

  test.each(['and', 'float4', 'threadIdx', 'expf', 'max_f32', 'exp_f32x4', 'warp_sum_f32', 'scalars', 'xor'])(
    'takes no name %s',
    (word) => expect(isTaken(word)).toBe(true),
  );
});

test('names that are taken get another', () => {
  const loop = loopOf([buffer('warp_sum_f32', 'f32', 'read_write')], (b) => {
    const register = b.let(operation('neg', [load('warp_sum_f32', local, 'f32')], 'f32'), 'register');
    const row = b.let(operation('neg', [register], 'f32'), 'warp_row');
    b.store('warp_sum_f32', local, row, true);
  });
  expect(bodyOf(emitCuda(loop).source)).toEqual([
    'const float register_ = -warp_sum_f32_[int(threadIdx.x)];',
    'const float warp_row = -register_;',
    'warp_sum_f32_[int(threadIdx.x)] = warp_row;',
  ]);
});

/** Kernels that a workload has on CUDA beside those in WGSL: a larger machine is filled by parts that are combined. */
const combining: Readonly<Record<string, number>> = { decodeAttention: 1 };

test.each(workloads)('$name has no more kernels on CUDA than in WGSL', ({ name, fn, args }) => {
  const count = (target: string): number => lower(fn, args(), { target }).length;
  // Kernels may take more arguments than WebGPU has bindings.
  expect(count('cuda')).toBeLessThanOrEqual(count('wgsl') + (combining[name] ?? 0));
});

test('lower names the targets there are', () => {
  expect(() => lower(() => undefined, [], { target: 'metal' })).toThrow(
    /no target metal: expected one of wgsl, cuda, wasm/,
  );
  expect(() => lower(() => undefined, [], { target: 'cuda', software: true })).toThrow(/no software adapter/);
});
