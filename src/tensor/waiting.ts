// Calls that wait: of operations whose code has not come into a page yet (page/), and of any operation on what such a call
// gives. A call that lacks something throws NotLoaded before it has done anything; it is kept, with what it was given, and
// recorded when the code is there. The tensors that it gives meanwhile have no dtype and no shape: who asks them for
// anything gets NotLoaded, but reading their values waits.
//
// What a recorded call depends on beside its code is kept as it is at the call: tensors (which may be assigned to, or
// disposed of, later) by their nodes, arrays by copies, and the scopes that it is in. Random numbers are drawn in the order
// of the calls: while one waits that may draw, so does whatever draws after it. Inside of a traced, mapped or differentiated
// function, of a layer, or of `withKey`, nothing waits: NotLoaded goes up to whoever called.

import { CompilerBug, SinterError, userLocation, within } from '../errors.ts';
import { isPlainObject } from '../ir/arguments.ts';
import { NotLoaded, onArrival, type Lazy } from '../lazy.ts';
import { autocastType, withAutocastType } from './autocast.ts';
import { isDrawingByKey, onGeneratorUse } from './generator.ts';
import { outerCall } from './layer/frames.ts';
import { Handle, type Waiting } from './recording/handle.ts';
import { isDifferentiating } from './recording/history.ts';
import { record } from './recording/record.ts';
import { currentMapping, currentTrace, gradEnabled, withGrad } from './recording/recording.ts';
import { disposeHandle } from './storage/memory.ts';
import { handleOf, settleOn, Tensor } from './tensor.ts';

/** An operation as users call it. */
export type Operation = (...args: never[]) => unknown;

type AnyOperation = (...args: readonly unknown[]) => unknown;

/**
 * What a call gives: one tensor; an array of so many; an object of tensors by these names; a promise, unless an option says
 * how many elements there are; or what cannot be told without its code, so that such a call does not wait.
 */
export type Gives = 'tensor' | 'promise' | 'untold' | number | readonly string[];

/** What is known of an operation without its code. */
export interface Traits {
  readonly gives?: Gives;
  /** It may take numbers from the generator. */
  readonly draws?: boolean;
}

interface Call {
  readonly operation: AnyOperation;
  args: readonly unknown[];
  readonly draws: boolean;
  readonly within: <T>(fn: () => T) => T;
  readonly place: string;
  readonly gives: number | readonly string[];
  /** What it gives, waiting. */
  readonly results: readonly Tensor[];
  /** What it lacks, as far as is known. */
  part: Lazy<unknown>;
}

/** Calls that have not been recorded yet, in order. */
const calls = new Set<Call>();
/** Errors of calls that have been tried. */
const failures = new WeakMap<Call, { readonly error: unknown }>();
/** The call whose result a handle stands in for. */
const origins = new WeakMap<object, Call>();
/** Results that were disposed of before they were recorded. */
const unwanted = new WeakSet<object>();

/** How many operations are being called within each other. */
let depth = 0;
/** The call that is being recorded late. */
let late: Call | undefined;

/** The operation for pages: where code is missing, calls of it wait. */
export function patient(operation: Operation, { gives = 'tensor', draws = false }: Traits = {}): Operation {
  const run = operation as AnyOperation;
  return (...args: readonly unknown[]) => {
    if (depth > 0) return run(...args);
    depth += 1;
    try {
      const result = run(...args);
      return gives === 'promise' && result instanceof Promise ? completed(run, args, result) : result;
    } catch (error) {
      if (!(error instanceof NotLoaded)) throw error;
      return waiting(run, args, gives, draws, error);
    } finally {
      depth -= 1;
    }
  };
}

function waiting(
  operation: AnyOperation,
  args: readonly unknown[],
  gives: Gives,
  draws: boolean,
  lack: NotLoaded,
): unknown {
  const isInside =
    currentTrace() !== undefined ||
    currentMapping() !== undefined ||
    isDifferentiating() ||
    outerCall() !== undefined ||
    isDrawingByKey();
  if (isInside || gives === 'untold') throw lack;
  if (gives === 'promise') {
    // With a size, what is given is there at once.
    if (args.some((arg) => isPlainObject(arg) && ('size' in arg || 'outputSize' in arg))) throw lack;
    return completed(operation, args, Promise.reject(lack));
  }
  const names = typeof gives === 'object' ? gives : undefined;
  const count = gives === 'tensor' ? 1 : typeof gives === 'number' ? gives : gives.length;
  const results = Array.from({ length: count }, () => new Tensor(standIn()));
  const call: Call = {
    operation,
    args: args.map(kept),
    draws,
    within: scopes(),
    place: userLocation(),
    gives: gives === 'tensor' ? 0 : gives,
    results,
    part: lack.part,
  };
  for (const result of results) origins.set(handleOf(result), call);
  calls.add(call);
  begin(call.part);
  if (names !== undefined) return Object.fromEntries(names.map((name, i) => [name, results[i]]));
  return gives === 'tensor' ? results[0] : results;
}

