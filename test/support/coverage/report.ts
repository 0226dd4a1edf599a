// Runs the table: rows in dtypes on devices in the ways that there are, and counts what came of them. A refusal counts as one where it is
// documented (refusals.ts, and the dtypes of docs/ops), and as a failure where it is not.

import { allRows as rowsOfSources, type Row } from '../../../scripts/operations/rows.ts';
import * as sn from '../../../src/index.ts';
import { dtypes, isDType, type DType } from '../../../src/ir/dtype.ts';
import { isBuilt, runBundled } from './bundle.ts';
import { catalogue, type CatalogueRow } from './catalogue.ts';
import { dtypesOf, modes, prepared, runMode, type Mode, type Outcome, type Prepared } from './cells.ts';
import { deviations, lacking, refusedModes } from './refusals.ts';
import { systemRows } from './system.ts';

export interface Failure {
  /** `row dtype device mode`. */
  readonly cell: string;
  readonly reason: string;
}

/** The last line of the command. */
export interface Report {
  /** Rows of the catalogue, and those that nothing shows. */
  readonly rows: number;
  readonly missing: readonly string[];
  /** Operations by public name, and calls of them. */
  readonly operations: number;
  readonly calls: number;
  cells: number;
  ok: number;
  refused: number;
  failed: number;
  readonly byDevice: Record<string, { cells: number; ok: number; refused: number; failed: number }>;
  readonly failures: Failure[];
  readonly system: { readonly rows: number; readonly missing: readonly string[] };
}

export interface Choice {
  readonly devices: readonly string[];
  readonly modes?: readonly Mode[];
  readonly dtypes?: readonly DType[];
  /** Which rows run; all by default. */
  readonly takes?: (row: Row, dtype: DType) => boolean;
  readonly progress?: (line: string) => void;
}

export const allRows: readonly Row[] = rowsOfSources();
const byName = new Map(allRows.map((row) => [row.name, row]));

const operationOf = (name: string): string => name.split('/')[0]!;

/** Rows that the catalogue asks for in a dtype, by name. */
const asked = new Map<string, Set<DType>>();
for (const { calls, dtypes: list } of catalogue)
  for (const call of calls) {
    const found = asked.get(call) ?? new Set();
    for (const dtype of list) found.add(dtype);
    asked.set(call, found);
  }

/** Rows of the catalogue that neither a call nor a test shows. */
export function missingRows(): string[] {
  const isThere = ({ calls, shown }: CatalogueRow): boolean =>
    shown.length > 0 || (calls.length > 0 && calls.every((call) => byName.has(call.replace(/^grad /, ''))));
  return catalogue.filter((row) => !isThere(row)).map(({ id, name }) => `${id} ${name}`);
}

/** Whether a message names a dtype. */
const namesDtype = (message: string): boolean => (message.match(/\b[a-z]+\d*\b/g) ?? []).some(isDType);

/** The member of the package at a path: `linalg.svd`. */
const memberOf = (path: string): unknown =>
  path.split('.').reduce<unknown>((at, name) => (at as Readonly<Record<string, unknown>>)[name], sn);

/** The public names of each function that has several: `gammaln` is `lgamma`. */
const names = new Map<unknown, string[]>();
for (const path of [...Object.keys(sn), ...allRows.map(({ name }) => operationOf(name))]) {
  const found = memberOf(path);
  if (typeof found !== 'function') continue;
  names.set(found, [...(names.get(found) ?? []), path.split('.').at(-1)!]);
}

