// One step of a recurrent layer, where the input's projection is already there: the state's product
// and what follows it, recorded as one formula.

import { add } from '../../../ir/build.ts';
import { recordMany } from '../../record.ts';
import type { Tensor } from '../../tensor.ts';
import { spread } from '../operand.ts';
import { gruPointwise, lstmPointwise, projected, rnnPointwise, type Nonlinearity } from './cells.ts';

/** The weights of a state: [gates·H, H] and [gates·H]. @internal */
export interface StateWeights {
  readonly weight: Tensor;
  readonly bias: Tensor | undefined;
}

/** The next [hidden] of a plain cell, for rows [batch, H] of projected inputs. @internal */
export function rnnStep(
  fromInput: Tensor,
  [hidden]: readonly Tensor[],
  { weight, bias }: StateWeights,
  kind: Nonlinearity,
): Tensor[] {
  const operands = [fromInput, hidden!, weight, bias] as const;
  return recordMany(given(operands), (b, nodes) => {
    const [p, h, u, d] = spread(operands, nodes);
    return [rnnPointwise(b, add(b, p, projected(b, h, u, d)), kind)];
  });
}

/** The next [hidden, cell] of an LSTM; `projection` [P, H] narrows what it gives. @internal */
export function lstmStep(
  fromInput: Tensor,
  [hidden, cell]: readonly Tensor[],
  { weight, bias }: StateWeights,
  projection: Tensor | undefined,
): Tensor[] {
  const operands = [fromInput, hidden!, cell!, weight, bias, projection] as const;
  return recordMany(given(operands), (b, nodes) => {
    const [p, h, c, u, d, r] = spread(operands, nodes);
    const [next, kept] = lstmPointwise(b, add(b, p, projected(b, h, u, d)), c);
    return [r === undefined ? next : projected(b, next, r, undefined), kept];
  });
}

/** The next [hidden] of a GRU. @internal */
export function gruStep(
  fromInput: Tensor,
  [hidden]: readonly Tensor[],
  { weight, bias }: StateWeights,
): Tensor[] {
  const operands = [fromInput, hidden!, weight, bias] as const;
  return recordMany(given(operands), (b, nodes) => {
    const [p, h, u, d] = spread(operands, nodes);
    return [gruPointwise(b, p, projected(b, h, u, d), h).next];
  });
}

function given(operands: readonly (Tensor | undefined)[]): Tensor[] {
  return operands.filter((operand) => operand !== undefined);
}
