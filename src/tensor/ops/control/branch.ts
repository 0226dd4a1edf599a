// What data decides: `cond` and `switchCase` run one of several functions, `whileLoop` runs one as
// long as a condition says. Each is recorded once. A branch is a loop of at most one iteration, whose
// guard is the predicate: it hands on the results of the branches before it, or its own.

import { showValue, TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import { binary, cast, constant, full, where } from '../../../ir/build.ts';
import { isWide, type DType } from '../../../ir/dtype.ts';
import type { Node } from '../../../ir/graph.ts';
import { sameShape } from '../../../ir/shape.ts';
import { loopNodes, type LoopBody } from '../../control/loop.ts';
import { recordLoop, valuesOf } from '../../control/record.ts';
import { LoopScope } from '../../control/scope.ts';
import type { AsCarried, WithTensors } from '../../trace/traceable.ts';
import { expectSynchronous } from '../../expect.ts';
import { showHandle } from '../../handle/handle.ts';
import { recordMany } from '../../record.ts';
import { currentHandle, withGrad, withTrace } from '../../handle/recording.ts';
import { handleOf, Tensor } from '../../tensor.ts';
import { unflatten, type Flat } from '../../tree.ts';

type Branch = (...operands: never[]) => unknown;

/** A branch as it was recorded. */
interface Recorded {
  /** As messages call it. */
  readonly name: string;
  readonly scope: LoopScope;
  readonly count: Node;
  readonly operands: readonly Node[];
  readonly flat: Flat;
  readonly results: readonly Tensor[];
}

interface Type {
  readonly dtype: DType;
  readonly shape: readonly number[];
}

function recorded(op: string, name: string, branch: Branch, operands: readonly unknown[]): Recorded {
  const scope = new LoopScope(op, 'branch');
  return withTrace(scope, () =>
    withGrad(true, () => {
      const nodeOf = (tensor: Tensor): Node => currentHandle(handleOf(tensor), op).node;
      const count = nodeOf(scope.parameter({ dtype: 'i32', shape: [] }));
      const inside: Tensor[] = [];
      const given = operands.map((operand) => {
        const values = valuesOf(op, 'an operand', operand);
        const own = values.tensors.map((tensor) => scope.parameter(tensor));
        inside.push(...own);
        return unflatten(values.flat.structure, own);
      });
      const result = (branch as (...all: readonly unknown[]) => unknown)(...given);
      expectSynchronous(op, result);
      const { flat, tensors } = valuesOf(op, `what ${name} gives`, result);
      return { name, scope, count, operands: inside.map(nodeOf), flat, results: tensors };
    }),
  );
}

/** The types that all branches give, place by place. Throws where they differ. */
function commonTypes(op: string, branches: readonly Recorded[]): readonly Type[] {
  const [first, ...others] = branches as readonly [Recorded, ...Recorded[]];
  const places = ({ paths }: Flat): string => `{${paths.map((path) => path || 'a tensor').join(', ')}}`;
  for (const { name, flat } of others) {
    const { paths } = first.flat;
    if (flat.paths.length === paths.length && flat.paths.every((path, i) => path === paths[i])) continue;
    throw new TensorError(
      'E_VALUE',
      op,
      `${first.name} gives a tree of ${places(first.flat)}, and ${name} one of ${places(flat)}`,
      'return results of one structure from every branch',
    );
  }
  return first.results.map((result, i): Type => {
    const shape = result.shape;
    // A plain number takes the dtype that other branches give.
    const firm = branches.find(({ results }) => !results[i]!.weak) ?? first;
    const { dtype } = firm.results[i]!;
    for (const { name, results } of branches) {
      const other = results[i]!;
      const fits = sameShape(other.shape, shape);
      if (fits && (other.weak || other.dtype === dtype)) continue;
      const at = first.flat.paths[i] === '' ? '' : ` at ${first.flat.paths[i]}`;
      const base = fits ? firm : first;
      const [one, two] = [base.results[i]!, other].map((tensor) => showHandle(handleOf(tensor)));
      throw new TensorError(
        fits ? 'E_DTYPE' : 'E_SHAPE',
        op,
        `${base.name} gives ${one}${at}, and ${name} gives ${two}`,
        fits ? `return .cast('${dtype}')` : 'return results of one shape from every branch',
      );
    }
    return { dtype, shape };
  });
}

/** Runs the branch whose guard is not 0; `guards` gives one i32 for each of them. */
function choose(
  op: string,
  branches: readonly (readonly [name: string, branch: Branch])[],
  choice: Tensor,
  operands: readonly unknown[],
  guardOf: (choice: Node, place: number) => (b: Parameters<typeof loopNodes>[0]) => Node,
): unknown {
  const values = operands.map((operand) => valuesOf(op, 'an operand', operand).tensors).flat();
  const made = branches.map(([name, branch]) => recorded(op, name, branch, operands));
  const types = commonTypes(op, made);
  const bodies = made.map(({ scope, results, count, operands: own }): LoopBody =>
    withTrace(scope, () => {
      const next = results.map((tensor, i) => {
        const { dtype } = types[i]!;
        const typed = tensor.dtype === dtype ? tensor : tensor.cast(dtype);
        return currentHandle(handleOf(typed), op).node;
      });
      const found = scope.found.map(({ facts }) => facts);
      const carries = [{ dtype: 'i32' as const, shape: [] }, ...types, ...found].map(
        (type) => currentHandle(handleOf(scope.parameter(type)), op).node,
      );
      const going = constant(scope.builder, 0, 'i32');
      const captured = [...own, ...scope.captured.map(({ parameter }) => parameter)];
      return {
        count,
        carries,
        slices: [],
        captured,
        next: [going, ...next, ...found.map(({ node }) => node)],
        given: [],
      };
    }),
  );
  const outside = made.map(({ scope }) => scope.captured.map((one) => new Tensor(one.outside)));
  const results = recordMany([choice, ...values, ...outside.flat()], (b, [chosen, ...nodes]) => {
    const own = nodes.slice(0, values.length);
    let at = values.length;
    let held: readonly Node[] = types.map(({ dtype, shape }) => full(b, shape, 0, dtype));
    const found: Node[] = [];
    bodies.forEach((body, place) => {
      const read = nodes.slice(at, at + outside[place]!.length);
      at += read.length;
      const guard = guardOf(chosen!, place)(b);
      const nothing = made[place]!.scope.found.map(({ facts: { dtype, shape } }) =>
        full(b, shape, isWide(dtype) ? 0n : 0, dtype),
      );
      const inputs = { carries: [guard, ...held, ...nothing], stacks: [], captured: [...own, ...read] };
      const form = { trips: 1, reverse: false, segment: 0, guard: 0, hoists: false };
      const after = loopNodes(b, body, inputs, form).slice(1);
      held = after.slice(0, types.length);
      found.push(...after.slice(types.length));
    });
    return [...held, ...found];
  });
  const told = made.flatMap(({ scope }) => scope.found);
  told.forEach(({ tell }, i) => tell(handleOf(results[types.length + i]!)));
  return unflatten(made[0]!.flat.structure, results.slice(0, types.length));
}

/** A predicate or an index must be one element. */
function oneElement(op: string, what: string, given: Tensor): void {
  if (given.shape.length === 0) return;
  const found = showHandle(handleOf(given));
  const hint = `reduce it to one (any(), all()), or take where(${what}, a, b) element by element`;
  throw new TensorError('E_SHAPE', op, `the ${what} must be of rank 0, got ${found}`, hint);
}

const fn = arg.callable<Branch>();
const predicateKind = arg.inside();

const takesCond = arg.takes<
  (predicate: unknown, onTrue: Branch, onFalse: Branch, operands: readonly unknown[]) => unknown
>(['the predicate', predicateKind], ['onTrue', fn], ['onFalse', fn], ['the operands', arg.inside()]);

/**
 * What `onTrue` gives of the operands where the predicate, a bool tensor of rank 0, is true, else
 * what `onFalse` gives: only that one runs. Both are recorded, and must give trees of tensors of the
 * same shapes and dtypes; operands are trees of tensors, and what else is used inside is taken along.
 * A boolean of JavaScript is decided at once. Throws E_SHAPE, E_DTYPE or E_VALUE where branches
 * differ.
 *
 * @jax lax.cond
 */
export function cond<const O extends readonly unknown[], R>(
  predicate: Tensor | boolean,
  onTrue: (...operands: WithTensors<O>) => R,
  onFalse: (...operands: WithTensors<O>) => R,
  ...operands: O
): WithTensors<R> {
  takesCond('cond', predicate, onTrue as Branch, onFalse as Branch, operands);
  const branches = [
    ['onTrue', onTrue as unknown as Branch],
    ['onFalse', onFalse as unknown as Branch],
  ] as const;
  if (typeof predicate === 'boolean')
    return known('cond', branches[predicate ? 0 : 1], operands) as WithTensors<R>;
  if (!(predicate instanceof Tensor) || predicate.dtype !== 'bool') {
    const found = predicate instanceof Tensor ? showHandle(handleOf(predicate)) : showValue(predicate);
    throw new TensorError(
      'E_DTYPE',
      'cond',
      `the predicate must be a bool, got ${found}`,
      'x.ne(0), x.lt(y)',
    );
  }
  oneElement('cond', 'predicate', predicate);
  return choose('cond', branches, predicate, operands, (chosen, place) => (b) => {
    const taken = cast(b, chosen, 'i32');
    return place === 0 ? taken : where(b, chosen, constant(b, 0, 'i32'), constant(b, 1, 'i32'));
  }) as WithTensors<R>;
}

/** What a branch gives that is known to be taken, as tensors. */
function known(op: string, [name, branch]: readonly [string, Branch], operands: readonly unknown[]): unknown {
  const given = operands.map((operand) => {
    const { flat, tensors } = valuesOf(op, 'an operand', operand);
    return unflatten(flat.structure, tensors);
  });
  const result = (branch as (...all: readonly unknown[]) => unknown)(...given);
  expectSynchronous(op, result);
  const { flat, tensors } = valuesOf(op, `what ${name} gives`, result);
  return unflatten(flat.structure, tensors);
}

const takesSwitch = arg.takes<
  (index: unknown, branches: readonly Branch[], operands: readonly unknown[]) => unknown
>(['the index', predicateKind], ['the branches', arg.listOf(fn)], ['the operands', arg.inside()]);

/**
 * What the branch of this number gives of the operands, as `cond` has it: only that one runs. An
 * index, an integer tensor of rank 0, that is too low chooses the first branch, one that is too high
 * the last.
 *
 * @jax lax.switch
 */
export function switchCase<const O extends readonly unknown[], R>(
  index: Tensor | number,
  branches: readonly ((...operands: WithTensors<O>) => R)[],
  ...operands: O
): WithTensors<R> {
  takesSwitch('switchCase', index, branches as unknown as readonly Branch[], operands);
  const named = branches.map((branch, i) => [`branch ${i}`, branch as unknown as Branch] as const);
  const last = named.length - 1;
  if (last < 0)
    throw new TensorError('E_VALUE', 'switchCase', 'there are no branches', 'one branch, or more');
  if (typeof index === 'number' && Number.isSafeInteger(index))
    return known('switchCase', named[Math.min(Math.max(index, 0), last)]!, operands) as WithTensors<R>;
  if (!(index instanceof Tensor) || !['i32', 'u32', 'i16', 'u16', 'i8', 'u8'].includes(index.dtype)) {
    const found = index instanceof Tensor ? showHandle(handleOf(index)) : showValue(index);
    const problem = `the index must be an integer of 32 bits or less, got ${found}`;
    throw new TensorError('E_DTYPE', 'switchCase', problem, ".cast('i32')");
  }
  oneElement('switchCase', 'index', index);
  return choose('switchCase', named, index, operands, (chosen, place) => (b) => {
    if (last === 0) return constant(b, 1, 'i32');
    if (place === last) return cast(b, binary(b, 'lt', last - 1, chosen), 'i32');
    return cast(b, binary(b, place === 0 ? 'le' : 'eq', chosen, place), 'i32');
  }) as WithTensors<R>;
}

export interface WhileLoopOptions {
  /** Iterations after which the loop ends whatever the condition says; default 2^31 - 1. */
  readonly maxTurns?: number;
}

const takesWhile = arg.takes<
  (condition: unknown, body: unknown, init: unknown, options?: WhileLoopOptions) => unknown
>(
  ['the condition', arg.callable<unknown>()],
  ['the body', arg.callable<unknown>()],
  ['the carry', arg.inside()],
  ['options', arg.options<WhileLoopOptions>({ maxTurns: arg.count(0) })],
);

const mostTurns = 2 ** 31 - 1;

/**
 * Replaces the carry by `body(carry)` while `condition(carry)`, a bool tensor of rank 0, is true; returns
 * the last carry. Carries are trees of tensors of one type in every iteration. The
 * device computes, and the host reads one boolean an iteration. It is differentiated forwards (`jvp`);
 * backwards it is an error, E_GRAD, for what the iterations need would have no bound. Throws E_SHAPE or
 * E_DTYPE where an iteration hands on another type of carry.
 *
 * @jax lax.while_loop
 */
export function whileLoop<const C>(
  condition: (carry: AsCarried<C>) => Tensor,
  body: (carry: AsCarried<C>) => unknown,
  init: C,
  options: WhileLoopOptions = {},
): AsCarried<C> {
  takesWhile('whileLoop', condition, body, init, options);
  const trips = Math.min(options.maxTurns ?? mostTurns, mostTurns);
  const [carry] = recordLoop({
    op: 'whileLoop',
    init,
    slices: [],
    iteration: (_, held) => [body(held as AsCarried<C>), undefined],
    condition: (held) => condition(held as AsCarried<C>),
    form: { trips, reverse: false, segment: 0, guard: 0, hoists: true },
    first: 0,
  });
  return carry as AsCarried<C>;
}
