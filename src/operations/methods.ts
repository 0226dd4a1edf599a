// The methods of tensors: the everyday operations, called on their first operand, `x.add(y)` for `add(x, y)`.
// Made by `npm run operations` of the comments and signatures in src/tensor/ops.

import type { DType } from '../ir/dtype.ts';
import type { Each, Floated, SizeOf, Summed, Unknown } from '../tensor/inferred.ts';
import type { GeluOptions, SoftplusOptions } from '../tensor/ops/elementwise/activation.ts';
import type { AddOptions, DivOptions } from '../tensor/ops/elementwise/arithmetic.ts';
import type { TensorLike } from '../tensor/tensor.ts';
import type { Common } from '../tensor/ops/operand.ts';
import type { NanToNumOptions, RoundOptions } from '../tensor/ops/elementwise/elementwise.ts';
import type { MatmulOptions } from '../tensor/ops/product/matmul.ts';
import type { Axes, ReduceOptions } from '../tensor/ops/reduce/axes.ts';
import type { MeanOptions, SumOptions, VarOptions } from '../tensor/ops/reduce/reduce.ts';
import type { ScanOptions } from '../tensor/ops/reduce/scan.ts';
import type { SoftmaxOptions } from '../tensor/ops/reduce/softmax.ts';
import type { SortOptions, TopkOptions } from '../tensor/ops/reduce/sort.ts';
import type { Sized, Unsized } from '../tensor/ops/select/count.ts';
import type { Counted } from '../tensor/ops/select/nonzero.ts';
import type { Index } from '../tensor/ops/shape/indexing.ts';
import type { DiagonalOptions } from '../tensor/ops/shape/movement.ts';
import type { IndexAddOptions, ScatterAddOptions } from '../tensor/ops/shape/scatter.ts';
import { conj, imag, real } from '../tensor/ops/complex/complex.ts';
import { elu, gelu, leakyRelu, relu, sigmoid, silu, softplus } from '../tensor/ops/elementwise/activation.ts';
import {
  add,
  atan2,
  div,
  floorDivide,
  fmod,
  maximum,
  minimum,
  mul,
  pow,
  remainder,
  sub,
} from '../tensor/ops/elementwise/arithmetic.ts';
import { cast, to, toBool, toFloat, toHalf, toInt } from '../tensor/ops/elementwise/cast.ts';
import {
  bitwiseAnd,
  bitwiseLeftShift,
  bitwiseNot,
  bitwiseOr,
  bitwiseRightShift,
  bitwiseXor,
  eq,
  ge,
  gt,
  isFinite,
  isInf,
  isNan,
  le,
  logicalAnd,
  logicalNot,
  logicalOr,
  logicalXor,
  lt,
  maskedFill,
  ne,
  where,
} from '../tensor/ops/elementwise/compare.ts';
import {
  abs,
  acos,
  asin,
  atan,
  ceil,
  clamp,
  cos,
  cosh,
  erf,
  exp,
  exp2,
  expm1,
  floor,
  lerp,
  log,
  log10,
  log1p,
  log2,
  nanToNum,
  neg,
  reciprocal,
  round,
  rsqrt,
  sign,
  sin,
  sinh,
  sqrt,
  square,
  tan,
  tanh,
  trunc,
} from '../tensor/ops/elementwise/elementwise.ts';
import { bmm, dot, matmul, mm, mv, outer, trace } from '../tensor/ops/product/matmul.ts';
import {
  amax,
  amin,
  argmax,
  argmin,
  max,
  maxWithIndices,
  min,
  minWithIndices,
} from '../tensor/ops/reduce/extremum.ts';
import {
  all,
  any,
  countNonzero,
  logsumexp,
  mean,
  prod,
  std,
  sum,
  variance,
} from '../tensor/ops/reduce/reduce.ts';
import { cumprod, cumsum } from '../tensor/ops/reduce/scan.ts';
import { logSoftmax, softmax } from '../tensor/ops/reduce/softmax.ts';
import { argsort, sort, topk } from '../tensor/ops/reduce/sort.ts';
import { maskedSelect, nonzero } from '../tensor/ops/select/nonzero.ts';
import { addAt, setAt } from '../tensor/ops/select/write-at.ts';
import { gather, indexSelect, take } from '../tensor/ops/shape/gather.ts';
import { at, narrow, select, slice } from '../tensor/ops/shape/indexing.ts';
import { chunk, repeatInterleave, split, unbind } from '../tensor/ops/shape/join.ts';
import { diag, diagonal, flip, roll, tril, triu } from '../tensor/ops/shape/movement.ts';
import { tile } from '../tensor/ops/shape/rearrange.ts';
import { indexAdd, scatter, scatterAdd } from '../tensor/ops/shape/scatter.ts';
import { ravel, swapaxes } from '../tensor/ops/shape/turn.ts';
import {
  broadcastTo,
  clone,
  expand,
  expandAs,
  flatten,
  matrixTransposed,
  moveaxis,
  permute,
  reshape,
  reversedAxes,
  squeeze,
  t,
  transpose,
  unflatten,
  unsqueeze,
  view,
} from '../tensor/ops/shape/view.ts';
import { installMethods } from '../tensor/install.ts';

