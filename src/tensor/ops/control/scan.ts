// Loops of a fixed number of iterations: `scan`, `foriLoop` and `map`. Their bodies are called once, on
// tracers, and compiled once; programs run them as often as they turn, without reading back.

import { TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import { recordLoop, valuesOf } from '../../control/record.ts';
import type { AsCarried } from '../../trace/traceable.ts';
import { showHandle } from '../../handle/handle.ts';
import { handleOf, type Tensor } from '../../tensor.ts';

export interface LoopOptions {
  /**
   * What a derivative keeps of the iterations: by default each iteration's carries and products. 'sqrt' keeps
   * the carries of every √n-th iteration, a number those of every so many-th, and computes the iterations
   * between them again.
   */
  readonly checkpoint?: 'sqrt' | number;
}

export interface ScanLoopOptions extends LoopOptions {
  /** From the last slice to the first; results lie where their slices do. Default false. */
  readonly reverse?: boolean;
  /**
   * The number of iterations: needed where there are no slices to count; by default as many as there are
   * slices.
   */
  readonly length?: number;
}

const checkpointKind = arg.either<'sqrt', number>(arg.oneOf('sqrt'), arg.count(1));
const loopTable: arg.Table<LoopOptions> = { checkpoint: checkpointKind };
const scanTable: arg.Table<ScanLoopOptions> = { ...loopTable, reverse: arg.flag, length: arg.count(0) };

/** The form of loops that end by their number of iterations. */
const counted = { guard: -1, hoists: true };

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
      'without slices the number of iterations is not known',
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
 * Calls `fn(carry, x, i)` for each slice `x` of `xs` along axis 0, and passes the carry that it returns to
 * the next call: returns the last carry, and the other results of the calls, stacked. Carries
 * and slices are trees of tensors; with no `xs` there are `length` iterations. `fn` is recorded once, and
 * must not read data, draw random numbers or assign to tensors. Throws E_SHAPE or E_DTYPE where a
 * iteration hands on another type of carry.
 *
 * @jax lax.scan
 */
export function scan<const C, const X, const Y>(
  fn: (carry: AsCarried<C>, x: AsCarried<X>, index: Tensor<'i32'>) => readonly [carry: unknown, y: Y],
  init: C,
  xs?: X,
  options: ScanLoopOptions = {},
): [carry: AsCarried<C>, ys: AsCarried<Y>] {
  takesScan('scan', fn, init, xs, options);
  const slices = xs === undefined ? [] : xs;
  const trips = lengthOf('scan', slices, options.length);
  const [carry, given] = recordLoop({
    op: 'scan',
    init,
    slices,
    iteration: (index, held, slice) =>
      fn(
        held as AsCarried<C>,
        (xs === undefined ? undefined : slice) as AsCarried<X>,
        index as Tensor<'i32'>,
      ),
    form: {
      trips,
      reverse: options.reverse === true,
      segment: segmentOf(options.checkpoint, trips),
      ...counted,
    },
    first: 0,
  });
  return [carry as AsCarried<C>, given as AsCarried<Y>];
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
 * Calls `fn(i, carry)` for i from `lower` up to, but not including, `upper`, and passes the carry that it
 * returns to the next call; returns the last one. Carries are trees of tensors of one type in every iteration.
 *
 * @jax lax.fori_loop
 */
export function foriLoop<const C>(
  lower: number,
  upper: number,
  fn: (index: Tensor<'i32'>, carry: AsCarried<C>) => unknown,
  init: C,
  options: LoopOptions = {},
): AsCarried<C> {
  takesFori('foriLoop', lower, upper, fn, init, options);
  const trips = Math.max(0, upper - lower);
  const [carry] = recordLoop({
    op: 'foriLoop',
    init,
    slices: [],
    iteration: (index, held) => [fn(index as Tensor<'i32'>, held as AsCarried<C>), undefined],
    form: { trips, reverse: false, segment: segmentOf(options.checkpoint, trips), ...counted },
    first: lower,
  });
  return carry as AsCarried<C>;
}

const takesMap = arg.takes<(fn: unknown, xs: unknown) => unknown>(
  ['the function', arg.callable<unknown>()],
  ['the slices', arg.inside()],
);

/**
 * What `fn` gives for each slice of `xs` along axis 0, stacked: one slice after the other, so that
 * no more memory is needed than one takes. (Operations on whole tensors are faster where they fit.)
 *
 * @jax lax.map
 */
export function map<const X, const Y>(fn: (x: AsCarried<X>, index: Tensor<'i32'>) => Y, xs: X): AsCarried<Y> {
  takesMap('map', fn, xs);
  const trips = lengthOf('map', xs, undefined);
  const [, given] = recordLoop({
    op: 'map',
    init: [],
    slices: xs,
    iteration: (index, _, slice) => [[], fn(slice as AsCarried<X>, index as Tensor<'i32'>)],
    form: { trips, reverse: false, segment: 0, ...counted },
    first: 0,
  });
  return given as AsCarried<Y>;
}
