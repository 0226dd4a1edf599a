// The figures as tables: what pages cost until their first result, which files they asked for, and what these are made of.

import { gzipSync } from 'node:zlib';
import { table } from '../../src/table.ts';
import type { BuiltPage } from './build.ts';
import { bytesByRoom, type RoomBytes } from './makeup.ts';
import type { Figures } from './measure.ts';
import { bars, type PageName } from './site.ts';

const kilobytes = (bytes: number): string => `${(bytes / 1000).toFixed(1)} kB`;
const dash = '–';

/** A line a page and device; the time of `one` beside that of jax-js, which computes the same. */
export function pageTable(figures: readonly Figures[]): string {
  const head = ['device', 'page', 'gzipped', 'bar', 'requests', 'bar', 'first result', 'least', 'of jax-js'];
  const rows = figures.map(({ device, page, bytes, requests, ms, times }) => {
    const bar = page in bars ? bars[page as PageName] : undefined;
    const jax = figures.find((other) => other.page === 'jax' && other.device === device);
    const ratio = page === 'one' && jax !== undefined ? `${(ms / jax.ms).toFixed(2)}x` : dash;
    return [
      device,
      page,
      kilobytes(bytes),
      bar === undefined ? dash : kilobytes(bar.bytes),
      String(requests),
      bar?.requests === undefined ? dash : String(bar.requests),
      `${ms.toFixed(0)} ms`,
      `${Math.min(...times).toFixed(0)} ms`,
      ratio,
    ];
  });
  return table(head, rows, [2, 3, 4, 5, 6, 7, 8]);
}

/** A line a bundler and device, with all files that it wrote. */
export function bundlerTable(figures: readonly Figures[], built: ReadonlyMap<string, BuiltPage>): string {
  const head = ['device', 'bundler', 'gzipped', 'requests', 'first result', 'gzipped in all', 'files in all'];
  const rows = figures.map(({ device, page, bytes, requests, ms }) => {
    const files = [...built.get(page)!.files.values()];
    const all = files.reduce((sum, file) => sum + gzipSync(file, { level: 9 }).length, 0);
    return [
      device,
      page,
      kilobytes(bytes),
      String(requests),
      `${ms.toFixed(0)} ms`,
      kilobytes(all),
      String(files.length),
    ];
  });
  return table(head, rows, [2, 3, 4, 5, 6]);
}

/** The files that one page asked for, on each device. */
export function chunkTable(figures: readonly Figures[], page: BuiltPage): string {
  const bytes = new Map(figures.flatMap(({ sent }) => sent.map((file) => [file.name, file.bytes])));
  const head = ['file', 'gzipped', 'minified', ...figures.map(({ device }) => device)];
  const rows = [...bytes]
    .toSorted((a, b) => b[1] - a[1])
    .map(([name, size]) => [
      name,
      kilobytes(size),
      kilobytes(page.files.get(name)!.length),
      ...figures.map(({ sent }) => {
        const at = sent.findIndex((file) => file.name === name);
        return at < 0 ? dash : `${at + 1}.`;
      }),
    ]);
  return table(
    head,
    rows,
    head.map((_, i) => i).filter((i) => i > 0),
  );
}

/** What a page is made of, in minified bytes before compression: its entry, and all that it asked for on one device. */
export interface Makeup {
  readonly entry: readonly RoomBytes[];
  readonly asked: readonly RoomBytes[];
}

export function makeupOf(page: BuiltPage, { sent }: Figures): Makeup {
  const scripts = sent.flatMap(({ name }) => [...(page.makeup.get(name) ?? [])]);
  return { entry: bytesByRoom(page.makeup.get(page.entry) ?? []), asked: bytesByRoom(scripts) };
}

/** A line a room and a folder of it; what is less than 1 kB everywhere is left out. */
export function makeupTable({ entry, asked }: Makeup): string {
  const inEntry = new Map(entry.flatMap(linesOf));
  const total = asked.reduce((sum, { bytes }) => sum + bytes, 0);
  const rows = asked.flatMap(linesOf).flatMap(([name, bytes]) => {
    if (bytes < 1000) return [];
    const share = `${((100 * bytes) / total).toFixed(1)} %`;
    const indented = name.split('/').length > 2 ? `  ${name}` : name;
    return [[indented, kilobytes(inEntry.get(name) ?? 0), kilobytes(bytes), share]];
  });
  return table(['folder', 'entry', 'until first result', 'share'], rows, [1, 2, 3]);
}

function linesOf({ room, bytes, folders }: RoomBytes): (readonly [string, number])[] {
  return [[room, bytes], ...folders];
}
