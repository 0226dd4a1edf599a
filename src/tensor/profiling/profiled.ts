// What `profile` found: kernels with their times, compilations, bytes; as a table, and as a trace for Perfetto's viewer.

import { showBytes, showCount, table } from '../../table.ts';
import { counted, type CompileEvent } from '../report/compiles.ts';
import type { Stats } from '../report/stats.ts';

/** A kernel that ran, or a `copy` or `clear` between kernels. */
export interface ProfiledKernel {
  readonly name: string;
  readonly kind: string;
  /** Which of the programs that ran, from 0 on. */
  readonly program: number;
  /** Whose code it was, where the device has a choice: compiled C, or WebAssembly until that is there. */
  readonly engine?: 'c' | 'wasm' | undefined;
  /** By the device's clock; undefined where it has none. */
  readonly microseconds: number | undefined;
  readonly flops: number;
  /** Bytes that it must move at least. */
  readonly bytes: number;
  /** When the host asked for it: milliseconds from the beginning. */
  readonly at: number;
}

/** What `profile` found. `String(profile)` is a table; `trace()` is for Perfetto. */
export class Profile<T = unknown> {
  /** What the function gave. */
  readonly value: T;
  readonly device: string;
  /** From the call until everything that it asked for was done. */
  readonly milliseconds: number;
  readonly kernels: readonly ProfiledKernel[];
  readonly compiles: readonly CompileEvent[];
  /** What happened meanwhile, by the counts of `stats()`. */
  readonly counts: Stats;
  readonly #start: number;

  constructor(
    value: T,
    device: string,
    start: number,
    milliseconds: number,
    kernels: readonly ProfiledKernel[],
    compiles: readonly CompileEvent[],
    counts: Stats,
  ) {
    this.value = value;
    this.device = device;
    this.milliseconds = milliseconds;
    this.kernels = kernels;
    this.compiles = compiles;
    this.counts = counts;
    this.#start = start;
  }

  /**
   * Events of Chrome's trace format, which ui.perfetto.dev and chrome://tracing open: write them to
   * a file as JSON.
   */
  trace(): { readonly traceEvents: readonly object[]; readonly displayTimeUnit: 'ms' } {
    const [host, device] = [1, 2];
    const named = (tid: number, name: string): object => ({
      name: 'thread_name',
      ph: 'M',
      pid: 1,
      tid,
      args: { name },
    });
    const events: object[] = [
      { name: 'process_name', ph: 'M', pid: 1, tid: host, args: { name: 'sinter.profile' } },
      named(host, 'host'),
      named(device, this.device),
      { name: 'profile', cat: 'host', ph: 'X', ts: 0, dur: 1000 * this.milliseconds, pid: 1, tid: host },
    ];
    for (const { what, why, kernels, milliseconds, start } of this.compiles) {
      const ts = 1000 * (start - this.#start);
      const args = { why, kernels };
      events.push({
        name: `compile ${what}`,
        cat: 'compile',
        ph: 'X',
        ts,
        dur: 1000 * milliseconds,
        pid: 1,
        tid: host,
        args,
      });
    }
    // A kernel begins when it was asked for and the one before it is over. Without a clock a kernel
    // is a mark.
    let free = 0;
    for (const { name, kind, program, microseconds, flops, bytes, at, engine } of this.kernels) {
      const ts = Math.max(1000 * at, free);
      const dur = microseconds ?? 0;
      free = ts + dur;
      const measured = microseconds !== undefined;
      const args = { program, flops, bytes, measured, ...(engine !== undefined && { engine }) };
      events.push({ name, cat: kind, ph: 'X', ts, dur, pid: 1, tid: device, args });
    }
    return { traceEvents: events, displayTimeUnit: 'ms' };
  }

  /** Kernels of one name together, the dearest first; compilations; bytes. */
  toString(): string {
    const { bytes, runs, dispatches } = this.counts;
    const isMeasured = this.kernels.every(({ microseconds }) => microseconds !== undefined);
    const hasEngines = this.kernels.some(({ engine }) => engine !== undefined);
    const busy = this.kernels.reduce((sum, { microseconds = 0 }) => sum + microseconds, 0);
    const groups = groupBy(this.kernels, groupKey);
    const rows = [...groups.values()]
      .map((group) => ({
        group,
        time: group.reduce((sum, { microseconds = 0 }) => sum + microseconds, 0),
        moved: group.reduce((sum, kernel) => sum + kernel.bytes, 0),
      }))
      .toSorted((a, b) => b.time - a.time || b.moved - a.moved)
      .map(({ group, time, moved }) => [
        group[0]!.name,
        group[0]!.kind,
        ...(hasEngines ? [engineName(group[0]!)] : []),
        String(group.length),
        ...(isMeasured ? [time.toFixed(1), busy === 0 ? '' : `${((100 * time) / busy).toFixed(1)} %`] : []),
        showCount(group.reduce((sum, { flops }) => sum + flops, 0)),
        showBytes(moved),
      ]);
    const engines = hasEngines ? ['engine'] : [];
    const head = [
      'kernel',
      'kind',
      ...engines,
      'runs',
      ...(isMeasured ? ['µs', 'share'] : []),
      'flops',
      'bytes',
    ];
    const lines = [
      `${this.milliseconds.toFixed(1)} ms on ${this.device}${isMeasured ? `, kernels ${(busy / 1000).toFixed(1)} ms` : ''}: ${counted(runs, 'run')}, ${counted(dispatches, 'kernel')}, ${showBytes(bytes.uploaded)} up, ${showBytes(bytes.downloaded)} down`,
      ...this.compiles.map(
        ({ what, why, kernels, milliseconds }) =>
          `compiled ${what}: ${counted(kernels, 'kernel')}, ${milliseconds.toFixed(0)} ms: ${why}`,
      ),
    ];
    if (rows.length === 0) return lines.join('\n');
    const note = isMeasured ? '' : '\n\nthe device has no clock for kernels';
    return `${lines.join('\n')}\n\n${table(head, rows, head.map((_, i) => i).slice(2 + engines.length))}${note}`;
  }
}

Object.defineProperty(Profile.prototype, Symbol.for('nodejs.util.inspect.custom'), {
  value(this: Profile) {
    return this.toString();
  },
});

function groupKey({ name, kind, engine }: ProfiledKernel): string {
  return `${name} ${kind} ${engine}`;
}

/** What people call the engine that ran a kernel; empty where the device has no choice. */
export function engineName({ engine }: Pick<ProfiledKernel, 'engine'>): string {
  switch (engine) {
    case 'c':
      return 'C';
    case 'wasm':
      return 'WebAssembly';
    case undefined:
      return '';
    default:
      return engine satisfies never;
  }
}

function groupBy<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) groups.set(keyOf(item), [...(groups.get(keyOf(item)) ?? []), item]);
  return groups;
}
