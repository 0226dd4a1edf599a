// Graph key: the structure of a recorded graph without its data. Leaves are numbered in the order a
// depth-first walk meets them and known by type only; rank-0 constants are hoisted constants, one per use,
// so that two uses whose values happen to be equal in one step do not change the structure. Equal
// graph keys run the same Program. Markers and identity views are left out.

import { SinterError } from '../../errors.ts';
import { constant, cast, purposeOf } from '../../ir/build.ts';
import { scalarType, type DType } from '../../ir/dtype.ts';
import {
  GraphBuilder,
  hashValue,
  mix,
  sameAttrs,
  type Graph,
  type Node,
  type NodeOf,
} from '../../ir/graph.ts';
import { onBehalf } from '../../ir/origin/origin.ts';
import { isView } from '../../ir/ops.ts';
import { sameShape, type Shape } from '../../ir/shape.ts';
import { offsetsOf, placed, restHash, sameRest } from './offsets.ts';
import { canonical } from '../handle/recording.ts';

/** One node: its inputs by position, or which leaf or hoisted constant it is. */
interface Part {
  readonly kind: 'leaf' | 'constant' | 'op' | 'moved';
  readonly node: Node;
  readonly inputs: readonly number[];
  /**
   * Number of the leaf or hoisted constant; of a `moved` node, of the first of its offsets, which are
   * hoisted constants.
   */
  readonly number: number;
}

export interface GraphKey<L> {
  readonly hash: number;
  readonly parts: readonly Part[];
  /** What each leaf is this time. */
  readonly leaves: readonly L[];
  /** The value of each hoisted constant this time. */
  readonly constants: readonly number[];
  readonly constantTypes: readonly DType[];
  /** What those hoisted constants were made for that differ from run to run; undefined of others. */
  readonly purposes: readonly (string | undefined)[];
  /** Positions in `parts`. */
  readonly outputs: readonly number[];
  /** Where a node was put; undefined when it was not met. */
  position(node: Node): number | undefined;
  /** What the parts at these positions are computed from. */
  leavesUnder(positions: readonly number[]): L[];
}

/** A hoisted constant, or views of one: repeated at each use. */
function isHoisted(node: Node): boolean {
  let at = node;
  while (at.inputs.length === 1 && (isView(at.op) || at.op === 'stopGradient')) at = at.inputs[0]!;
  return at.op === 'constant' && scalarType(at.dtype) !== undefined;
}

/**
 * The structure of what `outputs` are computed from. `leaf` says where the walk ends: it gives the
 * identity of the value that a node stands for, or undefined to go on to its inputs.
 */
export function graphKeyOf<L extends object>(
  outputs: readonly Node[],
  leaf: (node: Node) => L | undefined,
): GraphKey<L> {
  const parts: Part[] = [];
  const positions = new Map<Node, number>();
  const leafPositions = new Map<L, number>();
  const leaves: L[] = [];
  const constants: number[] = [];
  const constantTypes: DType[] = [];
  const purposes: (string | undefined)[] = [];
  let hash = 0;

  const put = (kind: Part['kind'], node: Node, inputs: readonly number[], number: number): number => {
    // A node of any op may be a leaf here: only its type counts.
    if (kind === 'op') hash = mix(hash, node.salt);
    else if (kind === 'moved') hash = mix(hash, restHash(node));
    else hash = hashValue(hashValue(hashValue(hash, kind), node.dtype), node.shape);
    for (const input of inputs) hash = mix(hash, input);
    return parts.push({ kind, node, inputs, number }) - 1;
  };
  const putOp = (node: Node, inputs: readonly number[]): number => {
    const offsets = offsetsOf(node);
    if (offsets === undefined) return put('op', node, inputs, 0);
    const first = constants.length;
    for (const offset of offsets) {
      constants.push(offset);
      constantTypes.push('i32');
      purposes.push(undefined);
    }
    return put('moved', node, inputs, first);
  };
  const putConstant = (top: Node): number => {
    const chain: Node[] = [];
    let at = top;
    for (; at.op !== 'constant'; at = canonical(at.inputs[0]!)) chain.push(at);
    constantTypes.push(at.dtype);
    purposes.push(purposeOf(at));
    let position = put('constant', at, [], constants.push(Number(at.attrs.value)) - 1);
    for (const view of chain.reverse()) position = putOp(view, [position]);
    return position;
  };
  const known = (node: Node): number | undefined => {
    const position = positions.get(node);
    if (position !== undefined) return position;
    const value = leaf(node);
    if (value === undefined) return undefined;
    let at = leafPositions.get(value);
    if (at === undefined) {
      at = put('leaf', node, [], leaves.push(value) - 1);
      leafPositions.set(value, at);
    }
    positions.set(node, at);
    return at;
  };

  /** The position of an operand; undefined when its own operands have to be visited first. */
  const operand = (node: Node): number | undefined =>
    known(node) ?? (isHoisted(node) ? putConstant(node) : undefined);

  const visit = (root: Node): number => {
    const done = operand(root);
    if (done !== undefined) return done;
    const stack: { readonly node: Node; readonly inputs: number[] }[] = [{ node: root, inputs: [] }];
    for (;;) {
      const frame = stack.at(-1)!;
      const { node, inputs } = frame;
      while (inputs.length < operands(node).length) {
        const input = canonical(operands(node)[inputs.length]!);
        const position = operand(input);
        if (position === undefined) {
          stack.push({ node: input, inputs: [] });
          break;
        }
        inputs.push(position);
      }
      if (stack.at(-1) !== frame) continue;
      const position = putOp(node, inputs);
      positions.set(node, position);
      stack.pop();
      if (stack.length === 0) return position;
    }
  };

  const found = outputs.map((output) => visit(canonical(output)));
  for (const output of found) hash = mix(hash, output);
  return {
    hash,
    parts,
    leaves,
    constants,
    constantTypes,
    purposes,
    outputs: found,
    position: (node) => positions.get(canonical(node)),
    leavesUnder: (from) => leavesUnder(parts, from).map((number) => leaves[number]!),
  };
}

