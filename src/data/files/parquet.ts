// Tables in Parquet files, read by hyparquet, an optional peer.

import { TensorError } from '../../errors.ts';
import * as arg from '../../ir/arguments.ts';
import { Allowance, limitTable } from '../../io/allowance.ts';
import { fromArray, type Dataset } from '../dataset.ts';
import type { PeerTask } from './peer.ts';
import {
  aModuleWith,
  aSource,
  bytesOf,
  isNode,
  malformed,
  nameOf,
  packageFor,
  placeOf,
  type FileSource,
} from './source.ts';

/** What is used of hyparquet. */
export interface ParquetPackage {
  parquetMetadata(file: ArrayBuffer): unknown;
  parquetSchema(metadata: never): {
    readonly children: readonly { readonly element: { readonly name: string } }[];
  };
  parquetReadObjects(options: never): Promise<Record<string, unknown>[]>;
}

export interface ParquetOptions {
  /** Which columns are read; all by default. */
  readonly columns?: readonly string[];
  /** Codecs beyond snappy, as hyparquet-compressors has them; none by default. */
  readonly compressors?: Readonly<Record<string, unknown>>;
  /**
   * The module hyparquet, for pages; Node finds it. It runs where it is handed in, as codecs do;
   * otherwise in a thread, which is ended where the file takes too much of it; by default the
   * installed one.
   */
  readonly reader?: ParquetPackage;
  /** Most bytes of the rows, at 24 a value; by default 64 MiB and eight times the file. Infinity for none. */
  readonly maxBytes?: number;
}

const takesParquet = arg.takes<typeof readParquet>(
  ['the file', aSource],
  [
    'options',
    arg.options<ParquetOptions>({
      columns: arg.listOf(arg.text),
      compressors: arg.kind('an object of codecs', arg.isPlainObject),
      reader: aModuleWith<ParquetPackage>('parquetReadObjects'),
      ...limitTable,
    }),
  ],
);

/**
 * A dataset of the rows of a Parquet file: numbers, strings, booleans, dates, bigints where a
 * column has 64 bits, and bytes where the file does not say that they are text.
 */
export async function readParquet<T = Readonly<Record<string, unknown>>>(
  file: FileSource,
  options: ParquetOptions = {},
): Promise<Dataset<T>> {
  takesParquet('readParquet', file, options);
  const { columns, compressors, reader, maxBytes } = options;
  const parquet = await packageFor<ParquetPackage>('readParquet', 'hyparquet', reader);
  const bytes = await bytesOf('readParquet', file);
  const allowance = new Allowance('readParquet', bytes.length, maxBytes);
  // The reader wants a buffer of the file alone.
  const whole = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength) as ArrayBuffer;
  try {
    const isHanded = reader !== undefined || compressors !== undefined || !isNode();
    const metadata = isHanded ? parquet.parquetMetadata(whole) : await metadataOf(whole, allowance);
    const names = parquet.parquetSchema(metadata as never).children.map(({ element }) => element.name);
    const lost = columns?.find((name) => !names.includes(name));
    if (lost !== undefined) {
      const problem = `${nameOf(file)} has no column ${lost}: it has ${names.join(', ')}`;
      throw new TensorError('E_VALUE', 'readParquet', problem, arg.nearest(lost, names));
    }
    const count = checkedRows(metadata as Metadata, bytes.length, (columns ?? names).length, allowance);
    const read = { file: whole, metadata, columns, compressors, utf8: false };
    const rows = isHanded
      ? await parquet.parquetReadObjects(read as never)
      : rowsOf(await chunksOf({ file: whole, columns }, allowance), count);
    if (count !== undefined && rows.length !== count)
      throw new Error(`it has ${rows.length} rows, and says ${count}`);
    return fromArray(rows as readonly T[]);
  } catch (error) {
    throw malformed('readParquet', file, error);
  }
}

/** What is looked at of a file's metadata. */
interface Metadata {
  readonly num_rows?: bigint;
  readonly row_groups?: readonly {
    readonly num_rows: bigint;
    readonly columns: readonly {
      readonly meta_data?: {
        readonly data_page_offset?: bigint;
        readonly dictionary_page_offset?: bigint;
        readonly total_compressed_size?: bigint;
      };
    }[];
  }[];
}

