// Elements added around the last axes, as modules: a value, the mirror image, the edge, or the other
// end. One factory makes the classes of all.

import type { DType } from '../../ir/dtype.ts';
import { TensorError } from '../../errors.ts';
import * as arg from '../../ir/arguments.ts';
import { expectTensor } from '../../tensor/expect.ts';
import { show } from '../../tensor/ops/operand.ts';
import { pad, type PadOptions } from '../../tensor/ops/shape/movement.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { Module } from '../module.ts';

/**
 * How many elements come around the spatial axes: one number for all ends, or a pair [before,
 * after] for each axis in their order. Negative numbers cut elements off.
 */
export type PadSizes = number | readonly (readonly [number, number])[];

const pairs = arg.listOf(arg.tupleOf<readonly [number, number]>(arg.integer, arg.integer));

function padSizes(spatial: number): arg.Kind<PadSizes> {
  const expected = `an integer, or ${spatial} ${spatial === 1 ? 'pair' : 'pairs'} [before, after]`;
  return arg.kind(
    expected,
    (value) =>
      arg.integer.accepts(value) || (pairs.accepts(value) && (value as unknown[]).length === spatial),
  );
}

/** A layer that pads the last axes. */
interface Pad extends Module {
  readonly pairs: readonly (readonly [number, number])[];
  readonly options: PadOptions;
  forward<D extends DType>(x: Tensor<D>): Tensor<D>;
}

type PadClass = new (padding: PadSizes) => Pad;
type ValuePadClass = new (padding: PadSizes, value: number) => Pad;
type MadePadClass = new (padding: PadSizes, value?: number) => Pad;

const takesValue = arg.takes<(value: number) => unknown>(['the value', arg.element]);

/** The class of layers that pad the last `spatial` axes; without options by a value that they are given. */
/* @__NO_SIDE_EFFECTS__ */
function padOf(name: string, spatial: number, options?: PadOptions): MadePadClass {
  const takes = arg.takes<(padding: PadSizes) => unknown>(['padding', padSizes(spatial)]);
  return class extends Module {
    readonly pairs: readonly (readonly [number, number])[];
    readonly options: PadOptions;

    constructor(padding: PadSizes, value?: number) {
      takes(name, padding);
      if (options === undefined) takesValue(name, value!);
      super();
      const both = (size: number): readonly [number, number] => [size, size];
      this.pairs =
        typeof padding === 'number' ? Array.from({ length: spatial }, () => both(padding)) : padding;
      this.options = options ?? { mode: 'constant', value: value! };
    }

    forward<D extends DType>(x: Tensor<D>): Tensor<D> {
      expectTensor('pad', 'x', x);
      if (this.options.mode !== 'constant' && x.rank !== spatial + 1 && x.rank !== spatial + 2)
        throw new TensorError(
          'E_SHAPE',
          'pad',
          `expects rank ${spatial + 2} (or ${spatial + 1}): ${show(x)}`,
        );
      return pad(x, this.pairs, this.options);
    }
  };
}

const ConstantPadOf1: ValuePadClass = padOf('ConstantPad1d', 1);
const ConstantPadOf2: ValuePadClass = padOf('ConstantPad2d', 2);
const ConstantPadOf3: ValuePadClass = padOf('ConstantPad3d', 3);

/** A value around the last axis. */
export class ConstantPad1d extends ConstantPadOf1 {}

/** A value around the last two axes. */
export class ConstantPad2d extends ConstantPadOf2 {}

/** A value around the last three axes. */
export class ConstantPad3d extends ConstantPadOf3 {}

const ZeroPadOf1: PadClass = padOf('ZeroPad1d', 1, { mode: 'constant', value: 0 });
const ZeroPadOf2: PadClass = padOf('ZeroPad2d', 2, { mode: 'constant', value: 0 });
const ZeroPadOf3: PadClass = padOf('ZeroPad3d', 3, { mode: 'constant', value: 0 });

/** Zeros around the last axis. */
export class ZeroPad1d extends ZeroPadOf1 {}

/** Zeros around the last two axes. */
export class ZeroPad2d extends ZeroPadOf2 {}

/** Zeros around the last three axes. */
export class ZeroPad3d extends ZeroPadOf3 {}

const ReflectionPadOf1: PadClass = padOf('ReflectionPad1d', 1, { mode: 'reflect' });
const ReflectionPadOf2: PadClass = padOf('ReflectionPad2d', 2, { mode: 'reflect' });
const ReflectionPadOf3: PadClass = padOf('ReflectionPad3d', 3, { mode: 'reflect' });

/** The mirror image, without the edge, around [N, C, L] (or without N). */
export class ReflectionPad1d extends ReflectionPadOf1 {}

/** The mirror image, without the edge, around [N, C, H, W] (or without N). */
export class ReflectionPad2d extends ReflectionPadOf2 {}

/** The mirror image, without the edge, around [N, C, D, H, W] (or without N). */
export class ReflectionPad3d extends ReflectionPadOf3 {}

const ReplicationPadOf1: PadClass = padOf('ReplicationPad1d', 1, { mode: 'replicate' });
const ReplicationPadOf2: PadClass = padOf('ReplicationPad2d', 2, { mode: 'replicate' });
const ReplicationPadOf3: PadClass = padOf('ReplicationPad3d', 3, { mode: 'replicate' });

/** The edge repeated around [N, C, L] (or without N). */
export class ReplicationPad1d extends ReplicationPadOf1 {}

/** The edge repeated around [N, C, H, W] (or without N). */
export class ReplicationPad2d extends ReplicationPadOf2 {}

/** The edge repeated around [N, C, D, H, W] (or without N). */
export class ReplicationPad3d extends ReplicationPadOf3 {}

const CircularPadOf1: PadClass = padOf('CircularPad1d', 1, { mode: 'circular' });
const CircularPadOf2: PadClass = padOf('CircularPad2d', 2, { mode: 'circular' });
const CircularPadOf3: PadClass = padOf('CircularPad3d', 3, { mode: 'circular' });

/** The elements of the other end around [N, C, L] (or without N). */
export class CircularPad1d extends CircularPadOf1 {}

/** The elements of the other end around [N, C, H, W] (or without N). */
export class CircularPad2d extends CircularPadOf2 {}

/** The elements of the other end around [N, C, D, H, W] (or without N). */
export class CircularPad3d extends CircularPadOf3 {}
