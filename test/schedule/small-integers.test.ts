// Integers of 8 and 16 bits over words of memory are what they are without: every operation, at the edges of their ranges.

import { describe, expect, test } from 'vitest';
import { binary, cast as castNode, reduce, unary, where } from '../../src/ir/build.ts';
import { dtypeBytes, isSmallInteger, type DType } from '../../src/ir/dtype.ts';
import { topological, type Graph, type Node } from '../../src/ir/graph.ts';
import { interpret } from '../../src/ir/interpret/interpret.ts';
import type { BinaryOp, Monoid } from '../../src/ir/ops.ts';
import { hostArray, type HostArray } from '../../src/ir/value.ts';
import { verify } from '../../src/ir/verify.ts';
import { packSmallIntegers } from '../../src/schedule/passes/small-integers.ts';
import { gpuTarget } from '../../src/schedule/target.ts';
import { Sketch } from '../codegen/cases.ts';
import { asStored } from '../support/execute.ts';
import { randomArray } from '../support/random/values.ts';

const small = ['i8', 'u8', 'i16', 'u16'] as const;

function expectSame(graph: Graph, inputs: readonly HostArray[]): void {
  const packed = packSmallIntegers(graph, gpuTarget);
  verify(packed, 'packSmallIntegers');
  const used = [...packed.parameters, ...topological(packed.outputs)].map(({ dtype }) => dtype);
  expect(used.filter((dtype) => isSmallInteger(dtype))).toEqual([]);
  const found = interpret(
    packed,
    inputs.map((input, i) => asStored(input, packed.parameters[i]!)),
  );
  interpret(graph, inputs).forEach((expected, i) => {
    expect([...found[i]!.data]).toEqual([...asStored(expected, packed.outputs[i]!).data]);
  });
}

describe.each(small)('%s', (dtype) => {
  const count = 37;
  const bits = Number(dtype.slice(1));
  const [low, high] = dtype.startsWith('i') ? [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1] : [0, 2 ** bits - 1];
  const edges = [low, low + 1, -1, 0, 1, 2, 3, 7, high - 1, high].filter((value) => value >= low);
  const values = (shift: number): HostArray =>
    hostArray(
      dtype,
      [count],
      Array.from({ length: count }, (_, i) => edges[(i * (shift + 1) + shift) % edges.length]!),
    );

  const ops: readonly BinaryOp[] = 'add sub mul mulhi div mod min max and or xor shl shr lt le eq ne'.split(
    ' ',
  ) as BinaryOp[];
  test.each(ops)('%s', (op) => {
    const s = new Sketch();
    const graph = s.graph([binary(s.b, op, s.input([count], dtype), s.input([count], dtype))]);
    for (const shift of [0, 1, 3]) expectSame(graph, [values(shift), values(2)]);
  });

  test.each(['neg', 'abs', 'sign', 'not'] as const)('%s', (op) => {
    const s = new Sketch();
    expectSame(s.graph([unary(s.b, op, s.input([count], dtype))]), [values(0)]);
  });

  test.each<DType>(['f32', 'i32', 'u32', 'bool', ...small])('casts to and from %s', (other) => {
    const s = new Sketch();
    const [x, y] = [s.input([count], dtype), s.input([count], other)];
    const from =
      other === 'f32'
        ? hostArray(
            'f32',
            [count],
            Array.from(
              { length: count },
              (_, i) => [NaN, Infinity, -Infinity, -1.5, 300.7, 70000, -70000][i % 7]!,
            ),
          )
        : randomArray(other, [count], 5, 'special');
    expectSame(s.graph([castNode(s.b, x, other), castNode(s.b, y, dtype)]), [values(0), from]);
  });

  const twins = ([...small, 'f16', 'bf16'] as const).filter((other) => dtypeBytes(other) === bits / 8);
  test.each(twins)('reads the bits of %s and gives its own', (other) => {
    const s = new Sketch();
    const [x, y] = [s.input([count], dtype), s.input([count], other)];
    const read = s.b.add('bitcast', [y], { dtype }) as Node;
    const given = s.b.add('bitcast', [x], { dtype: other }) as Node;
    expectSame(s.graph([read, given]), [values(0), randomArray(other, [count], 4, 'tame')]);
  });

  test('hands through what it does nothing with', () => {
    const s = new Sketch();
    const x = s.input([3], dtype);
    const { parameters, outputs } = packSmallIntegers(s.graph([x, unary(s.b, 'not', x), x]), gpuTarget);
    expect([outputs[0], outputs[2]]).toEqual([parameters[0], parameters[0]]);
    expect(outputs[1]!.shape).toEqual([Math.ceil((3 * bits) / 32)]);
  });

  test.each<Monoid>(['sum', 'prod', 'min', 'max'])('folds by %s', (monoid) => {
    const s = new Sketch();
    const x = s.input([5, 7], dtype);
    const scans = [false, true].map(
      (exclusive) => s.b.add('scan', [x], { monoid, axis: 1, reverse: false, exclusive }) as Node,
    );
    expectSame(s.graph([reduce(s.b, monoid, x, [1]), ...scans]), [randomArray(dtype, [5, 7], 3, 'special')]);
    const none = new Sketch();
    expectSame(none.graph([reduce(none.b, monoid, none.input([3, 0], dtype), [1])]), [
      hostArray(dtype, [3, 0], []),
    ]);
  });

  test('products, choices, joins and rows of tables', () => {
    const s = new Sketch();
    const [x, y, at] = [s.input([3, 5], dtype), s.input([5, 3], dtype), s.input([2, 3], 'i32')];
    const chosen = where(s.b, binary(s.b, 'lt', x, x), x, unary(s.b, 'neg', x));
    const joined = s.b.add('concat', [x, chosen], { axis: 0 }) as Node;
    const rows = s.b.add('gather', [y, at], { axis: 0 }) as Node;
    const put = s.b.add('scatter', [y, at, rows], { axis: 0, mode: 'add' }) as Node;
    const iota = s.b.add('iota', [], { shape: [300], axis: 0, dtype }) as Node;
    expectSame(s.graph([s.matmul(x, y), joined, rows, put, iota]), [
      randomArray(dtype, [3, 5], 1, 'special'),
      randomArray(dtype, [5, 3], 2, 'special'),
      hostArray('i32', [2, 3], [0, 4, 1, 2, 2, 3]),
    ]);
  });
});
