// Graphs that lead to every kernel kind and to every edge of its template: sizes that do and do not divide by the tile or the
// vector width, transposed and batched operands, long and short rows, narrow dtypes.

import { add, binary, broadcast, reduce, reduceKeep, sub, unary, div } from '../../src/ir/build.ts';
import type { DType } from '../../src/ir/dtype.ts';
import { GraphBuilder, type Graph, type Node, type NodeOf } from '../../src/ir/graph.ts';
import { dims } from '../../src/ir/graph.ts';
import { factor } from '../../src/ir/matrix.ts';
import type { Monoid } from '../../src/ir/ops.ts';
import { tableNode } from '../support/fft.ts';

export class Sketch {
  readonly b: GraphBuilder = new GraphBuilder();
  readonly parameters: NodeOf<'parameter'>[] = [];

  input(shape: readonly number[], dtype: DType = 'f32'): Node {
    const index = this.parameters.length;
    const node = this.b.add('parameter', [], { index, name: `x${index}`, dtype, shape });
    this.parameters.push(node);
    return node as Node;
  }

  constant(value: number): Node {
    return this.b.add('constant', [], { value, dtype: 'f32' }) as Node;
  }

  /** Contracts the last axis of x with the second to last of y, over `batch` leading axes. */
  matmul(x: Node, y: Node, batch = 0): Node {
    const axes = Array.from({ length: batch }, (_, i) => i);
    return this.dot(x, y, axes, axes, [dims(x).length - 1], [dims(y).length - 2]);
  }

  dot(
    x: Node,
    y: Node,
    lhsBatch: number[],
    rhsBatch: number[],
    lhsContract: number[],
    rhsContract: number[],
  ): Node {
    return this.b.add('dot', [x, y], {
      lhsBatch,
      rhsBatch,
      lhsContract,
      rhsContract,
      dtype: x.dtype,
    }) as Node;
  }

  softmax(x: Node, axis: number): Node {
    const { b } = this;
    const top = broadcast(b, reduceKeep(b, 'max', x, [axis]), dims(x));
    const e = unary(b, 'exp', sub(b, x, top));
    return div(b, e, broadcast(b, reduceKeep(b, 'sum', e, [axis]), dims(x)));
  }

  /** Of queries, keys and values of these shapes, with steep scores. */
  attention(q: number[], k: number[], v: number[], dtype: DType = 'f32'): Node {
    const [queries, keys, values] = [q, k, v].map((shape) => this.input(shape, dtype)) as [Node, Node, Node];
    const scores = this.matmul(queries, this.b.add('permute', [keys], { order: [0, 2, 1] }) as Node, 1);
    return this.matmul(this.softmax(scores, 2), values, 1);
  }

  conv(x: Node, w: Node, options: Partial<NodeOf<'conv'>['attrs']> = {}): Node {
    const one = [1, 1];
    const attrs = {
      strides: one,
      padLow: one,
      padHigh: one,
      lhsDilation: one,
      rhsDilation: one,
      groups: 1,
      ...options,
    };
    return this.b.add('conv', [x, w], attrs) as Node;
  }

  scan(x: Node, axis: number, monoid: Monoid, reverse = false, exclusive = false): Node {
    return this.b.add('scan', [x], { axis, monoid, reverse, exclusive }) as Node;
  }

  fft(x: Node, axis: number, inverse: boolean): Node {
    const table = tableNode(this.b, dims(x)[axis]!, x.dtype);
    return this.b.add('fft', [x, table], { axis, inverse }) as Node;
  }

  argSort(x: Node, axis: number, descending = false): Node {
    return this.b.add('argSort', [x], { axis, descending }) as Node;
  }

  graph(outputs: readonly Node[]): Graph {
    return { parameters: this.parameters, outputs };
  }
}

const whole = (shape: readonly number[]): number[] => shape.map(() => 1);

