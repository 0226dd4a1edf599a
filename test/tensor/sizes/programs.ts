// Small programs with an axis that varies: what each is, which sizes it takes, and arguments for one.

import * as sn from '../../../src/index.ts';
import type { Dims } from '../../../src/index.ts';

export interface SizedProgram {
  readonly name: string;
  readonly fn: (...args: never[]) => sn.Tensor | readonly sn.Tensor[];
  readonly dims: Dims;
  readonly args: (n: number) => sn.Tensor[];
  /** The smallest size that the function takes. */
  readonly least?: number;
}

let state = 1;

/** The same numbers in each run of a file: from −0.5 to 0.5. */
function number(): number {
  state = (Math.imul(state, 1103515245) + 12345) >>> 0;
  return (state >>> 8) / 2 ** 24 - 0.5;
}

export function floats(...shape: number[]): sn.Tensor {
  const size = shape.reduce((product, each) => product * each, 1);
  return sn.tensor(Float32Array.from({ length: size }, number), { shape });
}

/** Integers from 0 up to `end`. */
export function integers(end: number, ...shape: number[]): sn.Tensor {
  const size = shape.reduce((product, each) => product * each, 1);
  const data = Int32Array.from({ length: size }, () => Math.floor((number() + 0.5) * end));
  return sn.tensor(data, { shape, dtype: 'i32' });
}

const n = sn.dim('n', { max: 200 });
const b = sn.dim('b', { max: 20 });
/** A second size that goes with the first. */
export const other = (size: number): number => (size % 19) + 1;

type X = sn.Tensor;

/** A program; the types of its parameters are its own affair. */
export const program = <A extends X[]>(
  name: string,
  dims: Dims,
  args: (size: number) => X[],
  fn: (...args: A) => X | readonly X[],
  least = 1,
): SizedProgram => ({ name, dims, args, fn: fn as unknown as SizedProgram['fn'], least });

