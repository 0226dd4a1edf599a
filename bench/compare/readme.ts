// README's table of Sinter beside other libraries, from what the commands of bench/compare/measured.json printed. Each cell is a
// measurement; where a library was not measured, there is a dash.

import { readFileSync } from 'node:fs';
import { showBytes } from '../../src/table.ts';

const libraries = ['sinter', 'jax-js', 'tfjs', 'ort-web', 'pytorch'] as const;
type Library = (typeof libraries)[number];

/** What was measured of one thing, by library. */
interface Row {
  readonly about: string;
  readonly unit: 'ms' | 'kernels' | 'bytes';
  readonly values: Readonly<Partial<Record<Library, number>>>;
}

/** One run: the command that printed its rows. */
interface Run {
  readonly command: string;
  /** How often it ran, where that was more than once. */
  readonly note?: string;
  readonly rows: readonly Row[];
}

interface Measured {
  readonly date: string;
  readonly machine: string;
  readonly versions: Readonly<Record<Library, string>>;
  readonly runs: readonly Run[];
}

/** What bench/compare/measured.json holds. */
export function measurements(): Measured {
  const file = new URL('measured.json', import.meta.url);
  return JSON.parse(readFileSync(file, 'utf8')) as Measured;
}

/**
 * The table, with the versions in its head, and below it the commands. A thing that several runs measured is one row: each library has
 * its value from the first run that measured it, and the number of that run stands beside the row.
 */
export function comparisonSection({ date, machine, versions, runs }: Measured): string {
  const head = ['', ...libraries.map((library) => versions[library])];
  const merged = new Map<string, { readonly unit: Row['unit']; values: Row['values']; runs: number[] }>();
  for (const [run, { rows }] of runs.entries()) {
    for (const { about, unit, values } of rows) {
      const known = merged.get(about) ?? { unit, values: {}, runs: [] };
      known.values = { ...values, ...known.values };
      known.runs.push(run + 1);
      merged.set(about, known);
    }
  }
  const rows = [...merged].map(([about, row]) => [
    `${about} (${row.runs.join(', ')})`,
    ...libraries.map((library) => show(row.values[library], row.unit)),
  ]);
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map((row) => row[column]!.length)));
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!))).join(' | ')} |`;
  const rule = widths.map((width, i) => (i === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`));
  const commands = runs.map(
    ({ command, note }, run) => `${run + 1}. \`${command}\`${note === undefined ? '' : `: ${note}`}`,
  );
  return [
    line(head),
    `| ${rule.join(' | ')} |`,
    ...rows.map(line),
    '',
    `Measured on ${date}, on ${machine}, by:`,
    '',
    ...commands,
  ].join('\n');
}

function show(value: number | undefined, unit: Row['unit']): string {
  if (value === undefined) return '–';
  if (unit === 'kernels') return String(value);
  if (unit === 'bytes') return showBytes(value);
  return `${value.toPrecision(value < 100 ? 2 : 3)} ms`;
}
