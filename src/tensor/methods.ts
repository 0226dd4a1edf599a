// Methods of tensors: every operation listed here, called on its first operand, `x.add(y)` for
// `add(x, y)`. Signatures follow from the functions', so an operation is declared once.

import type { DType } from '../ir/dtype.ts';
import type { Each, Unknown } from './inferred.ts';
import type { Methods } from './method-types.ts';
import * as ops from './ops/all.ts';
import { Tensor } from './tensor.ts';

const names = [
  // elementwise
  'abs',
  'acos',
  'acosh',
  'add',
  'addScaled',
  'asin',
  'asinh',
  'atan',
  'atan2',
  'atanh',
  'ceil',
  'clamp',
  'cos',
  'cosh',
  'div',
  'erf',
  'erfc',
  'exp',
  'exp2',
  'expm1',
  'floor',
  'floorDivide',
  'fmod',
  'lerp',
  'log',
  'log10',
  'log1p',
  'log2',
  'maximum',
  'minimum',
  'mul',
  'nanToNum',
  'neg',
  'pow',
  'reciprocal',
  'remainder',
  'round',
  'rsqrt',
  'sign',
  'sin',
  'sinh',
  'sqrt',
  'square',
  'sub',
  'tan',
  'tanh',
  'trunc',
  // complex numbers
  'adjoint',
  'angle',
  'conj',
  'conjPhysical',
  'imag',
  'isComplex',
  'isReal',
  'real',
  'resolveConj',
  'resolveNeg',
  'sgn',
  'viewAsComplex',
  'viewAsReal',
  // activations
  'celu',
  'elu',
  'gelu',
  'glu',
  'hardsigmoid',
  'hardswish',
  'hardtanh',
  'leakyRelu',
  'logSigmoid',
  'mish',
  'prelu',
  'relu',
  'relu6',
  'selu',
  'sigmoid',
  'silu',
  'softplus',
  'softsign',
  'tanhshrink',
  // comparison, logic, bits, selection
  'bitwiseAnd',
  'bitwiseLeftShift',
  'bitwiseNot',
  'bitwiseOr',
  'bitwiseRightShift',
  'bitwiseXor',
  'eq',
  'ge',
  'gt',
  'isFinite',
  'isInf',
  'isNan',
  'le',
  'logicalAnd',
  'logicalNot',
  'logicalOr',
  'logicalXor',
  'lt',
  'maskedFill',
  'ne',
  'where',
  // casts
  'bitcast',
  'cast',
  'to',
  'toBool',
  'toFloat',
  'toHalf',
  'toInt',
  // reductions and scans
  'all',
  'amax',
  'amin',
  'any',
  'argmax',
  'argmin',
  'argsort',
  'countNonzero',
  'cummax',
  'cummin',
  'cumprod',
  'cumsum',
  'hasInfNan',
  'logcumsumexp',
  'logsumexp',
  'maskedMax',
  'maskedMin',
  'max',
  'maxWithIndices',
  'mean',
  'min',
  'minWithIndices',
  'norm',
  'prod',
  'sort',
  'std',
  'sum',
  'topk',
  'var',
  'varMean',
  // views and movements
  'at',
  'broadcastTo',
  'chunk',
  'clone',
  'diag',
  'diagEmbed',
  'diagonal',
  'expand',
  'expandAs',
  'flatten',
  'flip',
  'moveaxis',
  'narrow',
  'pad',
  'permute',
  'rearrange',
  'reduce',
  'repeat',
  'repeatInterleave',
  'reshape',
  'roll',
  'select',
  'slice',
  'split',
  'squeeze',
  't',
  'tile',
  'transpose',
  'tril',
  'triu',
  'unbind',
  'unflatten',
  'unfold',
  'unsqueeze',
  'view',
  'viewAs',
  // contractions
  'bmm',
  'dot',
  'linear',
  'matmul',
  'mm',
  'mv',
  'outer',
  'trace',
  // softmax and norms
  'groupNorm',
  'instanceNorm',
  'layerNorm',
  'localResponseNorm',
  'logSoftmax',
  'normalize',
  'rmsNorm',
  'softmax',
  'softmax2d',
  'softmin',
  // gather and scatter
  'gather',
  'indexAdd',
  'indexCopy',
  'indexSelect',
  'oneHot',
  'scatter',
  'scatterAdd',
  'scatterReduce',
  'take',
  'takeAlongAxis',
  // selection, writing and statistics
  'aminmax',
  'diagonalScatter',
  'indexFill',
  'indexPut',
  'indexReduce',
  'kthvalue',
  'maskedScatter',
  'maskedSelect',
  'median',
  'medianWithIndices',
  'mode',
  'msort',
  'nanmean',
  'nanmedian',
  'nansum',
  'nonzero',
  'put',
  'quantile',
  'selectScatter',
  'sliceScatter',
  'sliceWrite',
  'takeAlongDim',
  'unique',
  // more of PyTorch's elementwise operations, products, views and reductions
  'addbmm',
  'addcdiv',
  'addcmul',
  'addmm',
  'addmv',
  'addr',
  'allclose',
  'baddbmm',
  'clampMax',
  'clampMin',
  'copysign',
  'cross',
  'deg2rad',
  'diagflat',
  'diff',
  'dist',
  'dsplit',
  'equal',
  'fill',
  'fliplr',
  'flipud',
  'floatPower',
  'fmax',
  'fmin',
  'frac',
  'frexp',
  'gcd',
  'heaviside',
  'hsplit',
  'hypot',
  'inner',
  'isclose',
  'isneginf',
  'isposinf',
  'kron',
  'lcm',
  'ldexp',
  'logaddexp',
  'logaddexp2',
  'movedim',
  'newFull',
  'newOnes',
  'newZeros',
  'nextafter',
  'positive',
  'rad2deg',
  'ravel',
  'renorm',
  'reshapeAs',
  'rot90',
  'signbit',
  'stdMean',
  'sumToSize',
  'swapaxes',
  'tensorSplit',
  'trueDivide',
  'vdot',
  'vsplit',
  // random
  'bernoulli',
  'dropout',
  'multinomial',
  // layers as functions
  'alphaDropout',
  'channelShuffle',
  'dropout1d',
  'dropout2d',
  'dropout3d',
  'featureAlphaDropout',
  'hardshrink',
  'interpolate',
  'pixelShuffle',
  'pixelUnshuffle',
  'rrelu',
  'softshrink',
  'threshold',
] as const;

