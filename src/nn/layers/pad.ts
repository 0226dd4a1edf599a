// Elements added around the last axes, as modules: a value, the mirror image, the edge, or the other
// end.

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

/** Pads the last `spatial` axes. */
abstract class Pad extends Module {
  readonly pairs: readonly (readonly [number, number])[];
  readonly options: PadOptions;

  protected constructor(name: string, spatial: number, padding: PadSizes, options: PadOptions) {
    arg.takes<(padding: PadSizes) => unknown>(['padding', padSizes(spatial)])(name, padding);
    super();
    const both = (size: number): readonly [number, number] => [size, size];
    this.pairs = typeof padding === 'number' ? Array.from({ length: spatial }, () => both(padding)) : padding;
    this.options = options;
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<D> {
    expectTensor('pad', 'x', x);
    const spatial = this.pairs.length;
    if (this.options.mode !== 'constant' && x.rank !== spatial + 1 && x.rank !== spatial + 2)
      throw new TensorError('E_SHAPE', 'pad', `expects rank ${spatial + 2} (or ${spatial + 1}): ${show(x)}`);
    return pad(x, this.pairs, this.options);
  }
}

const takesValue = arg.takes<(value: number) => unknown>(['the value', arg.element]);

abstract class ValuePad extends Pad {
  protected constructor(name: string, spatial: number, padding: PadSizes, value: number) {
    super(name, spatial, padding, { mode: 'constant', value });
    takesValue(name, value);
  }
}

/** A value around the last axis. */
export class ConstantPad1d extends ValuePad {
  constructor(padding: PadSizes, value: number) {
    super('ConstantPad1d', 1, padding, value);
  }
}

/** A value around the last two axes. */
export class ConstantPad2d extends ValuePad {
  constructor(padding: PadSizes, value: number) {
    super('ConstantPad2d', 2, padding, value);
  }
}

/** A value around the last three axes. */
export class ConstantPad3d extends ValuePad {
  constructor(padding: PadSizes, value: number) {
    super('ConstantPad3d', 3, padding, value);
  }
}

/** Zeros around the last axis. */
export class ZeroPad1d extends ValuePad {
  constructor(padding: PadSizes) {
    super('ZeroPad1d', 1, padding, 0);
  }
}

/** Zeros around the last two axes. */
export class ZeroPad2d extends ValuePad {
  constructor(padding: PadSizes) {
    super('ZeroPad2d', 2, padding, 0);
  }
}

/** Zeros around the last three axes. */
export class ZeroPad3d extends ValuePad {
  constructor(padding: PadSizes) {
    super('ZeroPad3d', 3, padding, 0);
  }
}

/** The mirror image, without the edge, around [N, C, L] (or without N). */
export class ReflectionPad1d extends Pad {
  constructor(padding: PadSizes) {
    super('ReflectionPad1d', 1, padding, { mode: 'reflect' });
  }
}

/** The mirror image, without the edge, around [N, C, H, W] (or without N). */
export class ReflectionPad2d extends Pad {
  constructor(padding: PadSizes) {
    super('ReflectionPad2d', 2, padding, { mode: 'reflect' });
  }
}

/** The mirror image, without the edge, around [N, C, D, H, W] (or without N). */
export class ReflectionPad3d extends Pad {
  constructor(padding: PadSizes) {
    super('ReflectionPad3d', 3, padding, { mode: 'reflect' });
  }
}

/** The edge repeated around [N, C, L] (or without N). */
export class ReplicationPad1d extends Pad {
  constructor(padding: PadSizes) {
    super('ReplicationPad1d', 1, padding, { mode: 'replicate' });
  }
}

/** The edge repeated around [N, C, H, W] (or without N). */
export class ReplicationPad2d extends Pad {
  constructor(padding: PadSizes) {
    super('ReplicationPad2d', 2, padding, { mode: 'replicate' });
  }
}

/** The edge repeated around [N, C, D, H, W] (or without N). */
export class ReplicationPad3d extends Pad {
  constructor(padding: PadSizes) {
    super('ReplicationPad3d', 3, padding, { mode: 'replicate' });
  }
}

/** The elements of the other end around [N, C, L] (or without N). */
export class CircularPad1d extends Pad {
  constructor(padding: PadSizes) {
    super('CircularPad1d', 1, padding, { mode: 'circular' });
  }
}

/** The elements of the other end around [N, C, H, W] (or without N). */
export class CircularPad2d extends Pad {
  constructor(padding: PadSizes) {
    super('CircularPad2d', 2, padding, { mode: 'circular' });
  }
}

/** The elements of the other end around [N, C, D, H, W] (or without N). */
export class CircularPad3d extends Pad {
  constructor(padding: PadSizes) {
    super('CircularPad3d', 3, padding, { mode: 'circular' });
  }
}
