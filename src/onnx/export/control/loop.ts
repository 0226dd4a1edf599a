// Loops in the ONNX format: `Loop`, and `If` for loops of at most one iteration that a guard decides. Bodies
// read stacks and invariants by name from the surrounding graph; slices are gathered.

import { inputsOf, siblingKey } from '../../../ir/control/iterate.ts';
import { graphOf } from '../../../ir/text/region.ts';
import { dims, type NodeOf } from '../../../ir/graph.ts';
import type { FixedShape } from '../../../ir/shape.ts';
import { Unspelled, type ModelEmitter, type Val } from '../emitter.ts';
import type { ExportRow, ExportScope } from '../row.ts';

type Loop = NodeOf<'iterate'>;

/** A loop's result; its siblings are results of the same node of the file. */
export const iterate: ExportRow<'iterate'> = (scope, node) => {
  const key = siblingKey(node);
  const known = scope.loops.get(key) ?? spelled(scope, node);
  scope.loops.set(key, known);
  return known[node.attrs.result]!;
};

function spelled(scope: ExportScope, node: Loop): Val[] {
  const { guard, trips } = node.attrs;
  if (guard >= 0 && trips === 1) return spelledBranch(scope, node);
  const { carries } = node.attrs;
  if (guard >= 0 && node.attrs.body.graph.outputs.length > carries)
    throw new Unspelled('a loop that ends early gives as many slices as it makes turns');
  return spelledLoop(scope, node);
}

/** The region's outputs at a turn, from values for what it is handed on. */
function turn(scope: ExportScope, e: ModelEmitter, node: Loop, at: Val, carried: readonly Val[]): Val[] {
  const { stacks, invariants } = inputsOf(node);
  const slices = stacks.map((stack): Val => {
    const [, ...shape] = dims(stack);
    return e.move('Gather', [scope.full(stack), at], shape, { axis: 0 });
  });
  const values = [e.cast(at, 'i32'), ...carried, ...slices, ...invariants.map(scope.full)];
  return scope.spellInside(e, graphOf(node.attrs.body), values);
}

/** Results under names of their own: the format's outputs of a body are computed in it. */
function ends(e: ModelEmitter, values: readonly Val[]): Val[] {
  return values.map((value) => e.node('Identity', [value], value));
}

function spelledLoop(scope: ExportScope, node: Loop): Val[] {
  const { e } = scope;
  const { carries, trips, guard, reverse } = node.attrs;
  const starts = inputsOf(node).carries.map(scope.full);
  const body = e.inside();
  const count = body.port('i64', []);
  const going = body.port('bool', []);
  const carried = starts.map(({ dtype, shape }) => body.port(dtype, shape));
  const at = reverse ? body.node('Sub', [body.scalar(trips - 1, 'i64'), count], count) : count;
  const results = turn(scope, body, node, at, carried);
  const more = guard < 0 ? going : body.cast(results[guard]!, 'bool');
  const graph = body.graph([count, going, ...carried], ends(body, [more, ...results]));
  const types = results.map(({ dtype, shape }, i) => {
    return { dtype, shape: i < carries ? shape : [trips, ...shape] };
  });
  const first = guard < 0 ? undefined : e.cast(starts[guard]!, 'bool');
  const made = e.many('Loop', [e.scalar(trips, 'i64'), first, ...starts], types, { body: { graph } });
  // Slices are stacked in the order of turns.
  return made.map((value, i) => (reverse && i >= carries ? turnedAround(e, value) : value));
}

function turnedAround(e: ModelEmitter, value: Val): Val {
  const { shape } = value;
  const start = shape.map((size, axis): number => (axis === 0 ? size - 1 : 0));
  return e.slice(
    value,
    start,
    shape,
    shape.map((_, axis): number => (axis === 0 ? -1 : 1)),
  );
}

function spelledBranch(scope: ExportScope, node: Loop): Val[] {
  const { e } = scope;
  const { carries, guard } = node.attrs;
  const starts = inputsOf(node).carries.map(scope.full);
  const inner = e.inside();
  const stacked = (of: ModelEmitter, value: Val, i: number): Val => {
    const shape: FixedShape = i < carries ? value.shape : [1, ...value.shape];
    return of.reshape(value, shape);
  };
  const made = turn(scope, inner, node, inner.scalar(0, 'i64'), starts);
  const results = made.map((value, i) => stacked(inner, value, i));
  const other = e.inside();
  const untaken = results.map(({ dtype, shape }, i) => {
    return i < carries ? starts[i]! : other.expand(other.scalar(0, dtype), shape);
  });
  return e.many('If', [e.cast(starts[guard]!, 'bool')], results, {
    then_branch: { graph: inner.graph([], ends(inner, results)) },
    else_branch: { graph: other.graph([], ends(other, untaken)) },
  });
}
