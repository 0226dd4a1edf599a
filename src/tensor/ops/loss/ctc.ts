// Connectionist temporal classification (Graves et al., 2006): the probability of all alignments of
// labels to steps, by the forward recursion in logarithms. The recursion is written out, one kernel
// a step forward and two backward; what is no alignment has a large negative logarithm, not −∞, so
// that its derivative is 0 and no shader needs infinities.

import type { FloatDType } from '../../../ir/dtype.ts';
import { showValue, TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import {
  add,
  binary,
  broadcast,
  cast,
  div,
  full,
  fullLike,
  mul,
  neg,
  reduce,
  reshape,
  sub,
  unary,
  where,
} from '../../../ir/build.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import { watchRange } from '../../debug.ts';
import { aTensor } from '../../expect.ts';
import { Tensor } from '../../tensor.ts';
import * as formula from '../../formula/elementwise.ts';
import { tensor } from '../creation/creation.ts';
import { lossOptions, reduced, type LossOptions } from '../loss-reduction.ts';
import { apply, casted, checkCount, checkFloat, checkInteger, show } from '../operand.ts';
import { padConstant, sliceAxis } from '../../formula/layout.ts';

export interface CtcOptions extends LossOptions {
  /** The class that stands for no label; 0 by default. */
  readonly blank?: number;
  /** Losses that are infinite, of labels that do not fit their steps, are 0; false by default. */
  readonly zeroInfinity?: boolean;
}

/** How many steps or labels each sample has. */
export type Lengths = Tensor | number | readonly number[];

const numbers = arg.sizes(0);
const lengths: arg.Kind<Lengths> = {
  accepts: (value) => aTensor.accepts(value) || numbers.accepts(value),
  refuse: (op, what, value) =>
    value instanceof Tensor ? aTensor.refuse(op, what, value) : numbers.refuse(op, what, value),
};

/** @internal */
export const ctcOptions: arg.Table<CtcOptions> = {
  ...lossOptions,
  blank: arg.count(0),
  zeroInfinity: arg.flag,
};
const takesCtc = arg.takes<typeof ctcLoss>(
  ['the log-probabilities', aTensor],
  ['the targets', aTensor],
  ['the input lengths', lengths],
  ['the target lengths', lengths],
  ['options', arg.options<CtcOptions>(ctcOptions)],
);

/** The logarithm of an impossible alignment, far below that of any possible one. */
const impossible = -1e30;

/** log Σ eˣ of nodes of one shape, none of them infinite. */
function logSum(b: GraphBuilder, ...parts: readonly Node[]): Node {
  const shift = formula.stopGradient(
    b,
    parts.reduce((p, q) => binary(b, 'max', p, q)),
  );
  const total = parts.map((x) => unary(b, 'exp', sub(b, x, shift))).reduce((p, q) => add(b, p, q));
  return add(b, unary(b, 'log', total), shift);
}

/** Moved `by` places along the last axis; what comes in is impossible. */
function shifted(b: GraphBuilder, x: Node, by: number): Node {
  const last = dims(x).length - 1;
  const size = dims(x)[last]!;
  if (by >= size) return fullLike(b, x, impossible);
  const none = dims(x).map(() => 0);
  return padConstant(b, sliceAxis(b, x, last, 0, size - by), none.with(last, by), none, impossible);
}

/** Lengths as an i32 tensor [N], and the greatest where the host knows it. */
function lengthsOf(
  op: string,
  what: string,
  given: Lengths,
  batch: number,
): { values: Tensor; greatest: number | undefined } {
  if (given instanceof Tensor) {
    checkInteger(op, what, given);
    if (given.size !== batch || given.rank > 1)
      throw new TensorError('E_SHAPE', op, `${what} must be [${batch}]: ${show(given)}`);
    return { values: given, greatest: undefined };
  }
  const list = typeof given === 'number' ? [given] : Array.from(given);
  list.forEach((length) => checkCount(op, what, length));
  if (list.length !== batch)
    throw new TensorError('E_SHAPE', op, `${what} must be ${batch} numbers: ${showValue(given)}`);
  return {
    values: tensor(Int32Array.from(list)),
    greatest: list.reduce((p, q) => Math.max(p, q), 0),
  };
}

/** The labels as [N, S]: given so, or one sample after another. */
function labelRows(b: GraphBuilder, targets: Node, counts: Node, batch: number, width: number): Node {
  const narrow = cast(b, formula.narrowIndex(b, targets), 'i32');
  if (dims(narrow).length === 2) return sliceAxis(b, narrow, 1, 0, width);
  const total = dims(narrow)[0]!;
  const shape = [batch, width];
  const ends = b.add('scan', [counts], {
    monoid: 'sum',
    axis: 0,
    reverse: false,
    exclusive: true,
  }) as Node;
  const starts = broadcast(b, reshape(b, ends, [batch, 1]), shape);
  const at = binary(b, 'min', add(b, starts, formula.iota(b, shape, 1)), Math.max(0, total - 1));
  const flat = b.add('gather', [narrow, reshape(b, at, [batch * width])], { axis: 0 }) as Node;
  return reshape(b, flat, shape);
}

/**
 * −log of the probability that log-probabilities [T, N, C] (or [T, C]) spell the targets: [N, S],
 * or all samples' labels one after another. `mean` divides each sample's loss by its number of
 * labels. A label that comes twice in a row needs a blank between. As in PyTorch the gradient is
 * that of the logits before `logSoftmax`, from which the log-probabilities must come.
 *
 * @example
 * const steps = sn.logSoftmax(sn.linspace(0, 11, 12).reshape([4, 1, 3]), 2);
 * const word = sn.tensor([[1, 2]], { dtype: 'i32' });
 * sn.ctcLoss(steps, word, 4, 2);
 */
export function ctcLoss(
  logProbs: Tensor,
  targets: Tensor,
  inputLengths: Lengths,
  targetLengths: Lengths,
  options: CtcOptions = {},
): Tensor<FloatDType> {
  takesCtc('ctcLoss', logProbs, targets, inputLengths, targetLengths, options);
  const op = 'ctcLoss';
  const { blank = 0, zeroInfinity = false, reduction = 'mean' } = options;
  checkFloat(op, logProbs);
  checkInteger(op, 'the targets', targets);
  const isBatched = logProbs.rank === 3;
  if (logProbs.rank !== 3 && logProbs.rank !== 2)
    throw new TensorError('E_SHAPE', op, `expects log-probabilities [T,N,C] or [T,C]: ${show(logProbs)}`);
  const [steps, batch, classes] = (
    isBatched ? logProbs.shape : [logProbs.shape[0]!, 1, logProbs.shape[1]!]
  ) as readonly [number, number, number];
  if (steps === 0 || blank >= classes)
    throw new TensorError('E_VALUE', op, `class ${blank} is to be the blank: ${show(logProbs)}`);
  const isPadded = targets.rank === 2;
  if (targets.rank !== 1 && !(isPadded && targets.shape[0] === batch))
    throw new TensorError(
      'E_SHAPE',
      op,
      `expects targets [${batch},S] or [sum of lengths]: ${show(targets)}`,
    );
  const inputs = lengthsOf(op, 'the input lengths', inputLengths, batch);
  const labels = lengthsOf(op, 'the target lengths', targetLengths, batch);
  const room = targets.shape.at(-1)!;
  const width = labels.greatest ?? room;
  if (width > room || (inputs.greatest ?? 0) > steps) {
    const problem = `lengths reach beyond ${show(logProbs)} or ${show(targets)}`;
    throw new TensorError('E_SHAPE', op, problem);
  }
  watchRange(op, 'input length', inputs.values, 0, steps + 1, `the ${steps} steps of ${show(logProbs)}`);
  watchRange(op, 'target length', labels.values, 0, room + 1, `the labels of ${show(targets)}`);
  return apply([casted(op, logProbs), targets, inputs.values, labels.values], (b, node, words, ins, outs) =>
    formula.widened(b, node, (wide) => {
      const logp = reshape(b, wide, [steps, batch, classes]);
      const counts = reshape(b, cast(b, formula.narrowIndex(b, outs), 'i32'), [batch]);
      const spelled = labelRows(b, words, counts, batch, width);
      const lengthOf = reshape(b, cast(b, formula.narrowIndex(b, ins), 'i32'), [batch]);
      const losses = alignments(b, logp, spelled, lengthOf, counts, blank);
      const isLost = binary(b, 'lt', fullLike(b, losses, -impossible / 2), losses);
      const lost = fullLike(b, losses, zeroInfinity ? 0 : Infinity);
      const known = where(b, isLost, lost, losses);
      // d log softmax takes the sum of the cotangents off, so that this term, which is 0, gives the
      // same to the logits; PyTorch's gradient has it.
      const seen = binary(
        b,
        'lt',
        formula.iota(b, dims(logp), 0),
        broadcast(b, reshape(b, lengthOf, [1, batch, 1]), dims(logp)),
      );
      const usable = binary(
        b,
        'and',
        seen,
        broadcast(b, reshape(b, unary(b, 'not', isLost), [1, batch, 1]), dims(logp)),
      );
      const mass = where(b, usable, unary(b, 'exp', logp), fullLike(b, logp, 0));
      const nothing = reduce(b, 'sum', sub(b, mass, formula.stopGradient(b, mass)), [0, 2]);
      const whole = add(b, known, nothing);
      if (reduction !== 'mean') return reduced(b, isBatched ? whole : reshape(b, whole, []), reduction);
      const share = cast(b, binary(b, 'max', counts, 1), whole.dtype);
      return reduced(b, div(b, whole, share), 'mean');
    }),
  );
}

/** −log of the probability of all alignments, [N]; about −`impossible` where there is none. */
function alignments(
  b: GraphBuilder,
  logp: Node,
  labels: Node,
  inputLengths: Node,
  labelLengths: Node,
  blank: number,
): Node {
  const [steps, batch] = dims(logp) as [number, number, number];
  const width = dims(labels)[1]!;
  // Blanks around every label: blank, label, blank, …, blank.
  const states = 2 * width + 1;
  const shape = [batch, states];
  const interleaved = b.add('pad', [labels], {
    low: [0, 1],
    high: [0, 1],
    interior: [0, 1],
    value: blank,
  }) as Node;
  const spelled = width === 0 ? full(b, shape, blank, 'i32') : interleaved;
  const all = [steps, batch, states];
  const index = broadcast(b, reshape(b, spelled, [1, batch, states]), all);
  const read = b.add('gather', [logp, index], { axis: 2 }) as Node;
  const emitted = binary(b, 'max', read, impossible);
  // Two states may be passed over where that leaves out the blank between different labels.
  const place = formula.iota(b, shape, 1);
  const isLabel = binary(b, 'eq', binary(b, 'mod', place, 2), 1);
  const before =
    width === 0 ? spelled : padConstant(b, sliceAxis(b, spelled, 1, 0, states - 2), [0, 2], [0, 0], -1);
  const mayPass = binary(b, 'and', isLabel, binary(b, 'ne', spelled, before));
  const lowest = full(b, shape, impossible, logp.dtype);
  const step = (t: number): Node => reshape(b, sliceAxis(b, emitted, 0, t, 1), shape);
  let alpha = where(b, binary(b, 'lt', place, 2), step(0), lowest);
  for (let t = 1; t < steps; t++) {
    const passed = where(b, mayPass, shifted(b, alpha, 2), lowest);
    const next = add(b, logSum(b, alpha, shifted(b, alpha, 1), passed), step(t));
    const runs = binary(b, 'lt', full(b, [batch], t, 'i32'), inputLengths);
    alpha = where(b, broadcast(b, reshape(b, runs, [batch, 1]), shape), next, alpha);
  }
  const last = mul(b, labelLengths, 2);
  const end = reshape(b, formula.pick(b, alpha, last, 1), [batch]);
  const label = reshape(b, formula.pick(b, alpha, sub(b, last, 1), 1), [batch]);
  // No labels: the place before the first state is none, and its sum 0 stands for nothing.
  const hasLabel = binary(b, 'lt', fullLike(b, labelLengths, 0), labelLengths);
  const either = where(b, hasLabel, label, full(b, [batch], impossible, alpha.dtype));
  const loss = neg(b, logSum(b, end, either));
  // No steps spell no labels, and nothing else.
  const unread = where(b, hasLabel, fullLike(b, loss, -impossible), fullLike(b, loss, 0));
  const hasSteps = binary(b, 'lt', fullLike(b, inputLengths, 0), inputLengths);
  return where(b, hasSteps, loss, unread);
}