/** Numbers of the leaves that the parts at these positions are computed from. */
function leavesUnder(parts: readonly Part[], positions: readonly number[]): number[] {
  const marked = new Uint8Array(parts.length);
  for (const position of positions) marked[position] = 1;
  const found: number[] = [];
  // Inputs stand before what reads them.
  for (let at = parts.length - 1; at >= 0; at--) {
    if (marked[at] === 0) continue;
    const { kind, inputs, number } = parts[at]!;
    if (kind === 'leaf') found.push(number);
    for (const input of inputs) marked[input] = 1;
  }
  return found;
}

function operands(node: Node): readonly Node[] {
  if (node.op === 'parameter') {
    throw new SinterError(
      'E_STATE',
      `the value of ${node.attrs.name} is not known here: it belongs to a traced function`,
    );
  }
  return node.inputs;
}

/** Whether two graphs have one structure (values of leaves and hoisted constants aside). */
export function sameGraphKey(a: GraphKey<unknown>, b: GraphKey<unknown>): boolean {
  return (
    a.hash === b.hash &&
    a.parts.length === b.parts.length &&
    a.outputs.length === b.outputs.length &&
    a.outputs.every((output, i) => output === b.outputs[i]) &&
    a.parts.every((part, i) => samePart(part, b.parts[i]!))
  );
}

function samePart(a: Part, b: Part): boolean {
  if (a.kind !== b.kind || a.number !== b.number || a.inputs.length !== b.inputs.length) return false;
  for (let i = 0; i < a.inputs.length; i++) if (a.inputs[i] !== b.inputs[i]) return false;
  if (a.kind === 'moved') return sameRest(a.node, b.node);
  if (a.kind === 'op') return a.node.op === b.node.op && sameAttrs(a.node.attrs, b.node.attrs);
  return a.node.dtype === b.node.dtype && sameShape(a.node.shape, b.node.shape);
}

/**
 * The same structure without this time's leaves and nodes, so that keeping it keeps no data alive.
 */
export function forget<L>(graphKey: GraphKey<L>): GraphKey<never> {
  const parts = graphKey.parts.map(({ kind, node, inputs, number }) => {
    const { op, attrs, dtype, shape, salt } = node;
    return {
      kind,
      inputs,
      number,
      node: { op, attrs, dtype, shape, inputs: [], id: 0, salt } as unknown as Node,
    };
  });
  return { ...graphKey, parts, leaves: [], position: () => undefined, leavesUnder: () => [] };
}

/**
 * The graph of this structure: leaves are parameters 0, 1, 2…, then come the run-time scalars that
 * `scalarOf` names for hoisted constants (undefined compiles the value in).
 */
export function graphOf(
  graphKey: GraphKey<unknown>,
  outputs: readonly number[],
  scalarOf: (constant: number) => number | undefined,
): Graph {
  const b = new GraphBuilder();
  const leafCount = graphKey.parts.filter((part) => part.kind === 'leaf').length;
  const parameters: NodeOf<'parameter'>[] = [];
  const parameter = (index: number, name: string, dtype: DType, shape: Shape): Node => {
    const made = b.add('parameter', [], { index, name, dtype, shape });
    parameters[index] = made;
    return made as Node;
  };
  const made: Node[] = [];
  for (const { kind, node, inputs, number } of graphKey.parts) {
    switch (kind) {
      case 'leaf':
        made.push(
          parameter(number, node.op === 'parameter' ? node.attrs.name : `t${number}`, node.dtype, node.shape),
        );
        break;
      case 'constant': {
        const scalar = scalarOf(number);
        if (scalar === undefined) {
          const value = graphKey.constants[number]!;
          made.push(onBehalf('rewrite', node, () => constant(b, value, node.dtype)));
        } else {
          const type = scalarType(node.dtype)!;
          made.push(cast(b, parameter(leafCount + scalar, `s${scalar}`, type, node.shape), node.dtype));
        }
        break;
      }
      case 'moved': {
        const x = made[inputs[0]!]!;
        const offset = (i: number): number | Node => {
          const scalar = scalarOf(number + i);
          if (scalar === undefined) return graphKey.constants[number + i]!;
          return parameter(leafCount + scalar, `s${scalar}`, 'i32', []);
        };
        made.push(onBehalf('rewrite', node, () => placed(b, node, x, offset)));
        break;
      }
      case 'op': {
        const operandsMade = inputs.map((input) => made[input]!);
        made.push(onBehalf('rewrite', node, () => b.copy(node, operandsMade)));
      }
    }
  }
  return { parameters, outputs: outputs.map((output) => made[output]!) };
}
