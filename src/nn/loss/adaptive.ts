// A softmax over many classes of which few are frequent (Grave et al., 2017): the frequent ones and a
// class for each cluster of rarer ones in a head, and clusters as products of ever fewer ranks.

import { TensorError } from '../../errors.ts';
import * as arg from '../../ir/arguments.ts';
import { aTensor } from '../../tensor/expect.ts';
import { watchRange } from '../../tensor/debug.ts';
import { add, sub } from '../../tensor/ops/elementwise/arithmetic.ts';
import { ge, where } from '../../tensor/ops/elementwise/compare.ts';
import { cast } from '../../tensor/ops/elementwise/cast.ts';
import { clamp, neg } from '../../tensor/ops/elementwise/elementwise.ts';
import { checkFloat, checkInteger, show } from '../../tensor/ops/operand.ts';
import { argmax } from '../../tensor/ops/reduce/extremum.ts';
import { mean } from '../../tensor/ops/reduce/reduce.ts';
import { logSoftmax } from '../../tensor/ops/reduce/softmax.ts';
import { gather } from '../../tensor/ops/shape/gather.ts';
import { narrow } from '../../tensor/ops/shape/indexing.ts';
import { cat } from '../../tensor/ops/shape/join.ts';
import { squeeze, unsqueeze } from '../../tensor/ops/shape/view.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { initOptions, type InitOptions } from '../init.ts';
import { Linear } from '../linear.ts';
import { Module } from '../module.ts';
import { Sequential } from '../sequential.ts';

export interface AdaptiveLogSoftmaxOptions extends InitOptions {
  /** Cluster i has inputs / divValue^(i + 1) ranks, rounded down; 4 by default. */
  readonly divValue?: number;
  /** Whether the head has a bias; false by default. */
  readonly headBias?: boolean;
}

/** What `AdaptiveLogSoftmaxWithLoss` gives. */
export interface AdaptiveLoss {
  /** The logarithm of each target's probability: [N], or [] of a single row. */
  readonly output: Tensor;
  /** The mean of −output. */
  readonly loss: Tensor;
}

const takesAdaptive = arg.takes<typeof AdaptiveLogSoftmaxWithLoss>(
  ['the number of inputs', arg.count(1)],
  ['the number of classes', arg.count(2)],
  ['the cutoffs', arg.listOf(arg.count(1))],
  [
    'options',
    arg.options<AdaptiveLogSoftmaxOptions>({ ...initOptions, divValue: arg.positive, headBias: arg.flag }),
  ],
);
const takesTargets = arg.takes<(x: Tensor, target: Tensor) => AdaptiveLoss>(
  ['x', aTensor],
  ['the targets', aTensor],
);

const name = 'AdaptiveLogSoftmaxWithLoss';

/**
 * −log of the probability of classes that are sorted by how frequent they are, the first most: those
 * below the first cutoff are in the head, those up to each next cutoff in a cluster. Every cluster is
 * computed for every row, since a program has no rows that the data chooses.
 */
export class AdaptiveLogSoftmaxWithLoss extends Module {
  readonly classes: number;
  readonly cutoffs: readonly number[];
  readonly head: Linear;
  readonly tail: readonly Sequential[];

  constructor(
    inputs: number,
    classes: number,
    cutoffs: readonly number[],
    options: AdaptiveLogSoftmaxOptions = {},
  ) {
    takesAdaptive(name, inputs, classes, cutoffs, options);
    const ascends = cutoffs.every((at, i) => at > (cutoffs[i - 1] ?? 0) && at < classes);
    if (!ascends || cutoffs.length === 0) {
      const problem = `cutoffs must ascend from 1 to ${classes - 1}: [${cutoffs.join(',')}]`;
      throw new TensorError('E_VALUE', name, problem);
    }
    super();
    const { divValue = 4, headBias = false, ...init } = options;
    this.classes = classes;
    this.cutoffs = [...cutoffs];
    const ends = [...cutoffs.slice(1), classes];
    this.head = new Linear(inputs, cutoffs[0]! + ends.length, { ...init, bias: headBias });
    this.tail = ends.map((end, i) => {
      const rank = Math.floor(inputs / divValue ** (i + 1));
      if (rank < 1) {
        const problem = `cluster ${i} of ${inputs} inputs has no rank left`;
        throw new TensorError('E_VALUE', name, problem, 'a smaller divValue, or fewer cutoffs');
      }
      const plain = { ...init, bias: false };
      return new Sequential(new Linear(inputs, rank, plain), new Linear(rank, end - cutoffs[i]!, plain));
    });
  }

  /** Rows [N, inputs] and integer classes [N], or one row [inputs] and a class []. */
  forward(x: Tensor, target: Tensor): AdaptiveLoss {
    takesTargets(name, x, target);
    checkFloat(name, x);
    checkInteger(name, 'the targets', target);
    const isOne = target.rank === 0 && x.rank === 1;
    if (!isOne && (x.rank !== 2 || target.rank !== 1 || x.shape[0] !== target.shape[0])) {
      const problem = `expects [N,inputs] and [N], or [inputs] and []: ${show(x, target)}`;
      throw new TensorError('E_SHAPE', name, problem);
    }
    watchRange(name, 'label', target, 0, this.classes, `the ${this.classes} classes`);
    const rows = isOne ? unsqueeze(x, 0) : x;
    const labels = cast(isOne ? unsqueeze(target, 0) : target, 'i32');
    const [first, ...later] = this.cutoffs as readonly [number, ...number[]];
    // Where a row's class stands in the head: itself, or its cluster.
    let place: Tensor = labels;
    let inside: Tensor | undefined;
    [first, ...later].forEach((from, i) => {
      const isHere = ge(labels, from);
      place = where(isHere, first + i, place);
      const size = (this.cutoffs[i + 1] ?? this.classes) - from;
      const own = clamp(sub(labels, from), 0, size - 1);
      const chosen = picked(this.inCluster(rows, i), own);
      inside = where(isHere, chosen, inside ?? 0);
    });
    const output = add(picked(logSoftmax(this.head.forward(rows), -1), place), inside!);
    return { output: isOne ? squeeze(output, 0) : output, loss: neg(mean(output)) };
  }

  /** The logarithm of the probability of every class: [N, classes] for rows [N, inputs]. */
  logProb(x: Tensor): Tensor {
    checkFloat(name, x);
    const inHead = logSoftmax(this.head.forward(x), -1);
    const first = this.cutoffs[0]!;
    const clusters = this.tail.map((_, i) => add(this.inCluster(x, i), narrow(inHead, -1, first + i, 1)));
    return cat([narrow(inHead, -1, 0, first), ...clusters], -1);
  }

  /** The most probable class of each row (i32). */
  predict(x: Tensor): Tensor {
    return argmax(this.logProb(x), -1);
  }

  private inCluster(x: Tensor, i: number): Tensor {
    return logSoftmax(this.tail[i]!.forward(x) as Tensor, -1);
  }
}

/** The element of each row at its place. */
function picked(rows: Tensor, place: Tensor): Tensor {
  return squeeze(gather(rows, -1, unsqueeze(place, -1)), -1);
}
