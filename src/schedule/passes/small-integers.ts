// Lowers integers of 8 and 16 bits for targets whose kernels lack them. In memory they stay packed,
// four or two in a 32-bit word; kernels compute in 32 bits and wrap results to the narrow range
// where they may leave it. The bytes in memory are those of every other target, so callers and
// files see no difference.

import { binary, broadcast, cast, constant, reduce, reshape, slice } from '../../ir/build.ts';
import {
  dtypeBytes,
  dtypeKind,
  integerRange,
  isFloat,
  isSmallInteger,
  type DType,
  type SmallInteger,
} from '../../ir/dtype.ts';
import {
  dims,
  rewrite,
  topological,
  GraphBuilder,
  type Graph,
  type Node,
  type NodeOf,
} from '../../ir/graph.ts';
import type { Op } from '../../ir/ops.ts';
import { onBehalf } from '../../ir/origin/origin.ts';
import { sizeOf, type FixedShape } from '../../ir/shape.ts';
import { shortBitcast, shortBits } from './bitcast.ts';
import type { Target } from '../target.ts';

/** The dtype that elements are computed in. */
function register(dtype: SmallInteger): 'i32' | 'u32' {
  return dtypeKind(dtype) === 'int' ? 'i32' : 'u32';
}

/** Ops whose results are among their operands' values, or of bits that these have. */
const within: ReadonlySet<Op> = new Set<Op>([
  ...([
    'where',
    'min',
    'max',
    'and',
    'or',
    'xor',
    'reshape',
    'permute',
    'broadcast',
    'slice',
    'concat',
  ] as const),
  ...(['window', 'gather', 'stopGradient', 'customVjp', 'barrier', 'bounded'] as const),
]);

/**
 * The graph over words and registers, where the target lacks integers that it has; parameters and
 * outputs keep their order.
 */
export function packSmallIntegers(graph: Graph, { dtypes }: Target): Graph {
  const lacks = (dtype: DType): dtype is SmallInteger => isSmallInteger(dtype) && !dtypes.includes(dtype);
  const nodes = [...graph.parameters, ...topological(graph.outputs)] as readonly Node[];
  if (!nodes.some(({ dtype }) => lacks(dtype))) return graph;
  const b = new GraphBuilder();
  /** Parameters as they lie in memory. */
  const stored = new Map<Node, Node>();
  const change = (node: Node, inputs: readonly Node[]): Node | undefined => {
    const { dtype } = node;
    if (!lacks(dtype)) {
      // Bits of a small integer are read from its register.
      const isRead = node.op === 'bitcast' && lacks(node.inputs[0]!.dtype);
      return isRead ? shortBitcast(node, inputs, b) : undefined;
    }
    if (node.op !== 'parameter') return inRegisters(b, node, inputs, dtype);
    const attrs = { ...node.attrs, dtype: 'u32', shape: [wordsOf(dtype, dims(node))] } as const;
    const words = b.add('parameter', [], attrs) as Node;
    stored.set(node, words);
    return unpacked(b, words, dtype, dims(node));
  };
  const { parameters, outputs } = rewrite(graph, change, b);
  return {
    parameters: graph.parameters.map(
      (node, i) => (stored.get(node as Node) ?? parameters[i]!) as NodeOf<'parameter'>,
    ),
    outputs: graph.outputs.map((node, i) => {
      const { dtype } = node;
      if (!lacks(dtype)) return outputs[i]!;
      // Parameters that are outputs keep their stored form.
      return stored.get(node) ?? onBehalf('rewrite', node, () => packed(b, outputs[i]!, dtype));
    }),
  };
}

