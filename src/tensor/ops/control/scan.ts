// Loops of a fixed number of turns: `scan`, `foriLoop` and `map`. Their bodies are called once, on
// stand-ins, and compiled once; programs run them as often as they turn, without reading back.

import { showValue, TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import { add } from '../../../ir/build.ts';
import type { Node } from '../../../ir/graph.ts';
import { sameShape } from '../../../ir/shape.ts';
import { loopNodes, type LoopForm } from '../../control/loop.ts';
import { LoopScope } from '../../control/scope.ts';
import { expectSynchronous } from '../../expect.ts';
import { showHandle } from '../../recording/handle.ts';
import { asTensor, recordMany } from '../../recording/record.ts';
import { currentHandle, withGrad, withTrace } from '../../recording/recording.ts';
import { handleOf, Tensor } from '../../tensor.ts';
import { flatten, unflatten, type Flat } from '../../tree.ts';
import type { WithTensors } from '../../compile/traceable.ts';

export interface LoopOptions {
  /**
   * What a derivative keeps of the turns: by default each turn's carries and products. 'sqrt' keeps
   * the carries of every √n-th turn, a number those of every so many-th, and computes the turns
   * between them again.
   */
  readonly checkpoint?: 'sqrt' | number;
}

export interface ScanLoopOptions extends LoopOptions {
  /** From the last slice to the first; results lie where their slices do. Default false. */
  readonly reverse?: boolean;
  /** The number of turns: needed where there are no slices to count. */
  readonly length?: number;
}

const checkpointKind = arg.either<'sqrt', number>(arg.oneOf('sqrt'), arg.count(1));
const loopTable: arg.Table<LoopOptions> = { checkpoint: checkpointKind };
const scanTable: arg.Table<ScanLoopOptions> = { ...loopTable, reverse: arg.flag, length: arg.count(0) };

/** A tree whose leaves are tensors, numbers among them made tensors of rank 0. */
interface Values {
  readonly flat: Flat;
  readonly tensors: readonly Tensor[];
}

function valuesOf(op: string, what: string, tree: unknown): Values {
  const flat = flatten(tree, op);
  const tensors = flat.leaves.map((leaf, i) => {
    if (leaf instanceof Tensor) return leaf;
    if (typeof leaf === 'number') return asTensor(leaf, 'f32', op);
    const at = flat.paths[i] === '' ? '' : ` at ${flat.paths[i]}`;
    throw new TensorError(
      'E_VALUE',
      op,
      `${what}${at} must be a tensor or a number, got ${showValue(leaf)}`,
      'what does not change from turn to turn is simply used in the function',
    );
  });
  return { flat, tensors };
}

/** What one turn gives: the next carries and slices, from those of the last and where it stands. */
type Turn = (index: Tensor, carry: unknown, slice: unknown) => readonly [carry: unknown, given: unknown];

interface Loop {
  readonly op: string;
  readonly init: unknown;
  readonly slices: unknown;
  readonly turn: Turn;
  readonly form: LoopForm;
  /** What is added to the counter. */
  readonly first: number;
}

/** Records a loop; gives the last carries and the stacked slices. */
function recordLoop({ op, init, slices, turn, form, first }: Loop): [carry: unknown, given: unknown] {
  const start = valuesOf(op, 'the carry', init);
  const stacks = valuesOf(op, 'the slices', slices);
  return recordTyped(start.tensors, false);

  function recordTyped(starts: readonly Tensor[], isAgain: boolean): [carry: unknown, given: unknown] {
    const scope = new LoopScope(op);
    const traced = withTrace(scope, () =>
      withGrad(true, () => {
        const count = scope.parameter({ dtype: 'i32', shape: [] });
        const carries = starts.map((tensor) => scope.parameter(tensor));
        const parts = stacks.tensors.map(({ dtype, shape }) =>
          scope.parameter({ dtype, shape: shape.slice(1) }),
        );
        const index = first === 0 ? count : plusFirst(count, first);
        const result = turn(
          index,
          unflatten(start.flat.structure, carries),
          unflatten(stacks.flat.structure, parts),
        );
        expectSynchronous(op, result);
        if (!Array.isArray(result) || result.length !== 2)
          throw new TensorError(
            'E_VALUE',
            op,
            `the function must return [carry, slice], got ${showValue(result)}`,
            'return [carry, undefined] where no slices are wanted',
          );
        const next = nextOf(op, start.flat, starts, result[0]);
        const given = result[1] === undefined ? undefined : valuesOf(op, 'the slice', result[1]);
        const nodesOf = (list: readonly Tensor[]): Node[] =>
          list.map((tensor) => currentHandle(handleOf(tensor), op).node);
        return {
          body: {
            count: nodesOf([count])[0]!,
            carries: nodesOf(carries),
            slices: nodesOf(parts),
            next: nodesOf(next.map(({ tensor }) => tensor)),
            given: nodesOf(given?.tensors ?? []),
          },
          wider: next.map(({ wider }) => wider),
          structure: given?.flat.structure,
        };
      }),
    );
    // A carry that begins as a plain number takes the dtype that the function gives it.
    if (!isAgain && traced.wider.some((dtype) => dtype !== undefined)) {
      const cast = starts.map((tensor, i) => {
        const dtype = traced.wider[i];
        return dtype === undefined ? tensor : asTensor(start.flat.leaves[i] as number, dtype, op);
      });
      return recordTyped(cast, true);
    }
    const captured = scope.captured.map(({ outside }) => new Tensor(outside));
    const operands = [...starts, ...stacks.tensors, ...captured];
    const body = { ...traced.body, captured: scope.captured.map(({ parameter }) => parameter) };
    const results = recordMany(operands, (b, nodes) => {
      const inputs = {
        carries: nodes.slice(0, starts.length),
        stacks: nodes.slice(starts.length, starts.length + stacks.tensors.length),
        captured: nodes.slice(starts.length + stacks.tensors.length),
      };
      return loopNodes(b, body, inputs, form);
    });
    const carry = unflatten(start.flat.structure, results.slice(0, starts.length));
    const given =
      traced.structure === undefined ? undefined : unflatten(traced.structure, results.slice(starts.length));
    return [carry, given];
  }
}

function plusFirst(count: Tensor, first: number): Tensor {
  return recordMany([count], (b, [node]) => [add(b, node!, first)])[0]!;
}

/** The carries that a turn returns, and the dtypes that those which began as numbers should have. */
function nextOf(
  op: string,
  start: Flat,
  starts: readonly Tensor[],
  tree: unknown,
): { readonly tensor: Tensor; readonly wider: Tensor['dtype'] | undefined }[] {
  const found = flatten(tree, op);
  const isSame =
    found.paths.length === start.paths.length && found.paths.every((path, i) => path === start.paths[i]);
  if (!isSame) {
    const places = (flat: Flat): string => `{${flat.paths.map((path) => path || 'a tensor').join(', ')}}`;
    throw new TensorError(
      'E_VALUE',
      op,
      `the carry is a tree of ${places(start)} before a turn and of ${places(found)} after it`,
      'return a carry of the same structure as the first one',
    );
  }
  return found.leaves.map((leaf, i) => {
    const before = starts[i]!;
    if (!(leaf instanceof Tensor) && typeof leaf !== 'number')
      throw new TensorError('E_VALUE', op, `the carry must be tensors, got ${showValue(leaf)}`);
    const tensor = asTensor(leaf, before.dtype, op);
    const at = start.paths[i] === '' ? 'the carry' : `the carry at ${start.paths[i]}`;
    const [was, is] = [handleOf(before), handleOf(tensor)].map(showHandle);
    if (!sameShape(tensor.shape, before.shape))
      throw new TensorError(
        'E_SHAPE',
        op,
        `${at} is ${was} before a turn and ${is} after it: every turn has to hand on one shape`,
        'begin with a carry of the shape that the function returns, or reshape, sum or slice what it returns',
      );
    if (tensor.dtype === before.dtype) return { tensor, wider: undefined };
    if (typeof start.leaves[i] === 'number' && !tensor.weak) return { tensor, wider: tensor.dtype };
    if (!tensor.weak)
      throw new TensorError(
        'E_DTYPE',
        op,
        `${at} is ${was} before a turn and ${is} after it: every turn has to hand on one dtype`,
        `begin with a carry of ${tensor.dtype}, or return .cast('${before.dtype}')`,
      );
    return { tensor: tensor.cast(before.dtype), wider: undefined };
  });
}

function segmentOf(checkpoint: LoopOptions['checkpoint'], trips: number): number {
  if (checkpoint === undefined) return 0;
  return checkpoint === 'sqrt' ? Math.ceil(Math.sqrt(trips)) : checkpoint;
}

/** How many slices all stacks have. */
function lengthOf(op: string, slices: unknown, length: number | undefined): number {
  const { tensors, flat } = valuesOf(op, 'the slices', slices);
  let found = length;
  tensors.forEach((tensor, i) => {
    const at = flat.paths[i] === '' ? '' : ` at ${flat.paths[i]}`;
    const type = showHandle(handleOf(tensor));
    if (tensor.rank === 0)
      throw new TensorError('E_SHAPE', op, `the slices${at} have no axis to go along: ${type}`);
    const own = tensor.shape[0]!;
    if (found !== undefined && own !== found) {
      const other = found === length ? `length is ${length}` : `the first has ${found}`;
      throw new TensorError(
        'E_SHAPE',
        op,
        `the slices${at} are ${own} along axis 0 of ${type}, but ${other}`,
        'stacks of one length along axis 0; leave length out where there are slices',
      );
    }
    found = own;
  });
  if (found === undefined)
    throw new TensorError(
      'E_VALUE',
      op,
      'there are no slices to count turns by',
      'scan(f, init, undefined, { length: n })',
    );
  return found;
}

const takesScan = arg.takes<(fn: unknown, init: unknown, xs?: unknown, options?: ScanLoopOptions) => unknown>(
  ['the function', arg.callable<unknown>()],
  ['the carry', arg.inside()],
  ['the slices', arg.inside()],
  ['options', arg.options<ScanLoopOptions>(scanTable)],
);

/**
 * Calls `fn(carry, x, i)` for each slice `x` of `xs` along axis 0, and hands the carry that it
 * returns to the next: gives the last carry, and what the calls returned beside it, stacked. Carries
 * and slices are trees of tensors; with no `xs` there are `length` turns. `fn` is recorded once, and
 * must not read data, draw random numbers or assign to tensors. Throws E_SHAPE or E_DTYPE where a
 * turn hands on another type of carry.
 */
export function scan<C, X, Y>(
  fn: (carry: WithTensors<C>, x: WithTensors<X>, index: Tensor<'i32'>) => readonly [carry: unknown, y: Y],
  init: C,
  xs?: X,
  options: ScanLoopOptions = {},
): [carry: WithTensors<C>, ys: WithTensors<Y>] {
  takesScan('scan', fn, init, xs, options);
  const slices = xs === undefined ? [] : xs;
  const trips = lengthOf('scan', slices, options.length);
  const [carry, given] = recordLoop({
    op: 'scan',
    init,
    slices,
    turn: (index, held, slice) =>
      fn(
        held as WithTensors<C>,
        (xs === undefined ? undefined : slice) as WithTensors<X>,
        index as Tensor<'i32'>,
      ),
    form: { trips, reverse: options.reverse === true, segment: segmentOf(options.checkpoint, trips) },
    first: 0,
  });
  return [carry as WithTensors<C>, given as WithTensors<Y>];
}

const takesFori = arg.takes<
  (lower: number, upper: number, fn: unknown, init: unknown, options?: LoopOptions) => unknown
>(
  ['the first index', arg.integer],
  ['the end', arg.integer],
  ['the function', arg.callable<unknown>()],
  ['the carry', arg.inside()],
  ['options', arg.options<LoopOptions>(loopTable)],
);

/**
 * Calls `fn(i, carry)` for i from `lower` up to, but not including, `upper`, and hands on the carry
 * that it returns; gives the last one. Carries are trees of tensors of one type in every turn.
 */
export function foriLoop<C>(
  lower: number,
  upper: number,
  fn: (index: Tensor<'i32'>, carry: WithTensors<C>) => unknown,
  init: C,
  options: LoopOptions = {},
): WithTensors<C> {
  takesFori('foriLoop', lower, upper, fn, init, options);
  const trips = Math.max(0, upper - lower);
  const [carry] = recordLoop({
    op: 'foriLoop',
    init,
    slices: [],
    turn: (index, held) => [fn(index as Tensor<'i32'>, held as WithTensors<C>), undefined],
    form: { trips, reverse: false, segment: segmentOf(options.checkpoint, trips) },
    first: lower,
  });
  return carry as WithTensors<C>;
}

const takesMap = arg.takes<(fn: unknown, xs: unknown) => unknown>(
  ['the function', arg.callable<unknown>()],
  ['the slices', arg.inside()],
);

/**
 * What `fn` gives for each slice of `xs` along axis 0, stacked: one slice after the other, so that
 * no more memory is needed than one takes. (Operations on whole tensors are faster where they fit.)
 */
export function map<X, Y>(fn: (x: WithTensors<X>, index: Tensor<'i32'>) => Y, xs: X): WithTensors<Y> {
  takesMap('map', fn, xs);
  const trips = lengthOf('map', xs, undefined);
  const [, given] = recordLoop({
    op: 'map',
    init: [],
    slices: xs,
    turn: (index, _, slice) => [[], fn(slice as WithTensors<X>, index as Tensor<'i32'>)],
    form: { trips, reverse: false, segment: 0 },
    first: 0,
  });
  return given as WithTensors<Y>;
}
