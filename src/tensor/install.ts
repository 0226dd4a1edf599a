// How operations become methods of tensors: called on their first operand, `x.add(y)` for `add(x, y)`.

import { gathered } from '../ir/shape.ts';
import { Tensor } from './tensor.ts';

/** Operations by the names of their methods. */
export type MethodTable = Readonly<Record<string, (...args: never[]) => unknown>>;

/** Gives all tensors these methods, and `T` and `mT`, which turn axes. */
export function installMethods(operations: MethodTable): void {
  for (const [name, made] of Object.entries(operations)) {
    const operation = made as (first: Tensor, ...rest: readonly unknown[]) => unknown;
    Object.defineProperty(Tensor.prototype, name, {
      configurable: true,
      writable: true,
      value(this: Tensor, ...rest: readonly unknown[]): unknown {
        try {
          return operation(this, ...rest);
        } catch (error) {
          throw gathered(error, rest);
        }
      },
    });
  }
  Object.defineProperty(Tensor.prototype, 'T', {
    configurable: true,
    get(this: Tensor): Tensor {
      return this.permute(this.shape.map((_, axis) => this.rank - 1 - axis));
    },
  });
  Object.defineProperty(Tensor.prototype, 'mT', {
    configurable: true,
    get(this: Tensor): Tensor {
      return this.transpose();
    },
  });
}
