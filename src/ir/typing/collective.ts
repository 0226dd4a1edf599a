// Type rules of collectives, which work on the leading axis, of a process's place in its group, and of how a mesh splits a value.

import { isComplex } from '../dtype.ts';
import { axesNamed, groupSize, parseMesh, type Mesh } from '../mesh/mesh.ts';
import { localShape, splitOfKey, splitProblem, wholeShape, type Split } from '../mesh/split.ts';
import type { Attrs, CollectiveOp, Monoid, Op } from '../ops.ts';
import { fixedShape, type FixedShape } from '../shape.ts';
import { fail, type TensorType, type TypeRule, type TypeRulesOf } from './check.ts';

/** How many processes a group has. Throws E_VALUE or E_AXIS where mesh and axes name none. */
function sizeOfGroup(
  op: Op,
  inputs: readonly TensorType[],
  { mesh: text, over }: { readonly mesh: string; readonly over: string },
): number {
  if (inputs.length > 2)
    fail(op, 'E_VALUE', `expects a value and an event, got ${inputs.length} inputs`, inputs);
  const mesh = parseMesh(text);
  if (mesh === undefined) return fail(op, 'E_VALUE', `'${text}' is no mesh, such as data=2,model=4`, inputs);
  const axes = axesNamed(mesh, over);
  if (axes === undefined)
    return fail(op, 'E_AXIS', `'${over}' are no different axes of the mesh ${text}`, inputs);
  return groupSize(axes);
}

/** The shape, whose leading axis can be cut into so many parts. */
function checkParts(op: Op, inputs: readonly TensorType[], parts: number): readonly [number, ...number[]] {
  const [first, ...rest] = fixedShape(inputs[0]!.shape, op);
  if (first === undefined) return fail(op, 'E_SHAPE', 'a single number has no leading axis', inputs);
  if (first % parts !== 0)
    fail(op, 'E_SHAPE', `the leading axis cannot be cut into ${parts} equal parts`, inputs);
  return [first, ...rest];
}

function checkMonoid(op: Op, monoid: Monoid, inputs: readonly TensorType[]): void {
  const { dtype } = inputs[0]!;
  const logical = monoid === 'and' || monoid === 'or';
  if (logical !== (dtype === 'bool') || (monoid !== 'sum' && isComplex(dtype)))
    fail(op, 'E_DTYPE', `${monoid} does not combine this dtype`, inputs);
}

/** Places of the group, no two of them equal. */
function checkPlaces(op: Op, places: readonly number[], count: number, inputs: readonly TensorType[]): void {
  for (const place of places)
    if (place < 0 || place >= count)
      fail(op, 'E_VALUE', `the group of ${count} has no place ${place}`, inputs);
  const twice = places.find((place, i) => places.indexOf(place) !== i);
  if (twice !== undefined) fail(op, 'E_VALUE', `the place ${twice} is twice in one list`, inputs);
}

const rankIndexType: TypeRule<'rankIndex'> = (_, attrs, op) => {
  sizeOfGroup(op, [], attrs);
  return { dtype: 'i32', shape: [] };
};

/** The mesh and the split that attributes name, of values of this rank. Throws E_VALUE where the first is none. */
function shardingOf(
  op: Op,
  { mesh: text, split }: Attrs<'shard'>,
  inputs: readonly TensorType[],
): readonly [Mesh, FixedShape, Split] {
  const mesh = parseMesh(text);
  if (mesh === undefined) return fail(op, 'E_VALUE', `'${text}' is no mesh (data=2,model=4 is one)`, inputs);
  const shape = fixedShape(inputs[0]!.shape, op);
  return [mesh, shape, splitOfKey(split, shape.length)];
}

/** The type of a value whose axes the mesh can split so: its own, or that of a part. */
const splitType =
  <K extends 'shard' | 'toPart'>(kind: K): TypeRule<K> =>
  (inputs, attrs, op) => {
    const [mesh, shape, split] = shardingOf(op, attrs, inputs);
    const problem = splitProblem(mesh, shape, split);
    if (problem !== undefined) return fail(op, 'E_SHAPE', problem, inputs);
    return kind === 'shard' ? inputs[0]! : { dtype: inputs[0]!.dtype, shape: localShape(mesh, shape, split) };
  };

const toWholeType: TypeRule<'toWhole'> = (inputs, attrs, op) => {
  const [mesh, shape, split] = shardingOf(op, attrs, inputs);
  // Any shape is that of a part: what can be wrong is the names of axes.
  const anySizes = shape.map(() => 0);
  const problem = splitProblem(mesh, anySizes, split);
  if (problem !== undefined) return fail(op, 'E_SHAPE', problem, inputs);
  return { dtype: inputs[0]!.dtype, shape: wholeShape(mesh, shape, split) };
};

/** Ops that only programs over several processes have. */
export const meshRules: TypeRulesOf<CollectiveOp | 'rankIndex' | 'shard' | 'toPart' | 'toWhole'> = {
  rankIndex: rankIndexType,
  shard: splitType('shard'),
  toPart: splitType('toPart'),
  toWhole: toWholeType,
  allReduce: (inputs, attrs, op) => {
    sizeOfGroup(op, inputs, attrs);
    checkMonoid(op, attrs.monoid, inputs);
    return inputs[0]!;
  },
  allGather: (inputs, attrs, op) => {
    const count = sizeOfGroup(op, inputs, attrs);
    const [first, ...rest] = checkParts(op, inputs, 1);
    return { dtype: inputs[0]!.dtype, shape: [first * count, ...rest] };
  },
  reduceScatter: (inputs, attrs, op) => {
    const count = sizeOfGroup(op, inputs, attrs);
    checkMonoid(op, attrs.monoid, inputs);
    const [first, ...rest] = checkParts(op, inputs, count);
    return { dtype: inputs[0]!.dtype, shape: [first / count, ...rest] };
  },
  allToAll: (inputs, attrs, op) => {
    checkParts(op, inputs, sizeOfGroup(op, inputs, attrs));
    return inputs[0]!;
  },
  permuteRanks: (inputs, attrs, op) => {
    const count = sizeOfGroup(op, inputs, attrs);
    const { from, to } = attrs;
    if (from.length !== to.length)
      fail(op, 'E_VALUE', `${from.length} places cannot be paired with ${to.length}`, inputs);
    checkPlaces(op, from, count, inputs);
    checkPlaces(op, to, count, inputs);
    return inputs[0]!;
  },
  broadcastRank: (inputs, attrs, op) => {
    checkPlaces(op, [attrs.root], sizeOfGroup(op, inputs, attrs), inputs);
    return inputs[0]!;
  },
};
