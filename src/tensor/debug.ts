// Checks of elements, for mistakes that can be seen only there, such as labels that are not classes. An
// error is thrown by the next read of any tensor, and names the operation and the line that called it.
// Indices and labels are always checked (range-checks.ts), on the host if it has them. Checks that cost a
// reduction of floats run on the interpreter, and after `setDebug(true)`.

import { SinterError, TensorError, userLocation, type ErrorCode } from '../errors.ts';
import { flag, takes } from '../ir/arguments.ts';
import { binary, reduce, reshape } from '../ir/build.ts';
import type { DType } from '../ir/dtype.ts';
import { topological, type GraphBuilder, type Node } from '../ir/graph.ts';
import type { FixedShape } from '../ir/shape.ts';
import { packBytes, emptyData, unpackBytes } from '../ir/value.ts';
import { boundsOf, elementsOf, look, outmost, outside, outsiderAt, visible } from './range-checks.ts';
import type { IntegerRange } from './handle/number.ts';
import { isReference } from './device.ts';
import type { Checked, Handle, TraceScope } from './handle/handle.ts';
import { onRead, evaluate } from './evaluate/evaluate.ts';
import { isExample, storageOf } from './handle/leaf.ts';
import { recorded } from './handle/recorded.ts';
import { record } from './record.ts';
import {
  currentMapping,
  currentTrace,
  leafHandle,
  nodeFor,
  recordedHandle,
  withGrad,
} from './handle/recording.ts';
import { SessionPart } from './session.ts';
import { areAllChecked } from './sizes/trial.ts';
import { StoredValue } from './storage/storage.ts';
import { handleOf, Tensor } from './tensor.ts';

/** What is checked in a session, and what the checks have found. */
interface Checks {
  /** What `setDebug` and `setChecks` were told. */
  isDebugging: boolean;
  isChecking: boolean;
  /** Whether `unchecked` is running. */
  isOpen: boolean;
  /** Whether the trace being made is one of `compile`, whose calls hand back what is assigned. */
  isCompiling: boolean;
  /** The first fault that was seen; the next read tells it. */
  fault: SinterError | undefined;
  /** Watches outside of compiled functions, to be judged once. */
  waiting: Due[];
  /** Judgements that nobody has waited for. */
  readonly settling: Set<Promise<void>>;
  /**
   * Watches in compiled functions, by the tensor that each call assigns the facts to; it lives as
   * long as the program.
   */
  repeated: (Watch & { readonly slot: WeakRef<Handle>; seen: number })[];
}

const checks = new SessionPart((): Checks => ({
  isDebugging: false,
  isChecking: true,
  isOpen: false,
  isCompiling: false,
  fault: undefined,
  waiting: [],
  settling: new Set(),
  repeated: [],
}));

/** Beyond so many facts that nobody has read, they are computed. */
const mostWaiting = 256;

const takesDebug = takes<typeof setDebug>(['the argument', flag]);
const takesChecks = takes<typeof setChecks>(['the argument', flag]);

/**
 * With `true` operations recorded from then on watch all that they read: beside labels and indices
 * (`setChecks`), weights and variances that are negative, probabilities beyond [0, 1]. The next read
 * of any tensor (`data`, `item`, `array`) rejects with E_INDEX or E_VALUE naming the operation, the
 * element and the line. Compiled functions are traced anew. It costs a few reductions an operation;
 * off by default, but for the interpreter, which always watches.
 */
export function setDebug(wanted: boolean): void {
  takesDebug('setDebug', wanted);
  checks.current.isDebugging = wanted;
}

/**
 * With `false` operations recorded from then on do not check labels and indices: reading outside an
 * axis gives 0, writing there is dropped. By default the next read of any tensor rejects with an
 * IndexError naming the operation, the integer, what is allowed, and the line. What the host has is
 * checked there; of what only the device has, a kernel finds the outmost integer, which is read back
 * with the next read. Compiled functions are traced anew.
 */
export function setChecks(wanted: boolean): void {
  takesChecks('setChecks', wanted);
  checks.current.isChecking = wanted;
}

