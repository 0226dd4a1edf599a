// Complex numbers as pairs of real ones: the first pass. What follows it, templates and targets,
// know real numbers only. Inputs and outputs of the graph keep their bytes: a complex one becomes a
// real one with a last axis of 2. A graph without complex numbers stays as it is.

import { CompilerBug } from '../../errors.ts';
import { binary, cast, complex, neg, unary } from '../build.ts';
import { isComplex, partType, type DType } from '../dtype.ts';
import { GraphBuilder, rewrite, topological, type Graph, type Node, type NodeOf } from '../graph.ts';
import { takesComplex, type ComplexElementwise } from '../typing/complex-ops.ts';
import type { Attrs, Op } from '../ops.ts';
import { storedType } from '../stored.ts';
import { convOfPairs, dotOfPairs } from './complex/contract.ts';
import { factorOfPairs, splitComplexFactors } from './complex/factor.ts';
import { product, products } from './complex/folds.ts';
import * as functions from './complex/functions.ts';
import {
  converted,
  interleaved,
  minus,
  modulus,
  over,
  pair,
  pairOfReal,
  partsOf,
  plus,
  times,
  type ComplexPair,
} from './complex/pair.ts';
import { onWholes } from './complex/whole.ts';

/** The pair that a lowered value is: every complex node was rewritten as `complex` of its parts. */
function pairOf(node: Node): ComplexPair {
  if (node.op !== 'complex') throw new CompilerBug('lowerComplex', `${node.op} was not lowered`);
  return pair(node.inputs[0]!, node.inputs[1]!);
}

/** A real value that is computed with this one. */
function realOf(node: Node): Node {
  return isComplex(node.dtype) ? pairOf(node).re : node;
}

type Lower = (b: GraphBuilder, x: ComplexPair, y: ComplexPair, z: ComplexPair) => ComplexPair | Node;

/** Ops on pairs that give a pair, or one real node. `cast` and `where` also take others. */
const table: {
  readonly [K in Exclude<ComplexElementwise, 'cast' | 'where'>]: Lower;
} = {
  ...functions,
  neg: (b, z) => pair(neg(b, z.re), neg(b, z.im)),
  abs: (b, z) => modulus(b, z),
  add: (b, z, w) => plus(b, z, w),
  sub: (b, z, w) => minus(b, z, w),
  mul: (b, z, w) => times(b, z, w),
  div: (b, z, w) => over(b, z, w),
  fma: (b, x, y, z) => plus(b, times(b, x, y), z),
  isNan: (b, z) => binary(b, 'or', unary(b, 'isNan', z.re), unary(b, 'isNan', z.im)),
  eq: (b, z, w) => binary(b, 'and', binary(b, 'eq', z.re, w.re), binary(b, 'eq', z.im, w.im)),
  ne: (b, z, w) => binary(b, 'or', binary(b, 'ne', z.re, w.re), binary(b, 'ne', z.im, w.im)),
};

/** Whether each part of the result is the op of that part of the operands. */
function isPartwise(node: Node): boolean {
  switch (node.op) {
    case 'reduce':
    case 'scan':
      return node.attrs.monoid === 'sum';
    case 'reshape':
    case 'permute':
    case 'broadcast':
    case 'slice':
    case 'pad':
    case 'concat':
    case 'window':
    case 'where':
    case 'gather':
    case 'scatter':
    case 'permuteScatter':
    case 'segmentReduce':
    case 'scatterAddAtomic':
    case 'stopGradient':
    case 'bounded':
    case 'shard':
    case 'toPart':
    case 'toWhole':
      return true;
    default:
      return false;
  }
}

function partwise(b: GraphBuilder, node: Node, inputs: readonly Node[]): ComplexPair {
  const part = (key: keyof ComplexPair): Node => {
    const attrs = node.op === 'pad' && key === 'im' ? { ...node.attrs, value: 0 } : node.attrs;
    const parts = inputs.map((input) => (isComplex(input.dtype) ? pairOf(input)[key] : input));
    return b.add(node.op as Op, parts, attrs as Attrs) as Node;
  };
  return pair(part('re'), part('im'));
}

