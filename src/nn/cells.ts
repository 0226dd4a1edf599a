// Recurrent cells: one step of a layer, with PyTorch's names and shapes of weights, for loops of the
// user's own.

import type { DType } from '../ir/dtype.ts';
import type { Promoted } from '../tensor/inferred.ts';
import * as arg from '../ir/arguments.ts';
import { aTensor } from '../tensor/expect.ts';
import { zeros } from '../tensor/ops/creation/creation.ts';
import {
  gruCell,
  lstmCell,
  rnnCell,
  type LstmState,
  type Nonlinearity,
} from '../tensor/ops/sequence/cells.ts';
import type { Tensor } from '../tensor/tensor.ts';
import { initOptions, symmetric, typeOf, type InitOptions } from './init.ts';
import { Module } from './module.ts';
import { parameter } from './parameters.ts';

const stateTable = arg.optional(aTensor);

export interface CellOptions extends InitOptions {
  /** true by default. */
  readonly bias?: boolean;
}

export interface RnnCellLayerOptions extends CellOptions {
  /** 'tanh' by default. */
  readonly nonlinearity?: Nonlinearity;
}

const cellTable: arg.Table<CellOptions> = { ...initOptions, bias: arg.flag };

/** What all cells hold. */
abstract class Cell extends Module {
  weight_ih: Tensor;
  weight_hh: Tensor;
  bias_ih: Tensor | undefined;
  bias_hh: Tensor | undefined;
  readonly hidden: number;

  constructor(gates: number, inputs: number, hidden: number, options: CellOptions) {
    super();
    const bound = 1 / Math.sqrt(hidden);
    const start = (...shape: readonly number[]): Tensor =>
      parameter(symmetric(shape, bound, typeOf(options)));
    this.hidden = hidden;
    this.weight_ih = start(gates * hidden, inputs);
    this.weight_hh = start(gates * hidden, hidden);
    this.bias_ih = options.bias === false ? undefined : start(gates * hidden);
    this.bias_hh = options.bias === false ? undefined : start(gates * hidden);
  }

  /** Zeros for the rows of x. */
  protected start(x: Tensor): Tensor {
    return zeros([...x.shape.slice(0, -1), this.hidden], { dtype: x.dtype });
  }
}

const takesCellForward = arg.takes<GRUCell['forward']>(['x', aTensor], ['the state', stateTable]);
const takesRNNCell = arg.takes<typeof RNNCell>(
  ['the number of inputs', arg.count(1)],
  ['the hidden size', arg.count(1)],
  ['options', arg.options<RnnCellLayerOptions>({ ...cellTable, nonlinearity: arg.oneOf('tanh', 'relu') })],
);

/** One step of a plain recurrent network. */
export class RNNCell extends Cell {
  readonly nonlinearity: Nonlinearity;

  constructor(inputs: number, hidden: number, options: RnnCellLayerOptions = {}) {
    takesRNNCell('RNNCell', inputs, hidden, options);
    super(1, inputs, hidden, options);
    this.nonlinearity = options.nonlinearity ?? 'tanh';
  }

  forward<D extends DType, S extends DType = D>(x: Tensor<D>, state?: Tensor<S>): Tensor<Promoted<D, S>> {
    takesCellForward('RNNCell', x, state);
    const { weight_ih, weight_hh, bias_ih, bias_hh, nonlinearity } = this;
    return rnnCell(x, state ?? this.start(x), weight_ih, weight_hh, bias_ih, bias_hh, { nonlinearity });
  }
}

const takesGRUCell = arg.takes<typeof GRUCell>(
  ['the number of inputs', arg.count(1)],
  ['the hidden size', arg.count(1)],
  ['options', arg.options<CellOptions>(cellTable)],
);

/** One step of a gated recurrent unit. */
export class GRUCell extends Cell {
  constructor(inputs: number, hidden: number, options: CellOptions = {}) {
    takesGRUCell('GRUCell', inputs, hidden, options);
    super(3, inputs, hidden, options);
  }

  forward<D extends DType, S extends DType = D>(x: Tensor<D>, state?: Tensor<S>): Tensor<Promoted<D, S>> {
    takesCellForward('GRUCell', x, state);
    return gruCell(x, state ?? this.start(x), this.weight_ih, this.weight_hh, this.bias_ih, this.bias_hh);
  }
}

const takesLSTMCellForward = arg.takes<LSTMCell['forward']>(
  ['x', aTensor],
  ['the state', arg.optional(arg.tupleOf<LstmState>(aTensor, aTensor))],
);

/** One step of a long short-term memory. */
export class LSTMCell extends Cell {
  constructor(inputs: number, hidden: number, options: CellOptions = {}) {
    takesGRUCell('LSTMCell', inputs, hidden, options);
    super(4, inputs, hidden, options);
  }

  forward<D extends DType, S extends DType = D>(
    x: Tensor<D>,
    state?: readonly [hidden: Tensor<S>, cell: Tensor<S>],
  ): [hidden: Tensor<Promoted<D, S>>, cell: Tensor<Promoted<D, S>>] {
    takesLSTMCellForward('LSTMCell', x, state);
    const start: LstmState = state ?? [this.start(x), this.start(x)];
    return lstmCell(x, start, this.weight_ih, this.weight_hh, this.bias_ih, this.bias_hh);
  }
}