declare module '../tensor/tensor.ts' {
  interface Tensor<out D extends DType = Unknown> {
    /** All axes in reverse order. */
    readonly T: Tensor<D>;
    /** |x|. */
    abs(): Tensor<SizeOf<D>>;
    /** Inverse cosine, in [0, π]. */
    acos(): Tensor<Floated<D>>;
    /** x + alpha·y. */
    add<Y extends TensorLike>(y: Y, options?: AddOptions): Tensor<Common<Tensor<D>, Y>>;
    /** As `setAt`, adding to what is there: of several values for one place all are added. */
    addAt(indices: readonly Index[], value: TensorLike): Tensor<D>;
    /** true where no element is 0; true over nothing. */
    all(axes?: Axes, options?: ReduceOptions): Tensor<'bool'>;
    /** The largest elements; NaN wins. Ties share the gradient. */
    amax(axes?: Axes, options?: ReduceOptions): Tensor<D>;
    /** The smallest elements; NaN wins. Ties share the gradient. */
    amin(axes?: Axes, options?: ReduceOptions): Tensor<D>;
    /** true where some element is not 0 (NaN is not); false over nothing. */
    any(axes?: Axes, options?: ReduceOptions): Tensor<'bool'>;
    /**
     * i32 position of the largest element along `axis`, or in C-order without one; the first of equals,
     * NaN first of all.
     */
    argmax(axis?: number, options?: ReduceOptions): Tensor<'i32'>;
    /**
     * i32 position of the smallest element along `axis`, or in C-order without one; the first of
     * equals, NaN first of all.
     */
    argmin(axis?: number, options?: ReduceOptions): Tensor<'i32'>;
    /** The i32 positions of the elements along an axis in order. */
    argsort(axis?: number, options?: SortOptions): Tensor<'i32'>;
    /** Inverse sine, in [−π/2, π/2]. */
    asin(): Tensor<Floated<D>>;
    /** Elements, slices and gathers of x, one entry per axis; see `Index`. */
    at(...indices: Index[]): Tensor<D>;
    /** Inverse tangent, in (−π/2, π/2). */
    atan(): Tensor<Floated<D>>;
    /** The angle of the point (x: `x`, y: `y`) in (−π, π], argument order as atan2(y, x). */
    atan2<X extends TensorLike>(x: X): Tensor<Floated<Common<X, Tensor<D>>>>;
    /** The bits set in both; on bool, logical and. */
    bitwiseAnd<Y extends TensorLike>(y: Y): Tensor<Common<Tensor<D>, Y>>;
    /** x·2^y, low bits kept; 0 when y is negative or not less than the width. */
    bitwiseLeftShift<Y extends TensorLike>(y: Y): Tensor<Common<Tensor<D>, Y>>;
    /** All bits flipped; on bool, logical not. */
    bitwiseNot(): Tensor<D>;
    /** The bits set in one or both; on bool, logical or. */
    bitwiseOr<Y extends TensorLike>(y: Y): Tensor<Common<Tensor<D>, Y>>;
    /** Shifts right, keeping the sign; an out-of-range count leaves −1 or 0. */
    bitwiseRightShift<Y extends TensorLike>(y: Y): Tensor<Common<Tensor<D>, Y>>;
    /** The bits set in exactly one; on bool, logical xor. */
    bitwiseXor<Y extends TensorLike>(y: Y): Tensor<Common<Tensor<D>, Y>>;
    /** [B, M, K] by [B, K, N]. */
    bmm<Y extends Tensor>(y: Y, options?: MatmulOptions): Tensor<Common<Tensor<D>, Y>>;
    /** NumPy's name for `expand`. */
    broadcastTo(shape: readonly number[]): Tensor<D>;
    /** x with elements of `dtype`; x itself if it has that already. */
    cast<T extends DType>(dtype: T): Tensor<T>;
    /** Rounds up. */
    ceil(): Tensor<D>;
    /** At most `chunks` parts of equal size (the last may be smaller). */
    chunk(chunks: number, axis?: number): Tensor<D>[];
    /**
     * Limits to [low, high], either absent; NaN stays, and low > high gives high. The gradient passes
     * at both ends.
     */
    clamp(low?: TensorLike, high?: TensorLike): Tensor;
    /** The same value as a tensor of its own: what is assigned to one does not change the other. */
    clone(): Tensor<D>;
    /** The complex conjugate; a real tensor itself. */
    conj(): Tensor<D>;
    /** Cosine. */
    cos(): Tensor<Floated<D>>;
    /** (eˣ + e⁻ˣ)/2. */
    cosh(): Tensor<Floated<D>>;
    /** How many elements are not 0, in i32. */
    countNonzero(axes?: Axes, options?: ReduceOptions): Tensor<'i32'>;
    /** Running product. */
    cumprod<T extends DType = Summed<D>>(axis: number, options?: ScanOptions<T>): Tensor<NoInfer<T>>;
    /** Running sum. */
    cumsum<T extends DType = Summed<D>>(axis: number, options?: ScanOptions<T>): Tensor<NoInfer<T>>;
    /** A vector becomes a matrix with it on the diagonal; of a matrix, the diagonal. */
    diag(offset?: number): Tensor<D>;
    /** A diagonal of each matrix spanned by two axes (the first two by default), as a new last axis. */
    diagonal(options?: DiagonalOptions): Tensor<D>;
    /** x / y; integers divide as f32 unless `rounding` is given. */
    div<Y extends TensorLike>(
      y: Y,
      options?: DivOptions,
    ): Tensor<Common<Tensor<D>, Y> | Floated<Common<Tensor<D>, Y>>>;
    /** The inner product of two vectors. */
    dot<Y extends Tensor>(y: Y, options?: MatmulOptions): Tensor<Common<Tensor<D>, Y>>;
    /** x above 0, alpha·(eˣ − 1) below; alpha is 1 by default. */
    elu(alpha?: number): Tensor<Floated<D>>;
    /** x = y. */
    eq(y: TensorLike): Tensor<'bool'>;
    /** The error function. */
    erf(): Tensor<Floated<D>>;
    /** eˣ. */
    exp(): Tensor<Floated<D>>;
    /** 2ˣ. */
    exp2(): Tensor<Floated<D>>;
    /** x repeated along axes of size 1 and new leading axes; −1 keeps a size. No element is copied. */
    expand(shape: readonly number[]): Tensor<D>;
    /** x repeated to the shape of another tensor. */
    expandAs(other: Tensor): Tensor<D>;
    /** eˣ − 1, exact near 0. */
    expm1(): Tensor<Floated<D>>;
    /** Axes `from` to `to` (both included; all by default) made one. */
    flatten(from?: number, to?: number): Tensor<D>;
    /** Reversed along the axes; along all by default. */
    flip(axes?: number | readonly number[]): Tensor<D>;
    /** Rounds down. */
    floor(): Tensor<D>;
    /** ⌊x / y⌋: −7 by 2 is −4. Integers by a 0 in a tensor stay what they are. */
    floorDivide<Y extends TensorLike>(y: Y): Tensor<Common<Tensor<D>, Y>>;
    /** x − y·trunc(x / y): the result has the dividend's sign, −7 by 2 leaves −1. */
    fmod<Y extends TensorLike>(y: Y): Tensor<Common<Tensor<D>, Y>>;
    /** out[i,j,k] = x[i, index[i,j,k], k] for axis 1. */
    gather(axis: number, index: Tensor): Tensor<D>;
    /** x ≥ y. */
    ge(y: TensorLike): Tensor<'bool'>;
    /** Gaussian error linear unit x·Φ(x). */
    gelu(options?: GeluOptions): Tensor<Floated<D>>;
    /** x > y. */
    gt(y: TensorLike): Tensor<'bool'>;
    /** The imaginary part of a complex tensor. */
    imag(): Tensor;
    /**
     * A copy of x with slice `i` of the source added to slice `index[i]` along an axis; repeated
     * positions add up.
     */
    indexAdd(axis: number, index: Tensor, source: Tensor, options?: IndexAddOptions): Tensor<D>;
    /** The listed positions of an axis: out[o, i, j] = x[o, index[i], j]. */
    indexSelect(axis: number, index: Tensor): Tensor<D>;
    /** true where neither NaN nor ±∞. */
    isFinite(): Tensor<'bool'>;
    /** true where +∞ or −∞. */
    isInf(): Tensor<'bool'>;
    /** true where NaN; all false for integers. */
    isNan(): Tensor<'bool'>;
    /** x ≤ y. */
    le(y: TensorLike): Tensor<'bool'>;
    /** x above 0, slope·x below; slope is 0.01 by default. */
    leakyRelu(slope?: number): Tensor<Floated<D>>;
    /** start + weight·(end − start), exact at both ends. */
    lerp(end: TensorLike, weight: TensorLike): Tensor;
    /** Natural logarithm. */
    log(): Tensor<Floated<D>>;
    /** Logarithm to base 10. */
    log10(): Tensor<Floated<D>>;
    /** log(1 + x), exact near 0. */
    log1p(): Tensor<Floated<D>>;
    /** Logarithm to base 2. */
    log2(): Tensor<Floated<D>>;
    /** log softmax, without its rounding: (x − max) − log Σ e^(x − max). */
    logSoftmax<T extends DType = Floated<D>>(axes?: Axes, options?: SoftmaxOptions<T>): Tensor<NoInfer<T>>;
    /** Both ≠ 0. */
    logicalAnd(y: TensorLike): Tensor<'bool'>;
    /** true where x = 0. */
    logicalNot(): Tensor<'bool'>;
    /** One or both ≠ 0. */
    logicalOr(y: TensorLike): Tensor<'bool'>;
    /** Exactly one ≠ 0. */
    logicalXor(y: TensorLike): Tensor<'bool'>;
    /** log Σ eˣ, without overflow, of real or complex numbers; integers and bool count as f32. */
    logsumexp(axes?: Axes, options?: ReduceOptions): Tensor<Floated<D>>;
    /** x < y. */
    lt(y: TensorLike): Tensor<'bool'>;
    /** The last two axes exchanged. */
    readonly mT: Tensor<D>;
    /** `value` where the mask holds, else x; the value takes x's dtype. */
    maskedFill(mask: Tensor, value: TensorLike): Tensor<D>;
    /** The elements of x where the mask is true, in C-order; x and the mask broadcast. */
    maskedSelect(mask: Tensor, options: Sized): Counted;
    maskedSelect(mask: Tensor, options?: Unsized): Promise<Tensor>;
    /**
     * The matrix product of the last two axes; leading axes broadcast. A vector on the left is a row,
     * on the right a column, and that axis vanishes; two vectors give their inner product.
     */
    matmul<Y extends Tensor>(y: Y, options?: MatmulOptions): Tensor<Common<Tensor<D>, Y>>;
    /** The largest elements, as `amax`; for their places too see `maxWithIndices`. */
    max(axes?: Axes, options?: ReduceOptions): Tensor<D>;
    /**
     * The largest elements along `axis` and their i32 places (the first of equals); the gradient goes
     * to those places.
     */
    maxWithIndices(axis: number, options?: ReduceOptions): [values: Tensor<D>, indices: Tensor<'i32'>];
    /** The larger of both; NaN wins. Equal operands share the gradient. */
    maximum<Y extends TensorLike>(y: Y): Tensor<Common<Tensor<D>, Y>>;
    /** Σ / n of floats, or of what becomes floats by `dtype`; NaN over nothing. */
    mean<T extends DType = Floated<D>>(axes?: Axes, options?: MeanOptions<T>): Tensor<NoInfer<T>>;
    /** The smallest elements, as `amin`; for their places too see `minWithIndices`. */
    min(axes?: Axes, options?: ReduceOptions): Tensor<D>;
    /**
     * The smallest elements along `axis` and their i32 places (the first of equals); the gradient goes
     * to those places.
     */
    minWithIndices(axis: number, options?: ReduceOptions): [values: Tensor<D>, indices: Tensor<'i32'>];
    /** The smaller of both; NaN wins. Equal operands share the gradient. */
    minimum<Y extends TensorLike>(y: Y): Tensor<Common<Tensor<D>, Y>>;
    /** [M, K] by [K, N]. */
    mm<Y extends Tensor>(y: Y, options?: MatmulOptions): Tensor<Common<Tensor<D>, Y>>;
    /** Axes `from` moved to the places `to`; the others keep their order. */
    moveaxis(from: number | readonly number[], to: number | readonly number[]): Tensor<D>;
    /** x · y. */
    mul<Y extends TensorLike>(y: Y): Tensor<Common<Tensor<D>, Y>>;
    /** [M, K] by [K]. */
    mv<Y extends Tensor>(y: Y, options?: MatmulOptions): Tensor<Common<Tensor<D>, Y>>;
    /** Replaces NaN and infinities by finite numbers. */
    nanToNum(options?: NanToNumOptions): Tensor;
    /** `length` elements of an axis from `start`; all of them must be there. */
    narrow(axis: number, start: number | Tensor, length: number): Tensor<D>;
    /** x ≠ y. */
    ne(y: TensorLike): Tensor<'bool'>;
    /** −x. */
    neg(): Tensor<D>;
    /**
     * The positions of the elements that are not 0, in C-order: i32 [count, rank]. With `size` the rows
     * beyond the count are 0.
     */
    nonzero(options: Sized): Counted;
    nonzero(options?: Unsized): Promise<Tensor<'i32'>>;
    /** All products of an element of x and one of y: [M] and [N] give [M, N]. */
    outer<Y extends Tensor>(y: Y): Tensor<Common<Tensor<D>, Y>>;
    /** Axes in another order: axis `i` of the result is axis `order[i]` of x. */
    permute(order: readonly number[]): Tensor<D>;
    /**
     * x^exponent. Integers stay integer (a negative power of one is 0 but for ±1); common exponents
     * become products, roots.
     */
    pow<Y extends TensorLike>(exponent: Y): Tensor<Common<Tensor<D>, Y>>;
    /** Π; 1 over nothing. */
    prod<T extends DType = Summed<D>>(axes?: Axes, options?: SumOptions<T>): Tensor<NoInfer<T>>;
    /** All elements in one axis, in C-order. */
    ravel(): Tensor<D>;
    /** The real part; a real tensor itself. */
    real(): Tensor;
    /** 1 / x. */
    reciprocal(): Tensor<Floated<D>>;
    /** max(x, 0): NaN stays NaN, the derivative at 0 is 0. */
    relu(): Tensor<D>;
    /** x − y·⌊x / y⌋: the result has the divisor's sign, −7 by 2 leaves 1. */
    remainder<Y extends TensorLike>(y: Y): Tensor<Common<Tensor<D>, Y>>;
    /**
     * Each element `repeats` times (or as often as listed) next to itself along an axis; without one,
     * in C-order. Repeats in a tensor are read first, unless their sum is given.
     */
    repeatInterleave(repeats: number | readonly number[], axis?: number): Tensor;
    repeatInterleave(
      repeats: Tensor,
      axis: number | undefined,
      options: { readonly outputSize: number },
    ): Tensor;
    repeatInterleave(repeats: Tensor, axis?: number): Promise<Tensor>;
    /** The elements in C-order under another shape; one size may be −1, the rest of the elements. */
    reshape(shape: readonly number[]): Tensor<D>;
    /**
     * Rotated by `shifts` along `axes`: what leaves the end comes back at the start. Without axes, in
     * C-order.
     */
    roll(shifts: number | readonly number[], axes?: number | readonly number[]): Tensor<D>;
    /** Rounds to the nearest integer, or to some decimals; halves to the even one. */
    round(options?: RoundOptions): Tensor<D>;
    /** 1 / √x. */
    rsqrt(): Tensor<Floated<D>>;
    /**
     * A copy of x with out[i, index[i,j,k], k] = source[i,j,k] for axis 1; of several writes to one
     * place the last stays.
     */
    scatter(axis: number, index: Tensor, source: Tensor | number): Tensor<D>;
    /** A copy of x with the source added at the index's places; all writes to one place add up. */
    scatterAdd(axis: number, index: Tensor, source: Tensor | number, options?: ScatterAddOptions): Tensor<D>;
    /** One position of an axis; the axis vanishes. */
    select(axis: number, index: number): Tensor<D>;
    /**
     * A copy of x with the value, which broadcasts, where `x.at(...indices)` reads: indices as those of
     * `at`, or one mask over leading axes. Of several values for one place the last one stays; positions
     * of an integer tensor that leave their axis are not written. The value is of x's dtype, or a number.
     */
    setAt(indices: readonly Index[], value: TensorLike): Tensor<D>;
    /** 1 / (1 + e⁻ˣ). */
    sigmoid(): Tensor<Floated<D>>;
    /** −1, 0 or 1; NaN gives 0, and bool is what it is. */
    sign(): Tensor<D>;
    /** x·σ(x). */
    silu(): Tensor<Floated<D>>;
    /** Sine; angles are in radians here and below. */
    sin(): Tensor<Floated<D>>;
    /** (eˣ − e⁻ˣ)/2. */
    sinh(): Tensor<Floated<D>>;
    /** The range of one axis. */
    slice(axis: number, start?: number | null, stop?: number | null, step?: number): Tensor<D>;
    /** eˣ / Σ eˣ along an axis (the last by default) or several; a row of −∞ alone gives NaN. */
    softmax<T extends DType = Floated<D>>(axes?: Axes, options?: SoftmaxOptions<T>): Tensor<NoInfer<T>>;
    /** log(1 + e^(beta·x)) / beta, exact for large x as well. */
    softplus(options?: SoftplusOptions): Tensor<Floated<D>>;
    /**
     * The elements along an axis in order, and their i32 positions; equal ones keep their order, NaN
     * counts as the greatest.
     */
    sort(axis?: number, options?: SortOptions): [values: Tensor<D>, indices: Tensor<'i32'>];
    /**
     * Consecutive parts along an axis: of `size` each (the last may be smaller), or of the listed
     * sizes.
     */
    split<const S extends readonly number[]>(sizes: S, axis?: number): Each<Tensor<D>, S>;
    split(size: number | readonly number[], axis?: number): Tensor<D>[];
    /** √x; NaN below 0. */
    sqrt(): Tensor<Floated<D>>;
    /** x²; bool counts as i32. */
    square(): Tensor<D>;
    /** Without the axes of size 1: all of them, or those named that have it. */
    squeeze(axes?: number | readonly number[]): Tensor<D>;
    /** Standard deviation; of the unbiased variance unless `correction: 0`. */
    std(axes?: Axes, options?: VarOptions): Tensor<SizeOf<Floated<D>>>;
    /** x − alpha·y. */
    sub<Y extends TensorLike>(y: Y, options?: AddOptions): Tensor<Common<Tensor<D>, Y>>;
    /** Σ; 0 over nothing. */
    sum<T extends DType = Summed<D>>(axes?: Axes, options?: SumOptions<T>): Tensor<NoInfer<T>>;
    /** Two axes exchanged: NumPy's name for `transpose`. */
    swapaxes(first: number, second: number): Tensor<D>;
    /** The transposed matrix; rank 0 and 1 stay as they are. */
    t(): Tensor<D>;
    /**
     * Elements by their position in C-order, negative ones from the end; the result has the index's
     * shape.
     */
    take(index: Tensor): Tensor<D>;
    /** Tangent. */
    tan(): Tensor<Floated<D>>;
    /** sinh(x) / cosh(x). */
    tanh(): Tensor<Floated<D>>;
    /** The whole tensor repeated along its last axes (NumPy's tile). */
    tile(repeats: readonly number[]): Tensor<D>;
    /** PyTorch's name for `cast`. */
    to<T extends DType>(dtype: T): Tensor<T>;
    /** x ≠ 0. */
    toBool(): Tensor<'bool'>;
    /** x in f32. */
    toFloat(): Tensor<'f32'>;
    /** x in f16. */
    toHalf(): Tensor<'f16'>;
    /** x in i32. */
    toInt(): Tensor<'i32'>;
    /** The k largest (or smallest) elements along an axis, best first, and their i32 positions. */
    topk(k: number, axis?: number, options?: TopkOptions): [values: Tensor<D>, indices: Tensor<'i32'>];
    /** Sum of the diagonal of a matrix. */
    trace(): Tensor;
    /** Two axes exchanged; the last two by default. */
    transpose(first?: number, second?: number): Tensor<D>;
    /**
     * The lower triangle of each matrix, up to the `diagonal`-th one above the main diagonal; 0
     * elsewhere.
     */
    tril(diagonal?: number): Tensor<D>;
    /**
     * The upper triangle of each matrix, from the `diagonal`-th one above the main diagonal; 0
     * elsewhere.
     */
    triu(diagonal?: number): Tensor<D>;
    /** Rounds toward zero. */
    trunc(): Tensor<D>;
    /** The slices along an axis, without that axis. */
    unbind(axis?: number): Tensor<D>[];
    /** Axis `axis` split into several; one size may be −1. */
    unflatten(axis: number, sizes: readonly number[]): Tensor<D>;
    /** With an axis of size 1 put at place `axis` of the result. */
    unsqueeze(axis: number): Tensor<D>;
    /** Variance; unbiased unless `correction: 0`. */
    var(axes?: Axes, options?: VarOptions): Tensor;
    /** PyTorch's other name for `reshape`. */
    view(shape: readonly number[]): Tensor<D>;
    /**
     * x where the condition holds, else y; neither value nor gradient of the side not taken gets
     * through.
     */
    where<X extends TensorLike, Y extends TensorLike>(x: X, y: Y): Tensor<Common<X, Y>>;
  }
}

