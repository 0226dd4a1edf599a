// Progress of a loop: a bar if stderr is a terminal, otherwise a line now and then, or calls of a function,
// which pages need.

import * as arg from '../ir/arguments.ts';
import { showValue, TensorError } from '../errors.ts';

/** How far a loop is. */
export interface ProgressReport {
  readonly label: string;
  /** Turns of the loop that are over. */
  readonly done: number;
  /** How many there will be, where that is known. */
  readonly total: number | undefined;
  readonly seconds: number;
  /** Turns a second, over the whole loop. */
  readonly rate: number;
  /** Seconds that are left, where the total is known. */
  readonly left: number | undefined;
  /** What `note` gave last. */
  readonly note: string;
  /** Whether the loop is over: there are no reports after this one. */
  readonly isOver: boolean;
}

export interface ProgressOptions {
  /** What stands before the figures; nothing by default. */
  readonly label?: string;
  /** How many turns there will be; the `length` or `size` of the iterable by default. */
  readonly total?: number;
  /**
   * What stands behind the figures, such as the loss; asked for when something is shown; nothing by
   * default.
   */
  readonly note?: () => string;
  /** Milliseconds between reports at least; by default 100 on a terminal and 5000 elsewhere. */
  readonly every?: number;
  /** Takes the reports, in place of stderr; by default they go to stderr. */
  readonly onReport?: (report: ProgressReport) => void;
}

type Loop<T> = AsyncIterable<T> | Iterable<T>;

const aLoop: arg.Kind<Loop<unknown>> = arg.kind(
  'an iterable',
  (value) =>
    typeof value === 'object' &&
    value !== null &&
    (Symbol.iterator in value || Symbol.asyncIterator in value),
);
const takesProgress = arg.takes<(loop: Loop<unknown>, options?: ProgressOptions) => unknown>(
  ['the loop', aLoop],
  [
    'options',
    arg.options<ProgressOptions>({
      label: arg.text,
      total: arg.count(0),
      note: arg.callable<() => string>(),
      every: arg.notNegative,
      onReport: arg.callable<(report: ProgressReport) => void>(),
    }),
  ],
);

/** What stderr is like, as far as progress is concerned. */
interface Screen {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

/**
 * The same items, telling on the way how far the loop is:
 * `for await (const batch of progress(loader, { label: 'epoch 1' }))`.
 */
export function progress<T>(
  loop: Loop<T>,
  options: ProgressOptions = {},
): AsyncGenerator<T, undefined, undefined> {
  takesProgress('progress', loop, options);
  return told(loop, options);
}

async function* told<T>(loop: Loop<T>, options: ProgressOptions): AsyncGenerator<T, undefined, undefined> {
  const { label = '', note = () => '', onReport } = options;
  const screen: Screen | undefined = globalThis.process?.stderr;
  const isLive = onReport === undefined && screen?.isTTY === true;
  const { every = isLive || onReport !== undefined ? 100 : 5000 } = options;
  const show = onReport ?? (isLive ? bar(screen as Screen) : line(screen));
  const total = options.total ?? lengthOf(loop);
  const start = performance.now();
  let done = 0;
  let last = Number.NEGATIVE_INFINITY;
  const report = (isOver: boolean): void => {
    const now = performance.now();
    if (!isOver && now - last < every) return;
    last = now;
    const seconds = (now - start) / 1000;
    const rate = seconds > 0 ? done / seconds : 0;
    const left = total === undefined || rate === 0 ? undefined : Math.max(0, total - done) / rate;
    const words: unknown = note();
    if (typeof words !== 'string')
      throw new TensorError('E_VALUE', 'progress', `note must give a string, got ${showValue(words)}`);
    show({ label, done, total, seconds, rate, left, note: words, isOver });
  };
  try {
    if (isLive || onReport !== undefined) report(false);
    else last = start;
    for await (const item of loop) {
      yield item;
      done += 1;
      report(false);
    }
    return undefined;
  } finally {
    report(true);
  }
}

function lengthOf(loop: object): number | undefined {
  const { length, size } = loop as { readonly length?: unknown; readonly size?: unknown };
  const known = length ?? size;
  return typeof known === 'number' && Number.isSafeInteger(known) ? known : undefined;
}

const clock = (seconds: number): string => {
  const whole = Math.round(seconds);
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  const two = (value: number): string => String(value).padStart(2, '0');
  return hours > 0 ? `${hours}:${two(minutes)}:${two(whole % 60)}` : `${minutes}:${two(whole % 60)}`;
};

/** The figures of a report: `epoch 1  30/125  24%  0:03, 0:10 left  9.6/s  loss 0.31`. */
function figures({ label, done, total, seconds, rate, left, note }: ProgressReport): string {
  const count = total === undefined ? `${done}` : `${done}/${total}`;
  const share = total === undefined || total === 0 ? '' : `${Math.floor((100 * done) / total)}%`;
  const time = left === undefined || left === 0 ? clock(seconds) : `${clock(seconds)}, ${clock(left)} left`;
  const speed = rate >= 1 || rate === 0 ? `${rate.toFixed(1)}/s` : `${(1 / rate).toFixed(1)} s each`;
  return [label, count, share, time, speed, note].filter((part) => part !== '').join('  ');
}

/** A bar that is drawn over and over on the last line of a terminal. */
function bar(screen: Screen): (report: ProgressReport) => void {
  return (report) => {
    const { done, total, isOver } = report;
    const columns = screen.columns ?? 80;
    const text = figures(report);
    const room = Math.min(40, columns - text.length - 4);
    const filled =
      total === undefined || total === 0 ? 0 : Math.round((room * Math.min(done, total)) / total);
    const drawn =
      total === undefined || room < 5 ? '' : `[${'#'.repeat(filled)}${'.'.repeat(room - filled)}] `;
    const row = `${drawn}${text}`.slice(0, columns - 1);
    screen.write(`\r${row}\u001b[K${isOver ? '\n' : ''}`);
  };
}

/** A line for each report; nothing where there is no stderr. */
function line(screen: Screen | undefined): (report: ProgressReport) => void {
  return (report) => void screen?.write(`${figures(report)}\n`);
}