/** Runs `fn`, whose operations mean something where labels and indices are outside as well. */
export function unchecked<T>(fn: () => T): T {
  const { current } = checks;
  const before = current.isOpen;
  current.isOpen = true;
  try {
    return fn();
  } finally {
    current.isOpen = before;
  }
}

/** Whether operations recorded now are watched. */
function isWatching(): boolean {
  return checks.current.isDebugging || isReference();
}

/** Whether labels and indices of operations recorded now are checked. */
function areIndicesChecked(): boolean {
  const { isChecking, isDebugging, isOpen } = checks.current;
  return (isChecking || isDebugging) && !isOpen;
}

/** What operations recorded now are checked for: a trace holds for its own only. */
export function watching(): 'nothing' | 'indices' | 'values' | 'all' {
  if (isWatching()) return areIndicesChecked() ? 'all' : 'values';
  return areIndicesChecked() ? 'indices' : 'nothing';
}

/** Runs a trace of `compile`; what it watches is told at each call. */
export function compiling<T>(trace: () => T): T {
  const { current } = checks;
  const before = current.isCompiling;
  current.isCompiling = true;
  try {
    return trace();
  } finally {
    current.isCompiling = before;
  }
}

/** What is wrong with the facts, if something is. */
export type Judge = (facts: readonly (number | bigint)[]) => string | undefined;

interface Watch {
  /** The error of facts that are wrong; `of`: which example they are of, where there are many. */
  readonly judge: (facts: readonly (number | bigint)[], of: string) => SinterError | undefined;
  /** How many facts there are of one example; a function that is mapped has more examples. */
  readonly count: number;
  /** It is the greater facts that are wrong: those of several calls fold to one. */
  readonly isGreatest: boolean;
  /** What is checked, where the facts are how far integers lie from a range. */
  readonly check: Pick<Checked, 'range' | 'dtype'> | undefined;
}

interface Due extends Watch {
  readonly facts: Handle;
}

/**
 * Watches one operation: `make` gives facts of its operands, each a rank-0 node of one dtype.
 * `always`: on every device, for operations whose results mean nothing where the facts are wrong.
 */
export function watch(
  op: string,
  code: ErrorCode,
  operands: readonly Tensor[],
  make: (b: GraphBuilder, nodes: readonly Node[]) => readonly Node[],
  judge: Judge,
  { always = false }: { readonly always?: boolean } = {},
): void {
  if (!always && !isWatching()) return;
  const place = isHidden() ? '' : userLocation();
  watchFacts(operands, make, {
    isGreatest: false,
    judge: (facts, of) => {
      const problem = judge(facts);
      return problem === undefined ? undefined : new TensorError(code, op, of + problem, undefined, place);
    },
    check: undefined,
  });
}

/** Facts of a function that is traced for something else than its calls reach nobody. */
function isHidden(): boolean {
  const trace = outermostTrace();
  if (trace === undefined || trace.found !== undefined || trace.checked !== undefined) return false;
  return !checks.current.isCompiling;
}

function outermostTrace(): TraceScope | undefined {
  let trace = currentTrace();
  while (trace?.around !== undefined) trace = trace.around;
  return trace;
}

function watchFacts(
  operands: readonly Tensor[],
  make: (b: GraphBuilder, nodes: readonly Node[]) => readonly Node[],
  { isGreatest, judge, check }: Pick<Watch, 'isGreatest' | 'judge' | 'check'>,
): void {
  // What a loop's turns hand on is all that leaves them, and a program by itself has checks of ranges alone.
  const isLost =
    (currentTrace()?.found !== undefined || outermostTrace()?.checked !== undefined) && !isGreatest;
  if (isLost || isHidden() || operands.some(({ size }) => size === 0) || areStandIns(operands)) return;
  const facts = withGrad(false, () =>
    record(operands, (b, nodes) => {
      const parts = make(b, nodes).map((fact) => reshape(b, fact, [1]));
      return parts.length === 1 ? parts[0]! : b.add('concat', parts, { axis: 0 });
    }),
  );
  keep({ judge, count: facts.size, isGreatest, check }, facts);
}

/**
 * Whether a rule of a derivative made these of values that it gets for all iterations of a loop, or all
 * examples of a batch: nothing is required of them, as of what the loop itself reads.
 */
