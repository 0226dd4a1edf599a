// Watches: facts about elements that decide whether an operation means anything, such as the least
// and the greatest of indices. They are computed beside the operation, as a few more reductions,
// and checked after the next read of any tensor: so an index outside its axis is an error that
// names the operation and the user's line. Always on the interpreter, with `setDebug(true)` on
// every device.

import { TensorError, userLocation, type ErrorCode } from '../errors.ts';
import { flag, takes } from '../ir/arguments.ts';
import { broadcast, constant, reduce, reshape } from '../ir/build.ts';
import type { GraphBuilder, Node } from '../ir/graph.ts';
import { packBytes, emptyData, unpackBytes } from '../ir/value.ts';
import { isReference } from './storage/device.ts';
import type { Handle } from './recording/handle.ts';
import { onRead, realise } from './realise/realise.ts';
import { record } from './recording/record.ts';
import {
  currentMapping,
  currentTrace,
  leafHandle,
  nodeFor,
  recordedHandle,
  withGrad,
} from './recording/recording.ts';
import { Storage } from './storage/storage.ts';
import { handleOf, Tensor } from './tensor.ts';

let on = false;
/** Whether the trace being made is one of `compile`, whose calls hand back what is assigned. */
let isCompiling = false;

const takesDebug = takes<typeof setDebug>(['the argument', flag]);

/**
 * With `true` operations recorded from then on watch what they read: indices outside of their axis,
 * labels that are no class, weights that are negative. The next read of any tensor (`data`, `item`,
 * `array`) rejects with E_INDEX or E_VALUE naming the operation, the element and the line. Compiled
 * functions are traced anew. It costs a few reductions an operation; off by default, but for the
 * interpreter, which always watches.
 */
export function setDebug(wanted: boolean): void {
  takesDebug('setDebug', wanted);
  on = wanted;
}

/** Whether operations recorded now are watched. */
export function isWatching(): boolean {
  return on || isReference();
}

/** Runs a trace of `compile`; what it watches is told at each call. */
export function compiling<T>(trace: () => T): T {
  const before = isCompiling;
  isCompiling = true;
  try {
    return trace();
  } finally {
    isCompiling = before;
  }
}

/** What is wrong with the facts, if something is. */
export type Judge = (facts: readonly (number | bigint)[]) => string | undefined;

interface Watch {
  readonly op: string;
  readonly code: ErrorCode;
  readonly place: string;
  readonly judge: Judge;
  /** How many facts there are of one example; a function that is mapped has more examples. */
  readonly count: number;
}

/** Watches outside of compiled functions, to be judged once. */
let waiting: (Watch & { readonly facts: Handle })[] = [];
/**
 * Watches in compiled functions, by the tensor that each call assigns the facts to; it lives as
 * long as the program.
 */
const repeated: (Watch & { readonly slot: WeakRef<Handle>; seen: number })[] = [];

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
  const trace = currentTrace();
  // What a loop's turns hand on is all that leaves them.
  const isHidden = trace !== undefined && (!isCompiling || trace.around !== undefined);
  if (isHidden || operands.some(({ size }) => size === 0)) return;
  const facts = withGrad(false, () =>
    record(operands, (b, nodes) => {
      const parts = make(b, nodes).map((fact) => reshape(b, fact, [1]));
      return parts.length === 1 ? parts[0]! : b.add('concat', parts, { axis: 0 });
    }),
  );
  keep({ op, code, place: userLocation(), judge, count: facts.size }, facts);
}

/** Keeps facts of one example, or of all of them, until they are judged. */
function keep(known: Watch, facts: Tensor): void {
  const mapping = currentMapping();
  if (mapping !== undefined) {
    mapping.watch(nodeFor(handleOf(facts)), (whole) => keep(known, new Tensor(recordedHandle(whole, false))));
    return;
  }
  if (currentTrace() === undefined) {
    waiting.push({ ...known, facts: handleOf(facts) });
    return;
  }
  const { dtype, shape } = facts;
  const zeros = packBytes({ dtype, shape, data: emptyData(dtype, facts.size) });
  const slot = leafHandle(Storage.ofHost(dtype, shape, zeros));
  new Tensor(slot).assign(facts);
  repeated.push({ ...known, slot: new WeakRef(slot), seen: slot.version });
}

/** Watches integers that must lie from `start` up to but without `end`. */
export function watchRange(
  op: string,
  what: string,
  index: Tensor,
  start: number,
  end: number,
  where: string,
  ignored?: number,
): void {
  watch(
    op,
    'E_INDEX',
    [index],
    (b, [node]) => {
      const axes = index.shape.map((_, axis) => axis);
      const counted = ignored === undefined ? node! : withoutIgnored(b, node!, ignored);
      return [reduce(b, 'min', counted, axes), reduce(b, 'max', counted, axes)];
    },
    ([low, high]) => {
      const wrong = low! < start ? low : high! >= end ? high : undefined;
      return wrong === undefined ? undefined : `${what} ${wrong} is outside ${where}`;
    },
  );
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

/** 0 in place of the elements that are not to count. */
function withoutIgnored(b: GraphBuilder, node: Node, ignored: number): Node {
  const same = (value: number): Node => broadcast(b, constant(b, value, node.dtype), node.shape as number[]);
  const hit = b.add('eq', [node, same(ignored)], {}) as Node;
  return b.add('where', [hit, same(0), node], {}) as Node;
}

/** Judges what was watched since the last read. Rejects with the first fault. */
async function judgeAll(): Promise<void> {
  const now: (Watch & { readonly facts: Handle })[] = waiting;
  waiting = [];
  for (const one of repeated) {
    const facts = one.slot.deref();
    if (facts === undefined || facts.version === one.seen) continue;
    one.seen = facts.version;
    now.push({ ...one, facts });
  }
  for (const { facts, judge, code, op, place, count } of now) {
    const { dtype, shape } = facts;
    const { data } = unpackBytes(await realise(facts).read(), dtype, shape);
    const all = [...data];
    for (let at = 0; at < all.length; at += count) {
      const problem = judge(all.slice(at, at + count));
      if (problem === undefined) continue;
      const example = all.length === count ? '' : `example ${at / count}: `;
      throw new TensorError(code, op, example + problem, undefined, place);
    }
  }
}

onRead(() => (waiting.length === 0 && repeated.length === 0 ? undefined : judgeAll()));
