// The dtypes of what methods give, for the type checker: which of them keep the tensor's dtype,
// answer with bool or positions, promote with another operand, and so on. A method that is in no
// list gives a tensor of which nothing is known. The functions say the same in their signatures,
// and a generic signature cannot be turned into that of a method by a mapped type; a test holds
// every entry against what runs.

import type { DType } from '../ir/dtype.ts';
import type { Floated, SizeOf, Summed } from './inferred.ts';
import type { Common } from './ops/operand.ts';
import type { Tensor, TensorLike } from './tensor.ts';

/** Results have the tensor's own dtype. */
export type Keeping =
  // elementwise
  | 'bitwiseNot'
  | 'ceil'
  | 'conj'
  | 'floor'
  | 'maskedFill'
  | 'neg'
  | 'relu'
  | 'round'
  | 'sign'
  | 'trunc'
  // reductions
  | 'amax'
  | 'amin'
  | 'max'
  | 'min'
  // views and movements
  | 'at'
  | 'broadcastTo'
  | 'clone'
  | 'diag'
  | 'diagonal'
  | 'expand'
  | 'expandAs'
  | 'flatten'
  | 'flip'
  | 'moveaxis'
  | 'narrow'
  | 'permute'
  | 'ravel'
  | 'reshape'
  | 'roll'
  | 'select'
  | 'slice'
  | 'squeeze'
  | 'swapaxes'
  | 't'
  | 'tile'
  | 'transpose'
  | 'tril'
  | 'triu'
  | 'unflatten'
  | 'unsqueeze'
  | 'view'
  // gather and scatter
  | 'addAt'
  | 'gather'
  | 'indexAdd'
  | 'indexSelect'
  | 'scatter'
  | 'scatterAdd'
  | 'setAt'
  | 'take';

/** Several results of the tensor's own dtype. */
export type Parting = 'chunk' | 'unbind';

/** Functions of real or complex numbers: integers and bool are taken as f32. */
export type Floating =
  | 'acos'
  | 'asin'
  | 'atan'
  | 'cos'
  | 'cosh'
  | 'elu'
  | 'erf'
  | 'exp'
  | 'exp2'
  | 'expm1'
  | 'gelu'
  | 'leakyRelu'
  | 'log'
  | 'log10'
  | 'log1p'
  | 'log2'
  | 'logsumexp'
  | 'reciprocal'
  | 'rsqrt'
  | 'sigmoid'
  | 'silu'
  | 'sin'
  | 'sinh'
  | 'softplus'
  | 'sqrt'
  | 'tan'
  | 'tanh';

/** Their size is that of real numbers. */
export type Spreading = 'std' | 'var';

/** Questions, of elements or of all of them. */
export type Asking =
  | 'all'
  | 'any'
  | 'eq'
  | 'ge'
  | 'gt'
  | 'isFinite'
  | 'isInf'
  | 'isNan'
  | 'le'
  | 'logicalAnd'
  | 'logicalNot'
  | 'logicalOr'
  | 'logicalXor'
  | 'lt'
  | 'ne'
  | 'toBool';

/** Positions and counts. */
export type Locating = 'argmax' | 'argmin' | 'argsort' | 'countNonzero' | 'toInt';

/** Elements and where they are. */
export type Finding = 'maxWithIndices' | 'minWithIndices' | 'sort' | 'topk';

/** Of two operands, in their common dtype. */
export type Pairing =
  | 'add'
  | 'bitwiseAnd'
  | 'bitwiseOr'
  | 'bitwiseXor'
  | 'floorDivide'
  | 'fmod'
  | 'matmul'
  | 'maximum'
  | 'minimum'
  | 'mm'
  | 'bmm'
  | 'mv'
  | 'dot'
  | 'mul'
  | 'outer'
  | 'pow'
  | 'remainder'
  | 'sub';

/** Of two operands, in floats or complex numbers. */
export type PairingFloats = 'atan2';

/** What accumulates, in a dtype by choice. */
export type Summing = 'prod' | 'sum';

/** As those, with every part of the way. */
export type Running = 'cumprod' | 'cumsum';

/** What averages, in a dtype by choice. */
export type Averaging = 'logSoftmax' | 'mean' | 'softmax';

