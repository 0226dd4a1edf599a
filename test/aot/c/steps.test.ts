// Steps of programs as straight C, with kernels written by hand: what they do to memory, and in which order.

import { afterAll, describe, expect, test } from 'vitest';
import type { Ports } from '../../../src/bundle-runtime/manifest.ts';
import type { Program, ProgramBuffer, ProgramKernel, ProgramStep } from '../../../src/runtime/program.ts';
import { headerText } from '../../../src/aot/c/header.ts';
import { modelOf, type CModel, type GivenFunction } from '../../../src/aot/c/model.ts';
import { sourceText } from '../../../src/aot/c/source.ts';
import { weightsImage } from '../../../src/aot/c/weights.ts';
import { makefileText } from '../../../src/aot/c/project.ts';
import { beginning, madeC, missing, numbersOf, ranC, reason, removeFolders } from './folders.ts';

afterAll(removeFolders);

/** A kernel over buffers of four floats, `a` read and `b` written. */
function kernel(name: string, body: string, extra: Partial<ProgramKernel> = {}): ProgramKernel {
  const source = `#ifndef SINTER_KERNEL
#define SINTER_KERNEL
#endif
SINTER_KERNEL void ${name}(int32_t first, int32_t end, void *const *buffers, const uint32_t *scalars, void *scratch)
{
  const float *a = buffers[0];
  float *b = buffers[1];
  (void)a;
  (void)b;
  (void)scalars;
  (void)scratch;
  for (int32_t g = first; g < end; g++) { ${body} }
}
`;
  const rest = {
    kind: 'map',
    workgroup: [1, 1, 1],
    bindings: ['read', 'read_write'],
    usesScalars: false,
  } as const;
  return { name, source, ...rest, flops: 0, bytes: 0, ...extra };
}

function buffer(name: string, role: ProgramBuffer['role'], more: Partial<ProgramBuffer> = {}): ProgramBuffer {
  const place = role === 'scratch' ? { arena: 0, offset: 0 } : {};
  return { name, role, bytes: 32, dtype: 'f32', shape: [4], ...place, ...more };
}

const four = { dtype: 'f32', shape: [4] } as const;

/** A function of `x` with the result `y`: buffers 0 and 1, and what is given. */
function functionOf(
  title: string,
  kernels: readonly ProgramKernel[],
  steps: readonly ProgramStep[],
  more: {
    readonly buffers?: readonly ProgramBuffer[];
    readonly ports?: Partial<Ports>;
    readonly program?: Partial<Program>;
  } = {},
): GivenFunction {
  const { buffers = [], ports, program } = more;
  const all: Program = {
    version: 1,
    target: 'c',
    kernels,
    buffers: [buffer('x', 'input'), buffer('y', 'output'), ...buffers],
    packs: [],
    arenas: [256],
    steps,
    inputs: [0],
    outputs: [1],
    donated: [],
    scalars: [],
    ...program,
  };
  return {
    title,
    sizes: {},
    inputs: [{ name: 'x', kind: 'tensor', ...four }],
    outputs: [{ name: 'y', ...four }],
    programs: [
      {
        upTo: {},
        variants: [],
        ported: {
          program: all,
          ports: { args: [0], weights: [], scalars: [], results: [1], updates: [], draws: 0, ...ports },
        },
      },
    ],
  };
}

/** What a program prints that calls functions of a model. */
function calls(model: CModel, body: string): Map<string, number[][]> {
  const image = weightsImage(model);
  const options = { embed: false, freestanding: false, bindings: [] };
  const folder = madeC(
    new Map<string, string | Uint8Array>([
      ['model.h', headerText(model, { weightsBytes: image.bytes.length, embed: false })],
      [
        'model.c',
        sourceText(model, { layout: image.layout, freestanding: false, join: (all) => all.join('\n') }),
      ],
      ['model.bin', image.bytes],
      ['Makefile', makefileText(model, options)],
    ]),
    'libmodel.a',
  );
  const main = `${beginning()}
int main(void)
{
  float x[4] = { 1, 2, 3, 4 }, y[4];
  begin();
${body}
  return 0;
}
`;
  return numbersOf(ranC(folder, main));
}

function modelWith(
  functions: readonly GivenFunction[],
  weights: readonly (readonly number[])[] = [],
): CModel {
  return modelOf({
    prefix: 'model',
    producer: 'sinter',
    title: 'test',
    functions,
    isas: [],
    threads: undefined,
    weights: weights.map((_, i) => ({ name: `w.${i}`, ...four, state: i > 0 })),
    values: weights.map((values) => ({
      ...four,
      shape: [4],
      data: new Uint8Array(Float32Array.from(values).buffer),
    })),
  });
}

const dispatch = (own: number, buffers: readonly number[], groups = 4): ProgramStep => {
  return { kind: 'dispatch', kernel: own, buffers, grid: [groups, 1, 1] };
};
const scratch = (name: string, offset: number): ProgramBuffer =>
  buffer(name, 'scratch', { arena: 0, offset });
const show = `  show("y", y, 4);`;