function areStandIns(operands: readonly Tensor[]): boolean {
  if (!recorded().scratch) return false;
  const trace = currentTrace();
  const isKnown = (node: Node): boolean =>
    storageOf(node) !== undefined || isExample(node) || trace?.isInput(node) === true;
  const nodes = operands.map((operand) => nodeFor(handleOf(operand)));
  return topological(nodes, isKnown).some((node) => node.op === 'parameter' && !isKnown(node));
}

/** Keeps facts of one example, or of all of them, until they are judged. */
function keep(known: Watch, facts: Tensor): void {
  const mapping = currentMapping();
  if (mapping !== undefined) {
    mapping.watch(nodeFor(handleOf(facts)), (whole) => keep(known, new Tensor(recordedHandle(whole, false))));
    return;
  }
  const trace = currentTrace();
  if (trace?.found !== undefined) {
    trace.found.push({ facts: handleOf(facts), tell: (outside) => keep(known, new Tensor(outside)) });
    return;
  }
  if (trace === undefined) {
    const { current } = checks;
    current.waiting.push({ ...known, facts: handleOf(facts) });
    if (current.waiting.length > mostWaiting) settleWaiting(current);
    return;
  }
  if (trace.checked !== undefined) {
    // Of all examples of a function that is mapped.
    const greatest = facts.size === 1 ? facts : record([facts], (b, [x]) => outmostOf(b, x!));
    trace.checked.push({ ...known.check!, distance: handleOf(greatest) });
    return;
  }
  const { dtype, shape } = facts;
  const slot = leafHandle(nothing(dtype, shape));
  const before = new Tensor(slot);
  // What an earlier call found stays until it is told.
  const all = known.isGreatest ? record([before, facts], (b, [x, y]) => binary(b, 'max', x!, y!)) : facts;
  before.assign(all);
  checks.current.repeated.push({ ...known, slot: new WeakRef(slot), seen: slot.version });
}

function outmostOf(b: GraphBuilder, distances: Node): Node {
  const axes = distances.shape.map((_, axis) => axis);
  return reshape(b, reduce(b, 'max', distances, axes), [1]);
}

function nothing(dtype: DType, shape: FixedShape): StoredValue {
  const size = shape.reduce((product, dim) => product * dim, 1);
  return StoredValue.ofHost(dtype, shape, packBytes({ dtype, shape, data: emptyData(dtype, size) }));
}

/**
 * Checks integers that must lie from `start` up to but without `end`. What can be seen is looked at
 * now, an input of a compiled function at each call; what only the device will know is folded there.
 */
export function watchRange(
  op: string,
  what: string,
  index: Tensor,
  start: number,
  end: number,
  where: string,
  ignored?: number,
): void {
  if (!areIndicesChecked() || index.size === 0) return;
  const range: IntegerRange = { op, what, start, end, where, ignored };
  const node = nodeFor(handleOf(index));
  const { low, high } = boundsOf(node);
  if (low >= start && high < end && !areAllChecked()) return;
  const elements = elementsOf(node);
  const storage = visible(elements);
  if (storage !== undefined) tell(look(storage, range));
  else if (currentTrace()?.requires(elements, range) !== true) foldRange(index, range);
}

/** The next read tells a fault; a program by itself is not made with it. */
function tell(found: SinterError | undefined): void {
  if (found !== undefined && outermostTrace()?.checked !== undefined) throw found;
  checks.current.fault ??= found;
}

/** Has the device find the outmost integer. `place`: where the operation was recorded. */
function foldRange(
  index: Tensor,
  range: IntegerRange,
  place: string = isHidden() ? '' : userLocation(),
): void {
  const { dtype } = index;
  watchFacts([index], (b, [node]) => [outmost(b, node!, range)], {
    isGreatest: true,
    judge: ([distance], of) => {
      const found = outsiderAt(distance!, range, dtype);
      return found === undefined ? undefined : outside(range, found, place, of);
    },
    check: { range, dtype },
  });
}