/** Bytes of a value in a row, about. */
const perValue = 24;

/** How many rows the file says it has. Throws where its parts do not fit together, E_LIMIT where they are too many. */
function checkedRows(
  { num_rows: rows, row_groups: groups }: Metadata,
  fileBytes: number,
  columns: number,
  allowance: Allowance,
): number | undefined {
  // A reader of the caller's own may know files otherwise.
  if (rows === undefined || groups === undefined) return undefined;
  let sum = 0n;
  for (const { num_rows: own, columns: parts } of groups) {
    if (own < 0n) throw new Error(`it has a group of ${own} rows`);
    sum += own;
    for (const { meta_data: part } of parts) {
      const begin = part?.dictionary_page_offset || (part?.data_page_offset ?? -1n);
      const size = part?.total_compressed_size ?? -1n;
      if (begin < 0n || size < 0n || begin + size > BigInt(fileBytes))
        throw new Error(`a column lies at byte ${begin} to ${begin + size} of ${fileBytes}`);
    }
  }
  if (sum !== rows) throw new Error(`its groups have ${sum} rows, and it says ${rows}`);
  allowance.spend(perValue * Number(rows) * Math.max(1, columns), `a table of ${rows} rows`);
  return Number(rows);
}

/** A part of a column, from a row on. */
interface Chunk {
  readonly columnName: string;
  readonly columnData: ArrayLike<unknown>;
  readonly rowStart: number;
}

/** What hyparquet makes of bytes in a thread. */
async function askReader<Given, Found>(
  bytes: ArrayBuffer,
  allowance: Allowance,
  given: Given,
  task: PeerTask<Given, Found>,
): Promise<Found> {
  const { askPeer } = await import('./peer.ts');
  const module = await placeOf('readParquet', 'hyparquet');
  return askPeer({ op: 'readParquet', module, allowance, fileBytes: bytes.byteLength, given, task });
}

/** What stands behind the rows. In a thread, since a list there may say that it is as long as it likes. */
function metadataOf(file: ArrayBuffer, allowance: Allowance): Promise<unknown> {
  const end = file.byteLength - 8;
  const length = end < 0 ? 0 : new DataView(file).getUint32(end, true);
  const footer = file.slice(Math.max(0, end - length));
  const task = (parquet: ParquetPackage, bytes: ArrayBuffer): unknown => parquet.parquetMetadata(bytes);
  return askReader(footer, allowance, footer, task);
}

interface Asked {
  readonly file: ArrayBuffer;
  readonly columns: readonly string[] | undefined;
}

function chunksOf(asked: Asked, allowance: Allowance): Promise<readonly Chunk[]> {
  const task = async (
    { parquetRead }: { parquetRead(options: unknown): Promise<void> },
    { file, columns }: Asked,
  ): Promise<readonly Chunk[]> => {
    const chunks: Chunk[] = [];
    // Sent as text, it has no function that has a name.
    const told = [
      ({ columnName, columnData, rowStart }: Chunk) => chunks.push({ columnName, columnData, rowStart }),
    ];
    await parquetRead({ file, columns, utf8: false, onChunk: told[0] });
    return chunks;
  };
  return askReader(asked.file, allowance, asked, task);
}

/** Rows from columns. Throws where a column has none for a row, or more than there are. */
function rowsOf(chunks: readonly Chunk[], count = 0): Record<string, unknown>[] {
  const columns = new Map<string, unknown[]>();
  for (const { columnName, columnData, rowStart } of chunks) {
    const column = columns.get(columnName) ?? new Array<unknown>(count);
    columns.set(columnName, column);
    if (rowStart + columnData.length > count)
      throw new Error(`the column ${columnName} has more rows than the ${count} that the file says it has`);
    for (let i = 0; i < columnData.length; i++) column[rowStart + i] = columnData[i];
  }
  for (const [name, column] of columns)
    if (column.findIndex((value) => value === undefined) >= 0)
      throw new Error(`the column ${name} lacks rows`);
  const entries = [...columns];
  return Array.from({ length: count }, (_, row) =>
    Object.fromEntries(entries.map(([name, column]) => [name, column[row]])),
  );
}