describe.skipIf(missing !== undefined)(`C${missing === undefined ? '' : `: ${reason}`}`, () => {
  test('copies, clears and repeats in order', () => {
    const one = functionOf(
      'grow',
      [kernel('add_to', 'b[g] += a[g];')],
      [
        { kind: 'clear', buffer: 1 },
        { kind: 'copy', from: 0, to: 2 },
        {
          kind: 'repeat',
          times: 3,
          steps: [dispatch(0, [2, 1]), { kind: 'repeat', times: 2, steps: [dispatch(0, [1, 2])] }],
        },
      ],
      { buffers: [scratch('held', 0)] },
    );
    let [held, sum] = [1, 0];
    for (let i = 0; i < 3; i++) {
      sum += held;
      held += 2 * sum;
    }
    const found = calls(modelWith([one]), `  expect_ok(model_grow(&context, x, y));\n${show}`);
    expect(found.get('y')).toEqual([[1, 2, 3, 4].map((x) => x * sum)]);
  });

  test('loops end when their guard is zero, or after so many turns', () => {
    const guard = buffer('guard', 'scratch', { arena: 0, offset: 64, dtype: 'i32', shape: [1] });
    const loop = (title: string, times: number): GivenFunction =>
      functionOf(
        title,
        [
          kernel('below_ten', '((int32_t *)buffers[1])[g] = a[0] < 10.0f;'),
          kernel('double_it', 'b[g] = 2.0f * a[g];'),
        ],
        [
          { kind: 'copy', from: 0, to: 1 },
          dispatch(0, [1, 2], 1),
          { kind: 'while', guard: 2, times, steps: [dispatch(1, [1, 1]), dispatch(0, [1, 2], 1)] },
        ],
        { buffers: [guard] },
      );
    const model = modelWith([loop('until', 100), loop('twice', 2)]);
    // Equal kernels of two functions are one.
    expect(model.kernels).toHaveLength(2);
    const found = calls(
      model,
      `  expect_ok(model_until(&context, x, y));\n${show}\n  expect_ok(model_twice(&context, x, y));\n${show}`,
    );
    expect(found.get('y')).toEqual([
      [16, 32, 48, 64],
      [4, 8, 12, 16],
    ]);
  });

  test('kernels of one name and different texts have different names', () => {
    const once = (title: string, body: string): GivenFunction =>
      functionOf(title, [kernel('work', body)], [dispatch(0, [0, 1])]);
    const model = modelWith([once('halve', 'b[g] = a[g] / 2.0f;'), once('negate', 'b[g] = -a[g];')]);
    expect(model.kernels.map(({ name }) => name)).toEqual(['work', 'model_work_2']);
    const found = calls(
      model,
      `  expect_ok(model_halve(&context, x, y));\n${show}\n  expect_ok(model_negate(&context, x, y));\n${show}`,
    );
    expect(found.get('y')).toEqual([
      [0.5, 1, 1.5, 2],
      [-1, -2, -3, -4],
    ]);
  });

  test('state is changed in place, and weights that no call changes stay in the file', () => {
    const held = buffer('state', 'input');
    const fixed = buffer('fixed', 'input');
    const one = functionOf(
      'step',
      [
        kernel('gather', 'b[g] += a[g] * ((const float *)buffers[2])[g];', {
          bindings: ['read', 'read_write', 'read'],
        }),
      ],
      [dispatch(0, [0, 2, 3]), { kind: 'copy', from: 2, to: 1 }],
      {
        buffers: [held, fixed],
        program: { inputs: [0, 2, 3], outputs: [1, 2], donated: [{ output: 1, input: 1 }] },
        ports: {
          weights: [
            { weight: 1, buffer: 2 },
            { weight: 0, buffer: 3 },
          ],
          updates: [{ weight: 1, buffer: 2 }],
        },
      },
    );
    const model = modelWith(
      [one],
      [
        [10, 20, 30, 40],
        [0, 0, 0, 0],
      ],
    );
    expect(model.weights.map(({ place }) => place)).toEqual([
      { region: 'weights', offset: 0 },
      { region: 'state', offset: 64 },
    ]);
    // Zeros of the state are in no file: a head, and four floats in a whole line.
    expect(weightsImage(model).bytes).toHaveLength(64 + 64);
    const call = `  expect_ok(model_step(&context, x, y));\n${show}`;
    const found = calls(
      model,
      `${call}\n${call}\n  show("state", (const float *)(const void *)((unsigned char *)model_state(&context) + MODEL_STATE_W_1_AT), 4);\n  show("fixed", (const float *)(const void *)(weights + MODEL_WEIGHTS_W_0_AT), 4);`,
    );
    expect(found.get('y')).toEqual([
      [10, 40, 90, 160],
      [20, 80, 180, 320],
    ]);
    expect(found.get('state')).toEqual([[20, 80, 180, 320]]);
    expect(found.get('fixed')).toEqual([[10, 20, 30, 40]]);
  });

  test('scalars come from inputs, the seed and the counter, which goes on', () => {
    const one = functionOf(
      'words',
      [
        kernel(
          'words',
          'for (int i = 0; i < 4; i++) b[i] = (float)scalars[i]; b[0] += ((float *)scratch)[0] * 0.0f;',
          {
            usesScalars: true,
            sharedBytes: 256,
          },
        ),
      ],
      [dispatch(0, [0, 1], 1)],
      {
        program: {
          scalars: [
            { name: 's', dtype: 'u32' },
            { name: 'c', dtype: 'u32' },
            { name: 'h', dtype: 'u32' },
            { name: 'i', dtype: 'u32', input: 0 },
          ],
        },
        ports: {
          scalars: [{ seed: 0 }, { counter: 0, offset: 5 }, { counter: 1, offset: 5 }],
          draws: 7,
        },
      },
    );
    const call = `  expect_ok(model_words(&context, x, y));\n${show}`;
    const found = calls(
      modelWith([one]),
      `  memset(context.arena, 0, sizeof context.arena);\n  x[0] = 0.0f;\n${call}\n${call}\n  expect_ok(model_seed(&context, 9));\n${call}`,
    );
    expect(found.get('y')).toEqual([
      [0, 5, 0, 0],
      [0, 12, 0, 0],
      [9, 5, 0, 0],
    ]);
  });
});
