// compile: a function traced once per signature of its arguments and then run as one Program.
// Tensors it captures are inputs, read anew at each call; what it assigns to them is handed back.
// Numbers among the arguments and random draws are run-time scalars. A call gives tensors at once;
// only reading their data waits.

import { showValue, TensorError } from '../../errors.ts';
import * as arg from '../../ir/arguments.ts';
import { readBook, type Schedules } from '../../tune/book.ts';
import type { TuneOptions } from '../../tune/tune.ts';
import { targetOf } from '../../schedule/target.ts';
import { adjusted } from '../workarounds/adjusting.ts';
import { handlesOf } from '../trace/argument.ts';
import { aBudget, withBudget } from './budget.ts';
import type { FindSchedules } from '../evaluate/executable.ts';
import { isFollowing } from '../anomaly.ts';
import { expectSynchronous } from '../expect.ts';
import { numberTensor } from '../record.ts';
import { currentMapping, currentTrace } from '../handle/recording.ts';
import { declaredOf, type Dims } from '../sizes/dim.ts';
import { counts } from '../report/stats.ts';
import { noteReport } from '../sizes/report.ts';
import { Specialisations } from './specialisations.ts';
import type { CalledWith, Traceable } from '../trace/traceable.ts';
import { callOnCopies, flatten, unflatten, type Flat } from '../tree.ts';

export interface CompileFunctionOptions {
  /**
   * Arguments whose tensors are given up by a call, so that results may take their memory; using them
   * later is an error; none by default.
   */
  readonly donate?: readonly number[];
  /**
   * Measures a few ways to run each kernel that has a choice, once for a kind of kernel, its sizes
   * and the device, and keeps the best: see `TuneOptions`. The first call then waits in the
   * background; false by default.
   */
  readonly tune?: boolean | TuneOptions;
  /**
   * Choices to use instead, as `measuredSchedules` gave them. They hold for the device they were
   * measured on; none by default.
   */
  readonly schedules?: Schedules;
  /**
   * Sizes of arguments that may vary; by default those that are seen to vary: `{ x: ['batch', dim('seq', { max: 2048 }), 64] }`, by the names
   * of parameters or by place. One program, in at most three variants, serves all of them. Within the
   * function sizes are numbers as ever; it is recorded at a few sizes, and once at each that calls
   * bring, to see what becomes of them (docs/functions/sizes.md).
   */
  readonly dims?: Dims;
  /**
   * Bytes that a run may take in device memory: inputs, results and what lies between. Where it takes
   * more, values are computed again instead of being kept, products last, and results are the same.
   * Throws E_LIMIT where they are read if that is not enough; no limit by default.
   */
  readonly memory?: number;
}

const placesOfArguments: arg.Kind<readonly number[]> = {
  accepts: (value) =>
    Array.isArray(value) && Array.from<unknown>(value).every((at) => arg.count(0).accepts(at)),
  refuse(op, _, value): never {
    const problem = `donate must list places of arguments, got ${showValue(value)}`;
    throw new TensorError('E_VALUE', op, problem, 'donate: [0] for the first argument');
  },
};

/** Where measurements are kept. */
const aStore: arg.Kind<string | false> = arg.kind(
  'a path or false',
  (value) => value === false || typeof value === 'string',
);
const tuneOptions = arg.settings<TuneOptions>({ store: aStore });
const aTune: arg.Kind<boolean | TuneOptions> = {
  accepts: (value) => arg.flag.accepts(value) || tuneOptions.accepts(value),
  refuse(op, what, value): never {
    if (arg.isPlainObject(value)) return tuneOptions.refuse(op, what, value);
    const problem = `tune must be true, false or { store }, got ${showValue(value)}`;
    throw new TensorError('E_VALUE', op, problem, 'tune: true');
  },
};
const takesCompile = arg.takes<
  (fn: (...args: never[]) => unknown, options?: CompileFunctionOptions) => unknown
>(
  ['the function', arg.callable()],
  // What options hold is checked where they are read.
  [
    'options',
    arg.options<CompileFunctionOptions>({
      donate: placesOfArguments,
      tune: aTune,
      schedules: arg.inside(),
      dims: arg.inside(),
      memory: aBudget,
    }),
  ],
);

/**
 * A function that runs `fn` as compiled programs: one per structure, dtypes and shapes of the
 * arguments (trees of tensors; numbers arrive in `fn` as rank-0 f32 tensors and may change freely;
 * strings and booleans are static). Gradients go through: the derivative of a call is made of what
 * its program computed. Inside another traced function `fn` itself is called.
 */
export function compile<A extends unknown[], R>(
  fn: Traceable<A, R>,
  options: CompileFunctionOptions = {},
): (...args: Extract<CalledWith<A>, unknown[]>) => R {
  takesCompile('compile', fn, options);
  const donate = donated(options);
  const callable = fn as unknown as (...args: never[]) => unknown;
  const { dims, memory } = options;
  if (dims !== undefined && memory !== undefined) {
    const problem = 'a budget of memory is for the sizes of one call, and dims let them vary';
    throw new TensorError('E_VALUE', 'compile', problem, 'memory or dims, not both');
  }
  const declared = dims === undefined ? undefined : declaredOf(callable, dims);
  const find = findSchedules(options);
  let made: Specialisations | undefined;
  const known = (): Specialisations =>
    (made ??= new Specialisations(callable, donate, find, declared, memory));
  const compiled = (...args: Extract<CalledWith<A>, unknown[]>): R => {
    for (const index of donate) {
      if (!(index in args))
        throw new TensorError('E_VALUE', 'compile', `there is no argument ${index} to donate`);
    }
    // While anomalies are looked for, every operation is recorded where it is called.
    if (currentTrace() !== undefined || currentMapping() !== undefined || isFollowing()) {
      const flat = flatten(args, 'compile');
      handlesOf(flat.leaves);
      return inlined(callable, flat) as R;
    }
    const began = performance.now();
    const found = known().recall(args) ?? known().add(args, flatten(args, 'compile'));
    const result = found.compiled.call(found.leaves, found.handles) as R;
    counts.callMilliseconds += performance.now() - began;
    return result;
  };
  noteReport(compiled, {
    programOf: (args) => {
      const found = known().recall(args) ?? known().add(args, flatten(args, 'explain'));
      return found.compiled.shared;
    },
    variants: () => known().varying.variants(),
    donated: (flat) => known().donated(flat),
  });
  return withBudget(compiled, memory);
}

function donated({ donate = [] }: CompileFunctionOptions): Set<number> {
  return new Set(donate);
}

function findSchedules({ tune = false, schedules }: CompileFunctionOptions): FindSchedules | undefined {
  const book = schedules === undefined ? undefined : readBook('compile: schedules', schedules);
  if (tune === false && book === undefined) return undefined;
  const measured = tune === false ? undefined : tune === true ? {} : tune;
  return async (graph, device, options) => {
    const { schedulesFor } = await import('../../tune/tune.ts');
    const target = targetOf(adjusted(device.facts).facts);
    return schedulesFor(graph, device, options, book, measured, { target });
  };
}

/** Calls the function itself, numbers as tensors as they would be when traced. */
function inlined(fn: (...args: never[]) => unknown, flat: Pick<Flat, 'structure' | 'leaves'>): unknown {
  const leaves = flat.leaves.map((leaf) => (typeof leaf === 'number' ? numberTensor(leaf) : leaf));
  const copies = unflatten(flat.structure, leaves) as never[];
  const result = callOnCopies('compile', () => fn(...copies));
  expectSynchronous('compile', result);
  // What no compiled function could give is refused here too.
  flatten(result, 'compile');
  return result;
}
