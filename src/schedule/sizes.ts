// Rejects programs with tensors that no kernel can index: a tensor in memory must have fewer elements than
// signed 32-bit integers can count. Programs are rejected when they are compiled, for every target, because
// indices would wrap otherwise. Views and broadcasts that never reach memory may be larger.

import { DeviceError } from '../errors.ts';
import { dims, type Node } from '../ir/graph.ts';
import { showType } from '../ir/infer.ts';
import { sizeOf } from '../ir/shape.ts';
import { mostElements } from '../runtime/program.ts';

/**
 * Throws E_LIMIT where a tensor that is to lie in memory has too many elements; `target` is whose
 * program it is.
 */
export function checkElements(stored: Iterable<Node>, target: string): void {
  for (const node of stored) {
    const elements = sizeOf(dims(node));
    if (elements <= mostElements) continue;
    const what = node.op === 'parameter' ? `input ${node.attrs.name}` : `the result of ${node.op}`;
    const problem = `${what}, ${showType(node)}, has ${elements} elements: a tensor in memory has at most ${mostElements}`;
    const hint = 'compute it in parts: split a batch, heads or rows, and take one part after another';
    throw new DeviceError('E_LIMIT', target, problem, { hint });
  }
}
