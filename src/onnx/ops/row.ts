// Short forms for writing rows of the operator table that call one function of tensors.

import type { Tensor } from '../../tensor/tensor.ts';
import type { Call, Row } from '../call.ts';

/** A row by its function; `since` lists the opsets that changed its meaning. */
export function row(
  since: readonly number[],
  run: Row['run'],
  options: Omit<Row, 'since' | 'run'> = {},
): Row {
  return { since, run, ...options };
}

/** A row that reads some inputs on the host. */
export function hosted(since: readonly number[], host: NonNullable<Row['host']>, run: Row['run']): Row {
  return { since, host, run };
}

/** A function of one tensor. */
export function unary(since: readonly number[], run: (x: Tensor) => Tensor): Row {
  return row(since, (call: Call) => run(call.tensor(0)));
}