type Typed =
  | Keeping
  | Parting
  | Floating
  | Asking
  | Locating
  | Finding
  | Pairing
  | PairingFloats
  | Spreading
  | Summing
  | Running
  | Averaging
  | 'abs'
  | 'cast'
  | 'div'
  | 'to'
  | 'toFloat'
  | 'toHalf';

/** What a function takes after its first parameter, which `this` is. */
type Rest<F> = F extends (first: never, ...rest: infer R) => unknown ? R : never;

/** What it takes after its second. */
type AfterSecond<F> = F extends (first: never, second: never, ...rest: infer R) => unknown ? R : never;

/** The second parameter, as the caller's own type. */
type Second<F> = F extends (first: never, second: infer S, ...rest: never) => unknown ? S : never;

/** Options with a dtype of the caller's choice. */
type Choosing<O, T extends DType> = O extends readonly [...infer Before, (infer Options)?]
  ? [...Before, (Omit<NonNullable<Options>, 'dtype'> & { readonly dtype?: T })?]
  : never;

/** The functions `Ops` as methods of a tensor of dtype `D`. */
export type Methods<Ops, D extends DType> = {
  readonly [K in Extract<keyof Ops, Keeping>]: (...rest: Rest<Ops[K]>) => Tensor<D>;
} & {
  readonly [K in Extract<keyof Ops, Parting>]: (...rest: Rest<Ops[K]>) => Tensor<D>[];
} & {
  readonly [K in Extract<keyof Ops, Floating>]: (...rest: Rest<Ops[K]>) => Tensor<Floated<D>>;
} & {
  readonly [K in Extract<keyof Ops, Asking>]: (...rest: Rest<Ops[K]>) => Tensor<'bool'>;
} & {
  readonly [K in Extract<keyof Ops, Locating>]: (...rest: Rest<Ops[K]>) => Tensor<'i32'>;
} & {
  readonly [K in Extract<keyof Ops, Finding>]: (
    ...rest: Rest<Ops[K]>
  ) => [values: Tensor<D>, indices: Tensor<'i32'>];
} & {
  readonly [K in Extract<keyof Ops, Pairing>]: <Y extends Second<Ops[K]> & TensorLike>(
    y: Y,
    ...rest: AfterSecond<Ops[K]>
  ) => Tensor<Common<Tensor<D>, Y>>;
} & {
  readonly [K in Extract<keyof Ops, PairingFloats>]: <Y extends TensorLike>(
    y: Y,
    ...rest: AfterSecond<Ops[K]>
  ) => Tensor<Floated<Common<Tensor<D>, Y>>>;
} & {
  readonly [K in Extract<keyof Ops, Summing>]: <T extends DType = Summed<D>>(
    ...rest: Choosing<Rest<Ops[K]>, T>
  ) => Tensor<NoInfer<T>>;
} & {
  readonly [K in Extract<keyof Ops, Running>]: <T extends DType = Summed<D>>(
    ...rest: Choosing<Rest<Ops[K]>, T>
  ) => Tensor<NoInfer<T>>;
} & {
  readonly [K in Extract<keyof Ops, Spreading>]: (...rest: Rest<Ops[K]>) => Tensor<SizeOf<Floated<D>>>;
} & {
  readonly [K in Extract<keyof Ops, Averaging>]: <T extends DType = Floated<D>>(
    ...rest: Choosing<Rest<Ops[K]>, T>
  ) => Tensor<NoInfer<T>>;
} & {
  readonly [K in Extract<keyof Ops, 'abs'>]: () => Tensor<SizeOf<D>>;
} & {
  readonly [K in Extract<keyof Ops, 'cast' | 'to'>]: <T extends DType>(dtype: T) => Tensor<T>;
} & {
  readonly [K in Extract<keyof Ops, 'toFloat'>]: () => Tensor<'f32'>;
} & {
  readonly [K in Extract<keyof Ops, 'toHalf'>]: () => Tensor<'f16'>;
} & {
  readonly [K in Extract<keyof Ops, 'div'>]: <Y extends TensorLike>(
    y: Y,
    ...rest: AfterSecond<Ops[K]>
  ) => Tensor<Common<Tensor<D>, Y> | Floated<Common<Tensor<D>, Y>>>;
} & {
  readonly [K in Exclude<keyof Ops, Typed>]: Ops[K] extends (first: never, ...rest: infer R) => infer Result
    ? (...rest: R) => Result
    : never;
};
