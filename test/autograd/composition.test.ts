// What models are made of, as compositions of primitives: first and second derivatives against central differences.

import { describe, it } from 'vitest';
import {
  add,
  binary,
  broadcast,
  div,
  expandAxes,
  full,
  mul,
  neg,
  permute,
  reduce,
  reduceKeep,
  reshape,
  sub,
  unary,
  where,
} from '../../src/ir/build.ts';
import { dims, type GraphBuilder, type Node } from '../../src/ir/graph.ts';
import { hostArray } from '../../src/ir/value.ts';
import { checkTrial, randomNumbers, values } from './differences.ts';

type Build = (b: GraphBuilder, inputs: readonly Node[]) => Node;

const over = (b: GraphBuilder, x: Node, part: Node): Node => broadcast(b, part, dims(x));
const last = (x: Node): number[] => [x.shape.length - 1];

function softmax(b: GraphBuilder, x: Node): Node {
  const exp = unary(b, 'exp', sub(b, x, over(b, x, reduceKeep(b, 'max', x, last(x)))));
  return div(b, exp, over(b, x, reduceKeep(b, 'sum', exp, last(x))));
}

function mean(b: GraphBuilder, x: Node): Node {
  return mul(b, reduceKeep(b, 'sum', x, last(x)), 1 / dims(x).at(-1)!);
}

function layerNorm(b: GraphBuilder, x: Node, scale: Node): Node {
  const centred = sub(b, x, over(b, x, mean(b, x)));
  const variance = mean(b, mul(b, centred, centred));
  const normal = mul(b, centred, over(b, x, unary(b, 'rsqrt', add(b, variance, 1e-3))));
  return mul(b, normal, over(b, x, scale));
}

function gelu(b: GraphBuilder, x: Node): Node {
  const cdf = mul(b, add(b, unary(b, 'erf', mul(b, x, Math.SQRT1_2)), 1), 0.5);
  return mul(b, x, cdf);
}

function matmul(b: GraphBuilder, x: Node, y: Node): Node {
  const attrs = { lhsBatch: [], rhsBatch: [], lhsContract: [1], rhsContract: [0], dtype: 'f64' } as const;
  return b.add('dot', [x, y], attrs) as Node;
}

/** −Σ log softmax at each row's label, by the log-sum-exp. */
const crossEntropy: Build = (b, [logits, labels]) => {
  const top = b.add('stopGradient', [reduceKeep(b, 'max', logits!, [1])], {}) as Node;
  const shifted = sub(b, logits!, over(b, logits!, top));
  const logSum = unary(b, 'log', reduceKeep(b, 'sum', unary(b, 'exp', shifted), [1]));
  const chosen = b.add('gather', [shifted, labels!], { axis: 1 }) as Node;
  return reduce(b, 'sum', sub(b, logSum, chosen), [0, 1]);
};

const batchedDot = { lhsBatch: [0], rhsBatch: [0], dtype: 'f64' } as const;

const attention: Build = (b, [q, k, v]) => {
  const scores = b.add('dot', [q!, k!], { ...batchedDot, lhsContract: [2], rhsContract: [2] }) as Node;
  const shape = dims(scores);
  const [row, column] = [1, 2].map((axis) => b.add('iota', [], { shape, axis, dtype: 'i32' }) as Node);
  const causal = where(b, binary(b, 'le', column!, row!), scores, full(b, shape, -1e30, 'f64'));
  const weights = softmax(b, causal);
  return b.add('dot', [weights, v!], { ...batchedDot, lhsContract: [2], rhsContract: [1] }) as Node;
};

/** Convolution, bias, a smooth activation, 2×2 max pooling, global sum. */
const convNet: Build = (b, [x, w, bias]) => {
  const attrs = {
    strides: [1, 1],
    padLow: [1, 1],
    padHigh: [1, 1],
    lhsDilation: [1, 1],
    rhsDilation: [1, 1],
  };
  const y = b.add('conv', [x!, w!], { ...attrs, groups: 1 }) as Node;
  const active = unary(b, 'tanh', add(b, y, over(b, y, reshape(b, bias!, [1, dims(bias!)[0]!, 1, 1]))));
  const windowed = [2, 3].reduce(
    (node, axis) => b.add('window', [node], { axis, size: 2, stride: 2, dilation: 1 }) as Node,
    active,
  );
  return reduce(b, 'sum', reduce(b, 'max', windowed, [4, 5]), [2, 3]);
};

const compositions: readonly (readonly [string, readonly (readonly number[])[], Build])[] = [
  ['softmax', [[2, 4]], (b, [x]) => softmax(b, x!)],
  ['layerNorm', [[2, 5], [5]], (b, [x, scale]) => layerNorm(b, x!, scale!)],
  ['gelu', [[6]], (b, [x]) => gelu(b, x!)],
  ['sigmoid as 1/(1 + e⁻ˣ)', [[6]], (b, [x]) => unary(b, 'recip', add(b, unary(b, 'exp', neg(b, x!)), 1))],
  ['norm of a vector', [[5]], (b, [x]) => unary(b, 'sqrt', reduce(b, 'sum', mul(b, x!, x!), [0]))],
  [
    'a perceptron',
    [
      [3, 4],
      [4, 3],
      [3, 2],
    ],
    (b, [x, u, v]) => matmul(b, gelu(b, matmul(b, x!, u!)), v!),
  ],
  ['a Gram matrix', [[3, 2]], (b, [x]) => matmul(b, x!, permute(b, x!, [1, 0]))],
  [
    'causal attention',
    [
      [2, 3, 2],
      [2, 3, 2],
      [2, 3, 2],
    ],
    attention,
  ],
  ['a convolution with pooling', [[1, 2, 4, 4], [2, 2, 3, 3], [2]], convNet],
  [
    'running sums and products',
    [[4]],
    (b, [x]) => {
      const attrs = { axis: 0, reverse: false, exclusive: false } as const;
      const sums = b.add('scan', [x!], { ...attrs, monoid: 'sum' }) as Node;
      return b.add('scan', [unary(b, 'sin', sums)], { ...attrs, monoid: 'prod' }) as Node;
    },
  ],
  [
    'variance over the first axis',
    [[4, 3]],
    (b, [x]) => {
      const centre = mul(b, reduce(b, 'sum', x!, [0]), 0.25);
      const off = sub(b, x!, expandAxes(b, centre, dims(x!), [0]));
      return reduce(b, 'sum', mul(b, off, off), [0]);
    },
  ],
];

describe('first and second derivatives of compositions', () => {
  it.each(compositions)('%s', (_, shapes, build) => {
    const random = randomNumbers(7);
    checkTrial({ inputs: shapes.map((shape) => values(shape, random)), build }, random);
  });

  it('cross-entropy of logits', () => {
    const random = randomNumbers(8);
    const labels = hostArray('i32', [3, 1], [2, 0, 1]);
    checkTrial({ inputs: [values([3, 4], random), labels], build: crossEntropy }, random);
  });
});