/** What a call gives that waits for data anyway. */
async function completed(
  operation: AnyOperation,
  args: readonly unknown[],
  first: Promise<unknown>,
): Promise<unknown> {
  const [held, inScopes] = [args.map(kept), scopes()];
  for (let result = first; ; result = inScopes(async () => operation(...held))) {
    try {
      return await result;
    } catch (error) {
      if (!(error instanceof NotLoaded)) throw error;
      await error.part.load();
    }
  }
}

/** Runs functions in the scopes that are open now. */
function scopes(): Call['within'] {
  const [tracks, narrow] = [gradEnabled(), autocastType()];
  return (fn) => withGrad(tracks, () => withAutocastType(narrow, fn));
}

/** An argument as it is now, whatever becomes of it. */
function kept(value: unknown): unknown {
  if (value instanceof Tensor) return handleOf(value).waiting === undefined ? alias(value) : value;
  if (Array.isArray(value)) return value.map(kept);
  if (ArrayBuffer.isView(value) && !(value instanceof DataView)) return (value as Float32Array).slice();
  if (!isPlainObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, kept(inner)]));
}

/** Arguments that are aliases already. */
const aliases = new WeakSet<Tensor>();

function alias(tensor: Tensor): Tensor {
  if (aliases.has(tensor)) return tensor;
  const same = withGrad(true, () => record([tensor], (_, [node]) => node!));
  handleOf(same).weak = tensor.weak;
  aliases.add(same);
  return same;
}

/** Loading begins; that it fails is the business of who waits for it, and tries again. */
function begin(part: Lazy<unknown>): void {
  part.load().catch(() => undefined);
}

/** Records, in order, the calls for which everything has come. */
function settle(): void {
  for (const call of calls) if (call.part.loaded !== undefined) attempt(call);
  // What calls that go on waiting take of those that do not is held from now on.
  for (const call of calls) call.args = call.args.map(kept);
}

function attempt(call: Call): void {
  late = call;
  depth += 1;
  try {
    const given = call.within(() => call.operation(...call.args));
    calls.delete(call);
    deliver(call, given);
  } catch (error) {
    if (error instanceof NotLoaded && error.part.loaded === undefined) {
      call.part = error.part;
      begin(error.part);
      return;
    }
    calls.delete(call);
    const known = error instanceof SinterError && error.message.includes('\n  at ');
    failures.set(call, { error: known || call.place === '' ? error : within(error, call.place.trim()) });
  } finally {
    depth -= 1;
    late = undefined;
  }
}

/** The waiting tensors stand for what the call has given. */
function deliver({ gives, results }: Call, given: unknown): void {
  const list =
    gives === 0 ? [given] : typeof gives === 'number' ? given : gives.map((name) => memberOf(given, name));
  const fits = Array.isArray(list) && list.length === results.length;
  if (!fits || !list.every((item) => item instanceof Tensor))
    throw new CompilerBug('waiting', 'an operation gives something else than the page was told');
  results.forEach((result, i) => {
    const [before, handle] = [handleOf(result), handleOf(list[i] as Tensor)];
    settleOn(result, handle);
    if (unwanted.has(before)) disposeHandle(handle);
  });
}

function memberOf(value: unknown, name: string): unknown {
  return (value as Readonly<Record<string, unknown>> | undefined)?.[name];
}

onArrival(settle);

// The state of the generator is known when all calls before have drawn.
onGeneratorUse(() => {
  for (const call of calls) {
    if (call === late) return;
    if (call.draws) throw new NotLoaded(call.part, ', and a call before that may draw waits for it');
  }
});

/** What a stand-in says to whoever asks it for anything. */
function refuse(handle: object): never {
  const call = origins.get(handle);
  const failed = call && failures.get(call);
  if (failed !== undefined) throw failed.error;
  if (call === undefined || !calls.has(call))
    throw new CompilerBug('waiting', 'a stand-in is used that has been replaced');
  throw new NotLoaded(call.part, ', and a tensor that waits for it has no dtype and no shape before');
}

class Wait implements Waiting {
  readonly #handle: object;
  readonly #call: Call;

  constructor(handle: object, call: Call) {
    this.#handle = handle;
    this.#call = call;
  }

  get part(): string {
    return this.#call.part.name;
  }

  async ready(): Promise<void> {
    while (calls.has(this.#call)) await this.#call.part.load();
    const failed = failures.get(this.#call);
    if (failed !== undefined) throw failed.error;
  }

  abandon(): void {
    unwanted.add(this.#handle);
  }
}

/** Everything that a handle has, but for what it waits for. */
const fields =
  'dtype shape trace storage requiresGrad leaf grad version gone keep late released pulled weak number passed aside node isParameter'.split(
    ' ',
  );

const standIns = Object.create(Handle.prototype, {
  ...Object.fromEntries(
    fields.map((name) => [
      name,
      {
        get(this: object): never {
          return refuse(this);
        },
        set(this: object): never {
          return refuse(this);
        },
      },
    ]),
  ),
  waiting: {
    get(this: object): Waiting | undefined {
      const call = origins.get(this);
      return call && new Wait(this, call);
    },
  },
}) as Handle;

/** In place of the handle of a result that is not recorded yet. */
function standIn(): Handle {
  return Object.create(standIns) as Handle;
}
