// Doubles that make no difference go, and what is left computes the same bits: casts through choices and moves, arithmetic of
// floats in doubles, comparisons. Doubles that do make one stay, to be refused.

import { describe, expect, test } from 'vitest';
import { loadOnnx } from '../../src/onnx/index.ts';
import { binary, broadcast, cast, constant, reshape, unary, where } from '../../src/ir/build.ts';
import type { DType } from '../../src/ir/dtype.ts';
import { topological, type Node } from '../../src/ir/graph.ts';
import { interpret } from '../../src/ir/interpret/interpret.ts';
import type { BinaryOp, UnaryOp } from '../../src/ir/ops.ts';
import { foldConstants } from '../../src/ir/passes/fold.ts';
import { simplify } from '../../src/ir/passes/simplify.ts';
import { verify } from '../../src/ir/verify.ts';
import { narrowDoubles } from '../../src/schedule/passes/narrow-doubles.ts';
import { setDevice, tensor } from '../../src/index.ts';
import { Sketch } from '../codegen/cases.ts';
import { randomArray } from '../support/random/values.ts';
import { modelOf, node as nodeOf, port } from '../support/onnx/file.ts';

const count = 40;

/** How many nodes of f64 are left; what the graph gives stays the same. */
function left(make: (s: Sketch, x: Node, y: Node) => Node): number {
  const s = new Sketch();
  const graph = s.graph([make(s, s.input([count]), s.input([count]))]);
  const narrow = simplify(foldConstants(narrowDoubles(graph)));
  verify(narrow, 'narrowDoubles');
  for (const kind of ['special', 'tame'] as const) {
    const inputs = [randomArray('f32', [count], 3, kind), randomArray('f32', [count], 4, kind)];
    const [expected, found] = [interpret(graph, inputs), interpret(narrow, inputs)];
    expect([...found[0]!.data]).toEqual([...expected[0]!.data]);
  }
  return topological(narrow.outputs).filter(({ dtype }) => dtype === 'f64').length;
}

const wide = (s: Sketch, x: Node): Node => cast(s.b, x, 'f64');
const narrow = (s: Sketch, x: Node, dtype: DType = 'f32'): Node => cast(s.b, x, dtype);
const number = (s: Sketch, value: number): Node => broadcast(s.b, constant(s.b, value, 'f64'), [count]);

describe('doubles go', () => {
  test('where they are chosen between, moved and cast, as PyTorch writes them for numbers of Python', () => {
    for (const dtype of ['f32', 'i32', 'f16'] as const) {
      const found = left((s, x, y) => {
        const choice = where(s.b, binary(s.b, 'lt', x, y), number(s, -1e9), number(s, 0.1));
        return narrow(s, reshape(s.b, choice, [2, count / 2]), dtype);
      });
      expect(found).toBe(0);
    }
  });

  test.each<BinaryOp>(['add', 'sub', 'mul', 'div'])('where %s of two floats is rounded twice', (op) => {
    expect(left((s, x, y) => narrow(s, binary(s.b, op, wide(s, x), wide(s, y))))).toBe(0);
    expect(left((s, x) => narrow(s, binary(s.b, op, wide(s, x), number(s, -0.75))))).toBe(0);
  });

  test.each<Exclude<UnaryOp, 'cast' | 'bitcast'>>(['sqrt', 'neg', 'abs'])(
    'where they are %s of a float',
    (op) => {
      expect(left((s, x) => narrow(s, unary(s.b, op, wide(s, x))))).toBe(0);
    },
  );

  test.each<BinaryOp>(['lt', 'le', 'eq', 'ne'])('where floats are compared by %s', (op) => {
    expect(left((s, x, y) => binary(s.b, op, wide(s, x), unary(s.b, 'abs', wide(s, y))))).toBe(0);
    expect(left((s, x) => binary(s.b, op, wide(s, x), number(s, Infinity)))).toBe(0);
  });
});

describe('doubles stay', () => {
  test('where a number has more digits than a float', () => {
    expect(left((s, x) => narrow(s, binary(s.b, 'mul', wide(s, x), number(s, 0.1))))).toBeGreaterThan(0);
    expect(left((s, x) => binary(s.b, 'lt', wide(s, x), number(s, 0.1)))).toBeGreaterThan(0);
  });

  test('where more than one operation is done in them', () => {
    const found = left((s, x, y) => {
      const product = binary(s.b, 'mul', wide(s, x), wide(s, y));
      return narrow(s, binary(s.b, 'add', product, wide(s, y)));
    });
    expect(found).toBeGreaterThan(0);
  });

  test('where integers of 32 bits come in, or a sum goes elsewhere than to f32', () => {
    const fromIntegers = left((s, x, y) => {
      const whole = wide(s, cast(s.b, x, 'i32'));
      return narrow(s, binary(s.b, 'add', whole, wide(s, y)));
    });
    const toHalf = left((s, x, y) => narrow(s, binary(s.b, 'add', wide(s, x), wide(s, y)), 'f16'));
    expect([fromIntegers > 0, toHalf > 0]).toEqual([true, true]);
  });
});

test('a model that chooses between doubles runs on WebGPU', async () => {
  const scalar = (name: string, value: number) => ({
    name,
    dataType: 11,
    dims: [],
    rawData: new Uint8Array(Float64Array.of(value).buffer),
  });
  const file = modelOf({
    inputs: [port('c', 9, [4]), port('x', 1, [4])],
    outputs: [{ name: 'y' }],
    initializers: [scalar('low', -1e9), scalar('zero', 0)],
    nodes: [
      nodeOf('Where', ['c', 'low', 'zero'], ['d']),
      nodeOf('Cast', ['d'], ['f'], [{ name: 'to', type: 2, i: 1n }]),
      nodeOf('Add', ['x', 'f'], ['y']),
    ],
  });
  setDevice('webgpu:software');
  try {
    const model = await loadOnnx(file);
    const { y } = await model.run({ c: tensor([true, false, true, false]), x: Float32Array.of(1, 2, 3, 4) });
    expect([...(await y!.data())]).toEqual([-1e9, 2, -1e9, 4]);
  } finally {
    setDevice(undefined);
  }
});
