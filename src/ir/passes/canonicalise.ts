// One spelling for what can be spelled in many ways, so that later passes match on fewer forms and
// equal expressions become one node: constants stand on the right of commutative ops, chains of
// views are one view, and a value that is the same everywhere is a rank-0 node under a single
// `broadcast`, on which arithmetic happens before it is spread.

import { permute, reshape, slice } from '../build.ts';
import { rebuild, type Graph, type Node } from '../graph.ts';
import { facts, isElementwise, opNames } from '../ops.ts';
import { fixedShape, sameShape, type Shape } from '../shape.ts';
import { constantOf, held, knownShape, scalarOf, spread } from './pattern.ts';
import { rule, rulePass, type RewriteRule } from './rules.ts';

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
  rule('pad-spread', 'pad(spread c, c) = spread c', 'pad', (node, b) => {
    const x = node.inputs[0]!;
    return Object.is(constantOf(x), held(node.attrs.value, node.dtype))
      ? spread(b, scalarOf(x)!, node.shape)
      : undefined;
  }),
  rule('concat-spread', 'concat(spread a, spread a) = spread a', 'concat', (node, b) => {
    const scalar = scalarOf(node.inputs[0]!);
    const same = scalar !== undefined && node.inputs.every((input) => scalarOf(input) === scalar);
    return same ? spread(b, scalar, node.shape) : undefined;
  }),
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
  rule('idle-slice', 'x[0:n] = x', 'slice', ({ inputs, attrs: { start, size, step } }, b) =>
    slice(b, inputs[0]!, start, size, step) === inputs[0] ? inputs[0] : undefined,
  ),
  rule('idle-pad', 'pad(x) by nothing = x', 'pad', ({ inputs, attrs: { low, high, interior } }) => {
    const shape = inputs[0]!.shape;
    const nothing = shape.every(
      (dim, axis) => low[axis] === 0 && high[axis] === 0 && (interior[axis] === 0 || dim === 0 || dim === 1),
    );
    return nothing ? inputs[0] : undefined;
  }),
  rule('concat-empty-part', 'concat(x, empty, y) = concat(x, y)', 'concat', (node, b) => {
    const { axis } = node.attrs;
    if (node.inputs.length === 1) return node.inputs[0];
    const filled = node.inputs.filter((input) => input.shape[axis] !== 0);
    if (filled.length === node.inputs.length) return undefined;
    return filled.length === 0 ? node.inputs[0] : rebuild(node, filled, b);
  }),
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
  rule('slice-slice', 'x[s::p][t::q] = x[s + t·p :: p·q]', 'slice', (node, b) => {
    const x = node.inputs[0]!;
    if (x.op !== 'slice') return undefined;
    const [inner, outer] = [x.attrs, node.attrs];
    const start = outer.start.map((at, axis) => inner.start[axis]! + at * inner.step[axis]!);
    const step = outer.step.map((by, axis) => by * inner.step[axis]!);
    return slice(b, x.inputs[0]!, start, outer.size, step);
  }),
  rule('pad-pad', 'pad(pad(x, l, h), l′, h′) = pad(x, l + l′, h + h′)', 'pad', (node, b) => {
    const x = node.inputs[0]!;
    if (x.op !== 'pad') return undefined;
    const [inner, outer] = [x.attrs, node.attrs];
    const value = held(outer.value, node.dtype);
    if (!Object.is(value, held(inner.value, node.dtype)) || outer.interior.some((n) => n !== 0))
      return undefined;
    return b.add('pad', x.inputs, {
      low: inner.low.map((n, axis) => n + outer.low[axis]!),
      high: inner.high.map((n, axis) => n + outer.high[axis]!),
      interior: inner.interior,
      value: outer.value,
    }) as Node;
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
export const canonicalise: (graph: Graph) => Graph = rulePass('canonicalise', canonicalRules);
