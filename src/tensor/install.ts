// How operations become methods of tensors: called on their first operand, `x.add(y)` for `add(x, y)`.

import { gathered } from '../ir/shape.ts';
import { Tensor } from './tensor.ts';

/** Operations by the names of their methods. */
export type MethodTable = Readonly<Record<string, (...args: never[]) => unknown>>;

/** Gives all tensors these methods, and these properties, which are operations of the tensor alone. */
export function installMethods(methods: MethodTable, getters: MethodTable): void {
  for (const [name, made] of Object.entries(methods)) {
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
  for (const [name, made] of Object.entries(getters)) {
    const operation = made as (x: Tensor) => unknown;
    Object.defineProperty(Tensor.prototype, name, {
      configurable: true,
      get(this: Tensor): unknown {
        return operation(this);
      },
    });
  }
}