function lowerCast(b: GraphBuilder, x: Node, dtype: DType): ComplexPair | Node {
  if (!isComplex(x.dtype)) return pairOfReal(b, cast(b, x, partType(dtype)));
  const z = pairOf(x);
  if (isComplex(dtype)) return converted(b, z, partType(dtype));
  return binary(b, 'or', cast(b, z.re, dtype), cast(b, z.im, dtype));
}

function lower(b: GraphBuilder, node: Node, inputs: readonly Node[]): ComplexPair | Node {
  const whole = inputs.every((input) => isComplex(input.dtype))
    ? onWholes(b, node, inputs.map(pairOf))
    : undefined;
  if (whole !== undefined) return partsOf(b, whole);
  if (isPartwise(node)) return partwise(b, node, inputs);
  const first = inputs[0]!;
  switch (node.op) {
    case 'complex':
      return pair(first, inputs[1]!);
    case 'real':
      return pairOf(first).re;
    case 'imag':
      return pairOf(first).im;
    case 'conj':
      return pair(pairOf(first).re, neg(b, pairOf(first).im));
    case 'cast':
      return lowerCast(b, first, node.dtype);
    case 'reduce':
      return product(b, pairOf(first), node.attrs.axes);
    case 'scan':
      return products(b, pairOf(first), node.attrs);
    case 'dot':
      return dotOfPairs(b, node, pairOf(first), pairOf(inputs[1]!));
    case 'conv':
      return convOfPairs(b, node, pairOf(first), pairOf(inputs[1]!));
    case 'factor':
      return factorOfPairs(b, node, inputs.map(pairOf));
    // The parts travel together, along an axis behind all others.
    case 'allReduce':
    case 'allGather':
    case 'reduceScatter':
    case 'allToAll':
    case 'permuteRanks':
    case 'broadcastRank':
      return partsOf(b, b.copy(node, [interleaved(b, pairOf(first))]));
    case 'customVjp':
      return isComplex(first.dtype) ? pairOf(first) : first;
    case 'barrier': {
      const behind = (part: Node): Node => b.add('barrier', [part, realOf(inputs[1]!)], {}) as Node;
      if (!isComplex(first.dtype)) return behind(first);
      const { re, im } = pairOf(first);
      return pair(behind(re), behind(im));
    }
    default: {
      if (!takesComplex(node.op))
        throw new CompilerBug('lowerComplex', `${node.op} has no meaning on complex numbers`);
      const op = node.op as Exclude<ComplexElementwise, 'cast' | 'where'>;
      const [x, y, z] = inputs.map(pairOf);
      return table[op](b, x!, y!, z!);
    }
  }
}

/** The graph in real numbers. */
export function lowerComplex(recorded: Graph): Graph {
  const order = topological([...recorded.parameters, ...recorded.outputs] as Node[]);
  if (!order.some((node) => isComplex(node.dtype))) return recorded;
  const hasFactors = order.some((node) => node.op === 'factor' && isComplex(node.dtype));
  const graph = hasFactors ? splitComplexFactors(recorded) : recorded;
  const b = new GraphBuilder();
  const stored = new Map<number, NodeOf<'parameter'>>();
  const real = rewrite(
    graph,
    (node, inputs) => {
      if (!isComplex(node.dtype) && !inputs.some((input) => isComplex(input.dtype))) return undefined;
      if (node.op === 'parameter') {
        const parameter = b.add('parameter', [], { ...node.attrs, ...storedType(node) });
        stored.set(node.attrs.index, parameter);
        const { re, im } = partsOf(b, parameter as Node);
        return complex(b, re, im);
      }
      const made = lower(b, node, inputs);
      return 're' in made ? complex(b, made.re, made.im) : made;
    },
    b,
  );
  return {
    parameters: graph.parameters.map(({ attrs }, i) => stored.get(attrs.index) ?? real.parameters[i]!),
    outputs: real.outputs.map((output) =>
      isComplex(output.dtype) ? interleaved(b, pairOf(output)) : output,
    ),
  };
}
