// Times of kernels as a table, and as a trace that Chrome's and Perfetto's viewers read.

import { showCount, table } from '../../table.ts';
import { engineName } from '../../tensor/profiling/profiled.ts';
import type { Span } from '../../tensor/report/spans.ts';

/** A kernel of a call. */
export interface KernelTime {
  readonly name: string;
  readonly kind: string;
  readonly run: number;
  /** Whose code it was, where the device has a choice. */
  readonly engine?: Span['engine'] | undefined;
  /** The median of the calls, by the device's clock; undefined where it has none. */
  readonly microseconds: number | undefined;
  /** Of the whole: measured, or modelled where there is no clock. */
  readonly share: number;
  readonly flops: number;
  readonly bytes: number;
}

export interface RunProfile {
  readonly kernels: readonly KernelTime[];
  /** False where the device has no clock: shares are modelled from flops and bytes. */
  readonly measured: boolean;
  readonly calls: number;
}

/** Flops that take as long as a byte, in the model for devices without a clock. */
const flopsPerByte = 16;
/** Rows of the table. */
const mostRows = 30;

/** The steps of a call, by the medians of several. */
export function profileOf(calls: readonly (readonly Span[])[]): RunProfile {
  const last = calls.at(-1) ?? [];
  const alike = calls.filter(
    (call) => call.length === last.length && call.every(({ name }, i) => name === last[i]!.name),
  );
  const times = last.map((_, i) => medianOf(alike.map((call) => call[i]!.nanoseconds)));
  const measured = times.length > 0 && times.every((time) => time !== undefined);
  const weights = last.map(({ flops, bytes }, i) =>
    measured ? times[i]! : Math.max(flops / flopsPerByte, bytes),
  );
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const kernels = last.map(({ name, kind, run, flops, bytes, engine }, i) => ({
    name,
    kind,
    run,
    ...(engine !== undefined && { engine }),
    microseconds: measured ? times[i]! / 1e3 : undefined,
    share: total === 0 ? 0 : weights[i]! / total,
    flops,
    bytes,
  }));
  return { kernels, measured, calls: alike.length };
}

function medianOf(times: readonly (number | undefined)[]): number | undefined {
  const known = times.filter((time) => time !== undefined).sort((a, b) => a - b);
  return known.length === times.length ? known[known.length >> 1] : undefined;
}

/** The dearest kernels first. */
export function profileTable({ kernels, measured, calls }: RunProfile): string {
  if (kernels.length === 0) return 'no kernels ran: the interpreter has none, and constants need none';
  const dearest = kernels.toSorted((a, b) => b.share - a.share);
  const hasEngines = kernels.some(({ engine }) => engine !== undefined);
  const row = (name: string, kind: string, part: readonly KernelTime[]): string[] => {
    const time = part.reduce((sum, { microseconds = 0 }) => sum + microseconds, 0);
    const share = part.reduce((sum, one) => sum + one.share, 0);
    const rate = (of: (one: KernelTime) => number): string =>
      time === 0 ? '' : `${showCount((part.reduce((sum, one) => sum + of(one), 0) * 1e6) / time)}`;
    return [
      name,
      kind,
      ...(hasEngines ? [[...new Set(part.map(engineName))].join(', ')] : []),
      ...(measured ? [time.toFixed(1)] : []),
      `${(100 * share).toFixed(1)} %`,
      ...(measured ? [rate(({ flops }) => flops), rate(({ bytes }) => bytes)] : []),
    ];
  };
  const rest = dearest.slice(mostRows);
  const rows = [
    ...dearest.slice(0, mostRows).map((one) => row(one.name, one.kind, [one])),
    ...(rest.length > 0 ? [row(`${rest.length} others`, '', rest)] : []),
    row(`all ${kernels.length}`, '', kernels),
  ];
  const head = [
    'kernel',
    'kind',
    ...(hasEngines ? ['engine'] : []),
    ...(measured ? ['µs', 'share', 'flop/s', 'byte/s'] : ['modelled share']),
  ];
  const numbers = head.map((_, i) => i).slice(hasEngines ? 3 : 2);
  const origin = measured
    ? `medians of ${calls} calls, each kernel by the device's clock`
    : `kernels have no clock here: shares are modelled from flops and bytes (a byte as long as ${flopsPerByte} flops), not measured`;
  return `${table(head, rows, numbers)}\n\n${origin}`;
}

/** Events of Chrome's trace format: kernels one behind the other, each as long as it took. */
export function traceOf({ kernels, measured }: RunProfile, name: string): readonly object[] {
  const events: object[] = [{ name: 'process_name', ph: 'M', pid: 1, tid: 1, args: { name } }];
  let at = 0;
  for (const { name: kernel, kind, run, microseconds, share, flops, bytes } of kernels) {
    // Without a clock a whole call is a millisecond.
    const dur = microseconds ?? 1000 * share;
    events.push({
      name: kernel,
      cat: kind,
      ph: 'X',
      ts: at,
      dur,
      pid: 1,
      tid: 1,
      args: { program: run, flops, bytes, measured },
    });
    at += dur;
  }
  return events;
}
