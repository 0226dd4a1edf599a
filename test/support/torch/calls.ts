// How a PyTorch fixture is called here: one row per operation, from its inputs and options to our public functions. Where
// PyTorch gives several results the row gives as many, in its order.

import * as sn from '../../../src/operations/index.ts';
import { variance } from '../../../src/tensor/ops/reduce/reduce.ts';
import * as special from '../../../src/operations/index.ts';
import type { DType } from '../../../src/ir/dtype.ts';
import type { Tensor } from '../../../src/tensor/tensor.ts';
import type { TorchCase, TorchOption } from './figures.ts';

type Result = Tensor | readonly Tensor[];
type Row = (inputs: readonly Tensor[], args: Args, one: TorchCase) => Result;

/** Typed reads of a case's options; a missing one is undefined. */
class Args {
  readonly #options: TorchCase['args'];
  constructor(options: TorchCase['args']) {
    this.#options = options;
  }
  number(name: string): number | undefined {
    const value = this.#options[name];
    if (value === 'inf') return Infinity;
    if (value === '-inf') return -Infinity;
    return value as number | undefined;
  }
  numbers(name: string): number | readonly number[] | undefined {
    return this.#options[name] as number | readonly number[] | undefined;
  }
  list(name: string): readonly number[] {
    return this.#options[name] as readonly number[];
  }
  flag(name: string): boolean | undefined {
    return this.#options[name] as boolean | undefined;
  }
  text<T extends string>(name: string): T | undefined {
    return this.#options[name] as T | undefined;
  }
  raw(name: string): TorchOption | undefined {
    return this.#options[name];
  }
  /** The options that are there, under their names: `{ stride: 2 }`. */
  some(...names: readonly string[]): Record<string, never> {
    const found = names.flatMap((name) =>
      this.#options[name] === undefined ? [] : [[name, this.#options[name]] as const],
    );
    return Object.fromEntries(found) as Record<string, never>;
  }
  get axis(): number {
    return this.number('axis')!;
  }
  get keep(): { keepdim: boolean } {
    return { keepdim: this.flag('keepDims') ?? false };
  }
}

type Fold = (x: Tensor, axes?: number | readonly number[], options?: { keepdim?: boolean }) => Tensor;
const unary =
  (f: (x: Tensor) => Tensor): Row =>
  ([x]) =>
    f(x!);
const binary =
  (f: (x: Tensor, y: Tensor) => Tensor): Row =>
  ([x, y]) =>
    f(x!, y!);
const fold =
  (f: Fold): Row =>
  ([x], args) =>
    f(x!, args.numbers('axis'), args.keep);
/** Integers keep their width in the fixtures: the result's dtype is asked for. */
const wideFold =
  (f: typeof sn.sum): Row =>
  ([x], args, one) =>
    f(x!, args.numbers('axis'), { ...args.keep, dtype: one.outputs[0]!.dtype });
const place =
  (f: typeof sn.argmax): Row =>
  ([x], args) =>
    f(x!, args.number('axis'), args.keep);
const along =
  <R extends Result>(f: (x: Tensor, axis: number) => R): Row =>
  ([x], args) =>
    f(x!, args.axis);
const extremum =
  (whole: Fold, withPlaces: typeof sn.maxWithIndices): Row =>
  ([x], args) =>
    args.number('axis') === undefined ? whole(x!) : withPlaces(x!, args.axis, args.keep);
const loss =
  (f: (x: Tensor, y: Tensor, options: object) => Tensor, ...names: string[]): Row =>
  ([x, y], args) =>
    f(x!, y!, args.some('reduction', ...names));
/** A loss whose target is a constant in the fixtures. */
const fixedTarget =
  (f: (x: Tensor, y: Tensor, options: object) => Tensor, ...names: string[]): Row =>
  ([x, y], args) =>
    f(x!, y!.detach(), args.some('reduction', ...names));
const conv =
  (f: typeof sn.conv2d | typeof sn.convTranspose2d): Row =>
  ([x, w, c], args) =>
    f(x!, w!, c, args.some('stride', 'padding', 'dilation', 'groups', 'outputPadding'));
