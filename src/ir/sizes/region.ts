// Bodies of loops in recordings of one function at several sizes: a region is a recording of its own, and
// those of several sizes are one structure, whose sizes are those of the world outside.

import type { DType } from '../dtype.ts';
import { graphOf } from '../text/region.ts';
import { Region } from '../region.ts';
import type { Graph, Node } from '../graph.ts';
import { isView } from '../ops.ts';
import { isWide } from '../dtype.ts';
import type { RecordedPart, SizeRecording, SizeStructure } from './structure.ts';
import type { Num } from './size.ts';

/** A parameter of a region, whose sizes may vary. */
export interface RegionParameter {
  readonly name: string;
  readonly dtype: DType;
  readonly shape: readonly Num[];
}

/** Regions that are the same but for numbers. Leaves of the structure are its parameters, by their indices. */
export class RegionStructure {
  readonly parameters: readonly RegionParameter[];
  readonly structure: SizeStructure;

  constructor(parameters: readonly RegionParameter[], structure: SizeStructure) {
    this.parameters = parameters;
    this.structure = structure;
  }
}

const recordings = new WeakMap<Region, SizeRecording>();

/** A region as a recording. */
export function recordingOf(region: Region): SizeRecording {
  const known = recordings.get(region);
  if (known !== undefined) return known;
  const made = recorded(graphOf(region));
  recordings.set(region, made);
  return made;
}

/** Nodes in the order in which results need them; constants that kernels know are repeated at each use. */
function recorded({ parameters, outputs }: Graph): SizeRecording {
  const parts: RecordedPart[] = [];
  const constants: number[] = [];
  const places = new Map<Node, number>();
  const indices = new Map<Node, number>(parameters.map((node, i) => [node as Node, i]));
  const put = (kind: RecordedPart['kind'], node: Node, inputs: readonly number[], number = 0): number =>
    parts.push({ kind, node, inputs, number }) - 1;
  const putConstant = (top: Node): number => {
    const chain: Node[] = [];
    let at = top;
    for (; at.op !== 'constant'; at = at.inputs[0]!) chain.push(at);
    let place = put('constant', at, [], constants.push(Number(at.attrs.value)) - 1);
    for (const view of chain.reverse()) place = put('op', view, [place]);
    return place;
  };
  /** Undefined where the node's operands have to be visited first. */
  const placeOf = (node: Node): number | undefined => {
    const known = places.get(node);
    if (known !== undefined) return known;
    const index = indices.get(node);
    if (index === undefined) return isHoisted(node) ? putConstant(node) : undefined;
    const place = put('leaf', node, [], index);
    places.set(node, place);
    return place;
  };
  const visit = (root: Node): number => {
    const done = placeOf(root);
    if (done !== undefined) return done;
    const stack: { readonly node: Node; readonly inputs: number[] }[] = [{ node: root, inputs: [] }];
    for (;;) {
      const frame = stack.at(-1)!;
      const next = frame.node.inputs[frame.inputs.length];
      const place = next === undefined ? undefined : placeOf(next);
      if (place !== undefined) frame.inputs.push(place);
      else if (next !== undefined) stack.push({ node: next, inputs: [] });
      else {
        const own = places.get(frame.node) ?? put('op', frame.node, frame.inputs);
        places.set(frame.node, own);
        stack.pop();
        if (stack.length === 0) return own;
      }
    }
  };
  return { parts, constants, outputs: outputs.map(visit) };
}

/** A constant of at most 32 bits, or views of one. */
function isHoisted(node: Node): boolean {
  let at = node;
  while (at.inputs.length === 1 && (isView(at.op) || at.op === 'stopGradient')) at = at.inputs[0]!;
  return at.op === 'constant' && !isWide(at.dtype) && at.dtype !== 'f64';
}