installMethods(
  {
    abs,
    acos,
    add,
    addAt,
    all,
    amax,
    amin,
    any,
    argmax,
    argmin,
    argsort,
    asin,
    at,
    atan,
    atan2,
    bitwiseAnd,
    bitwiseLeftShift,
    bitwiseNot,
    bitwiseOr,
    bitwiseRightShift,
    bitwiseXor,
    bmm,
    broadcastTo,
    cast,
    ceil,
    chunk,
    clamp,
    clone,
    conj,
    cos,
    cosh,
    countNonzero,
    cumprod,
    cumsum,
    diag,
    diagonal,
    div,
    dot,
    elu,
    eq,
    erf,
    exp,
    exp2,
    expand,
    expandAs,
    expm1,
    flatten,
    flip,
    floor,
    floorDivide,
    fmod,
    gather,
    ge,
    gelu,
    gt,
    imag,
    indexAdd,
    indexSelect,
    isFinite,
    isInf,
    isNan,
    le,
    leakyRelu,
    lerp,
    log,
    log10,
    log1p,
    log2,
    logSoftmax,
    logicalAnd,
    logicalNot,
    logicalOr,
    logicalXor,
    logsumexp,
    lt,
    maskedFill,
    maskedSelect,
    matmul,
    max,
    maxWithIndices,
    maximum,
    mean,
    min,
    minWithIndices,
    minimum,
    mm,
    moveaxis,
    mul,
    mv,
    nanToNum,
    narrow,
    ne,
    neg,
    nonzero,
    outer,
    permute,
    pow,
    prod,
    ravel,
    real,
    reciprocal,
    relu,
    remainder,
    repeatInterleave,
    reshape,
    roll,
    round,
    rsqrt,
    scatter,
    scatterAdd,
    select,
    setAt,
    sigmoid,
    sign,
    silu,
    sin,
    sinh,
    slice,
    softmax,
    softplus,
    sort,
    split,
    sqrt,
    square,
    squeeze,
    std,
    sub,
    sum,
    swapaxes,
    t,
    take,
    tan,
    tanh,
    tile,
    to,
    toBool,
    toFloat,
    toHalf,
    toInt,
    topk,
    trace,
    transpose,
    tril,
    triu,
    trunc,
    unbind,
    unflatten,
    unsqueeze,
    var: variance,
    view,
    where,
  },
  { T: reversedAxes, mT: matrixTransposed },
);