const pool =
  (f: (x: Tensor, size: number | readonly number[], options: object) => Tensor): Row =>
  ([x], args) =>
    f(x!, args.numbers('kernelSize')!, args.some('stride', 'padding', 'dilation', 'countIncludePad'));

const affine =
  (f: typeof sn.addmm): Row =>
  ([x, y, z], args) =>
    f(x!, y!, z!, args.some('beta', 'alpha'));
const triangle =
  (f: typeof sn.trilIndices): Row =>
  (_, args) =>
    f(args.number('rows')!, args.number('columns'), args.some('offset'));

const rows: Readonly<Record<string, Row>> = {
  abs: unary(sn.abs),
  acos: unary(sn.acos),
  acosh: unary(sn.acosh),
  add: ([x, y], args) => sn.add(x!, y!, args.some('alpha')),
  all: fold(sn.all),
  amax: fold(sn.amax),
  amin: fold(sn.amin),
  any: fold(sn.any),
  argmax: place(sn.argmax),
  argmin: place(sn.argmin),
  argsort: ([x], args) => sn.argsort(x!, args.axis, args.some('descending')),
  asin: unary(sn.asin),
  asinh: unary(sn.asinh),
  atan: unary(sn.atan),
  atan2: binary(sn.atan2),
  atanh: unary(sn.atanh),
  avgPool1d: pool(sn.avgPool1d),
  avgPool2d: pool(sn.avgPool2d),
  batchNorm: ([x, w, c, mean, variance], args) => {
    const training = args.flag('training')!;
    // PyTorch tracks no gradient of running statistics, nor (in these figures) of targets.
    const [y, ...batch] = sn.batchNorm(x!, mean!.detach(), variance!.detach(), w, c, {
      training,
      eps: args.number('eps')!,
    });
    if (!training) return [y, ...batch];
    const count = x!.size / x!.shape[1]!;
    return [y, ...sn.batchNormUpdate([mean!, variance!], batch, count, args.number('momentum')!)];
  },
  bceLoss: fixedTarget(sn.bceLoss),
  bceWithLogits: fixedTarget(sn.bceWithLogits),
  bitwiseAnd: binary(sn.bitwiseAnd),
  bitwiseLeftShift: binary(sn.bitwiseLeftShift),
  bitwiseNot: unary(sn.bitwiseNot),
  bitwiseOr: binary(sn.bitwiseOr),
  bitwiseRightShift: binary(sn.bitwiseRightShift),
  bitwiseXor: binary(sn.bitwiseXor),
  cast: ([x], args) => sn.cast(x!, args.text<DType>('dtype')!),
  cat: (xs, args) => sn.cat(xs, args.axis),
  ceil: unary(sn.ceil),
  celu: ([x], args) => sn.celu(x!, args.number('alpha')),
  chunk: ([x], args) => sn.chunk(x!, args.number('chunks')!, args.axis),
  clamp: ([x], args) => sn.clamp(x!, args.number('min'), args.number('max')),
  conv1d: conv(sn.conv1d),
  conv2d: conv(sn.conv2d),
  conv3d: conv(sn.conv3d),
  convTranspose1d: conv(sn.convTranspose1d),
  convTranspose2d: conv(sn.convTranspose2d),
  cos: unary(sn.cos),
  cosh: unary(sn.cosh),
  cosineSimilarity: ([x, y], args) => sn.cosineSimilarity(x!, y!, args.axis),
  interpolate: ([x], a) =>
    sn.interpolate(
      x!,
      a.some('size', 'scaleFactor', 'mode', 'alignCorners', 'antialias', 'recomputeScaleFactor'),
    ),
  im2col: ([x], a) => sn.im2col(x!, a.number('kernelSize')!, a.some('stride', 'padding', 'dilation')),
  col2im: ([x], a) =>
    sn.col2im(x!, a.list('outputSize'), a.number('kernelSize')!, a.some('stride', 'padding', 'dilation')),
  channelShuffle: ([x], a) => sn.channelShuffle(x!, a.number('groups')!),
  fractionalMaxPool2d: ([x], a) =>
    sn.fractionalMaxPool2d(x!, a.number('kernelSize')!, {
      ...a.some('outputSize'),
      samples: sn.tensor([...a.list('samples')], { shape: [2, 3, 2] }),
    }),
  ctcLoss: ([x], a) =>
    sn.ctcLoss(
      x!,
      sn.tensor([...a.list('targets')], { dtype: 'i32' }),
      a.list('inputLengths'),
      a.list('targetLengths'),
      a.some('reduction', 'zeroInfinity'),
    ),
  embeddingBag: ([w], a) =>
    sn.embeddingBag(sn.tensor([0, 3, 3, 2, 1, 0], { dtype: 'i32' }), w!, {
      ...a.some('mode'),
      offsets: sn.tensor([0, 2, 2, 6], { dtype: 'i32' }),
      paddingIdx: 2,
      includeLastOffset: true,
    }),
  multiMarginLoss: ([x], a) =>
    sn.multiMarginLoss(x!, sn.tensor([...a.list('target')], { dtype: 'i32' }), {
      ...a.some('p', 'margin'),
      weight: sn.tensor([1, 2, 0.5, 3], { dtype: x!.dtype }),
    }),
  multilabelMarginLoss: ([x], a) =>
    sn.multilabelMarginLoss(x!, sn.tensor([...a.list('target')], { dtype: 'i32', shape: x!.shape })),
  tripletMarginLoss: ([x, y, z], a) => sn.tripletMarginLoss(x!, y!, z!, a.some('margin', 'p', 'swap')),
  gaussianNllLoss: ([x, y, z], a) => sn.gaussianNllLoss(x!, y!, z!, a.some('full')),
  pdist: ([x], a) => sn.pdist(x!, a.number('p')!),
  crossEntropy: fixedTarget(sn.crossEntropy, 'labelSmoothing', 'ignoreIndex'),
  cummax: along(sn.cummax),
  cummin: along(sn.cummin),
  cumprod: along(sn.cumprod),
  cumsum: ([x], args, one) => sn.cumsum(x!, args.axis, { dtype: one.outputs[0]!.dtype }),
  diag: ([x], args) => sn.diag(x!, args.number('offset')),
  diagonal: ([x], args) => sn.diagonal(x!, args.some('offset')),
  div: binary(sn.div),
  einsum: (xs, args) => sn.einsum(args.text('equation')!, ...xs),
  elu: ([x], args) => sn.elu(x!, args.number('alpha')),
  embedding: ([indices, weight], args) => sn.embedding(indices!, weight!, args.some('paddingIdx')),
  eq: binary(sn.eq),
  erf: unary(sn.erf),
  exp: unary(sn.exp),
  exp2: unary(sn.exp2),
  expand: ([x], args) => sn.expand(x!, args.list('shape')),
  expm1: unary(sn.expm1),
  flip: ([x], args) => sn.flip(x!, args.numbers('axis')),
  floor: unary(sn.floor),
  floorDivide: binary(sn.floorDivide),
  fmod: binary(sn.fmod),
  gather: ([x, index], args) => sn.gather(x!, args.axis, index!),
  ge: binary(sn.ge),
  gelu: ([x], args) => sn.gelu(x!, args.some('approximate')),
  glu: along(sn.glu),
  groupNorm: ([x, w, c], args) => sn.groupNorm(x!, args.number('groups')!, w, c, args.some('eps')),
  gt: binary(sn.gt),
  hardsigmoid: unary(sn.hardsigmoid),
  hardswish: unary(sn.hardswish),
  hardtanh: ([x], args) => sn.hardtanh(x!, args.number('min'), args.number('max')),
  huberLoss: loss(sn.huberLoss, 'delta'),
  indexAdd: ([x, index, source], args) => sn.indexAdd(x!, args.axis, index!, source!),
  indexSelect: ([x, index], args) => sn.indexSelect(x!, args.axis, index!),
  instanceNorm: ([x], args) => sn.instanceNorm(x!, undefined, undefined, args.some('eps')),
  isFinite: unary(sn.isFinite),
  isInf: unary(sn.isInf),
  isNan: unary(sn.isNan),
  klDiv: loss(sn.klDiv as (x: Tensor, y: Tensor, options: object) => Tensor, 'logTarget'),
  l1Loss: loss(sn.l1Loss),
  layerNorm: ([x, w, c], args) => sn.layerNorm(x!, args.list('normalizedShape'), w, c, args.some('eps')),
  le: binary(sn.le),
  leakyRelu: ([x], args) => sn.leakyRelu(x!, args.number('negativeSlope')),
  lerp: ([x, y, w]) => sn.lerp(x!, y!, w!),
  linear: ([x, w, c]) => sn.linear(x!, w!, c),
  localResponseNorm: ([x], args) =>
    sn.localResponseNorm(x!, args.number('size')!, args.some('alpha', 'beta', 'k')),
  log: unary(sn.log),
  log10: unary(sn.log10),
  log1p: unary(sn.log1p),
  log2: unary(sn.log2),
  logSigmoid: unary(sn.logSigmoid),
  logSoftmax: along(sn.logSoftmax),
  logcumsumexp: along(sn.logcumsumexp),
  logicalAnd: binary(sn.logicalAnd),
  logicalNot: unary(sn.logicalNot),
  logicalOr: binary(sn.logicalOr),
  logicalXor: binary(sn.logicalXor),
  logsumexp: fold(sn.logsumexp),
  lt: binary(sn.lt),
  maskedFill: ([x, mask], args) => sn.maskedFill(x!, mask!, args.number('value')!),
  matmul: binary(sn.matmul),
  max: extremum(sn.max, sn.maxWithIndices),
  maxPool1d: pool(sn.maxPool1d),
  maxPool2d: pool(sn.maxPool2d),
  maximum: binary(sn.maximum),
  mean: fold(sn.mean),
  min: extremum(sn.min, sn.minWithIndices),
  minimum: binary(sn.minimum),
  mish: unary(sn.mish),
  mseLoss: loss(sn.mseLoss),
  mul: binary(sn.mul),
  narrow: ([x], args) => sn.narrow(x!, args.axis, args.number('start')!, args.number('length')!),
  ne: binary(sn.ne),
  neg: unary(sn.neg),
  nllLoss: ([x, y, weight], args) =>
    sn.nllLoss(x!, y!, {
      ...args.some('reduction'),
      ...(weight === undefined ? {} : { weight: weight.detach() }),
    }),
  norm: ([x], args) => sn.norm(x!, args.number('p'), args.numbers('axis')),
  normalize: ([x], args) => sn.normalize(x!, args.axis, args.some('p')),
  oneHot: ([x], args) => sn.oneHot(x!, args.number('classes')!),
  outer: binary(sn.outer),
  pad: ([x], args) =>
    sn.pad(x!, args.raw('pads') as unknown as [number, number][], { value: args.number('value')! }),
  permute: ([x], args) => sn.permute(x!, args.list('axes')),
  pow: ([x, y], args) => sn.pow(x!, y ?? args.number('exponent')!),
  prod: wideFold(sn.prod),
  reciprocal: unary(sn.reciprocal),
  relu: unary(sn.relu),
  relu6: unary(sn.relu6),
  remainder: binary(sn.remainder),
  repeat: ([x], args) => sn.repeat(x!, args.list('repeats')),
  repeatInterleave: ([x], args) => sn.repeatInterleave(x!, args.number('repeats')!, args.axis),
  reshape: ([x], args) => sn.reshape(x!, args.list('shape')),
  rmsNorm: ([x, w], args) => sn.rmsNorm(x!, x!.shape.at(-1)!, w, args.some('eps')),
  roll: ([x], args) => sn.roll(x!, args.numbers('shift')!, args.numbers('axis')),
  rsqrt: unary(sn.rsqrt),
  scaledDotProductAttention: ([q, k, v, mask], args) =>
    sn.scaledDotProductAttention(q!, k!, v!, {
      ...args.some('isCausal', 'scale'),
      ...(mask === undefined ? {} : { mask }),
    }),
  scatter: ([x, index, source], args) => sn.scatter(x!, args.axis, index!, source ?? args.number('value')!),
  scatterAdd: ([x, index, source], args) => sn.scatterAdd(x!, args.axis, index!, source!),
  scatterReduce: ([x, index, source], args) =>
    sn.scatterReduce(x!, args.axis, index!, source!, args.text<sn.ScatterReduce>('reduce')!),
  searchsorted: ([x, values], args) => sn.searchsorted(x!, values!, args.some('right')),
  selu: unary(sn.selu),
  sigmoid: unary(sn.sigmoid),
  sign: unary(sn.sign),
  silu: unary(sn.silu),
  sin: unary(sn.sin),
  sinh: unary(sn.sinh),
  slice: ([x], args) => {
    const slices = args.raw('slices') as unknown as (readonly (number | null)[])[];
    return sn.at(x!, ...slices.map(([start, stop, step]) => ({ start, stop, step })));
  },
  smoothL1Loss: loss(sn.smoothL1Loss, 'beta'),
  softmax: along(sn.softmax),
  softplus: ([x], args) => sn.softplus(x!, args.some('beta')),
  softsign: unary(sn.softsign),
  sort: ([x], args) => sn.sort(x!, args.axis, args.some('descending')),
  split: ([x], args) => sn.split(x!, args.number('size')!, args.axis),
  sqrt: unary(sn.sqrt),
  square: unary(sn.square),
  squeeze: ([x], args) => sn.squeeze(x!, args.axis),
  stack: (xs, args) => sn.stack(xs, args.axis),
  std: ([x], args) =>
    sn.std(x!, args.numbers('axis'), { ...args.keep, correction: args.number('correction')! }),
  sub: binary(sn.sub),
  sum: wideFold(sn.sum),
  tan: unary(sn.tan),
  tanh: unary(sn.tanh),
  tile: ([x], args) => sn.tile(x!, args.list('repeats')),
  topk: ([x], args) => sn.topk(x!, args.number('k')!, args.axis, args.some('largest')),
  transpose: ([x], args) => sn.transpose(x!, args.list('axes')[0], args.list('axes')[1]),
  tril: ([x], args) => sn.tril(x!, args.number('diagonal')),
  triu: ([x], args) => sn.triu(x!, args.number('diagonal')),
  trunc: unary(sn.trunc),
  unfold: ([x], args) => sn.unfold(x!, args.axis, args.number('size')!, args.number('step')),
  unsqueeze: along(sn.unsqueeze),
  var: ([x], args) =>
    variance(x!, args.numbers('axis'), { ...args.keep, correction: args.number('correction')! }),
  where: ([condition, x, y]) => sn.where(condition!, x!, y!),
};

