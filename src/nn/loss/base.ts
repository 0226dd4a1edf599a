// What losses as modules share: options that are checked and kept when the loss is made.

import * as arg from '../../ir/arguments.ts';
import type { TensorLike } from '../../tensor/tensor.ts';
import { Module } from '../module.ts';

/** A loss with its options. */
export abstract class Loss<O extends object> extends Module {
  readonly options: O;

  protected constructor(name: string, table: arg.Table<O>, options: O) {
    arg.takes<(options?: O) => unknown>(['options', arg.options<O>(table)])(name, options);
    super();
    this.options = options;
  }
}

/** A loss with factors: tensors among them are state, as in PyTorch, and not trained. */
export abstract class WeightedLoss<O extends { readonly weight?: TensorLike }> extends Module {
  weight: O['weight'];
  readonly options: Omit<O, 'weight'>;

  protected constructor(name: string, table: arg.Table<O>, options: O) {
    arg.takes<(options?: O) => unknown>(['options', arg.options<O>(table)])(name, options);
    super();
    const { weight: _, ...rest } = options;
    this.weight = options.weight as O['weight'];
    this.options = rest;
  }

  override buffers(): readonly string[] {
    return ['weight'];
  }

  /** The options with the factors that the loss has now. */
  protected whole(): Omit<O, 'weight'> & { readonly weight?: NonNullable<O['weight']> } {
    return { ...this.options, ...(this.weight === undefined ? {} : { weight: this.weight }) };
  }
}