export const programs: readonly SizedProgram[] = [
  program(
    'elementwise, outer axis',
    [[n, 4]],
    (s) => [floats(s, 4)],
    (x: X) => x.relu().mul(2),
  ),
  program(
    'elementwise, inner axis',
    [[4, n]],
    (s) => [floats(4, s)],
    (x: X) => x.exp().add(1),
  ),
  program(
    'softmax along the axis',
    [[4, n]],
    (s) => [floats(4, s)],
    (x: X) => x.softmax(-1),
  ),
  program(
    'softmax beside the axis',
    [[n, 4]],
    (s) => [floats(s, 4)],
    (x: X) => x.softmax(-1),
  ),
  program(
    'mean of all',
    [[3, n]],
    (s) => [floats(3, s)],
    (x: X) => x.mean(),
  ),
  program(
    'variance',
    [[n, 3]],
    (s) => [floats(s, 3)],
    (x: X) => x.var(0),
    2,
  ),
  program(
    'extrema',
    [[n, 3]],
    (s) => [floats(s, 3)],
    (x: X) => [x.max(0), x.min(0), x.argmax(0), x.argmin(0)],
  ),
  program(
    'product',
    [[n]],
    (s) => [floats(s)],
    (x: X) => x.prod(),
  ),
  program(
    'logsumexp',
    [[n, 3]],
    (s) => [floats(s, 3)],
    (x: X) => x.logsumexp(0),
  ),
  program(
    'batch statistics',
    [[b, 3, n]],
    (s) => [floats(other(s), 3, s)],
    (x: X) => {
      const centred = x.sub(x.mean([0, 2], { keepdim: true }));
      return centred.div(centred.pow(2).mean([0, 2], { keepdim: true }).add(1e-5).sqrt());
    },
  ),
  program(
    'layerNorm',
    [[n, 8], null, null],
    (s) => [floats(s, 8), floats(8), floats(8)],
    (x: X, w: X, c: X) => sn.layerNorm(x, [8], w, c),
  ),
  program(
    'layerNorm along the axis',
    [[3, n]],
    (s) => [floats(3, s)],
    (x: X) => sn.layerNorm(x, [x.shape[1]!]),
  ),
  program(
    'matmul, rows',
    [[n, 4], null],
    (s) => [floats(s, 4), floats(4, 5)],
    (x: X, w: X) => x.matmul(w),
  ),
  program(
    'matmul, summed',
    [
      [3, n],
      [n, 5],
    ],
    (s) => [floats(3, s), floats(s, 5)],
    (x: X, w: X) => x.matmul(w),
  ),
  program(
    'matmul, two dims',
    [
      [b, 8],
      [8, n],
    ],
    (s) => [floats(other(s), 8), floats(8, s)],
    (x: X, y: X) => x.matmul(y).softmax(-1),
  ),
  program(
    'attention',
    [
      [2, n, 4],
      [2, n, 4],
      [2, n, 4],
    ],
    (s) => [floats(2, s, 4), floats(2, s, 4), floats(2, s, 4)],
    (q: X, k: X, v: X) => q.matmul(k.transpose(-1, -2)).mul(0.5).softmax(-1).matmul(v),
  ),
  program(
    'causal attention',
    [
      [2, n, 4],
      [2, n, 4],
      [2, n, 4],
    ],
    (s) => [floats(2, s, 4), floats(2, s, 4), floats(2, s, 4)],
    (q: X, k: X, v: X) => sn.scaledDotProductAttention(q, k, v, { isCausal: true }),
  ),
  program(
    'einsum',
    [
      [b, n, 4],
      [b, 3, 4],
    ],
    (s) => [floats(other(s), s, 4), floats(other(s), 3, 4)],
    (x: X, y: X) => sn.einsum('bnd,bmd->bnm', x, y),
  ),
  program(
    'cumsum',
    [[n, 2]],
    (s) => [floats(s, 2)],
    (x: X) => x.cumsum(0),
  ),
  program(
    'cat before, between and behind',
    [[n, 3]],
    (s) => [floats(s, 3)],
    (x: X) => sn.cat([x, x.mul(2), sn.ones([2, 3]), x], 0),
  ),
  program(
    'slices',
    [[n, 3]],
    (s) => [floats(s, 3)],
    (x: X) => [x.slice(0, 1), x.slice(0, 0, -1), x.slice(0, -1)],
    2,
  ),
  program(
    'flip',
    [[n, 3]],
    (s) => [floats(s, 3)],
    (x: X) => x.flip(0),
  ),
  program(
    'roll',
    [[n, 3]],
    (s) => [floats(s, 3)],
    (x: X) => x.roll(2, 0),
    3,
  ),
  program(
    'pad',
    [[n, 3]],
    (s) => [floats(s, 3)],
    (x: X) =>
      sn.pad(
        x,
        [
          [1, 2],
          [0, 0],
        ],
        { value: 7 },
      ),
  ),
  program(
    'pad to a length',
    [[n, 3]],
    (s) => [floats(s, 3)],
    (x: X) => [
      sn.pad(
        x,
        [
          [0, 256 - x.shape[0]!],
          [0, 0],
        ],
        { value: 7 },
      ),
      sn.pad(
        x,
        [
          [256 - x.shape[0]!, 0],
          [0, 0],
        ],
        { value: 7 },
      ),
    ],
  ),
  program(
    'sort',
    [[n, 3]],
    (s) => [floats(s, 3)],
    (x: X) => [x.sort(0)[0]!, x.argsort(0), x.sort(0, { descending: true })[0]!],
  ),
  program(
    // A radix sort, in whose passes the padding lies between the values.
    'sort of many lines, the greatest first',
    [[n, 12]],
    (s) => [floats(s, 12)],
    (x: X) => x.argsort(0, { descending: true }),
  ),
  program(
    'sort of equal numbers',
    [[n]],
    (s) => [integers(3, s)],
    (x: X) => [x.argsort(0), x.argsort(0, { descending: true })],
  ),
  program(
    'flatten',
    [[2, n]],
    (s) => [floats(2, s)],
    (x: X) => x.reshape([-1]),
  ),
  program(
    'flatten and fold',
    [[2, n]],
    (s) => [floats(2, s)],
    (x: X) => x.add(1).reshape([-1]).mul(3).sum(),
  ),
  program(
    'flatten two dims',
    [[b, n, 8]],
    (s) => [floats(other(s), s, 8)],
    (x: X) => [
      x.add(1).reshape([-1, 8]),
      x.exp().reshape([-1, 8]).sum(0),
      x.transpose(0, 1).reshape([-1, 8]).cumsum(0),
    ],
  ),
  program(
    'heads',
    [[n, 8]],
    (s) => [floats(s, 8)],
    (x: X) => x.reshape([x.shape[0]!, 2, 4]).transpose(0, 1).reshape([2, -1]),
  ),
  program(
    'in groups',
    [[sn.dim('n', { max: 200, multipleOf: 4 }), 2]],
    (s) => [floats(4 * s, 2)],
    (x: X) => x.reshape([x.shape[0]! / 4, 4, 2]).sum(1),
  ),
  program(
    'positions',
    [[n]],
    (s) => [floats(s)],
    (x: X) => x.add(sn.arange(x.shape[0]!).mul(1.5)),
  ),
  program(
    'numbers of the size',
    [[n, 3]],
    (s) => [floats(s, 3)],
    (x: X) =>
      x
        .mul(x.shape[0]!)
        .add(1 / x.shape[0]!)
        .sub(Math.sqrt(x.shape[0]!)),
  ),
  program(
    'triangles',
    [[n, n]],
    (s) => [floats(s, s)],
    (x: X) => [x.tril(), x.add(sn.eye(x.shape[0]!))],
  ),
  program(
    'all pairs',
    [[n]],
    (s) => [floats(s)],
    (x: X) => x.unsqueeze(1).sub(x.unsqueeze(0)).abs().sum(1),
  ),
  program(
    'embedding',
    [null, [n]],
    (s) => [floats(10, 4), integers(10, s)],
    (w: X, i: X) => sn.embedding(i, w),
  ),
  program(
    'take',
    [[n, 2], null],
    (s) => [floats(s, 2), integers(1, 4)],
    (x: X, i: X) => x.indexSelect(0, i),
  ),
  program(
    'added at indices',
    [[n, 3], [n]],
    (s) => [floats(s, 3), integers(10, s)],
    (x: X, i: X) => sn.zeros([10, 3]).indexAdd(0, i, x),
  ),
  program(
    'cross entropy',
    [[n, 10], [n]],
    (s) => [floats(s, 10), integers(10, s)],
    (x: X, y: X) => sn.crossEntropy(x, y),
  ),
  program(
    'cross entropy of sequences',
    [
      [b, n, 10],
      [b, n],
    ],
    (s) => [floats(other(s), s, 10), integers(10, other(s), s)],
    (x: X, y: X) => sn.crossEntropy(x.reshape([-1, 10]), y.reshape([-1])),
  ),
  program(
    'conv1d',
    [[2, 3, n], null],
    (s) => [floats(2, 3, s), floats(4, 3, 3)],
    (x: X, w: X) => sn.conv1d(x, w, undefined, { padding: 1 }),
  ),
  program(
    'conv1d in strides',
    [[2, 3, n], null],
    (s) => [floats(2, 3, s), floats(4, 3, 3)],
    (x: X, w: X) => sn.conv1d(x, w, undefined, { stride: 2 }),
    3,
  ),
  program(
    'maxPool1d',
    [[2, 3, n]],
    (s) => [floats(2, 3, s)],
    (x: X) => sn.maxPool1d(x, 2),
    2,
  ),
  program(
    'random numbers',
    [[b, n]],
    (s) => [floats(other(s), s)],
    (x: X) => [sn.dropout(x, 0.5), x.add(sn.randn([other(0) * x.shape[0]!, x.shape[1]!]))],
  ),
  program(
    'gradient of weights',
    [[n, 4], null],
    (s) => [floats(s, 4), floats(4, 5)],
    (x: X, w: X) => sn.grad((at: X) => x.matmul(at).softmax(-1).pow(2).mean())(w),
  ),
  program(
    'gradient of what varies',
    [[n, 4], null],
    (s) => [floats(s, 4), floats(4, 5)],
    (x: X, w: X) => sn.grad((at: X) => at.matmul(w).softmax(0).cumsum(0).pow(2).mean())(x),
    2,
  ),
  program(
    'gradient of a convolution',
    [[2, 3, n], null],
    (s) => [floats(2, 3, s), floats(4, 3, 3)],
    (x: X, w: X) => sn.grad((at: X) => sn.conv1d(x, at, undefined, { padding: 1 }).pow(2).mean())(w),
  ),
  program(
    'gradient of a loss',
    [null, [n], [n]],
    (s) => [floats(10, 10), integers(10, s), integers(10, s)],
    (w: X, i: X, y: X) => sn.grad((at: X) => sn.crossEntropy(sn.embedding(i, at), y))(w),
    2,
  ),
];
