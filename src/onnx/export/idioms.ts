// Operations that the format has one node for where the graph has many: activations, softmax,
// normalisations. Each row guesses from a node which call of which operation it may be the result
// of; pattern.ts tells whether it is.

import { isFloat, largestOf } from '../../ir/dtype.ts';
import { dims, type Node } from '../../ir/graph.ts';
import type { Op } from '../../ir/ops.ts';
import { constantOf } from '../../ir/passes/pattern.ts';
import { sameShape, sizeOf, type FixedShape } from '../../ir/shape.ts';
import * as sn from '../../operations/index.ts';
import { attentionWeights } from '../../tensor/ops/product/attention-weights.ts';
import { apply } from '../../tensor/ops/operand.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import type { AttributeValues, ModelEmitter, Val } from './emitter.ts';
import { operandsOf, type Candidate } from './pattern.ts';
import type { ExportScope } from './row.ts';

interface Idiom extends Candidate {
  readonly spell: (e: ModelEmitter, ...operands: Val[]) => Val;
}

type Guess = (node: Node) => Idiom | undefined;

/** An elementwise operation of one operand and of no settings, as one node. */
const activation =
  (op: string, call: (x: Tensor) => Tensor, attributes: AttributeValues = {}): Guess =>
  (node) => ({
    key: `${op} ${JSON.stringify(attributes)}`,
    operands: [{ dtype: node.dtype, shape: dims(node) }],
    call,
    spell: (e, x) => e.map(op, [x], attributes),
  });

/** A test of f32 by its bits. */
const testOfFloat =
  (key: string, call: (x: Tensor) => Tensor, spell: (e: ModelEmitter, x: Val) => Val): Guess =>
  (node) => ({ key, operands: [{ dtype: 'f32', shape: dims(node) }], call, spell });

/** The constant at the end of a path through inputs. */
function constantAt(node: Node, ...path: readonly number[]): number | undefined {
  let at: Node | undefined = node;
  for (const input of path) at = at?.inputs[input];
  const known = at === undefined ? undefined : constantOf(at);
  return typeof known === 'number' ? known : undefined;
}

