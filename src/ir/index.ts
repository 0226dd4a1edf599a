// The public face of the Graph IR (`sinter/ir`): build, print, parse, verify and interpret graphs. `parse` needs the optional
// peer `ohm-js`; nothing inside Sinter imports this file, so that only users of the text form do.

export { isDType, dtypes, type DType } from './dtype.ts';
export { GraphBuilder, rewrite, topological, type Graph } from './graph.ts';
export type { Node, NodeOf } from './node.ts';
export { infer, showType, type TensorType } from './infer.ts';
export { evaluateNode, interpret } from './interpret/interpret.ts';
export { facts, isOp, opNames, type Attrs, type Monoid, type Op, type OpFacts } from './ops.ts';
export { parse } from './text/parse.ts';
export { print, printNode } from './text/print.ts';
export type { Dim, FixedShape, Shape, SymbolicDim } from './shape.ts';
export { hostArray, type HostArray, type HostData, type Scalar } from './value.ts';
export { verify } from './verify.ts';
