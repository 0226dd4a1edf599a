// If, Loop and Scan of models as branches and loops of one program: nothing is read back, and nothing is written out.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { explain, setDevice, tensor, type Tensor } from '../../src/index.ts';
import { loadOnnx } from '../../src/onnx/index.ts';
import { attribute, graph, modelOf, node, port, type Draft } from '../support/onnx/file.ts';

beforeAll(() => setDevice('wasm'));
afterAll(() => setDevice(undefined));

const numbers = async (x: Tensor | undefined): Promise<number[]> =>
  Array.from((await x!.data()) as ArrayLike<number | bigint>, Number);
const body = (draft: Draft): Draft => ({ name: 'body', type: 5, g: draft });
const branch = (name: string, draft: Draft): Draft => ({ name, type: 5, g: draft });
const [float, bool, int] = [1, 9, 7];

test('If runs the branch that computed values choose', async () => {
  const then = graph({ inputs: [], outputs: [port('a', float, [2])], nodes: [node('Exp', ['x'], ['a'])] });
  const other = graph({ inputs: [], outputs: [port('b', float, [2])], nodes: [node('Neg', ['x'], ['b'])] });
  const file = modelOf({
    inputs: [port('x', float, [2])],
    outputs: [port('y', float, [2])],
    nodes: [
      node('ReduceSum', ['x'], ['s'], [attribute('keepdims', 0)]),
      node('Sub', ['s', 's'], ['zero']),
      node('Greater', ['s', 'zero'], ['p']),
      node('If', ['p'], ['y'], [branch('then_branch', then), branch('else_branch', other)]),
    ],
  });
  const model = await loadOnnx(file);
  const call = model.toFunction();
  expect(await numbers(call({ x: tensor([0, 1]) })['y'])).toEqual([1, Math.fround(Math.E)]);
  expect(await numbers(call({ x: tensor([-3, 1]) })['y'])).toEqual([3, -1]);
  const { kernels } = await explain(call, { x: tensor([1, 2]) });
  expect(kernels.length).toBeGreaterThan(1);
});

const doubling = graph({
  inputs: [port('i', int, []), port('going', bool, []), port('h', float, [2])],
  outputs: [port('more', bool, []), port('next', float, [2]), port('row', float, [2])],
  nodes: [
    node('Identity', ['going'], ['more']),
    node('Cast', ['i'], ['turn'], [attribute('to', float)]),
    node('Add', ['h', 'h'], ['twice']),
    node('Add', ['twice', 'turn'], ['next']),
    node('Add', ['h', 'turn'], ['row']),
  ],
});

test('a Loop of a known count is one loop, whose kernels do not grow with it', async () => {
  const kernelsOf = async (turns: number): Promise<number> => {
    const file = modelOf({
      inputs: [port('x', float, [2])],
      outputs: [port('last', float, [2]), port('rows', float, [turns, 2])],
      initializers: [{ name: 'count', dataType: int, dims: [], int64Data: [BigInt(turns)] }],
      nodes: [node('Loop', ['count', '', 'x'], ['last', 'rows'], [body(doubling)])],
    });
    const call = (await loadOnnx(file)).toFunction();
    const { last, rows } = call({ x: tensor([1, -1]) });
    let h = [1, -1];
    const expected: number[] = [];
    for (let i = 0; i < turns; i++) {
      expected.push(...h.map((v) => v + i));
      h = h.map((v) => 2 * v + i);
    }
    expect([await numbers(last), await numbers(rows)]).toEqual([h, expected]);
    return (await explain(call, { x: tensor([1, 2]) })).kernels.length;
  };
  expect(await kernelsOf(20)).toBe(await kernelsOf(9));
});

test('a Loop ends by its condition', async () => {
  const inner = graph({
    inputs: [port('i', int, []), port('going', bool, []), port('h', float, [])],
    outputs: [port('more', bool, []), port('next', float, [])],
    nodes: [node('Mul', ['h', 'x'], ['next']), node('Less', ['next', 'end'], ['more'])],
  });
  const file = (most: number): Uint8Array =>
    modelOf({
      inputs: [port('x', float, []), port('end', float, [])],
      outputs: [port('y', float, [])],
      initializers: [{ name: 'most', dataType: int, dims: [], int64Data: [BigInt(most)] }],
      nodes: [node('Less', ['x', 'end'], ['c']), node('Loop', ['most', 'c', 'x'], ['y'], [body(inner)])],
    });
  for (const most of [50, 2]) {
    const call = (await loadOnnx(file(most))).toFunction();
    for (const [x, end] of [
      [3, 100],
      [2, 40],
      [7, 1],
    ] as const) {
      let y: number = x;
      for (let i = 0; i < most && y < end; i++) y *= x;
      expect(await numbers(call({ x: tensor(x), end: tensor(end) })['y'])).toEqual([y]);
    }
  }
});