/** What is a formula of other operations. */
const more: Readonly<Record<string, Row>> = {
  addbmm: affine(sn.addbmm),
  addcdiv: ([x, y, z], args) => sn.addcdiv(x!, y!, z!, args.some('value')),
  addcmul: ([x, y, z], args) => sn.addcmul(x!, y!, z!, args.some('value')),
  addmm: affine(sn.addmm),
  addmv: affine(sn.addmv),
  addr: affine(sn.addr),
  allclose: ([x, y], args) => sn.allclose(x!, y!, args.some('rtol', 'equalNan')),
  aminmax: ([x], args) => sn.aminmax(x!, args.axis),
  baddbmm: affine(sn.baddbmm),
  blockDiag: (xs) => sn.blockDiag(xs),
  cartesianProd: (xs) => sn.cartesianProd(xs),
  columnStack: (xs) => sn.columnStack(xs),
  combinations: ([x], args) => sn.combinations(x!, args.number('count'), args.some('withReplacement')),
  copysign: binary(sn.copysign),
  cross: ([x, y], args) => sn.cross(x!, y!, args.axis),
  cumulativeTrapezoid: ([y, x], args) => sn.cumulativeTrapezoid(y!, args.number('axis'), { x: x! }),
  deg2rad: unary(sn.deg2rad),
  diagEmbed: ([x], args) => sn.diagEmbed(x!, args.number('offset'), args.some('axis1', 'axis2')),
  diagflat: ([x], args) => sn.diagflat(x!, args.number('offset')),
  diff: ([x, before, behind], args) =>
    sn.diff(x!, args.number('order'), args.number('axis'), {
      ...(before === undefined ? {} : { prepend: before }),
      ...(behind === undefined ? {} : { append: behind }),
    }),
  dist: ([x, y], args) => sn.dist(x!, y!, args.number('p')),
  dstack: (xs) => sn.dstack(xs),
  fmax: binary(sn.fmax),
  fmin: binary(sn.fmin),
  frac: unary(sn.frac),
  frexp: ([x]) => sn.frexp(x!),
  gcd: binary(sn.gcd),
  gradient: ([x], args) => {
    const places = args.raw('places') as number[] | undefined;
    const spacing = places === undefined ? args.number('spacing')! : [sn.tensor(places)];
    return sn.gradient(x!, args.axis, { spacing, ...args.some('edgeOrder') });
  },
  heaviside: binary(sn.heaviside),
  hstack: (xs) => sn.hstack(xs),
  hypot: binary(sn.hypot),
  inner: binary(sn.inner),
  isclose: ([x, y], args) => sn.isclose(x!, y!, args.some('rtol', 'equalNan')),
  isneginf: unary(sn.isneginf),
  isposinf: unary(sn.isposinf),
  kron: binary(sn.kron),
  lcm: binary(sn.lcm),
  ldexp: binary(sn.ldexp),
  logaddexp: binary(sn.logaddexp),
  logaddexp2: binary(sn.logaddexp2),
  logit: ([x], args) => special.logit(x!, args.some('eps')),
  logspace: (_, args) =>
    sn.logspace(args.number('start')!, args.number('end')!, args.number('count')!, args.number('base')),
  nextafter: binary(sn.nextafter),
  positive: unary(sn.positive),
  rad2deg: unary(sn.rad2deg),
  renorm: ([x], args) => sn.renorm(x!, args.number('p')!, args.axis, args.number('largest')!),
  rot90: ([x], args) => sn.rot90(x!, args.number('turns'), args.list('axes') as [number, number]),
  round: ([x], args) => sn.round(x!, args.some('decimals')),
  sgn: unary(sn.sgn),
  signbit: unary(sn.signbit),
  sinc: unary(special.sinc),
  stdMean: ([x], args) => sn.stdMean(x!, args.axis),
  sumToSize: ([x], args) => sn.sumToSize(x!, args.list('shape')),
  tensorSplit: ([x], args) => sn.tensorSplit(x!, args.numbers('parts')!, args.axis),
  tensordot: ([x, y], args) =>
    sn.tensordot(x!, y!, args.raw('axes') as unknown as [number[], number[]] | undefined),
  trapezoid: ([y, x], args) =>
    sn.trapezoid(y!, args.number('axis'), x === undefined ? args.some('dx') : { x }),
  trilIndices: triangle(sn.trilIndices),
  triuIndices: triangle(sn.triuIndices),
  vander: ([x]) => sn.vander(x!),
  vdot: binary(sn.vdot),
  vstack: (xs) => sn.vstack(xs),
  xlogy: binary(special.xlogy),
};

/** Runs a case's operation on tensors that hold its inputs. Throws when no row knows the operation. */
export function torchCall(one: TorchCase, inputs: readonly Tensor[]): readonly Tensor[] {
  const row = rows[one.op] ?? more[one.op];
  if (row === undefined) throw new Error(`no call for ${one.op}`);
  const result = row(inputs, new Args(one.args), one);
  return Array.isArray(result) ? (result as readonly Tensor[]) : [result as Tensor];
}