export const cases: Readonly<Record<string, (s: Sketch) => readonly Node[]>> = {
  'add of a broadcast row': (s) => [add(s.b, s.input([37, 5]), broadcast(s.b, s.input([5]), [37, 5]))],
  'a permuted copy': (s) => [s.b.add('permute', [s.input([9, 3, 10])], { order: [2, 0, 1] }) as Node],
  'a transpose of whole blocks': (s) => {
    const turned = s.b.add('permute', [s.input([32, 48])], { order: [1, 0] }) as Node;
    return [add(s.b, turned, broadcast(s.b, s.input([32]), [48, 32]))];
  },
  'heads split and joined with what lies straight': (s) => {
    const turned = s.b.add('permute', [s.input([3, 12, 8, 20])], { order: [0, 2, 3, 1] }) as Node;
    return [binary(s.b, 'mul', turned, s.input([3, 8, 20, 12])), unary(s.b, 'neg', turned)];
  },
  'a transpose of halves': (s) => {
    const turned = s.b.add('permute', [s.input([16, 40], 'f16')], { order: [1, 0] }) as Node;
    return [unary(s.b, 'neg', turned)];
  },
  'a shifted transpose': (s) => {
    const padded = s.b.add('pad', [s.input([23, 32])], {
      low: [1, 0],
      high: [0, 0],
      interior: [0, 0],
      value: 2,
    });
    return [unary(s.b, 'neg', s.b.add('permute', [padded as Node], { order: [1, 0] }) as Node)];
  },
  'two outputs of one size': (s) => {
    const [x, y] = [s.input([7, 6]), s.input([7, 6])];
    return [add(s.b, x, y), binary(s.b, 'mul', x, y)];
  },
  'a rank-0 result': (s) => [add(s.b, s.input([]), s.input([]))],
  'matmul of whole tiles': (s) => [s.matmul(s.input([64, 32]), s.input([32, 64]))],
  'matmul of odd sizes': (s) => [s.matmul(s.input([67, 45]), s.input([45, 71]))],
  'matmul with the right side transposed': (s) => [
    s.dot(s.input([50, 40]), s.input([66, 40]), [], [], [1], [1]),
  ],
  'matmul with the left side transposed': (s) => [
    s.dot(s.input([40, 50]), s.input([40, 66]), [], [], [0], [0]),
  ],
  'batched matmul': (s) => [s.matmul(s.input([3, 40, 33]), s.input([3, 33, 50]), 1)],
  'a row times a matrix': (s) => [s.matmul(s.input([1, 90]), s.input([90, 101]))],
  'a matrix times a column': (s) => [s.matmul(s.input([90, 101]), s.input([101, 1]))],
  'matmul over several contracted axes': (s) => [
    s.dot(s.input([4, 5, 33]), s.input([4, 5, 34]), [], [], [0, 1], [0, 1]),
  ],
  'matmul, bias, clamp, residual': (s) => {
    const y = add(
      s.b,
      s.matmul(s.input([35, 36]), s.input([36, 37])),
      broadcast(s.b, s.input([37]), [35, 37]),
    );
    return [add(s.b, binary(s.b, 'max', y, 0), s.input([35, 37]))];
  },
  'matmul with its heads split on the way out': (s) => {
    const y = s.matmul(s.input([24, 16]), s.input([16, 48]));
    const split = s.b.add('reshape', [y], { shape: [2, 12, 4, 12] }) as Node;
    return [s.b.add('permute', [split], { order: [0, 2, 1, 3] }) as Node];
  },
  'matmul of a computed operand': (s) => [
    s.matmul(binary(s.b, 'mul', s.input([33, 34]), 0.5), s.input([34, 35])),
  ],
  'integer matmul': (s) => [s.matmul(s.input([33, 9], 'i32'), s.input([9, 40], 'i32'))],
  'half matmul': (s) => [s.matmul(s.input([33, 17], 'f16'), s.input([17, 35], 'f16'))],
  'convolution with padding': (s) => [s.conv(s.input([1, 8, 12, 12]), s.input([16, 8, 3, 3]))],
  'convolution with everything': (s) => [
    s.conv(s.input([2, 6, 9, 11]), s.input([8, 3, 3, 3]), {
      strides: [2, 1],
      padHigh: [1, 2],
      lhsDilation: [1, 2],
      rhsDilation: [1, 2],
      groups: 2,
    }),
  ],
  'depthwise convolution': (s) => [s.conv(s.input([1, 8, 9, 9]), s.input([8, 1, 3, 3]), { groups: 8 })],
  'large convolution': (s) => [s.conv(s.input([1, 16, 10, 10]), s.input([40, 16, 3, 3]))],
  'softmax over rows of a multiple of four': (s) => [s.softmax(s.input([6, 64]), 1)],
  'softmax over odd rows': (s) => [s.softmax(s.input([7, 515]), 1)],
  'softmax over columns': (s) => [s.softmax(s.input([66, 30]), 0)],
  'attention of one row over many keys': (s) => [s.attention([3, 1, 32], [3, 290, 32], [3, 290, 24])],
  'attention of few rows over many keys, bf16': (s) => [
    s.attention([2, 3, 16], [2, 512, 16], [2, 512, 64], 'bf16'),
  ],
  'softmax over a middle axis': (s) => [s.softmax(s.input([3, 18, 5]), 1)],
  'several reductions of one input': (s) => {
    const x = s.input([12, 40]);
    return [
      reduce(s.b, 'sum', x, [1]),
      reduce(s.b, 'max', x, [1]),
      reduce(s.b, 'sum', binary(s.b, 'mul', x, x), [1]),
    ];
  },
  'column sums': (s) => [reduce(s.b, 'sum', s.input([100, 67]), [0])],
  'sum over outer and inner axes': (s) => [reduce(s.b, 'sum', s.input([5, 6, 7]), [0, 2])],
  'a long sum': (s) => [reduce(s.b, 'sum', s.input([20_000]), [0])],
  'a long maximum of few rows': (s) => [reduce(s.b, 'max', s.input([3, 10_001]), [1])],
  'positions of extremes': (s) => [
    s.b.add('argReduce', [s.input([9, 300])], { monoid: 'max', axis: 1 }) as Node,
    s.b.add('argReduce', [s.input([70, 33])], { monoid: 'min', axis: 0 }) as Node,
  ],
  'both extremes of long rows at once': (s) => {
    const x = s.input([5, 600]);
    return (['max', 'min'] as const).map((monoid) => s.b.add('argReduce', [x], { monoid, axis: 1 }) as Node);
  },
  'bool reductions': (s) => [
    reduce(s.b, 'or', s.input([9, 70], 'bool'), [1]),
    reduce(s.b, 'and', s.input([70, 9], 'bool'), [0]),
    binary(s.b, 'lt', s.input([13, 7]), s.input([13, 7])),
  ],
  'half sums and adds': (s) => [
    reduce(s.b, 'sum', s.input([33, 70], 'bf16'), [1]),
    add(s.b, s.input([33, 7], 'f16'), s.input([33, 7], 'f16')),
    reduce(s.b, 'sum', s.input([5, 7], 'f16'), [0]),
  ],
  'running sums, every direction': (s) => {
    const x = s.input([6, 33]);
    return [
      s.scan(x, 1, 'sum'),
      s.scan(x, 0, 'sum', true),
      s.scan(x, 1, 'max', false, true),
      s.scan(x, 1, 'sum', true, true),
    ];
  },
  'running folds of lines of every length': (s) => [
    s.scan(s.input([70, 18]), 1, 'sum', true),
    s.scan(s.input([3, 3001]), 1, 'sum', true, true),
    s.scan(s.input([2, 2600], 'i32'), 1, 'max'),
    s.scan(s.input([5, 131], 'bool'), 1, 'or'),
    s.scan(s.input([300, 4], 'bool'), 0, 'and', true),
    s.scan(s.input([7, 52], 'u32'), 1, 'prod', false, true),
  ],
  'running sums of neighbouring lines': (s) => [
    s.scan(s.input([9, 130]), 0, 'sum'),
    s.scan(s.input([4, 700, 67]), 1, 'sum', true, true),
  ],
  'a running sum with work before and after': (s) => {
    const x = s.input([20, 44]);
    const sum = s.scan(binary(s.b, 'mul', x, 0.5), 1, 'sum');
    return [binary(s.b, 'max', add(s.b, sum, x), 0), sum];
  },
  'a long running sum': (s) => [s.scan(s.input([3000, 2]), 0, 'sum', true, true)],
  'a long running maximum': (s) => [s.scan(s.input([5001]), 0, 'max')],
  'short sorts of every dtype': (s) => [
    s.argSort(s.input([5, 37]), 1),
    s.argSort(s.input([300, 3], 'f16'), 0, true),
    s.argSort(s.input([3, 4, 6], 'bf16'), 1),
    s.argSort(s.input([2, 129], 'i32'), 1, true),
    s.argSort(s.input([70, 2], 'u32'), 1),
    s.argSort(s.input([1, 50], 'bool'), 1, true),
  ],
  'a sort with work on its keys and its places': (s) => {
    const order = s.argSort(binary(s.b, 'mul', s.input([9, 50]), -0.5), 1);
    return [binary(s.b, 'mul', order, 3), binary(s.b, 'lt', order, 20)];
  },
  'long sorts': (s) => {
    const x = s.input([2, 3333]);
    const order = s.argSort(x, 1, true);
    return [
      order,
      s.b.add('gather', [x, order], { axis: 1 }) as Node,
      s.argSort(order, 1),
      s.argSort(s.input([2500, 2], 'bf16'), 0),
      s.argSort(s.input([2100], 'bool'), 0, true),
    ];
  },
  'a long sort of computed keys': (s) => [s.argSort(unary(s.b, 'exp', s.input([4100])), 0)],
  'values dispersed over several axes': (s) => {
    const order = s.argSort(s.input([3, 7, 5], 'i32'), 1);
    return [
      s.b.add('permuteScatter', [s.input([3, 7, 5]), order], { axis: 1 }) as Node,
      s.b.add('permuteScatter', [s.input([3, 7, 5], 'f16'), order], { axis: 1 }) as Node,
      s.b.add('permuteScatter', [s.input([3, 7, 5], 'bool'), order], { axis: 1 }) as Node,
    ];
  },
  'searches among boundaries': (s) => {
    const x = s.input([3, 40]);
    const sorted = s.b.add('gather', [x, s.argSort(x, 1)], { axis: 1 }) as Node;
    const found = s.b.add('searchSorted', [sorted, s.input([3, 17])], { right: false }) as Node;
    const other = s.b.add('searchSorted', [s.input([1], 'i32'), s.input([30], 'i32')], {
      right: true,
    }) as Node;
    return [binary(s.b, 'mul', found, 2), other];
  },
  'batches of squares of products': (s) => {
    const p = s.matmul(s.input([2, 4, 4]), s.input([2, 4, 4]), 1);
    return [s.matmul(p, s.b.add('permute', [p], { order: [0, 2, 1] }) as Node, 1)];
  },
  'matrix algorithms': (s) => {
    const wide = s.input([2, 5, 9]);
    const tall = s.b.add('permute', [wide], { order: [0, 2, 1] }) as Node;
    return [factor(s.b, 'lu', wide), factor(s.b, 'householder', tall)];
  },
  'updates sorted by slot': (s) => {
    const order = s.argSort(s.input([30, 1], 'i32'), 0);
    const rows = s.b.add('iota', [], { shape: [10, 1], axis: 0, dtype: 'i32' }) as Node;
    const starts = broadcast(s.b, binary(s.b, 'mul', rows, 3), [10, 7]);
    const spread = broadcast(s.b, order, [30, 7]);
    const fold = (mode: 'add' | 'set' | 'max', dtype: DType = 'f32'): Node =>
      s.b.add('segmentReduce', [s.input([9, 7], dtype), starts, spread, s.input([30, 7], dtype)], {
        axis: 0,
        mode,
      }) as Node;
    return [binary(s.b, 'mul', fold('add'), 0.5), fold('set', 'bool'), fold('max', 'f16')];
  },
  'transforms of lines, of pairs, and back': (s) => {
    const x = s.input([3, 16, 2]);
    const there = s.fft(x, 1, false);
    const scaled = s.b.add('mul', [there, broadcast(s.b, s.input([16, 1]), [3, 16, 2])], {}) as Node;
    return [there, s.fft(scaled, 1, true)];
  },
  'transforms along the first axis': (s) => [s.fft(s.input([15, 9, 2]), 0, false)],
  'transforms of few lines': (s) => [s.fft(s.input([2, 21, 2]), 1, false), s.fft(s.input([1, 2]), 0, true)],
  'sums in no fixed order': (s) => {
    const at = binary(s.b, 'mod', s.input([40, 6], 'i32'), 9);
    const sums = (dtype: DType): Node =>
      s.b.add('scatterAddAtomic', [at, s.input([40, 6], dtype)], { axis: 0, size: 7 }) as Node;
    return [sums('f32'), sums('f16'), sums('u32'), binary(s.b, 'mul', sums('i32'), 2)];
  },
  'places of places, four columns at a time': (s) => {
    const order = s.argSort(s.input([5, 4], 'i32'), 0);
    return [s.argSort(order, 0)];
  },
  'scatter and gather': (s) => {
    const x = s.input([9, 6]);
    const rows = s.b.add('iota', [], { shape: [14, 6], axis: 0, dtype: 'i32' }) as Node;
    const at = binary(s.b, 'mod', binary(s.b, 'mul', rows, 5), 11);
    return [
      s.b.add('scatter', [x, at, s.input([14, 6])], { axis: 0, mode: 'add' }) as Node,
      s.b.add('scatter', [x, at, s.input([14, 6])], { axis: 0, mode: 'set' }) as Node,
      s.b.add('gather', [x, at], { axis: 0 }) as Node,
    ];
  },
  'slices, pads, windows and joins': (s) => {
    const x = s.input([6, 7]);
    const flipped = s.b.add('slice', [x], { start: [5, 0], size: [6, 4], step: [-1, 2] }) as Node;
    const padded = s.b.add('pad', [x], { low: [1, 0], high: [0, 2], interior: [1, 0], value: 2 }) as Node;
    const windows = s.b.add('window', [x], { axis: 1, size: 3, stride: 2, dilation: 1 }) as Node;
    return [flipped, padded, windows, s.b.add('concat', [x, flipped, x], { axis: 1 }) as Node];
  },
  'a reversed copy': (s) => {
    const x = s.input([11]);
    return [s.b.add('slice', [x], { start: [10], size: [11], step: whole([11]).map(() => -1) }) as Node];
  },
};