/** Checks what a compiled function is called with, before it runs. */
export function checkInput(value: Handle, range: IntegerRange, place: string): void {
  const storage = evaluate(value);
  // Of a value that several processes hold each of them checks its part.
  if (storage.part !== undefined) return checkInput(leafHandle(storage.ownPart()), range, place);
  const { current } = checks;
  if (storage.seen !== undefined) current.fault ??= look(storage, range, place);
  else {
    foldRange(new Tensor(value), range, place);
    // The function may be given the memory of its inputs.
    evaluate(current.waiting.at(-1)!.facts);
  }
}

/** The same of a number. */
export function checkNumber(value: number, range: IntegerRange, place: string): void {
  const found = Math.trunc(value);
  if (found < range.start || found >= range.end) checks.current.fault ??= outside(range, found, place);
}

/** Watches floats that must lie in [0, 1]; NaN is for `detectAnomaly`. */
export function watchShares(op: string, what: string, x: Tensor): void {
  if (x.dtype === 'bool') return;
  watch(
    op,
    'E_VALUE',
    [x],
    (b, [node]) => {
      const axes = x.shape.map((_, axis) => axis);
      return [reduce(b, 'min', node!, axes), reduce(b, 'max', node!, axes)];
    },
    ([low, high]) => {
      const wrong = low! < 0 ? low : high! > 1 ? high : undefined;
      return wrong === undefined ? undefined : `${what} must be in [0, 1]: ${wrong}`;
    },
  );
}

/** What was watched since the last read. */
function takeDue(state: Checks): Due[] {
  const due = state.waiting;
  state.waiting = [];
  let hasDied = false;
  for (const one of state.repeated) {
    const facts = one.slot.deref();
    hasDied ||= facts === undefined;
    if (facts === undefined || facts.version === one.seen) continue;
    one.seen = facts.version;
    due.push({ ...one, facts });
  }
  if (hasDied) state.repeated = state.repeated.filter(({ slot }) => slot.deref() !== undefined);
  return due;
}

/** Computes what waits, so that a program that never reads holds no more than that. */
function settleWaiting(state: Checks): void {
  const due = state.waiting;
  state.waiting = [];
  for (const one of due) {
    const judged = judge(state, one);
    if (judged === undefined) continue;
    state.settling.add(judged);
    void judged.finally(() => state.settling.delete(judged));
  }
}

/** Judges facts, now where they can be seen. */
function judge(state: Checks, due: Due): Promise<void> | undefined {
  const storage = evaluate(due.facts);
  const { seen } = storage;
  if (seen !== undefined) {
    judgeBytes(state, due, seen);
    return undefined;
  }
  return storage.read().then(
    (bytes) => judgeBytes(state, due, bytes),
    (error: unknown) => {
      state.fault ??= error instanceof SinterError ? error : new SinterError('E_BUG', String(error));
    },
  );
}

function judgeBytes(state: Checks, due: Due, bytes: Uint8Array): void {
  const { facts, judge: told, count, isGreatest } = due;
  const { dtype, shape } = facts;
  const all = [...unpackBytes(bytes, dtype, shape).data];
  for (let at = 0; at < all.length; at += count) {
    const of = all.length === count ? '' : `example ${at / count}: `;
    const error = told(all.slice(at, at + count), of);
    if (error === undefined) continue;
    state.fault ??= error;
    return isGreatest ? forget(state, facts) : undefined;
  }
}

/** The calls to come are judged by themselves. */
function forget(state: Checks, facts: Handle): void {
  const one = state.repeated.find(({ slot }) => slot.deref() === facts);
  if (one === undefined) return;
  new Tensor(facts).assign(new Tensor(leafHandle(nothing(facts.dtype, facts.shape))));
  one.seen = facts.version;
}

/** Judges what was watched since the last read. Rejects with the first fault. */
async function judgeAll(state: Checks, due: readonly Due[]): Promise<void> {
  await Promise.all([...due.map((one) => judge(state, one)), ...state.settling]);
  if (state.fault === undefined) return;
  const told = state.fault;
  state.fault = undefined;
  throw told;
}

onRead(() => {
  const { current } = checks;
  const due = takeDue(current);
  const isClear = due.length === 0 && current.fault === undefined && current.settling.size === 0;
  return isClear ? undefined : judgeAll(current, due);
});
