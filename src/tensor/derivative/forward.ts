// Forward-mode derivatives: `jvp`, `linearize`, and `hvp`, which is forward mode over reverse mode.

import { tangents } from '../../autograd/jvp/jvp.ts';
import { TensorError } from '../../errors.ts';
import * as arg from '../../ir/arguments.ts';
import { full } from '../../ir/build.ts';
import { dims, type Node } from '../../ir/graph.ts';
import { sameShape } from '../../ir/shape.ts';
import { showHandle } from '../handle/handle.ts';
import { asTensor, nodeOf } from '../record.ts';
import { builder } from '../handle/recording.ts';
import { expectFunction } from '../expect.ts';
import { handleOf, Tensor } from '../tensor.ts';
import { checkSameStructure, flatten, unflatten } from '../tree.ts';
import type { WithTensors } from '../trace/traceable.ts';
import { linearFunction } from './linear.ts';
import { closed, result, tensorAt } from './result.ts';
import { grad } from './transform.ts';
import { callOpen, variablesOf, type Chosen, type VariableKind, type Variables } from './variables.ts';

/** A function's value, and how it changes. */
export interface Pushforward {
  readonly value: unknown;
  /** The tangent of the value, a tree like it, from one node for each variable. */
  readonly push: (directions: readonly Node[]) => unknown;
  readonly variables: Variables;
}

/**
 * Calls `fn` with the floats of the chosen arguments replaced by distinct nodes for them. `held`:
 * what the value is computed from is read later.
 */
export function pushforward<A extends unknown[]>(
  op: string,
  fn: (...args: A) => unknown,
  args: A,
  places: readonly number[],
  { kind = 'tangents', held = false }: { readonly kind?: VariableKind; readonly held?: boolean } = {},
): Pushforward {
  const variables = variablesOf(op, args, places, kind);
  const output = callOpen(op, fn as (...args: never[]) => unknown, variables);
  const flat = flatten(output, op);
  const outputs = flat.leaves.map((leaf, i) => tensorAt(op, 'result', leaf, flat.paths[i]!));
  const nodes = outputs.map(nodeOf);
  const values = outputs.map(closed);
  if (held) for (const tensor of values) handleOf(tensor).pull();
  const along = linearFunction(op, (directions) => tangents(builder(), nodes, variables.nodes, directions));
  return {
    value: unflatten(flat.structure, values),
    push: (directions) => {
      const found = along(directions);
      const untracked = new Set<Node>();
      const leaves = nodes.map((node, i) =>
        result(found[i] ?? full(builder(), dims(node), 0, node.dtype), untracked),
      );
      return unflatten(flat.structure, leaves);
    },
    variables,
  };
}

/** The nodes of tangents for the variables of some arguments, checked to be like these. */
function directionsOf(
  op: string,
  { nodes, chosen }: Variables,
  places: readonly number[],
  given: readonly unknown[],
): Node[] {
  const directions: Node[] = [];
  chosen.forEach((each, k) => {
    const what = `argument ${places[k]}`;
    const flat = flatten(given[k], op);
    checkSameStructure(op, what, each.flat, `its tangent`, flat);
    each.places.forEach((place, i) => {
      if (place === undefined) return;
      directions[place] = directionAt(op, what, each, i, flat.leaves[i], nodes[place]!);
    });
  });
  return directions;
}

function directionAt(
  op: string,
  what: string,
  { flat }: Chosen,
  leaf: number,
  given: unknown,
  variable: Node,
): Node {
  const path = flat.paths[leaf]!;
  const tangent =
    typeof given === 'number' && variable.shape.length === 0
      ? asTensor(given, variable.dtype, op)
      : tensorAt(op, `tangent of ${what}`, given, path);
  if (tangent.dtype === variable.dtype && sameShape(tangent.shape, variable.shape)) return nodeOf(tangent);
  const place = path === '' ? '' : ` at ${path}`;
  const value = showHandle({ dtype: variable.dtype, shape: dims(variable) });
  throw new TensorError(
    tangent.dtype === variable.dtype ? 'E_SHAPE' : 'E_DTYPE',
    op,
    `the tangent of ${what}${place} must be like its value, ${value}, got ${showHandle(handleOf(tangent))}`,
  );
}

const takesJvp = arg.takes<
  (fn: unknown, primals: readonly unknown[], tangents: readonly unknown[]) => unknown
>(
  ['the function', arg.callable<unknown>()],
  ['primals', arg.listOf<unknown>(arg.anything())],
  ['tangents', arg.listOf<unknown>(arg.anything())],
);

/**
 * The value of `fn` at the arguments `primals`, and how it changes where these move along
 * `tangents` (trees like them): the product of the Jacobian with the tangents. Every float among
 * the arguments has a tangent; other leaves are handed through. Throws E_SHAPE or E_DTYPE where a
 * tangent is not like its value.
 */
export function jvp<A extends unknown[], R>(
  fn: (...args: A) => R,
  primals: readonly [...A],
  tangents: readonly [...A],
): { value: R; tangent: R } {
  takesJvp('jvp', fn, primals, tangents);
  checkCount('jvp', primals, tangents);
  const places = [...primals.keys()];
  const { value, push, variables } = pushforward('jvp', fn, [...primals] as unknown as A, places);
  const tangent = push(directionsOf('jvp', variables, places, tangents));
  return { value: value as R, tangent: tangent as R };
}

/**
 * The value of `fn` at `args`, and the linear function that takes tangents of the arguments to the
 * tangent of the value. `fn` is called once; the linear function reads what the value was computed
 * from.
 */
export function linearize<A extends unknown[], R>(
  fn: (...args: A) => R,
  ...args: A
): { value: R; jvp: (...tangents: A) => R } {
  expectFunction('linearize', fn);
  const places = [...args.keys()];
  const { value, push, variables } = pushforward('linearize', fn, args, places, { held: true });
  return {
    value: value as R,
    jvp: (...tangents) => {
      checkCount('linearize', args, tangents);
      return push(directionsOf('linearize', variables, places, tangents)) as R;
    },
  };
}

function checkCount(op: string, primals: readonly unknown[], tangents: readonly unknown[]): void {
  if (primals.length === tangents.length) return;
  const problem = `${primals.length} argument(s) need as many tangents, got ${tangents.length}`;
  throw new TensorError('E_VALUE', op, problem, 'a tree like each argument, zerosLike(x) where one stays');
}

/**
 * The gradient of `fn` (one float element) at the arguments `primals`, and the product of its
 * Hessian with `tangents`: both trees like `primals`. It goes forwards over the gradient, and costs
 * a few times what the gradient does, whatever the number of arguments.
 */
export function hvp<A extends unknown[]>(
  fn: (...args: A) => Tensor,
  primals: readonly [...A],
  tangents: readonly [...A],
): { grad: WithTensors<A>; hvp: WithTensors<A> } {
  takesJvp('hvp', fn, primals, tangents);
  checkCount('hvp', primals, tangents);
  const places = [...primals.keys()];
  const gradient = grad(fn, { argnums: places });
  const { value, push, variables } = pushforward(
    'hvp',
    (...args: A) => gradient(...args) as unknown,
    [...primals] as unknown as A,
    places,
    { kind: 'gradients' },
  );
  const along = push(directionsOf('hvp', variables, places, tangents));
  return { grad: value as WithTensors<A>, hvp: along as WithTensors<A> };
}
