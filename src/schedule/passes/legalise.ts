// Graphs as the templates expect them: nothing iterates over an empty axis, sums into 16-bit floats
// run in f32, and every dtype is one the target has arithmetic for.

import { SinterError } from '../../errors.ts';
import { binary, cast, full } from '../../ir/build.ts';
import { dtypeBytes, dtypeKind, dtypes, integerRange, isSmallInteger, type DType } from '../../ir/dtype.ts';
import { dims, rewrite, topological, type Graph, type GraphBuilder, type Node } from '../../ir/graph.ts';
import { showType } from '../../ir/infer.ts';
import { identityOf } from '../../ir/interpret/identity.ts';
import { sizeOf } from '../../ir/shape.ts';
import { shortBitcast } from './bitcast.ts';
import type { Target } from '../target.ts';

/** Refuses dtypes the target cannot compute with, then rewrites what templates leave out. */
export function legalise(graph: Graph, target: Target): Graph {
  const nodes = topological(graph.outputs);
  // Small integers were packed where they are lacking.
  const isKnown = (dtype: DType): boolean => target.dtypes.includes(dtype) || isSmallInteger(dtype);
  for (const node of nodes) {
    if (target.dtypes.includes(node.dtype)) continue;
    // Parameters and constants are not operations of the user: the error names their first reader.
    const isSource = node.op === 'parameter' || node.op === 'constant';
    const { op } = (isSource ? nodes.find((reader) => reader.inputs.includes(node)) : undefined) ?? node;
    throw new SinterError(
      'E_UNSUPPORTED',
      `${op}: ${showType(node)} is not supported on ${target.name}, which has ${dtypes.filter(isKnown).join(', ')}\n` +
        `  try: setDevice('wasm'), which has every dtype, or cast to f32 or i32`,
    );
  }
  return rewrite(
    graph,
    (node, inputs, b) =>
      withoutEmptyAxes(node, inputs, b) ??
      shortBitcast(node as Node, inputs, b) ??
      wideFold(node, inputs, b) ??
      wideScatter(node, inputs, b) ??
      concatTree(node, inputs, b, target),
  );
}

/** A fold over nothing is the identity; scattering nothing changes nothing. */
function withoutEmptyAxes(node: Node, inputs: readonly Node[], b: GraphBuilder): Node | undefined {
  const empty = (input: Node): boolean => sizeOf(dims(input)) === 0;
  const size = sizeOf(dims(node));
  if (size === 0) return undefined;
  switch (node.op) {
    case 'reduce': {
      if (!empty(inputs[0]!)) return undefined;
      return full(b, dims(node), identityOf(node.attrs.monoid, node.dtype), node.dtype);
    }
    case 'dot':
    case 'conv':
      return empty(inputs[0]!) || empty(inputs[1]!) ? full(b, dims(node), 0, node.dtype) : undefined;
    case 'searchSorted':
      return empty(inputs[0]!) ? full(b, dims(node), 0, 'i32') : undefined;
    case 'scatterAddAtomic':
      return empty(inputs[0]!) ? full(b, dims(node), 0, node.dtype) : undefined;
    case 'scatter':
    case 'segmentReduce':
      return empty(inputs.at(-1)!) ? inputs[0]! : undefined;
    default:
      return undefined;
  }
}

/** A kernel binds few buffers: many parts are joined in groups, then the groups. */
function concatTree(node: Node, inputs: readonly Node[], b: GraphBuilder, target: Target): Node | undefined {
  // One binding is for the result.
  const inputLimit = target.limits.storageBuffers - 1;
  if (node.op !== 'concat' || inputs.length <= inputLimit) return undefined;
  let parts = inputs;
  while (parts.length > 1) {
    const groups = Array.from({ length: Math.ceil(parts.length / inputLimit) }, (_, i) =>
      parts.slice(i * inputLimit, (i + 1) * inputLimit),
    );
    parts = groups.map((group) =>
      group.length === 1 ? group[0]! : (b.add('concat', group, node.attrs) as Node),
    );
  }
  return parts[0]!;
}

/**
 * Integers narrower than 32 bits are folded in 32 bits, whose identities exceed their range;
 * results are clamped and cast once.
 */
function wideFold(node: Node, inputs: readonly Node[], b: GraphBuilder): Node | undefined {
  if (node.op !== 'reduce' && node.op !== 'scan') return undefined;
  if (!isSmallInteger(node.dtype)) return undefined;
  const register = dtypeKind(node.dtype) === 'int' ? 'i32' : 'u32';
  const wide = cast(b, inputs[0]!, register);
  if (node.op === 'reduce') return cast(b, b.add('reduce', [wide], node.attrs) as Node, node.dtype);
  const scanned = b.add('scan', [wide], node.attrs) as Node;
  const { monoid } = node.attrs;
  if (monoid !== 'min' && monoid !== 'max') return cast(b, scanned, node.dtype);
  // The result before the first element is the identity.
  const [low, high] = integerRange(node.dtype);
  const clamped = binary(b, 'max', binary(b, 'min', scanned, Number(high)), Number(low));
  return cast(b, clamped, node.dtype);
}

/**
 * Sums of 16-bit floats lose their low bits at every step: fold in f32, round once. No atomic adds
 * to less than 32 bits.
 */
function wideScatter(node: Node, inputs: readonly Node[], b: GraphBuilder): Node | undefined {
  if (dtypeBytes(node.dtype) >= 4) return undefined;
  const isHalf = node.dtype === 'f16' || node.dtype === 'bf16';
  if (node.op === 'scatterAddAtomic') {
    const register = isHalf ? 'f32' : dtypeKind(node.dtype) === 'int' ? 'i32' : 'u32';
    const sums = b.add('scatterAddAtomic', [inputs[0]!, cast(b, inputs[1]!, register)], node.attrs);
    return cast(b, sums as Node, node.dtype);
  }
  if (!isHalf || node.op !== 'scatter' || node.attrs.mode === 'set') return undefined;
  const [operand, indices, updates] = inputs as readonly [Node, Node, Node];
  const wide = b.add('scatter', [cast(b, operand, 'f32'), indices, cast(b, updates, 'f32')], node.attrs);
  return cast(b, wide as Node, node.dtype);
}
