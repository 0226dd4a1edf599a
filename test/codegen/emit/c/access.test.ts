// Elements of every type as C reads and writes them, one by one and several at a time; 16-bit floats in every bit pattern; atomics,
// memory of workgroups, scalars and random words. Vectors are up to sixteen lanes wide.

import { spawnSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { emitC } from '../../../../src/codegen/emit/c/emit.ts';
import { joinC } from '../../../../src/codegen/emit/c/join.ts';
import {
  addInts,
  builtin,
  constant,
  LoopBuilder,
  mulInts,
  operation,
} from '../../../../src/codegen/loop/builder.ts';
import type {
  AtomicOp,
  Loop,
  LoopBuffer,
  RegisterType,
  Value,
  Width,
} from '../../../../src/codegen/loop/loop.ts';
import { widened } from '../../../../src/codegen/loop/register.ts';
import { realDTypes as dtypes, type DType } from '../../../../src/ir/dtype.ts';
import { emptyData, fromReal, type HostData } from '../../../../src/ir/value.ts';
import { CKernels, compileC, compiler, inFolder, nativeFlags, strictFlags } from '../../../support/text/c.ts';
import { interpretLoop } from '../../../support/interpret/run.ts';
import { mapLoop, type Arrays } from '../../run-loop.ts';
import { aroundHalves, copies, elementsOf, everyHalf } from '../copies.ts';
import { argumentsOf, byteCases, disagreements, nameOf, spellingCases } from '../spelling-cases.ts';

// Loops say how wide their vectors are by a type that does not have the widest yet.
const widths = [1, 2, 4, 8, 16] as readonly number[] as readonly Width[];
const halves = ['f16', 'bf16'] as const;
const plain = dtypes.filter((dtype) => dtype !== 'f16' && dtype !== 'bf16');

describe.skipIf(compiler === undefined).each(widths)('C at width %i', (width) => {
  const [count, tested] = [4 * 65_536, 256];
  const read = halves.map((dtype) => copies(dtype, 'f32', 'f32', width, 65_536));
  const written = halves.map((dtype) => copies('f32', dtype, 'f32', width, count));
  const copied = plain.flatMap((dtype) =>
    [0, 3].map((start) => copies(dtype, dtype, widened(dtype), width, tested, start)),
  );
  const kernels = new CKernels([...read, ...written, ...copied]);
  const run = (index: number, x: HostData): HostData => {
    const arrays: Arrays = new Map([['x', x]]);
    kernels.run(index, arrays);
    return arrays.get('out')!;
  };

  test.each(halves)('every %s becomes the f32 that it is', (dtype) => {
    const values = everyHalf(dtype);
    expect(run(halves.indexOf(dtype), values)).toEqual(values);
  });

  test.each(halves)('f32 becomes the nearest %s', (dtype) => {
    const values = aroundHalves(dtype);
    const round = fromReal(dtype) as (x: number) => number;
    expect(run(2 + halves.indexOf(dtype), values)).toEqual(values.map(round));
  });

  test.each(plain)('%s is copied', (dtype) => {
    const values = elementsOf(dtype, tested + 3);
    [0, 3].forEach((start, i) => {
      const found = run(4 + 2 * plain.indexOf(dtype) + i, values.slice(0, tested + start));
      expect(found).toEqual(values.slice(start, start + tested));
    });
  });
});

describe.skipIf(compiler === undefined)('C of wide vectors', () => {
  const rows = [...spellingCases.filter(({ op }) => op !== 'mod' && op !== 'pow'), ...byteCases];
  // Special values that follow each other, and random ones.
  const inputs = rows.map((row) =>
    argumentsOf(row).map((x) => x.slice(-16 * Math.min(40, Math.floor(x.length / 16)))),
  );
  const width = 16 as number as Width;
  const flags = ['-O1', '-march=native', '-fno-math-errno', ...strictFlags];
  // Without the functions that compilers know by name, too.
  const without = ['-DSINTER_KNOWS(name)=0'];

  test.each([
    ['with what the compiler knows', flags],
    ['in operators of C', [...flags, ...without]],
  ])('every operation on sixteen lanes is what it is on one, %s', (_, given) => {
    const loops = rows.map((row, i) => mapLoop(row, width, inputs[i]![0]!.length));
    const kernels = new CKernels(loops, given);
    rows.forEach((row, i) => {
      const arrays: Arrays = new Map(inputs[i]!.map((data, k) => [`x${k}`, data]));
      kernels.run(i, arrays);
      const wrong = disagreements(row, width, inputs[i]!, arrays.get('out')!);
      const counted = wrong.filter(
        (line) => !row.op.startsWith('exp') || !/= 0, not \d\.\d+e-38$/.test(line),
      );
      expect(counted.slice(0, 4), nameOf(row)).toEqual([]);
    });
  });
});

const buffer = (
  name: string,
  dtype: DType,
  size: number,
  space: LoopBuffer['space'] = 'global',
): LoopBuffer => ({ name, space, dtype, size, access: name === 'x' ? 'read' : 'read_write' });

function loopOf(
  buffers: readonly LoopBuffer[],
  build: (b: LoopBuilder) => void,
  more: Partial<Loop> = {},
): Loop {
  const b = new LoopBuilder(new Set(['y', 's']));
  build(b);
  const sizes = { grid: [2, 1, 1], workgroup: [32, 1, 1] } as const;
  return {
    name: 'fold',
    kind: 'test',
    header: [],
    buffers,
    usesScalars: false,
    ...sizes,
    body: b.body,
    ...more,
  };
}

const id = addInts(mulInts(builtin('workgroup', 0), constant(32)), builtin('local', 0));
const load = (name: string, index: Value, type: RegisterType): Value => {
  return { kind: 'load', buffer: name, index, aligned: true, type, width: 1 };
};

const folded = ['f32', 'f64', 'i32', 'u32', 'i64', 'u64'] as const;
const folds = folded.flatMap((type) =>
  (['add', 'mul', 'min', 'max', 'and', 'or'] as const)
    .filter((op) => !type.startsWith('f') || (op !== 'and' && op !== 'or'))
    .map((op): readonly [AtomicOp, (typeof folded)[number]] => [op, type]),
);

/** The same elements by the interpreter and in C. */
function expectSame(
  kernels: CKernels,
  index: number,
  loop: Loop,
  given: Arrays,
  scalars: readonly number[] = [],
): void {
  const [one, other] = [given, given].map(
    (arrays) => new Map([...arrays].map(([name, x]) => [name, x.slice()])),
  );
  interpretLoop(loop, one!, scalars);
  kernels.run(index, other!, Uint32Array.from(scalars));
  for (const [name, data] of one!) expect(other!.get(name), name).toEqual(data);
}

describe.skipIf(compiler === undefined)('statements in C', () => {
  const atomic = folds.map(([op, type]) =>
    loopOf([buffer('x', type, 64), buffer('y', type, 3)], (b) =>
      b.atomic(op, 'y', b.let(operation('mod', [id, constant(3)], 'i32'), 'cell'), load('x', id, type)),
    ),
  );
  const kernels = new CKernels(atomic);

  test.each(folds.map(([op, type], i) => [op, type, i] as const))(
    '%s of %s folds every value in',
    (_, type, i) => {
      const x = emptyData(type, 64);
      for (let k = 0; k < 64; k++)
        x[k] = type === 'i64' || type === 'u64' ? BigInt((k * 37) % 11) : (k * 37) % 11;
      expectSame(
        kernels,
        i,
        atomic[i]!,
        new Map([
          ['x', x],
          ['y', x.slice(3, 6)],
        ]),
      );
      const { serial = false, source } = emitC(atomic[i]!);
      expect([serial, source.includes('__atomic_')]).toEqual([type.startsWith('f'), !type.startsWith('f')]);
    },
  );

  test('a workgroup has memory of its own, and scalars and random words are given', () => {
    const place = builtin('workgroup', 0);
    const scalar = (slot: number, type: RegisterType): Value => ({ kind: 'scalar', slot, type, width: 1 });
    const loop = loopOf(
      [buffer('y', 'u32', 8), buffer('s', 'u32', 4, 'workgroup'), buffer('t', 'f32', 4, 'workgroup')],
      (b) => {
        b.for('i', constant(0), constant(4), 1, (i) => {
          const keys = [scalar(0, 'u32'), scalar(1, 'u32'), scalar(2, 'u32'), constant(7, 'u32')];
          const word: Value = { kind: 'op', op: 'philox', args: [...keys, i], type: 'u32', width: 1 };
          b.store('s', i, word, true);
          b.store('t', i, operation('cast', [i], 'f32'), true);
          b.atomic('add', 't', i, constant(1.5, 'f32'));
        });
        b.for('j', constant(0), constant(4), 1, (j) => {
          const sum = operation('cast', [load('t', j, 'f32')], 'u32');
          const value: Value = {
            kind: 'op',
            op: 'add',
            args: [load('s', j, 'u32'), sum],
            type: 'u32',
            width: 1,
          };
          b.store('y', addInts(mulInts(place, constant(4)), j), value, true);
        });
      },
      { usesScalars: true, workgroup: [1, 1, 1] },
    );
    expect(emitC(loop).sharedBytes).toBe(128);
    expectSame(
      new CKernels([loop]),
      0,
      loop,
      new Map([['y', new Uint32Array(8)]]),
      [3, 4_000_000_000, 4_294_967_295],
    );
  });

  test.each([
    ['of one and of another', [0, 4, 1, 5], 4],
    ['of one, in another order', [3, 2, 2, 0], 4],
    ['of a wide one', [8, 9, 10, 11], 16],
    ['of two wide ones', [0, 16, 17, 31], 16],
  ] as const)('a vector has lanes %s', (_, places, from) => {
    const wide = from as number as Width;
    const loop = loopOf(
      [buffer('x', 'f32', 2 * from), buffer('y', 'f32', 4)],
      (b) => {
        const [x, y] = [0, from].map((at) =>
          b.let({ ...load('x', constant(at), 'f32'), width: wide } as Value, 'v'),
        );
        const args = places.map((place): Value => {
          return { kind: 'lane', arg: place < from ? x! : y!, lane: place % from, type: 'f32', width: 1 };
        });
        b.store('y', constant(0), { kind: 'vector', args, type: 'f32', width: 4 }, true);
      },
      { grid: [1, 1, 1], workgroup: [1, 1, 1] },
    );
    const x = Float32Array.from({ length: 2 * from }, (__, i) => i);
    const flags = [...nativeFlags, ...strictFlags, '-Wno-psabi'];
    for (const more of [[], ['-DSINTER_KNOWS(name)=0']]) {
      const arrays: Arrays = new Map([['x', x]]);
      new CKernels([loop], [...flags, ...more]).run(0, arrays);
      expect([...arrays.get('y')!]).toEqual([...places]);
    }
    expect(emitC(loop).source).toContain('__builtin_shufflevector(x, y, ');
  });

  test('nothing is written or read outside, by the sanitizer of addresses', () => {
    // A program of its own: the sanitizer must be there before all else.
    const loop = copies('f16', 'f32', 'f32', 4, 64);
    const main = (size: number): string => `
#include <stdlib.h>
int main(void) {
  void *buffers[] = {aligned_alloc(64, 128), aligned_alloc(64, ${size})};
  memset(buffers[0], 0, 128);
  copy(0, 1, buffers, NULL, NULL);
  free(buffers[0]);
  free(buffers[1]);
  return 0;
}
`;
    const runs = (size: number): boolean =>
      inFolder((folder) => {
        const path = `${folder}/checked`;
        const text = `#include <string.h>\n${joinC([emitC(loop).source])}${main(size)}`;
        compileC(text, path, ['-O1', '-fsanitize=address,undefined', '-fno-sanitize-recover=all']);
        return spawnSync(path, [], { stdio: 'ignore' }).status === 0;
      });
    expect([runs(256), runs(192)]).toEqual([true, false]);
  });

  test('kernels of one text share what they need', () => {
    const [one, other] = ['one', 'other'].map(
      (name) => emitC({ ...copies('f16', 'f32', 'f32', 4, 64), name }).source,
    );
    const text = joinC([one!, other!]);
    expect(text.match(/f32x4 load_f16x4\(/g)).toHaveLength(1);
    inFolder((folder) => {
      const flags = [...nativeFlags, ...strictFlags, '-c'];
      compileC(text, `${folder}/joined.o`, flags);
      // Guards do the same.
      compileC(`${one!}${other!}`, `${folder}/guarded.o`, flags);
    });
  });
});
