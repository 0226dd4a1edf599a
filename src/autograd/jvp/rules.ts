// The forward derivative of every primitive, one row per op; the type makes a missing row an error.
// Most rows say what the derivative follows from: the op itself where it is linear, the partial
// derivatives or the transpose of the reverse rule elsewhere.

import {
  add,
  binary,
  cast,
  complex,
  conj,
  div,
  expandAxes,
  fullLike,
  imag,
  real,
  reduce,
  reshape,
  unary,
  where,
  bounded,
} from '../../ir/build.ts';
import { isInexact } from '../../ir/dtype.ts';
import { dims, type GraphBuilder, type Node, type NodeOf } from '../../ir/graph.ts';
import { mapRows, type ElementwiseOp, type Op } from '../../ir/ops.ts';
import { convert, dropWhere, keepWhere, times } from '../cotangent.ts';
import { productOfOthers } from '../rules-root.ts';
import { collectiveDerivative } from '../slots.ts';
import type { JvpRule, JvpRow, Tangents } from './rule.ts';
import { transposed } from './transpose.ts';

/** A tangent, or zeros where there is none. */
function orZeros(b: GraphBuilder, tangent: Node | undefined, like: Node): Node {
  return tangent ?? fullLike(b, like, 0);
}

/** The op of all tangents, zeros where there are none: ops that are linear in all inputs together. */
const jointly: JvpRule = (b, node, tangents) =>
  b.copy(
    node as Node,
    node.inputs.map((input, i) => orZeros(b, tangents[i], input)),
  );

/** The branch taken is selected, so that nothing leaks from the other one. */
const whereRule: JvpRule<'where'> = (b, { inputs: [when] }, [, yes, no]) => {
  if (yes === undefined) return no && dropWhere(b, when!, no);
  return no === undefined ? keepWhere(b, when!, yes) : where(b, when!, yes, no);
};

const reduceRule: JvpRule<'reduce'> = (b, node, tangents) => {
  const { monoid, axes } = node.attrs;
  const [x, t] = [node.inputs[0]!, tangents[0]!];
  switch (monoid) {
    case 'sum':
      return b.copy(node as Node, [t]);
    case 'prod':
      return reduce(b, 'sum', times(b, t, productOfOthers(b, x, axes)), axes);
    // The mean over all elements that are the extremum, and NaN where that is NaN, as backwards.
    case 'min':
    case 'max': {
      const extreme = expandAxes(b, node as Node, dims(x), axes);
      const loses = monoid === 'max' ? binary(b, 'lt', x, extreme) : binary(b, 'lt', extreme, x);
      const count = reduce(b, 'sum', cast(b, unary(b, 'not', loses), x.dtype), axes);
      const mean = div(b, reduce(b, 'sum', dropWhere(b, loses, t), axes), binary(b, 'max', count, 1));
      return where(b, unary(b, 'isNan', node as Node), fullLike(b, mean, NaN), mean);
    }
    case 'and':
    case 'or':
      return undefined;
  }
};

const scanRule: JvpRule<'scan'> = (b, node, tangents) =>
  node.attrs.monoid === 'sum' ? b.copy(node as Node, [tangents[0]!]) : transposed(b, node as Node, tangents);

/** Sets and sums are linear in the operand and the updates together; places are no floats. */
const scattered = (
  b: GraphBuilder,
  node: NodeOf<'scatter'> | NodeOf<'segmentReduce'>,
  tangents: Tangents,
): Node | undefined => {
  const { mode } = node.attrs;
  if (mode !== 'set' && mode !== 'add') return transposed(b, node as Node, tangents);
  const inputs = node.inputs.map((input, i) =>
    isInexact(input.dtype) ? orZeros(b, tangents[i], input) : input,
  );
  return b.copy(node as Node, inputs);
};

const others: { readonly [K in Exclude<Op, ElementwiseOp>]: JvpRow<K> } = {
  // An identity reshape marks a variable (`distinct`), which its tangent is not.
  reshape: (b, { attrs: { shape } }, [t]) => reshape(b, t!, shape as readonly number[]),
  permute: 'linear',
  broadcast: 'linear',
  slice: 'linear',
  // The padding value is a constant.
  pad: (b, { attrs }, [t]) => b.add('pad', [t!], { ...attrs, value: 0 }) as Node,
  concat: jointly as JvpRule<'concat'>,
  window: 'linear',
  parameter: 'flat',
  constant: 'flat',
  iota: 'flat',
  randomBits: 'flat',
  rankIndex: 'flat',
  reduce: reduceRule,
  argReduce: 'flat',
  argSort: 'flat',
  radixRank: 'flat',
  scan: scanRule,
  fft: 'linear',
  fftPart: (b, node, [re, im]) => {
    const [x, y, table] = node.inputs as readonly [Node, Node, Node];
    return b.copy(node as Node, [orZeros(b, re, x), orZeros(b, im, y), table]);
  },
  dot: 'bilinear',
  conv: 'bilinear',
  gather: 'linear',
  dequantize: 'flat',
  scatter: scattered,
  permuteScatter: 'linear',
  searchSorted: 'flat',
  segmentReduce: scattered,
  scatterAddAtomic: (b, node, [, t]) => b.copy(node as Node, [node.inputs[0]!, t!]),
  jacobiRows: 'transposed',
  completeRows: 'transposed',
  factor: 'transposed',
  iterate: 'loop',
  stopGradient: 'flat',
  customVjp: 'ruled',
  barrier: (_, __, [t]) => t,
  shard: 'linear',
  toPart: 'linear',
  toWhole: 'linear',
  bounded: (b, { inputs, attrs }, [t]) => t && bounded(b, t, attrs.axis, inputs[1]!),
  complex: (b, { inputs: [x, y] }, [re, im]) => complex(b, orZeros(b, re, x!), orZeros(b, im, y!)),
  real: (b, _, [t]) => real(b, t!),
  imag: (b, _, [t]) => imag(b, t!),
  conj: (b, _, [t]) => conj(b, t!),
  allReduce: (b, node, [t]) => collectiveDerivative.value.tangent(b, node, t!),
  allGather: 'linear',
  reduceScatter: (b, node, [t]) => collectiveDerivative.value.tangent(b, node, t!),
  allToAll: 'linear',
  permuteRanks: 'linear',
  broadcastRank: 'linear',
};

/** The row of each op. Elementwise ones follow from the rows of rules-elementwise.ts. */
export const jvpRules: { readonly [K in Op]: JvpRow<K> } = {
  ...mapRows(() => 'partials' as const),
  cast: (b, { attrs: { dtype } }, [t]) => (isInexact(dtype) ? convert(b, t!, dtype) : undefined),
  where: whereRule,
  ...others,
};

/** x·dy + dx·y, of an op that is linear in each of its two inputs. */
export function bilinear(b: GraphBuilder, node: Node, [dx, dy]: Tangents): Node | undefined {
  const [x, y] = [node.inputs[0]!, node.inputs[1]!];
  const left = dx && b.copy(node, [dx, y]);
  const right = dy && b.copy(node, [x, dy]);
  return left === undefined || right === undefined ? (left ?? right) : add(b, left, right);
}