/** Whether a refusal begins with the name of a function that the call has in its text, or another name of it. */
function namesCalled({ name, call }: Row, message: string): boolean {
  const told = message.slice(0, message.indexOf(':')).split('.').at(-1)!;
  const written = [...call.matchAll(/\.(\w+)\(/g)].map(([, word]) => word!);
  return written.includes(told) || (names.get(memberOf(operationOf(name))) ?? []).includes(told);
}

/** Why a refusal is none that is documented; undefined where it is. */
function undocumented(
  row: Row,
  dtype: DType,
  device: string | undefined,
  mode: Mode | undefined,
  outcome: Outcome & { readonly kind: 'refused' },
): string | undefined {
  const { code, message } = outcome.error;
  const told = `${code} ${message.split('\n').slice(0, 2).join(' ')}`;
  if (device === undefined) {
    const wanted = asked.get(row.name)?.has(dtype) === true;
    const isKnown = deviations.some((one) => one.rows.includes(row.name) && one.dtypes.includes(dtype));
    if (wanted && !isKnown) return `the catalogue asks for it: ${told}`;
    if (!namesDtype(message) && !message.includes('complex')) return `the refusal names no dtype: ${told}`;
    if (!namesCalled(row, message)) return `the refusal does not name what was called: ${told}`;
    return undefined;
  }
  if (refusedModes.some((one) => one.mode === mode && one.rows.test(row.name))) return undefined;
  const lacks = lacking[device] ?? [];
  const named: readonly string[] = message.match(/\b[a-z]+\d+\b/g) ?? [];
  if (code === 'E_UNSUPPORTED' && named.some((word) => isDType(word) && lacks.includes(word)))
    return undefined;
  return `refused, which no list says: ${told}`;
}

function emptyReport(): Report {
  return {
    rows: catalogue.length,
    missing: missingRows(),
    operations: new Set(allRows.map(({ name }) => operationOf(name))).size,
    calls: allRows.length,
    cells: 0,
    ok: 0,
    refused: 0,
    failed: 0,
    byDevice: {},
    failures: [],
    system: {
      rows: systemRows.length,
      missing: systemRows.filter(({ shown }) => shown.length === 0).map(({ id, name }) => `${id} ${name}`),
    },
  };
}

class Tally {
  readonly report = emptyReport();

  count(row: Row, dtype: DType, device: string, mode: Mode, outcome: Outcome, isRecorded = true): void {
    const own = (this.report.byDevice[device] ??= { cells: 0, ok: 0, refused: 0, failed: 0 });
    const reason =
      outcome.kind === 'failed'
        ? outcome.reason
        : outcome.kind === 'refused'
          ? undocumented(row, dtype, isRecorded ? device : undefined, mode, outcome)
          : undefined;
    const kind = reason === undefined ? outcome.kind : 'failed';
    for (const into of [this.report, own]) {
      into.cells += 1;
      into[kind] += 1;
    }
    if (reason !== undefined)
      this.report.failures.push({
        cell: `${row.name} ${dtype} ${device} ${mode}`,
        reason: reason.slice(0, 400),
      });
  }
}

/** Runs the cells of a choice. The current device is another afterwards. */
export async function coverage(choice: Choice): Promise<Report> {
  const tally = new Tally();
  const ways = choice.modes ?? modes;
  for (const dtype of choice.dtypes ?? dtypes) {
    const rows = allRows.filter(
      (row) => dtypesOf(row, dtypes).includes(dtype) && (choice.takes?.(row, dtype) ?? true),
    );
    sn.setDevice('interpreter');
    const ready: Prepared[] = [];
    for (const row of rows) {
      const found = await prepared(row, dtype);
      if ('kind' in found)
        for (const device of choice.devices) tally.count(row, dtype, device, 'eager', found, false);
      else ready.push(found);
    }
    for (const device of choice.devices) {
      sn.setDevice(device);
      for (const mode of ways) {
        if (mode === 'differentiated')
          for (const { row, refusal } of ready)
            if (refusal !== undefined)
              tally.count(row, dtype, device, mode, { kind: 'refused', error: refusal });
        if (mode === 'bundled' && !isBuilt(device)) continue;
        const outcomes = mode === 'bundled' ? await runBundled(device, ready) : await runMode(mode, ready);
        for (const [{ row }, outcome] of outcomes) tally.count(row, dtype, device, mode, outcome);
        const { cells, failed } = tally.report;
        choice.progress?.(`${dtype} ${device} ${mode}: ${cells} cells so far, ${failed} failed`);
      }
    }
  }
  return tally.report;
}
