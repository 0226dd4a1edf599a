// What the functions of `sinter/ir` take, and the methods of its builder.

import * as ir from '../../../src/ir/index.ts';
import { anything, fn, like, maybe, meaning, text, word } from '../kinds.ts';
import type { MethodRow } from './layer.ts';
import type { Rows } from './operation.ts';

const builder = new ir.GraphBuilder();
const x = builder.add('parameter', [], { index: 0, name: 'x', dtype: 'f32', shape: [2] });
const y = builder.add('neg', [x], {}) as ir.Node;
const made: ir.Graph = { parameters: [x], outputs: [y] };
const graph = meaning(() => made);
const node = meaning(() => y);
/** A tensor has a dtype and a shape as a type has. */
const types = meaning(() => [{ dtype: 'f32', shape: [2] }], 'emptyList', 'tensors');
const nodes = meaning(() => [x], 'emptyList');
const host = (): ir.HostArray => ir.hostArray('f32', [2], [1, 2]);
const op = word('neg', 'abs');
const attrs = meaning(() => ({}), 'emptyObject');

export const irRows: Rows = {
  GraphBuilder: [],
  evaluateNode: [node, meaning(() => [host()], 'emptyList')],
  facts: [op],
  hostArray: [
    word('f32', 'i8'),
    meaning(() => [2], 'emptyList', 'bytes'),
    meaning(() => [1, 2], 'emptyList', 'numbers', 'floats', 'bytes', 'bigints'),
  ],
  infer: [op, types, attrs],
  interpret: [graph, meaning(() => [host()], 'emptyList')],
  isDType: [anything],
  isOp: [anything],
  parse: [text('graph {\n  return\n}\n')],
  print: [graph],
  printNode: [node, maybe(like(fn, () => () => '%x'))],
  rewrite: [graph, like(fn, () => () => undefined), maybe(meaning(() => new ir.GraphBuilder()))],
  showType: [meaning(() => ({ dtype: 'f32', shape: [2] }), 'tensor', 'bool', 'integers', 'disposed')],
  topological: [nodes, maybe(like(fn, () => () => false))],
  verify: [graph, maybe(text('my pass'))],
};

export const builderMethods: readonly MethodRow[] = [
  {
    name: 'GraphBuilder.add',
    told: 'GraphBuilder.add',
    call: (...given) => (builder.add as (...args: readonly unknown[]) => unknown).apply(builder, [...given]),
    places: [op, nodes, attrs],
  },
  {
    name: 'GraphBuilder.copy',
    told: 'GraphBuilder.copy',
    call: (...given) => (builder.copy as (...args: readonly unknown[]) => unknown).apply(builder, [...given]),
    places: [node, nodes],
  },
];