/** The first node of an op, following inputs from the first one on, at most so far. */
function find(node: Node, op: Op, depth: number): Node | undefined {
  if (node.op === op) return node;
  if (depth === 0) return undefined;
  for (const input of node.inputs) {
    const found = find(input, op, depth - 1);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The axes of the nearest fold, if it is of something in this shape. */
function foldedAxes(node: Node, shape: FixedShape, depth: number): readonly number[] | undefined {
  const fold = find(node, 'reduce', depth);
  return fold?.op === 'reduce' && sameShape(fold.inputs[0]!.shape, shape) ? fold.attrs.axes : undefined;
}

const leakyRelu: Guess = (node) => {
  const slope = constantAt(node, 2, 1);
  if (slope === undefined || !Number.isFinite(slope)) return undefined;
  return activation('LeakyRelu', (x) => sn.leakyRelu(x, slope), { alpha: { float: slope } })(node);
};

/** Between two numbers, as `clamp` or as `relu6` and `hardtanh` have it. */
const clip =
  (
    call: (x: Tensor, low: number, high: number) => Tensor,
    at: (node: Node) => readonly [number | undefined, number | undefined],
  ): Guess =>
  (node) => {
    const [low, high] = at(node);
    if (low === undefined || high === undefined || !(low < high) || !isFloat(node.dtype)) return undefined;
    const { dtype } = node;
    return {
      key: `Clip ${low} ${high} ${call.name}`,
      operands: [{ dtype, shape: dims(node) }],
      call: (x) => call(x, low, high),
      spell: (e, x) => e.map('Clip', [x, e.scalar(low, dtype), e.scalar(high, dtype)]),
    };
  };

const softmax =
  (op: 'Softmax' | 'LogSoftmax', call: (x: Tensor, axes: readonly number[]) => Tensor): Guess =>
  (node) => {
    const shape = dims(node);
    const axes = foldedAxes(node.inputs[1]!, shape, 4);
    const axis = axes?.[0];
    if (axes?.length !== 1 || axis === undefined) return undefined;
    return {
      key: `${op} ${axis}`,
      operands: [{ dtype: node.dtype, shape }],
      call: (x) => call(x, axes),
      spell: (e, x) => e.move(op, [e.expand(x, shape)], shape, { axis }),
    };
  };

/** The weights of attention under a mask: a row whose keys are all masked has weights of 0. */
const maskedSoftmax: Guess = (node) => {
  const shape = dims(node);
  if (node.inputs[0]!.op !== 'where' || shape.length === 0) return undefined;
  const { dtype } = node;
  return {
    key: 'masked Softmax',
    operands: [
      { dtype, shape },
      { dtype: 'bool', shape },
    ],
    call: (scores, seen) => apply([scores, seen], (b, x, mask) => attentionWeights(b, x, mask, false)),
    spell: (e, scores, seen) => {
      const visible = e.expand(e.where(seen, scores, e.scalar(-largestOf(dtype), dtype)), shape);
      const weights = e.move('Softmax', [visible], shape, { axis: shape.length - 1 });
      return e.where(seen, weights, e.scalar(0, dtype));
    },
  };
};

/** What is added to the variance under the root. */
function epsilonOf(node: Node): number | undefined {
  const root = find(node, 'rsqrt', 6);
  const eps = root === undefined ? undefined : constantAt(root, 0, 1);
  return eps !== undefined && eps >= 0 && eps < Infinity ? eps : undefined;
}

/** With a scale and a shift, or without. */
const layerNorm =
  (parameters: 0 | 1 | 2): Guess =>
  (node) => {
    const eps = epsilonOf(node);
    const root = eps === undefined ? undefined : find(node, 'rsqrt', 6);
    const shape = dims(node);
    const axes = root === undefined ? undefined : foldedAxes(root, shape, 5);
    const axis = axes?.[0];
    if (eps === undefined || axis === undefined || axes?.length !== shape.length - axis) return undefined;
    const { dtype } = node;
    const own = shape.slice(axis);
    const trailing = { dtype, shape: own };
    return {
      key: `LayerNormalization ${axis} ${eps} ${parameters}`,
      operands: [{ dtype, shape }, ...[trailing, trailing].slice(0, parameters)],
      call: (x, weight, bias) => sn.layerNorm(x, own, weight, bias, { eps }),
      spell: (e, x, weight, bias) => {
        const ones = (): Val => e.constant(dtype, own, new Float32Array(sizeOf(own)).fill(1), 'ones');
        const scale = weight === undefined ? ones() : e.expand(weight, own);
        const inputs = [e.expand(x, shape), scale, ...(bias === undefined ? [] : [e.expand(bias, own)])];
        return e.node('LayerNormalization', inputs, { dtype, shape }, { axis, epsilon: { float: eps } });
      },
    };
  };

/** A value per channel, in front of the other axes. */
const perChannel = (x: Tensor, values: Tensor): Tensor =>
  sn.reshape(values, [values.size, ...x.shape.slice(2).map(() => 1)]);

/** By given statistics: as `batchNorm` records it, and as models are imported. */
const batchNorm =
  (form: 'ours' | 'imported'): Guess =>
  (node) => {
    const eps = epsilonOf(node);
    const shape = dims(node);
    const channels = shape[1];
    if (eps === undefined || channels === undefined) return undefined;
    const { dtype } = node;
    const each = { dtype, shape: [channels] };
    const ours = (x: Tensor, ...[mean, variance, weight, bias]: Tensor[]): Tensor =>
      sn.batchNorm(x, mean, variance, weight, bias, { eps })[0];
    const imported = (x: Tensor, ...[mean, variance, weight, bias]: Tensor[]): Tensor => {
      const of = (values: Tensor | undefined): Tensor => perChannel(x, values!);
      const scale = sn.mul(sn.rsqrt(sn.add(of(variance), eps)), of(weight));
      return sn.add(sn.mul(sn.sub(x, of(mean)), scale), of(bias));
    };
    return {
      key: `BatchNormalization ${form} ${eps}`,
      operands: [{ dtype, shape }, each, each, each, each],
      call: form === 'ours' ? ours : imported,
      spell: (e, x, ...statistics) => {
        const [mean, variance, weight, bias] = statistics.map((values) => e.expand(values, [channels]));
        const inputs = [e.expand(x, shape), weight, bias, mean, variance];
        return e.node('BatchNormalization', inputs, { dtype, shape }, { epsilon: { float: eps } });
      },
    };
  };

const guesses: Readonly<Partial<Record<Op, readonly Guess[]>>> = {
  where: [
    activation('Relu', sn.relu),
    activation('Sigmoid', sn.sigmoid),
    leakyRelu,
    activation('Elu', (x) => sn.elu(x)),
    clip(
      (x, low, high) => sn.clamp(x, low, high),
      (node) => [constantAt(node, 1, 0, 0), constantAt(node, 0, 1)],
    ),
    clip(
      (x, low, high) => sn.hardtanh(x, low, high),
      (node) => [constantAt(node, 1), constantAt(node, 2, 1)],
    ),
  ],
  mul: [
    activation('Gelu', (x) => sn.gelu(x)),
    activation('Gelu', (x) => sn.gelu(x, { approximate: 'tanh' }), { approximate: 'tanh' }),
    layerNorm(0),
    layerNorm(1),
  ],
  add: [
    activation('Softplus', (x) => sn.softplus(x)),
    layerNorm(2),
    batchNorm('ours'),
    batchNorm('imported'),
  ],
  div: [softmax('Softmax', sn.softmax), maskedSoftmax],
  sub: [softmax('LogSoftmax', sn.logSoftmax)],
  eq: [testOfFloat('IsInf', sn.isInf, (e, x) => e.test('IsInf', [x]))],
  ne: [
    testOfFloat('IsFinite', sn.isFinite, (e, x) =>
      e.map('Not', [e.map('Or', [e.test('IsInf', [x]), e.test('IsNaN', [x])])]),
    ),
  ],
};

/**
 * The one node for a node of the graph that is the result of a whole operation; undefined where
 * there is none.
 */
export function idiomOf({ e, compact, patterns }: ExportScope, node: Node): Val | undefined {
  // 16-bit floats are widened around formulas, and ONNX Runtime has many of these operators for f32
  // alone.
  const isTest = node.op === 'eq' || node.op === 'ne';
  if (isTest ? node.inputs[0]!.dtype !== 'u32' : node.dtype !== 'f32') return undefined;
  for (const guess of guesses[node.op] ?? []) {
    const idiom = guess(node);
    const operands = idiom === undefined ? undefined : operandsOf(node, idiom, patterns);
    if (idiom !== undefined && operands !== undefined) return idiom.spell(e, ...operands.map(compact));
  }
  return undefined;
}
