// Methods of tensors: the everyday operations, called on their first operand, `x.add(y)` for
// `add(x, y)`. Signatures follow from the functions', so an operation is declared once.

import type { DType } from '../ir/dtype.ts';
import * as everyday from './everyday.ts';
import type { Each, Unknown } from './inferred.ts';
import type { Methods } from './method-types.ts';
import { installMethods } from './install.ts';
import type { Counted, Sized, Unsized } from './ops/all.ts';

/** Those with several signatures, which are spelled out. */
type Overloaded = 'maskedSelect' | 'nonzero' | 'repeatInterleave' | 'split';

type Plain = Omit<typeof everyday, Overloaded>;

declare module './tensor.ts' {
  interface Tensor<out D extends DType = Unknown> extends Methods<Plain, D> {
    /** Parts of the listed sizes, or of `size` each (the last may be smaller). */
    split<const S extends readonly number[]>(sizes: S, axis?: number): Each<Tensor<D>, S>;
    split(size: number | readonly number[], axis?: number): Tensor<D>[];
    /** The elements where the mask is true; with `size` so many, and their count. */
    maskedSelect(mask: Tensor, options: Sized): Counted;
    maskedSelect(mask: Tensor, options?: Unsized): Promise<Tensor>;
    /** The positions of the elements that are not 0; with `size` so many, and their count. */
    nonzero(options: Sized): Counted;
    nonzero(options?: Unsized): Promise<Tensor<'i32'>>;
    /** Each element as often as asked; repeats in a tensor are read unless their sum is given. */
    repeatInterleave(repeats: number | readonly number[], axis?: number): Tensor;
    repeatInterleave(
      repeats: Tensor,
      axis: number | undefined,
      options: { readonly outputSize: number },
    ): Tensor;
    repeatInterleave(repeats: Tensor, axis?: number): Promise<Tensor>;
    /** All axes in reverse order. */
    readonly T: Tensor<D>;
    /** The last two axes exchanged. */
    readonly mT: Tensor<D>;
  }
}

installMethods(everyday);
