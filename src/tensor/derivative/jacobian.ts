// Jacobians: `jacfwd`, `jacrev` and `hessian`. A Jacobian is the derivative of a function along
// every direction of a basis, and a basis is a batch: columns forwards, rows backwards.

import { TensorError } from '../../errors.ts';
import { cotangents } from '../../autograd/vjp.ts';
import { tangents } from '../../autograd/jvp/jvp.ts';
import { moveAxis } from '../../autograd/vmap/rule.ts';
import * as arg from '../../ir/arguments.ts';
import { full, reshape } from '../../ir/build.ts';
import { isComplex, isInexact } from '../../ir/dtype.ts';
import { dims, type Node } from '../../ir/graph.ts';
import { identity } from '../../ir/matrix.ts';
import { sizeOf } from '../../ir/shape.ts';
import { showHandle } from '../handle/handle.ts';
import { nodeOf } from '../record.ts';
import { builder } from '../handle/recording.ts';
import { handleOf, Tensor } from '../tensor.ts';
import { flatten, unflatten, type Flat } from '../tree.ts';
import { leading, mapOver } from './mapping.ts';
import { result, tensorAt } from './result.ts';
import type { GradientOf } from './transform.ts';
import {
  callOpen,
  checkArgnums,
  variablesOf,
  type Argnums,
  type VariableKind,
  type Variables,
} from './variables.ts';

export interface JacobianOptions<N extends Argnums = Argnums> {
  /** Which arguments to differentiate; default 0. With a list, Jacobians come as a list. */
  readonly argnums?: N;
}

/**
 * What a Jacobian is for a result of type `R` and an argument (or arguments) like `G`: for each
 * tensor of the result a tree like the argument.
 */
export type JacobianOf<R, G> = R extends Tensor
  ? G
  : R extends readonly unknown[] | { readonly [key: string]: unknown }
    ? { -readonly [K in keyof R]: JacobianOf<R[K], G> }
    : G;

const takesJacobian = arg.takes<(fn: unknown, options?: JacobianOptions) => unknown>(
  ['the function', arg.callable<unknown>()],
  // Which arguments there are shows when the function is called.
  ['options', arg.options<JacobianOptions>({ argnums: arg.inside() })],
);

/** One call of the function. */
interface Called {
  readonly variables: Variables;
  readonly flat: Flat;
  readonly outputs: readonly Node[];
}

function called(
  op: string,
  fn: (...args: never[]) => unknown,
  args: readonly unknown[],
  argnums: Argnums,
  kind: VariableKind,
): Called {
  const variables = variablesOf(op, args, checkArgnums(op, argnums, args), kind);
  const output = callOpen(op, fn, variables);
  const flat = flatten(output, op);
  const outputs = flat.leaves.map((leaf, i) => {
    const tensor = tensorAt(op, 'result', leaf, flat.paths[i]!);
    if (isInexact(tensor.dtype)) return nodeOf(tensor);
    const problem = `the result is ${showHandle(handleOf(tensor))}: only floats have derivatives`;
    throw new TensorError('E_GRAD', op, problem);
  });
  for (const node of [...variables.nodes, ...outputs]) {
    if (!isComplex(node.dtype)) continue;
    const problem = `a Jacobian of complex numbers has no one meaning: ${node.dtype}`;
    throw new TensorError('E_GRAD', op, problem, 'jvp or vjp along directions of a basis');
  }
  return { variables, flat, outputs };
}

/** The tree of Jacobians: for each result, for each chosen argument. `at` gives [...result, ...variable]. */
function assembled(
  { variables, flat, outputs }: Called,
  argnums: Argnums,
  at: (output: number, variable: number) => Node | undefined,
): unknown {
  const untracked = new Set<Node>();
  const leaves = outputs.map((output, i) => {
    const trees = variables.chosen.map(({ flat: arg, places }) =>
      unflatten(
        arg.structure,
        arg.leaves.map((leaf, k) => {
          const place = places[k];
          if (place === undefined && !(leaf instanceof Tensor)) return leaf;
          const shape = place === undefined ? (leaf as Tensor).shape : dims(variables.nodes[place]!);
          const node = place === undefined ? undefined : at(i, place);
          return result(node ?? full(builder(), [...dims(output), ...shape], 0, output.dtype), untracked);
        }),
      ),
    );
    return typeof argnums === 'number' ? trees[0] : trees;
  });
  return unflatten(flat.structure, leaves);
}