/** A node of a small dtype on numbers of 32 bits. */
function inRegisters(b: GraphBuilder, node: Node, inputs: readonly Node[], dtype: SmallInteger): Node {
  const wide = register(dtype);
  switch (node.op) {
    case 'constant':
      return constant(b, node.attrs.value, wide);
    case 'cast': {
      const number = cast(b, inputs[0]!, wide);
      // Casts from floats saturate at the range, casts from integers wrap.
      return isFloat(inputs[0]!.dtype) ? clamped(b, number, dtype) : wrapped(b, number, dtype);
    }
    case 'bitcast': {
      const bits = isFloat(inputs[0]!.dtype) ? shortBits(b, inputs[0]!) : inputs[0]!;
      return wrapped(b, cast(b, bits, wide), dtype);
    }
    case 'mulhi': {
      const product = binary(b, 'mul', inputs[0]!, inputs[1]!);
      return binary(b, 'shr', product, same(b, 8 * dtypeBytes(dtype), product));
    }
    case 'iota':
      return wrapped(b, b.add('iota', [], { ...node.attrs, dtype: wide }) as Node, dtype);
    case 'dot':
      return wrapped(b, b.add('dot', inputs, { ...node.attrs, dtype: wide }) as Node, dtype);
    default: {
      const result = b.copy(node, inputs);
      if (within.has(node.op)) return result;
      // Folds over no elements give the smallest or largest number of 32 bits.
      const isBound = (node.op === 'reduce' || node.op === 'scan') && node.attrs.monoid.startsWith('m');
      return isBound ? clamped(b, result, dtype) : wrapped(b, result, dtype);
    }
  }
}

function wordsOf(dtype: SmallInteger, shape: FixedShape): number {
  return Math.ceil((sizeOf(shape) * dtypeBytes(dtype)) / 4);
}

function same(b: GraphBuilder, value: number, like: Node): Node {
  return broadcast(b, constant(b, value, like.dtype), dims(like));
}

/** The low bits of a number, interpreted as the dtype. */
function wrapped(b: GraphBuilder, x: Node, dtype: SmallInteger): Node {
  const bits = 8 * dtypeBytes(dtype);
  if (register(dtype) === 'u32') return binary(b, 'and', x, same(b, 2 ** bits - 1, x));
  const shift = same(b, 32 - bits, x);
  return binary(b, 'shr', binary(b, 'shl', x, shift), shift);
}

function clamped(b: GraphBuilder, x: Node, dtype: SmallInteger): Node {
  const [low, high] = integerRange(dtype);
  return binary(b, 'max', binary(b, 'min', x, same(b, Number(high), x)), same(b, Number(low), x));
}

/** Where in its word each element begins, for `[words, elements of a word]`. */
function places(b: GraphBuilder, words: number, dtype: SmallInteger): Node {
  const count = 4 / dtypeBytes(dtype);
  const element = b.add('iota', [], { shape: [words, count], axis: 1, dtype: 'u32' }) as Node;
  return binary(b, 'mul', element, same(b, 32 / count, element));
}

function unpacked(b: GraphBuilder, words: Node, dtype: SmallInteger, shape: FixedShape): Node {
  const [count] = dims(words) as [number];
  const starts = places(b, count, dtype);
  const spread = broadcast(b, reshape(b, words, [count, 1]), dims(starts));
  const elements = reshape(b, binary(b, 'shr', spread, starts), [sizeOf(dims(starts))]);
  const own = reshape(b, slice(b, elements, [0], [sizeOf(shape)]), shape);
  return wrapped(b, cast(b, own, register(dtype)), dtype);
}

function packed(b: GraphBuilder, x: Node, dtype: SmallInteger): Node {
  const shape = dims(x);
  const starts = places(b, wordsOf(dtype, shape), dtype);
  const missing = sizeOf(dims(starts)) - sizeOf(shape);
  const bits = binary(
    b,
    'and',
    cast(b, x, 'u32'),
    same(b, 2 ** (8 * dtypeBytes(dtype)) - 1, cast(b, x, 'u32')),
  );
  const line = reshape(b, bits, [sizeOf(shape)]);
  const whole =
    missing === 0
      ? line
      : (b.add('pad', [line], { low: [0], high: [missing], interior: [0], value: 0 }) as Node);
  // No two elements share a bit.
  return reduce(b, 'sum', binary(b, 'shl', reshape(b, whole, dims(starts)), starts), [1]);
}
