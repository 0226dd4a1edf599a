// Cells of recurrent networks: a state and an input become the next state. Gates lie in PyTorch's
// order, and weights have its shapes: [gates·H, inputs] and [gates·H, H]. The products come first;
// what follows is elementwise and fuses.

import { TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import {
  add,
  binary,
  broadcast,
  cast,
  fullLike,
  mul,
  permute,
  reshape,
  sub,
  unary,
  where,
} from '../../../ir/build.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import { sameShape, sizeOf } from '../../../ir/shape.ts';
import { aTensor } from '../../expect.ts';
import { recordMany } from '../../record.ts';
import type { Tensor } from '../../tensor.ts';
import * as formula from '../../formula/elementwise.ts';
import { checkFloat, show, spread } from '../operand.ts';
import { matmulNodes, productType } from '../product/contract.ts';
import { concat, sliceAxis } from '../../formula/layout.ts';

/** What a plain recurrent cell applies. @internal */
export type Nonlinearity = 'tanh' | 'relu';

export interface RnnCellOptions {
  /** 'tanh' by default. */
  readonly nonlinearity?: Nonlinearity;
}

/** The state of an LSTM: what it gives, and what it keeps. */
export type LstmState = readonly [hidden: Tensor, cell: Tensor];

/** Part `i` of the last axis, of width `size`. */
function part(b: GraphBuilder, x: Node, i: number, size: number): Node {
  return sliceAxis(b, x, dims(x).length - 1, i * size, size);
}

/** x·weightᵀ + bias for a state's rows. @internal */
export function projected(b: GraphBuilder, x: Node, weight: Node, bias: Node | undefined): Node {
  const wide = formula.wideType(x.dtype);
  const product = cast(b, matmulNodes(b, x, permute(b, cast(b, weight, x.dtype), [1, 0]), wide), x.dtype);
  return bias === undefined ? product : add(b, product, broadcast(b, cast(b, bias, x.dtype), dims(product)));
}

/** f(gates) of a plain cell, from the sums of its projections. @internal */
export function rnnPointwise(b: GraphBuilder, sums: Node, kind: Nonlinearity): Node {
  return formula.widened(b, sums, (wide) => {
    if (kind === 'tanh') return unary(b, 'tanh', wide);
    const zero = fullLike(b, wide, 0);
    return where(b, binary(b, 'le', wide, zero), zero, wide);
  });
}

/** The next [hidden, cell] of an LSTM from the sums of its projections: gates i, f, g, o. @internal */
export function lstmPointwise(b: GraphBuilder, sums: Node, cell: Node): [hidden: Node, cell: Node] {
  const size = dims(cell).at(-1)!;
  const wide = cast(b, sums, formula.wideType(sums.dtype));
  const gate = (i: number): Node => formula.sigmoid(b, part(b, wide, i, size));
  const kept = mul(b, gate(1), cast(b, cell, wide.dtype));
  const next = add(b, kept, mul(b, gate(0), unary(b, 'tanh', part(b, wide, 2, size))));
  const hidden = mul(b, gate(3), unary(b, 'tanh', next));
  return [cast(b, hidden, sums.dtype), cast(b, next, sums.dtype)];
}

/** What a GRU's step computes on the way, for whoever derives it by hand. */
interface GruParts {
  readonly next: Node;
  readonly reset: Node;
  readonly update: Node;
  readonly candidate: Node;
  /** The state's projection into the candidate, with its bias. */
  readonly recurrent: Node;
}

/** The next state of a GRU from its two projections, biases included: gates r, z, n. @internal */
export function gruPointwise(b: GraphBuilder, fromInput: Node, fromState: Node, hidden: Node): GruParts {
  const size = dims(hidden).at(-1)!;
  const type = formula.wideType(hidden.dtype);
  const [x, h] = [cast(b, fromInput, type), cast(b, fromState, type)];
  const gate = (i: number): Node => formula.sigmoid(b, add(b, part(b, x, i, size), part(b, h, i, size)));
  const [reset, update] = [gate(0), gate(1)];
  const recurrent = part(b, h, 2, size);
  const candidate = unary(b, 'tanh', add(b, part(b, x, 2, size), mul(b, reset, recurrent)));
  const wide = cast(b, hidden, type);
  const next = add(b, candidate, mul(b, update, sub(b, wide, candidate)));
  return { next: cast(b, next, hidden.dtype), reset, update, candidate, recurrent };
}

type Weights = readonly [
  input: Tensor,
  state: Tensor,
  inputBias: Tensor | undefined,
  stateBias: Tensor | undefined,
];

/** Requires weights of `gates` blocks of the state's width. */
function checkCell(op: string, gates: number, x: Tensor, hidden: Tensor, weights: Weights): void {
  const [input, state, ...biases] = weights;
  checkFloat(op, x, hidden, ...weights);
  const size = hidden.shape.at(-1) ?? 0;
  const rows = gates * size;
  const fits =
    x.rank >= 1 &&
    hidden.rank === x.rank &&
    x.shape.slice(0, -1).every((dim, i) => dim === hidden.shape[i]) &&
    sameShape(input.shape, [rows, x.shape.at(-1)!]) &&
    sameShape(state.shape, [rows, size]) &&
    biases.every((bias) => bias === undefined || sameShape(bias.shape, [rows]));
  if (fits) return;
  const expected = `x [..,I], a state [..,H], weights [${gates}·H,I] and [${gates}·H,H], biases [${gates}·H]`;
  const given = [x, hidden, ...weights].filter((tensor) => tensor !== undefined);
  throw new TensorError('E_SHAPE', op, `expects ${expected}: ${show(...given)}`);
}

/** What a cell computes from rows of inputs and states, and the projections of both. */
type Step = (b: GraphBuilder, fromInput: Node, fromState: Node, states: readonly Node[]) => readonly Node[];

/** Records one step of a cell; leading axes are rows. */
function step(x: Tensor, states: readonly Tensor[], weights: Weights, make: Step): Tensor[] {
  const dtype = productType('cell', x, ...states);
  const lead = x.shape.slice(0, -1);
  const rows = sizeOf(lead);
  const operands = [x, ...weights, ...states] as const;
  const given = operands.filter((tensor) => tensor !== undefined);
  return recordMany(given, (b, nodes) => {
    const [p, w, u, c, d, ...held] = spread(operands, nodes) as readonly (Node | undefined)[];
    const flat = (node: Node): Node => cast(b, reshape(b, node, [rows, dims(node).at(-1)!]), dtype);
    const kept = held.map((node) => flat(node!));
    const results = make(b, projected(b, flat(p!), w!, c), projected(b, kept[0]!, u!, d), kept);
    return results.map((node) => reshape(b, node, [...lead, dims(node).at(-1)!]));
  });
}

const takesRnnCell = arg.takes<typeof rnnCell>(
  ['x', aTensor],
  ['the state', aTensor],
  ['the input weight', aTensor],
  ['the state weight', aTensor],
  ['the input bias', arg.optional(aTensor)],
  ['the state bias', arg.optional(aTensor)],
  ['options', arg.options<RnnCellOptions>({ nonlinearity: arg.oneOf('tanh', 'relu') })],
);

/**
 * tanh(x·Wᵀ + b + h·Uᵀ + c): the next state of a plain recurrent cell (Elman, 1990).
 *
 * @torch torch.rnn_tanh_cell
 * @example
 * const x = sn.tensor([[1, -1]]);
 * const h = sn.tensor([[0.5]]);
 * const w1 = sn.tensor([[0.5, -0.5]]);
 * const u1 = sn.tensor([[0.25]]);
 * sn.rnnCell(x, h, w1, u1);
 */
export function rnnCell(
  x: Tensor,
  hidden: Tensor,
  inputWeight: Tensor,
  stateWeight: Tensor,
  inputBias?: Tensor,
  stateBias?: Tensor,
  options: RnnCellOptions = {},
): Tensor {
  takesRnnCell('rnnCell', x, hidden, inputWeight, stateWeight, inputBias, stateBias, options);
  const weights: Weights = [inputWeight, stateWeight, inputBias, stateBias];
  checkCell('rnnCell', 1, x, hidden, weights);
  const kind = options.nonlinearity ?? 'tanh';
  return step(x, [hidden], weights, (b, p, h) => [rnnPointwise(b, add(b, p, h), kind)])[0]!;
}

const takesLstmCell = arg.takes<typeof lstmCell>(
  ['x', aTensor],
  ['the state', arg.tupleOf<LstmState>(aTensor, aTensor)],
  ['the input weight', aTensor],
  ['the state weight', aTensor],
  ['the input bias', arg.optional(aTensor)],
  ['the state bias', arg.optional(aTensor)],
);

/**
 * The next [hidden, cell] of a long short-term memory (Hochreiter and Schmidhuber, 1997): gates i,
 * f, g, o; cell = f·cell + i·g, hidden = o·tanh(cell).
 *
 * @example
 * const x = sn.tensor([[1, -1]]);
 * const h = sn.tensor([[0.5]]);
 * const c = sn.tensor([[0.25]]);
 * const w4 = sn.tensor([[0.5, -0.5], [1, 0], [0.25, 0.25], [0, 1]]);
 * const u4 = sn.tensor([[0.25], [0.5], [-1], [1]]);
 * sn.lstmCell(x, [h, c], w4, u4);
 */
export function lstmCell(
  x: Tensor,
  state: LstmState,
  inputWeight: Tensor,
  stateWeight: Tensor,
  inputBias?: Tensor,
  stateBias?: Tensor,
): [hidden: Tensor, cell: Tensor] {
  takesLstmCell('lstmCell', x, state, inputWeight, stateWeight, inputBias, stateBias);
  const [hidden, cell] = state;
  const weights: Weights = [inputWeight, stateWeight, inputBias, stateBias];
  checkCell('lstmCell', 4, x, hidden, weights);
  if (!sameShape(cell.shape, hidden.shape))
    throw new TensorError('E_SHAPE', 'lstmCell', `hidden and cell differ: ${show(hidden, cell)}`);
  const [next, kept] = step(x, [hidden, cell], weights, (b, p, h, states) =>
    lstmPointwise(b, add(b, p, h), states[1]!),
  );
  return [next!, kept!];
}

const takesGruCell = arg.takes<typeof gruCell>(
  ['x', aTensor],
  ['the state', aTensor],
  ['the input weight', aTensor],
  ['the state weight', aTensor],
  ['the input bias', arg.optional(aTensor)],
  ['the state bias', arg.optional(aTensor)],
);

/**
 * The next state of a gated recurrent unit (Cho et al., 2014): gates r, z, n, with the reset gate on
 * the state's projection, as in PyTorch and cuDNN.
 *
 * @example
 * const x = sn.tensor([[1, -1]]);
 * const h = sn.tensor([[0.5]]);
 * const w3 = sn.tensor([[0.5, -0.5], [1, 0], [0.25, 0.25]]);
 * const u3 = sn.tensor([[0.25], [0.5], [-1]]);
 * sn.gruCell(x, h, w3, u3);
 */
export function gruCell(
  x: Tensor,
  hidden: Tensor,
  inputWeight: Tensor,
  stateWeight: Tensor,
  inputBias?: Tensor,
  stateBias?: Tensor,
): Tensor {
  takesGruCell('gruCell', x, hidden, inputWeight, stateWeight, inputBias, stateBias);
  const weights: Weights = [inputWeight, stateWeight, inputBias, stateBias];
  checkCell('gruCell', 3, x, hidden, weights);
  return step(x, [hidden], weights, (b, p, h, states) => [gruPointwise(b, p, h, states[0]!).next])[0]!;
}

const takesGruCellFused = arg.takes<typeof gruCellFused>(
  ['the input projection', aTensor],
  ['the state projection', aTensor],
  ['the input bias', aTensor],
  ['the state bias', aTensor],
  ['the state', aTensor],
);

/**
 * What follows the products of a `gruCell`, for projections [B, 3H], biases [3H] and a state [B, H]:
 * the next state, and [B, 5H] of r, z, n, the state and its projection into n, for derivatives by
 * hand.
 *
 * @example
 * const h = sn.tensor([[0.5]]);
 * const gates = sn.tensor([[1, 0.5, -1]]);
 * const bias = sn.tensor([0, 0.5, 0]);
 * sn.gruCellFused(gates, gates, bias, bias, h);
 */
export function gruCellFused(
  fromInput: Tensor,
  fromState: Tensor,
  inputBias: Tensor,
  stateBias: Tensor,
  hidden: Tensor,
): [next: Tensor, workspace: Tensor] {
  takesGruCellFused('gruCellFused', fromInput, fromState, inputBias, stateBias, hidden);
  checkFloat('gruCellFused', fromInput, fromState, inputBias, stateBias, hidden);
  const size = hidden.shape.at(-1) ?? 0;
  const wide = [...hidden.shape.slice(0, -1), 3 * size];
  const fits =
    hidden.rank === 2 &&
    [fromInput, fromState].every(({ shape }) => sameShape(shape, wide)) &&
    [inputBias, stateBias].every(({ shape }) => sameShape(shape, [3 * size]));
  if (!fits) {
    const given = show(fromInput, fromState, inputBias, stateBias, hidden);
    throw new TensorError(
      'E_SHAPE',
      'gruCellFused',
      `expects [B,3H], [B,3H], [3H], [3H] and [B,H]: ${given}`,
    );
  }
  const dtype = productType('gruCellFused', fromInput, fromState, hidden);
  const [next, workspace] = recordMany([fromInput, fromState, inputBias, stateBias, hidden], (b, nodes) => {
    const [p, h, c, d, held] = nodes.map((node) => cast(b, node, dtype)) as [Node, Node, Node, Node, Node];
    const biased = (x: Node, bias: Node): Node => add(b, x, broadcast(b, bias, dims(x)));
    const parts = gruPointwise(b, biased(p, c), biased(h, d), held);
    const kept = [parts.reset, parts.update, parts.candidate, held, parts.recurrent];
    return [
      parts.next,
      concat(
        b,
        kept.map((node) => cast(b, node, dtype)),
        1,
      ),
    ];
  });
  return [next!, workspace!];
}
