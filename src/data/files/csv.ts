// Tables in CSV files (RFC 4180), read by csv-parse, an optional peer.

import { ParseError, TensorError } from '../../errors.ts';
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
  /** The names of the columns where the first line does not say them. */
  readonly header?: readonly string[];
  /** What stands between cells; a comma by default. */
  readonly delimiter?: string;
  /** The module csv-parse/sync, for pages (`csv-parse/browser/esm/sync`); Node finds it. */
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
    }),
  ],
);

/** A dataset of the rows of a CSV file, whose first line has the names of the columns. */
export async function readCsv<const C extends Columns = Readonly<Record<string, 'text'>>>(
  file: FileSource,
  options: CsvOptions<C> = {},
): Promise<Dataset<CsvRow<C>>> {
  takesCsv('readCsv', file, options as CsvOptions<Columns>);
  const { columns, delimiter = ',', reader } = options;
  const { parse } = await packageFor<CsvPackage>('readCsv', 'csv-parse/sync', reader);
  const text = new TextDecoder().decode(await bytesOf('readCsv', file));
  let lines: readonly { readonly record: readonly string[]; readonly info: { readonly lines: number } }[];
  try {
    lines = parse(text, { bom: true, delimiter, skip_empty_lines: true, info: true }) as typeof lines;
  } catch (error) {
    throw malformed('readCsv', file, error);
  }
  const [first, ...rest] = lines;
  const header = options.header ?? first?.record ?? [];
  const body = options.header === undefined ? rest : lines;
  const twice = header.find((name, i) => header.indexOf(name) !== i);
  if (twice !== undefined) throw new TensorError('E_FORMAT', 'readCsv', `two columns are called '${twice}'`);
  const taken = Object.entries<ColumnType>(
    columns ?? Object.fromEntries(header.map((name) => [name, 'text'])),
  );
  const places = taken.map(([name]) => placeOf(name, header, file));
  const rows = body.map(({ record, info }) => {
    if (record.length !== header.length)
      throw broken(file, info.lines, `${record.length} cells for ${header.length} columns`);
    const cells = taken.map(([name, type], i) => {
      const cell = record[places[i] as number] as string;
      if (type === 'text') return [name, cell] as const;
      const value = cell.trim() === '' ? NaN : Number(cell);
      if (Number.isNaN(value) && !/^\s*[-+]?nan\s*$/i.test(cell))
        throw broken(file, info.lines, `'${cell}' in the column ${name} is no number`);
      return [name, value] as const;
    });
    return Object.fromEntries(cells);
  });
  return fromArray(rows as unknown as readonly CsvRow<C>[]);
}

function placeOf(name: string, header: readonly string[], file: FileSource): number {
  const place = header.indexOf(name);
  if (place >= 0) return place;
  const near = arg.nearest(name, header);
  const problem = `${nameOf(file)} has no column ${name}: it has ${header.join(', ')}`;
  throw new TensorError('E_VALUE', 'readCsv', problem, near);
}

function broken(file: FileSource, line: number, problem: string): ParseError {
  return new ParseError('E_FORMAT', 'readCsv', `${nameOf(file)}: line ${line}: ${problem}`);
}