type MethodName = (typeof names)[number];

/** Those with several signatures, which are spelled out. */
type Overloaded = 'maskedSelect' | 'nonzero' | 'repeatInterleave' | 'split' | 'unique';

type Plain = Pick<typeof ops, Exclude<MethodName, Overloaded>>;

declare module './tensor.ts' {
  interface Tensor<out D extends DType = Unknown> extends Methods<Plain, D> {
    /** Parts of the listed sizes, or of `size` each (the last may be smaller). */
    split<const S extends readonly number[]>(sizes: S, axis?: number): Each<Tensor<D>, S>;
    split(size: number | readonly number[], axis?: number): Tensor<D>[];
    /** The elements where the mask is true; with `size` so many, and their count. */
    maskedSelect(mask: Tensor, options: ops.Sized): ops.Counted;
    maskedSelect(mask: Tensor, options?: ops.Unsized): Promise<Tensor>;
    /** The positions of the elements that are not 0; with `size` so many, and their count. */
    nonzero(options: ops.Sized): ops.Counted;
    nonzero(options?: ops.Unsized): Promise<Tensor>;
    /** Each element as often as asked; repeats in a tensor are read unless their sum is given. */
    repeatInterleave(repeats: number | readonly number[], axis?: number): Tensor;
    repeatInterleave(
      repeats: Tensor,
      axis: number | undefined,
      options: { readonly outputSize: number },
    ): Tensor;
    repeatInterleave(repeats: Tensor, axis?: number): Promise<Tensor>;
    /** The distinct elements, or slices along an axis. */
    unique<const O extends ops.UniqueOptions = ops.UniqueOptions>(options?: O): ops.UniqueResult<O>;
    /** All axes in reverse order. */
    readonly T: Tensor<D>;
    /** The last two axes exchanged. */
    readonly mT: Tensor<D>;
  }
}

const operations: Pick<typeof ops, MethodName> = ops;

for (const name of names) {
  const operation = operations[name] as (first: Tensor, ...rest: readonly unknown[]) => unknown;
  Object.defineProperty(Tensor.prototype, name, {
    configurable: true,
    writable: true,
    value(this: Tensor, ...rest: readonly unknown[]): unknown {
      return operation(this, ...rest);
    },
  });
}

Object.defineProperty(Tensor.prototype, 'T', {
  configurable: true,
  get(this: Tensor): Tensor {
    return ops.permute(
      this,
      this.shape.map((_, axis) => this.rank - 1 - axis),
    );
  },
});

Object.defineProperty(Tensor.prototype, 'mT', {
  configurable: true,
  get(this: Tensor): Tensor {
    return ops.transpose(this);
  },
});
