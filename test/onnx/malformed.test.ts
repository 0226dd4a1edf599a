// Files that no tool wrote: 500 mutations of a model, each of which loads and runs, or fails with a typed error, within a second of
// processor time. The model is written here, with the same table of messages that reads it.
//
// Runs alone: it measures time.

import { mkdtempSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { setDevice, SinterError } from '../../src/index.ts';
import { loadOnnx, UnsupportedNodesError } from '../../src/onnx/index.ts';
import { cpuTimeOf } from '../support/cpu-time.ts';
import { attribute, encode, float, graph, int64, model, modelOf, node, port } from '../support/onnx/file.ts';

beforeAll(() => setDevice('interpreter'));
afterAll(() => setDevice(undefined));

const weights = Array.from({ length: 12 }, (_, i) => i / 4 - 1);

/** Convolution, pooling, a product, shapes that are computed, a branch. */
const sound = (): Uint8Array =>
  modelOf({
    inputs: [port('x', 1, ['batch', 4])],
    outputs: [port('y', 1, ['batch', 2])],
    initializers: [float('w', [4, 3], weights), int64('two', [1], [2n]), int64('rest', [1], [-1n])],
    nodes: [
      node('MatMul', ['x', 'w'], ['m']),
      node('Relu', ['m'], ['r']),
      node('Shape', ['x'], ['s'], [attribute('end', 1)]),
      node('Concat', ['s', 'rest'], ['t'], [attribute('axis', 0)]),
      node('Reshape', ['r', 't'], ['f']),
      node('Slice', ['f', 'zero', 'two', 'one'], ['y']),
      node('Constant', [], ['zero'], [attribute('value_ints', [0])]),
      node('Constant', [], ['one'], [attribute('value_ints', [1])]),
    ],
  });

/** A small generator, so that a mutation is its number. */
function randomly(seed: number): (below: number) => number {
  let state = (seed * 2654435761 + 12345) >>> 0;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

function mutated(bytes: Uint8Array, seed: number): Uint8Array {
  const next = randomly(seed);
  const out = bytes.slice();
  switch (seed % 5) {
    case 0:
      return out.subarray(0, next(out.length));
    case 1:
      out[next(out.length)]! ^= 1 << next(8);
      return out;
    case 2:
      for (let i = 0; i < 4; i++) out[next(out.length)] = next(256);
      return out;
    case 3: {
      const [from, count] = [next(out.length), 1 + next(8)];
      return Uint8Array.from([...out.subarray(0, from), ...out.subarray(from + count)]);
    }
    default: {
      const at = next(out.length);
      return Uint8Array.from([
        ...out.subarray(0, at),
        ...Array.from({ length: 5 }, () => 0xff - next(3)),
        ...out.subarray(at),
      ]);
    }
  }
}

async function outcome(bytes: Uint8Array): Promise<unknown> {
  try {
    const loaded = await loadOnnx(bytes);
    const inputs = loaded.inputs.map(({ name }) => [name, new Float32Array(8)] as const);
    const outputs = await loaded.run(Object.fromEntries(inputs));
    await Promise.all(Object.values(outputs).map((output) => output.data()));
    return undefined;
  } catch (error) {
    return error;
  }
}

describe('a malformed model', () => {
  test('is sound before it is mutated', async () => {
    expect(await outcome(sound())).toBeUndefined();
  });

  test('runs or fails with a typed error within a second of processor time, 500 times', async () => {
    const bytes = sound();
    const wrong: string[] = [];
    let failed = 0;
    for (let seed = 0; seed < 500; seed++) {
      let error: unknown;
      const took = await cpuTimeOf(async () => {
        error = await outcome(mutated(bytes, seed));
      });
      if (error !== undefined) failed += 1;
      if (error !== undefined && !(error instanceof SinterError)) wrong.push(`${seed}: ${String(error)}`);
      if (took > 1000) wrong.push(`${seed}: ${took} ms`);
    }
    expect(wrong).toEqual([]);
    expect(failed).toBeGreaterThan(200);
  });

  const x = [port('x', 1, [2])];
  const y = [port('y', 1, [2])];
  const cases: readonly (readonly [string, Uint8Array, RegExp])[] = [
    [
      'of nodes in a circle',
      modelOf({ inputs: x, outputs: y, nodes: [node('Add', ['x', 'y'], ['a']), node('Neg', ['a'], ['y'])] }),
      /depends on its own result/,
    ],
    [
      'that reads what nothing defines',
      modelOf({ inputs: x, outputs: y, nodes: [node('Add', ['x', 'lost'], ['y'])] }),
      /reads 'lost', which nothing defines/,
    ],
    [
      'whose output nothing computes',
      modelOf({ inputs: x, outputs: y, nodes: [] }),
      /nothing computes the output 'y'/,
    ],
    [
      'with a tensor of absurd size',
      modelOf({ inputs: x, outputs: y, initializers: [float('w', [2 ** 40, 3], [])], nodes: [] }),
      /no axis has 1099511627776 elements/,
    ],
    [
      'with a tensor of fewer elements than its shape has',
      modelOf({ inputs: x, outputs: y, initializers: [float('w', [5], [1])], nodes: [] }),
      /5 elements of float take 20 bytes, not 4/,
    ],
    [
      'with an attribute where there is none',
      modelOf({ inputs: x, outputs: y, nodes: [node('Relu', ['x'], ['y'], [attribute('slope', 0.5)])] }),
      /^onnx: Relu: there is no attribute 'slope': Relu has none$/,
    ],
    [
      'with an attribute of another operator',
      modelOf({ inputs: x, outputs: y, nodes: [node('Softmax', ['x'], ['y'], [attribute('axes', [0])])] }),
      /^onnx: Softmax: there is no attribute 'axes': Softmax has axis$/,
    ],
    [
      'with an attribute of another operator in a branch',
      modelOf({
        inputs: [...x, port('c', 9, [])],
        outputs: y,
        nodes: [
          node(
            'If',
            ['c'],
            ['y'],
            [
              attribute('then_branch', graph({ inputs: [], outputs: y, nodes: [node('Abs', ['x'], ['y'])] })),
              attribute(
                'else_branch',
                graph({
                  inputs: [],
                  outputs: y,
                  nodes: [node('Neg', ['x'], ['y'], [attribute('alpha', 2)])],
                }),
              ),
            ],
          ),
        ],
      }),
      /^onnx: Neg: there is no attribute 'alpha': Neg has none$/,
    ],
    [
      'with a loop that has an attribute of Scan',
      modelOf({
        inputs: x,
        outputs: y,
        nodes: [
          node(
            'Loop',
            ['', '', 'x'],
            ['y'],
            [
              attribute('num_scan_inputs', 1),
              attribute('body', graph({ inputs: [], outputs: [], nodes: [] })),
            ],
          ),
        ],
      }),
      /^onnx: Loop: there is no attribute 'num_scan_inputs': Loop has body$/,
    ],
    [
      'with a derivative that has an attribute of another operator',
      model(
        graph({
          inputs: x,
          outputs: y,
          nodes: [node('Gradient', ['x'], ['y'], [attribute('order', 2)], 'ai.onnx.preview.training')],
        }),
        17,
        ['ai.onnx.preview.training'],
      ),
      /Gradient: there is no attribute 'order': Gradient has xs, zs, y$/,
    ],
    [
      'with a step of an optimizer that has an attribute of another one',
      model(
        graph({
          inputs: x,
          outputs: y,
          nodes: [
            node(
              'Adam',
              ['x', 'x', 'x', 'x', 'x', 'x'],
              ['y'],
              [attribute('mode', 'nesterov')],
              'ai.onnx.preview.training',
            ),
          ],
        }),
        17,
        ['ai.onnx.preview.training'],
      ),
      /there is no attribute 'mode': Adam has alpha, beta, epsilon, norm_coefficient, norm_coefficient_post$/,
    ],
  ];
  test.each(cases)('%s says so', async (_, bytes, message) => {
    await expect(loadOnnx(bytes)).rejects.toMatchObject({ code: 'E_FORMAT' });
    await expect(loadOnnx(bytes)).rejects.toThrow(message);
  });

  test('may have attributes of tools, which begin with two underscores', async () => {
    const nodes = [node('Relu', ['x'], ['y'], [attribute('__origin', 'layer 1')])];
    const { y: found } = await (
      await loadOnnx(modelOf({ inputs: x, outputs: y, nodes }))
    ).run({
      x: Float32Array.of(-1, 2),
    });
    expect([...(await found!.data())]).toEqual([0, 2]);
  });

  test('of a circle of functions says so', async () => {
    const call = [node('F', ['x'], ['y'], [], 'own')];
    const looped = { name: 'F', domain: 'own', input: ['x'], output: ['y'], node: call };
    const bytes = encode('Model', {
      graph: graph({ inputs: x, outputs: y, nodes: call }),
      functions: [looped],
    });
    await expect(loadOnnx(bytes)).rejects.toThrow(/nest deeper than/);
  });

  test('lists every node that is not supported', async () => {
    const nodes = [
      node('Neg', ['x'], ['a']),
      node('Sorcery', ['a'], ['b'], [], '', 'first'),
      node('Magic', ['b'], ['y'], [], 'far'),
    ];
    const error: unknown = await loadOnnx(modelOf({ inputs: x, outputs: y, nodes })).catch((e: unknown) => e);
    expect(error).toBeInstanceOf(UnsupportedNodesError);
    expect((error as UnsupportedNodesError).nodes).toEqual([
      { name: 'first', op: 'Sorcery', opset: 21 },
      { name: '', op: 'far::Magic', opset: 1 },
    ]);
    expect(String(error)).toContain("Sorcery (opset 21) at 'first'");
  });
});

describe('external data', () => {
  const dir = mkdtempSync(join(tmpdir(), 'sinter-onnx-'));
  afterAll(() => rmSync(dir, { recursive: true }));
  const folder = join(dir, 'model');
  mkdirSync(folder);
  const values = new Uint8Array(Float32Array.of(3, 4, 5).buffer);
  writeFileSync(join(dir, 'secret.bin'), values);
  writeFileSync(join(folder, 'weights.bin'), values);
  symlinkSync(join(dir, 'secret.bin'), join(folder, 'link.bin'));

  const written = (location: string, offset = 4, length = 8): string => {
    const path = join(folder, 'model.onnx');
    const entries = Object.entries({ location, offset: String(offset), length: String(length) });
    const w = {
      name: 'w',
      dims: [2n],
      dataType: 1,
      dataLocation: 1,
      externalData: entries.map(([key, value]) => ({ key, value })),
    };
    const nodes = [node('Add', ['x', 'w'], ['y'])];
    const ports = { inputs: [port('x', 1, [2])], outputs: [port('y', 1, [2])] };
    writeFileSync(path, modelOf({ ...ports, initializers: [w], nodes }));
    return path;
  };

  test('beside the model is read', async () => {
    const loaded = await loadOnnx(written('weights.bin'));
    const { y } = await loaded.run({ x: Float32Array.of(1, 1) });
    expect([...(await y!.data())]).toEqual([5, 6]);
  });

  test.each([
    '../secret.bin',
    '/etc/hostname',
    'a/../../secret.bin',
    'link.bin',
    'missing.bin',
    '..\\secret.bin',
  ])('at %s is refused', async (location) => {
    await expect(loadOnnx(written(location))).rejects.toMatchObject({ code: 'E_FORMAT' });
  });

  test('shorter than told is refused', async () => {
    await expect(loadOnnx(written('weights.bin', 8, 8))).rejects.toThrow(/has 12 bytes, not 8 \+ 8/);
  });
});
