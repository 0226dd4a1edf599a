// Integers of 8 and 16 bits on targets that have none: they stay packed in memory, as words of four or two, and are numbers of 32 bits
// while a kernel computes, brought back into their range where they may leave it. Callers and files see no difference.

import { binary, broadcast, cast, constant, reduce, reshape, slice } from '../ir/build.ts';
import { dtypeBytes, dtypeKind, integerRange, isFloat, type DType } from '../ir/dtype.ts';
import { dims, rewrite, topological, GraphBuilder, type Graph, type Node, type NodeOf } from '../ir/graph.ts';
import type { Op } from '../ir/ops.ts';
import { sizeOf } from '../ir/shape.ts';

type Small = 'i8' | 'u8' | 'i16' | 'u16';

function isSmall(dtype: DType): dtype is Small {
  return dtype === 'i8' || dtype === 'u8' || dtype === 'i16' || dtype === 'u16';
}

/** What elements are computed in. */
function register(dtype: Small): 'i32' | 'u32' {
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
  ...(['window', 'gather', 'stopGradient', 'customVjp'] as const),
]);

/** The graph over words, where `dtypes` lack what it has; parameters and outputs keep their order. */
export function overWords(graph: Graph, dtypes: readonly DType[]): Graph {
  const lacks = (dtype: DType): dtype is Small => isSmall(dtype) && !dtypes.includes(dtype);
  const nodes = [...graph.parameters, ...topological(graph.outputs)] as readonly Node[];
  // What looks at bits of such a type is left to the error that tells what the target lacks.
  const isBlocked = nodes.some(
    ({ op, dtype, inputs }) =>
      op === 'bitcast' && (lacks(dtype) || inputs.some((input) => lacks(input.dtype))),
  );
  if (isBlocked || !nodes.some(({ dtype }) => lacks(dtype))) return graph;
  const b = new GraphBuilder();
  const made = new Map<Node, Node>();
  const parameters = graph.parameters.map((node) => {
    const { dtype } = node;
    const shape = dims(node as Node);
    const stored = lacks(dtype)
      ? { dtype: 'u32' as const, shape: [wordsOf(dtype, shape)] }
      : { dtype, shape };
    const parameter = b.add('parameter', [], { ...node.attrs, ...stored }) as NodeOf<'parameter'>;
    made.set(node as Node, lacks(dtype) ? unpacked(b, parameter as Node, dtype, shape) : (parameter as Node));
    return parameter;
  });
  const change = (node: Node, inputs: readonly Node[]): Node | undefined => {
    const known = made.get(node);
    const { dtype } = node;
    if (known !== undefined) return known;
    if (!lacks(dtype)) return undefined;
    const wide = register(dtype);
    switch (node.op) {
      case 'constant':
        return constant(b, node.attrs.value, wide);
      case 'cast': {
        const number = cast(b, inputs[0]!, wide);
        // Floats end at the range's ends, integers wrap.
        return isFloat(inputs[0]!.dtype) ? clamped(b, number, dtype) : wrapped(b, number, dtype);
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
        // Folds of nothing give the least or the greatest number of 32 bits.
        const isBound = (node.op === 'reduce' || node.op === 'scan') && node.attrs.monoid.startsWith('m');
        return isBound ? clamped(b, result, dtype) : wrapped(b, result, dtype);
      }
    }
  };
  const { outputs } = rewrite(graph, change, b);
  return {
    parameters,
    outputs: outputs.map((output, i) => {
      const { dtype } = graph.outputs[i]!;
      return lacks(dtype) ? packed(b, output, dtype) : output;
    }),
  };
}

function wordsOf(dtype: Small, shape: readonly number[]): number {
  return Math.ceil((sizeOf(shape) * dtypeBytes(dtype)) / 4);
}

function same(b: GraphBuilder, value: number, like: Node): Node {
  return broadcast(b, constant(b, value, like.dtype), dims(like));
}

/** The low bits of a number, in the dtype's meaning. */
function wrapped(b: GraphBuilder, x: Node, dtype: Small): Node {
  const bits = 8 * dtypeBytes(dtype);
  if (register(dtype) === 'u32') return binary(b, 'and', x, same(b, 2 ** bits - 1, x));
  const shift = same(b, 32 - bits, x);
  return binary(b, 'shr', binary(b, 'shl', x, shift), shift);
}

function clamped(b: GraphBuilder, x: Node, dtype: Small): Node {
  const [low, high] = integerRange(dtype);
  return binary(b, 'max', binary(b, 'min', x, same(b, Number(high), x)), same(b, Number(low), x));
}

/** Where in its word each element begins, for `[words, elements of a word]`. */
function places(b: GraphBuilder, words: number, dtype: Small): Node {
  const count = 4 / dtypeBytes(dtype);
  const element = b.add('iota', [], { shape: [words, count], axis: 1, dtype: 'u32' }) as Node;
  return binary(b, 'mul', element, same(b, 32 / count, element));
}

function unpacked(b: GraphBuilder, words: Node, dtype: Small, shape: readonly number[]): Node {
  const [count] = dims(words) as [number];
  const starts = places(b, count, dtype);
  const spread = broadcast(b, reshape(b, words, [count, 1]), dims(starts));
  const elements = reshape(b, binary(b, 'shr', spread, starts), [sizeOf(dims(starts))]);
  const own = reshape(b, slice(b, elements, [0], [sizeOf(shape)]), shape);
  return wrapped(b, cast(b, own, register(dtype)), dtype);
}

function packed(b: GraphBuilder, x: Node, dtype: Small): Node {
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
