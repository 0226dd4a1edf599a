// One spelling for what can be spelled in many ways, so that later passes match on fewer forms and
// equal expressions become one node: constants stand on the right of commutative ops, chains of
// views are one view, and a value that is the same everywhere is a rank-0 node under a single
// `broadcast`, on which arithmetic happens before it is spread.

import { permute, reshape } from '../build.ts';
import { rebuild, type Graph, type Node } from '../graph.ts';
import { facts, isElementwise, opNames } from '../ops.ts';
import { fixedShape, sameShape, type Shape } from '../shape.ts';
import { constantOf, knownShape, scalarOf, spread } from './pattern.ts';
import { rule, rulePass, selectionRules, type RewriteRule } from './rules.ts';

const commutative = opNames.filter((op) => facts(op).commutative === true);
const elementwise = opNames.filter(isElementwise);

/** Order of operands. */
const operands: readonly RewriteRule[] = [
  rule('constant-right', 'c ∘ x = x ∘ c', commutative, (node, b) => {
    const [x, y] = [node.inputs[0]!, node.inputs[1]!];
    return constantOf(x) !== undefined && constantOf(y) === undefined ? rebuild(node, [y, x], b) : undefined;
  }),
  rule('older-left', 'y ∘ x = x ∘ y', commutative, (node, b) => {
    const [x, y] = [node.inputs[0]!, node.inputs[1]!];
    const constants = Number(constantOf(x) !== undefined) + Number(constantOf(y) !== undefined);
    return constants !== 1 && x.id > y.id ? rebuild(node, [y, x], b) : undefined;
  }),
];

/** Values that are the same everywhere. */
const uniform: readonly RewriteRule[] = [
  rule('hoist-scalars', 'f(spread a, spread b) = spread f(a, b)', elementwise, (node, b) => {
    if (node.shape.length === 0) return undefined;
    const scalars: Node[] = [];
    for (const input of node.inputs) {
      const scalar = scalarOf(input);
      if (scalar === undefined) return undefined;
      scalars.push(scalar);
    }
    return spread(b, rebuild(node, scalars, b), node.shape);
  }),
  rule(
    'view-of-spread',
    'view(spread a) = spread a',
    ['reshape', 'permute', 'slice', 'window', 'broadcast'],
    (node, b) => {
      const scalar = scalarOf(node.inputs[0]!);
      // A broadcast of a scalar is the canonical form itself.
      if (scalar === undefined || (node.op === 'broadcast' && scalar === node.inputs[0])) return undefined;
      return spread(b, scalar, node.shape);
    },
  ),
];

/** Views that change nothing. */
const idle: readonly RewriteRule[] = [
  rule('idle-view', 'view(x) = x where it moves nothing', ['reshape', 'broadcast', 'cast'], (node) => {
    const x = node.inputs[0]!;
    return x.dtype === node.dtype && sameShape(x.shape, node.shape) ? x : undefined;
  }),
  rule('idle-bitcast', 'bitcast(x) to its own dtype = x', 'bitcast', (node) =>
    node.inputs[0]!.dtype === node.dtype ? node.inputs[0] : undefined,
  ),
  rule('idle-permute', 'permute(x, [0, 1, …]) = x', 'permute', ({ inputs, attrs }, b) =>
    permute(b, inputs[0]!, attrs.order) === inputs[0] ? inputs[0] : undefined,
  ),
];

/** Two views that compose to one. */
const merged: readonly RewriteRule[] = [
  rule('reshape-reshape', 'reshape(reshape x) = reshape x', 'reshape', (node, b) => {
    const x = node.inputs[0]!;
    return x.op === 'reshape' ? reshape(b, x.inputs[0]!, fixedShape(node.shape, node.op)) : undefined;
  }),
  rule('permute-permute', 'permute(permute(x, p), q) = permute(x, p∘q)', 'permute', (node, b) => {
    const x = node.inputs[0]!;
    if (x.op !== 'permute') return undefined;
    return permute(
      b,
      x.inputs[0]!,
      node.attrs.order.map((axis) => x.attrs.order[axis]!),
    );
  }),
  rule('broadcast-broadcast', 'broadcast(broadcast x) = broadcast x', 'broadcast', (node, b) => {
    const x = node.inputs[0]!;
    return x.op === 'broadcast' ? (b.add('broadcast', x.inputs, node.attrs) as Node) : undefined;
  }),
];

/**
 * Axes of size 1: adding, dropping and moving them is a reshape, except that one element is spread
 * as a scalar.
 */
const unitAxes: readonly RewriteRule[] = [
  rule('permute-unit-axes', 'permute(x) = reshape x where only size-1 axes move', 'permute', (node, b) => {
    const x = node.inputs[0]!;
    const shape = knownShape(node);
    const moving = node.attrs.order.filter((axis) => x.shape[axis] !== 1);
    const ordered = moving.every((axis, i) => i === 0 || moving[i - 1]! < axis);
    return ordered && shape !== undefined ? reshape(b, x, shape) : undefined;
  }),
  rule('broadcast-unit-axes', 'broadcast(x) = reshape x where nothing stretches', 'broadcast', (node, b) => {
    const x = node.inputs[0]!;
    const shape = knownShape(node);
    if (shape === undefined || (x.shape.length === 0 && x.op !== 'reshape')) return undefined;
    const extra = shape.slice(0, shape.length - x.shape.length);
    const stretches = extra.some((dim) => dim !== 1) || !sameShape(x.shape, shape.slice(extra.length));
    return stretches ? undefined : reshape(b, x, shape);
  }),
  rule(
    'broadcast-one',
    'broadcast(x) = spread(reshape x) where x has one element',
    'broadcast',
    (node, b) => {
      const x = node.inputs[0]!;
      const isScalarLike = x.shape.length > 0 && x.shape.every((dim) => dim === 1);
      return isScalarLike ? spread(b, reshape(b, x, []), node.shape) : undefined;
    },
  ),
  rule(
    'broadcast-reshape',
    'broadcast(reshape x) = broadcast x where it adds leading 1s',
    'broadcast',
    (node, b) => {
      const x = node.inputs[0]!;
      if (x.op !== 'reshape' || x.shape.length === 0) return undefined;
      const from = x.inputs[0]!;
      if (from.shape.length > node.shape.length) return undefined;
      if (!sameShape(withoutLeadingOnes(from.shape), withoutLeadingOnes(x.shape))) return undefined;
      return b.add('broadcast', [from], node.attrs) as Node;
    },
  ),
];

function withoutLeadingOnes(shape: Shape): Shape {
  const first = shape.findIndex((dim) => dim !== 1);
  return first < 0 ? [] : shape.slice(first);
}

/** The rules, in the order they are tried. */
export const canonicalRules: readonly RewriteRule[] = [
  ...idle,
  ...operands,
  ...merged,
  ...uniform,
  ...unitAxes,
];

/** Brings every node to its canonical form. */
export const canonicalise: (graph: Graph) => Graph = rulePass(
  'canonicalise',
  canonicalRules,
  selectionRules.canonicalise,
);
