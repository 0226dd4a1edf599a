// Tables in CSV files (RFC 4180), read by csv-parse, an optional peer.

import { ParseError, TensorError } from '../../errors.ts';
import { Allowance, limitTable } from '../../io/allowance.ts';
import * as arg from '../../ir/arguments.ts';
import { fromArray, type Dataset } from '../dataset.ts';
import { aModuleWith, aSource, bytesOf, malformed, nameOf, packageFor, type FileSource } from './source.ts';

/** What is used of csv-parse/sync. */
export interface CsvPackage {
  parse(text: string, options: Readonly<Record<string, unknown>>): unknown;
}

/** What a column holds. */
export type ColumnType = 'number' | 'text';

export interface CsvOptions<C> {
  /** Which columns are taken, and what they hold; all as text by default. */
  readonly columns?: C;
  /**
   * The names of the columns where the first line does not say them; by default the first line says
   * them.
   */
  readonly header?: readonly string[];
  /** What stands between cells; a comma by default. */
  readonly delimiter?: string;
  /** Most bytes of the rows, at 16 a cell and 48 a row; by default 64 MiB and eight times the file. Infinity for none. */
  readonly maxBytes?: number;
  /**
   * The module csv-parse/sync, for pages (`csv-parse/browser/esm/sync`); Node finds it; by default
   * the installed one.
   */
  readonly reader?: CsvPackage;
}

/** A row by the names of its columns. */
export type CsvRow<C> = { readonly [K in keyof C]: C[K] extends 'number' ? number : string };

type Columns = Readonly<Record<string, ColumnType>>;

const columnTypes: arg.Kind<Columns> = arg.kind(
  "an object of 'number' and 'text'",
  (value) => arg.isPlainObject(value) && Object.values(value).every((at) => at === 'number' || at === 'text'),
);
const takesCsv = arg.takes<(file: FileSource, options?: CsvOptions<Columns>) => unknown>(
  ['the file', aSource],
  [
    'options',
    arg.options<CsvOptions<Columns>>({
      columns: columnTypes,
      header: arg.listOf(arg.text),
      delimiter: arg.text,
      reader: aModuleWith<CsvPackage>('parse'),
      ...limitTable,
    }),
  ],
);

/** A dataset of the rows of a CSV file, whose first line has the names of the columns. */
export async function readCsv<const C extends Columns = Readonly<Record<string, 'text'>>>(
  file: FileSource,
  options: CsvOptions<C> = {},
): Promise<Dataset<CsvRow<C>>> {
  takesCsv('readCsv', file, options as CsvOptions<Columns>);
  const { columns, delimiter = ',', reader, maxBytes } = options;
  const { parse } = await packageFor<CsvPackage>('readCsv', 'csv-parse/sync', reader);
  const bytes = await bytesOf('readCsv', file);
  const text = textOf(bytes, file);
  const allowance = new Allowance('readCsv', bytes.length, maxBytes);
  const ends = 1 + Math.max(countOf(text, '\n'), countOf(text, '\r'));
  allowance.spend(perRow * ends + perCell * (ends + countOf(text, delimiter)), 'a table of its rows');
  let records: readonly (readonly string[])[];
  const asked = { bom: true, delimiter, skip_empty_lines: true };
  try {
    records = parse(text, asked) as typeof records;
  } catch (error) {
    throw malformed('readCsv', file, error);
  }
  const isHeaded = options.header === undefined;
  /** The line on which a row of the body ends. */
  const lineOf = (row: number): number => {
    const told = parse(text, { ...asked, info: true }) as readonly {
      readonly info: { readonly lines: number };
    }[];
    return told[row + Number(isHeaded)]!.info.lines;
  };
  const header = options.header ?? records[0] ?? [];
  const body = isHeaded ? records.slice(1) : records;
  const placed = new Map<string, number>();
  const twice = header.find((name, i) => placed.has(name) || !placed.set(name, i));
  if (twice !== undefined) throw new TensorError('E_FORMAT', 'readCsv', `two columns are called '${twice}'`);
  const taken = Object.entries<ColumnType>(
    columns ?? Object.fromEntries(header.map((name) => [name, 'text'])),
  );
  const places = taken.map(([name]) => placed.get(name) ?? missing(name, header, file));
  const rows = body.map((record, row) => {
    if (record.length !== header.length)
      throw broken(file, lineOf(row), `${record.length} cells for ${header.length} columns`);
    const cells = taken.map(([name, type], i) => {
      const cell = record[places[i] as number] as string;
      if (type === 'text') return [name, cell] as const;
      const value = cell.trim() === '' ? NaN : Number(cell);
      if (Number.isNaN(value) && !/^\s*[-+]?nan\s*$/i.test(cell))
        throw broken(file, lineOf(row), `'${cell}' in the column ${name} is no number`);
      return [name, value] as const;
    });
    return Object.fromEntries(cells);
  });
  return fromArray(rows as unknown as readonly CsvRow<C>[]);
}

/** The text of a file. Throws E_FORMAT where it is in another encoding: its letters would be lost. */
function textOf(bytes: Uint8Array, file: FileSource): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    const hint = "its text as UTF-8: new TextEncoder().encode(new TextDecoder('latin1').decode(bytes))";
    throw new ParseError('E_FORMAT', 'readCsv', `${nameOf(file)} is not UTF-8\n  try: ${hint}`);
  }
}

/** Bytes of a cell and of a row, about. */
const [perCell, perRow] = [16, 48] as const;

/** How often a piece stands in a text. */
function countOf(text: string, piece: string): number {
  let count = 0;
  // The parser refuses an empty delimiter.
  if (piece === '') return count;
  for (let at = text.indexOf(piece); at >= 0; at = text.indexOf(piece, at + 1)) count++;
  return count;
}

function missing(name: string, header: readonly string[], file: FileSource): never {
  const near = arg.nearest(name, header);
  const problem = `${nameOf(file)} has no column ${name}: it has ${header.join(', ')}`;
  throw new TensorError('E_VALUE', 'readCsv', problem, near);
}

function broken(file: FileSource, line: number, problem: string): ParseError {
  return new ParseError('E_FORMAT', 'readCsv', `${nameOf(file)}: line ${line}: ${problem}`);
}
