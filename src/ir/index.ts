// The public interface of the Graph IR (`sinter/ir`): build, print, parse, verify and interpret
// graphs. `parse` needs the optional peer `ohm-js`; nothing inside Sinter imports this file, so
// that only users of the text form do.

export { isDType, dtypes, type DType } from './dtype.ts';
export type { Graph } from './graph.ts';
export type { TensorType } from './infer.ts';
export type { Node, NodeOf } from './node.ts';
export { isOp, opNames, type Attrs, type Monoid, type Op, type OpFacts } from './ops.ts';
export {
  evaluateNode,
  facts,
  GraphBuilder,
  hostArray,
  infer,
  interpret,
  parse,
  print,
  printNode,
  rewrite,
  showType,
  topological,
  verify,
} from './public.ts';
export type { Dim, FixedShape, Shape, SymbolicDim } from './shape.ts';
export type { HostArray, HostData, Scalar } from './value.ts';