/** Every direction of a value, one after the other: [size, ...shape]. */
function basisOf(node: Node): Node {
  const shape = dims(node);
  const size = sizeOf(shape);
  const b = builder();
  return reshape(b, identity(b, 1, [size, size], node.dtype), [size, ...shape]);
}

/** The derivative along every direction of a basis of `like`; `along` has one result for each of `count`. */
function alongBasis(
  like: Node,
  along: (direction: Node) => readonly (Node | undefined)[],
): (Node | undefined)[] {
  const size = sizeOf(dims(like));
  const b = builder();
  // There is one direction only: nothing to map.
  if (size === 1) {
    const found = along(full(b, dims(like), 1, like.dtype));
    return found.map((node) => node && reshape(b, node, [1, ...dims(node)]));
  }
  let present: readonly (Node | undefined)[] = [];
  const mapped = mapOver(size, [{ node: basisOf(like), tracked: false }], 'same', ([direction]) => {
    present = along(nodeOf(direction!));
    return present.filter((node) => node !== undefined);
  });
  let next = 0;
  return present.map((node) => node && leading(mapped[next++]!, size));
}

/**
 * A function that gives the Jacobian of `fn`, by rows: one pass backwards for each element of the
 * result, all of them at once. Fewer passes than `jacfwd` takes where results are fewer than
 * arguments. For each tensor of the result a tree like the argument, of shapes
 * [...result, ...argument].
 */
export function jacrev<A extends unknown[], R, const N extends Argnums = 0>(
  fn: (...args: A) => R,
  options: JacobianOptions<N> = {},
): (...args: A) => JacobianOf<R, GradientOf<A, N>> {
  takesJacobian('jacrev', fn, options);
  const { argnums = 0 } = options as JacobianOptions;
  return (...args) => {
    const call = called('jacrev', fn as (...args: never[]) => unknown, args, argnums, 'gradients');
    const { outputs, variables } = call;
    const rows = outputs.map((output) =>
      alongBasis(output, (seed) => cotangents(builder(), [output], [seed], variables.nodes)),
    );
    const at = (output: number, variable: number): Node | undefined => {
      const node = rows[output]![variable];
      const shape = [...dims(outputs[output]!), ...dims(variables.nodes[variable]!)];
      return node && reshape(builder(), node, shape);
    };
    return assembled(call, argnums, at) as JacobianOf<R, GradientOf<A, N>>;
  };
}

/**
 * A function that gives the Jacobian of `fn`, by columns: one pass forwards for each element of the
 * arguments, all of them at once. As `jacrev` otherwise.
 */
export function jacfwd<A extends unknown[], R, const N extends Argnums = 0>(
  fn: (...args: A) => R,
  options: JacobianOptions<N> = {},
): (...args: A) => JacobianOf<R, GradientOf<A, N>> {
  takesJacobian('jacfwd', fn, options);
  return forwards('jacfwd', fn, options as JacobianOptions, 'tangents');
}

function forwards<A extends unknown[], R, N extends Argnums>(
  op: string,
  fn: (...args: A) => R,
  { argnums = 0 }: JacobianOptions,
  kind: VariableKind,
): (...args: A) => JacobianOf<R, GradientOf<A, N>> {
  return (...args) => {
    const call = called(op, fn as (...args: never[]) => unknown, args, argnums, kind);
    const { outputs, variables } = call;
    const columns = variables.nodes.map((variable) =>
      alongBasis(variable, (direction) => tangents(builder(), outputs, [variable], [direction])),
    );
    const at = (output: number, variable: number): Node | undefined => {
      const node = columns[variable]![output];
      if (node === undefined) return undefined;
      const b = builder();
      const last = moveAxis(b, node, 0, node.shape.length - 1);
      return reshape(b, last, [...dims(outputs[output]!), ...dims(variables.nodes[variable]!)]);
    };
    return assembled(call, argnums, at) as JacobianOf<R, GradientOf<A, N>>;
  };
}

/**
 * A function that gives the matrix of second derivatives of `fn`: the Jacobian forwards of the
 * Jacobian backwards. Of one number, for each tensor of the argument a tree like the argument, of
 * shapes [...argument, ...argument]. Where only its product with a vector is wanted, `hvp` does not
 * make the matrix.
 */
export function hessian<A extends unknown[], R, const N extends Argnums = 0>(
  fn: (...args: A) => R,
  options: JacobianOptions<N> = {},
): (...args: A) => JacobianOf<JacobianOf<R, GradientOf<A, N>>, GradientOf<A, N>> {
  takesJacobian('hessian', fn, options);
  const first = jacrev(fn, options);
  return forwards('hessian', first, options as JacobianOptions, 'gradients') as never;
}
