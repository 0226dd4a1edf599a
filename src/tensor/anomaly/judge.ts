// Whether results are finite, and what made the first that is not: where `watch` found that it has to know.

import type { Interpreter } from '../../compile/slots.ts';
import { SinterError } from '../../errors.ts';
import type { CallSite } from '../../ir/call-site.ts';
import { isInexact } from '../../ir/dtype.ts';
import { dims, type Node } from '../../ir/graph.ts';
import type { Fault } from '../../ir/interpret/culprit.ts';
import { stridesOf, type FixedShape } from '../../ir/shape.ts';
import { unpackBytes, type HostArray } from '../../ir/value.ts';
import { showHandle } from '../handle/handle.ts';
import { showElement } from '../show/number.ts';
import type { StoredValue } from '../storage/storage.ts';
import { trailOf } from './trail.ts';

/** Rejects with the anomaly of the first result that is not finite. */
export async function judge(
  results: ReadonlyMap<Node, StoredValue>,
  leaves: ReadonlyMap<Node, StoredValue>,
  { culpritOf, faultOf }: Interpreter,
): Promise<void> {
  const suspects: Node[] = [];
  for (const [node, storage] of results) {
    if (!isInexact(node.dtype)) continue;
    // A value that could not be computed has an error of its own.
    const value = await storage.unguarded().then(
      (bytes) => unpackBytes(bytes, storage.dtype, storage.shape),
      () => undefined,
    );
    if (value !== undefined && faultOf(value) !== undefined) suspects.push(node);
  }
  if (suspects.length === 0) return;
  const values = new Map<Node, HostArray>();
  for (const [node, storage] of leaves)
    values.set(node, unpackBytes(await storage.unguarded(), storage.dtype, storage.shape));
  for (const suspect of suspects.toSorted((a, b) => a.id - b.id)) {
    const found = culpritOf(suspect, (node) => values.get(node));
    if (found === undefined) continue;
    if ('node' in found) throw anomaly(found.node, found.fault, found.from);
    const where = showHandle({ dtype: found.input.dtype, shape: dims(found.input) });
    const problem = `NaN came in with an input, ${where}, at ${placeIn(found.fault, dims(found.input))}`;
    throw new SinterError('E_VALUE', `detectAnomaly: ${problem}`);
  }
}

/** `log: made -Infinity at [1] of f32[3] from 0`, with the line. */
function anomaly(node: Node, fault: Fault, from: readonly number[]): SinterError {
  const { call, isGradient } = trailOf(node);
  const name = nameOf(call, node);
  const who = isGradient ? `the gradient of ${name}` : name;
  const shape = dims(node);
  const type = showHandle({ dtype: node.dtype, shape });
  const sources =
    from.length === 0 ? '' : ` from ${from.map((value) => showElement(value, node.dtype)).join(' and ')}`;
  const by = name === node.op || from.length === 0 ? '' : ` by ${node.op}`;
  const at = call?.at === undefined ? '' : `\n  at ${call.at}`;
  const what = `made ${showElement(fault.value, node.dtype)} at ${placeIn(fault, shape)} of ${type}${by}${sources}`;
  return new SinterError('E_VALUE', `detectAnomaly: ${who} ${what}${at}`);
}

function nameOf(call: CallSite | undefined, node: Node): string {
  const op = call?.op ?? node.op;
  return call?.module === undefined ? op : `${op} in ${call.module}`;
}

/** `[1,2]`: the indices of an element. */
function placeIn({ place }: Fault, shape: FixedShape): string {
  const strides = stridesOf(shape);
  return `[${shape.map((size, axis) => Math.floor(place / strides[axis]!) % size).join(',')}]`;
}
