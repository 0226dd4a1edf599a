// Tables in Parquet files, read by hyparquet, an optional peer.

import { TensorError } from '../../errors.ts';
import * as arg from '../../ir/arguments.ts';
import { fromArray, type Dataset } from '../dataset.ts';
import { aModuleWith, aSource, bytesOf, malformed, nameOf, packageFor, type FileSource } from './source.ts';

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
  /** Codecs beyond snappy, as hyparquet-compressors has them. */
  readonly compressors?: Readonly<Record<string, unknown>>;
  /** The module hyparquet, for pages; Node finds it. */
  readonly reader?: ParquetPackage;
}

const takesParquet = arg.takes<typeof readParquet>(
  ['the file', aSource],
  [
    'options',
    arg.options<ParquetOptions>({
      columns: arg.listOf(arg.text),
      compressors: arg.kind('an object of codecs', arg.isPlainObject),
      reader: aModuleWith<ParquetPackage>('parquetReadObjects'),
    }),
  ],
);

/**
 * A dataset of the rows of a Parquet file: numbers, strings, booleans, dates, and bigints where a
 * column has 64 bits.
 */
export async function readParquet<T = Readonly<Record<string, unknown>>>(
  file: FileSource,
  options: ParquetOptions = {},
): Promise<Dataset<T>> {
  takesParquet('readParquet', file, options);
  const { columns, compressors, reader } = options;
  const parquet = await packageFor<ParquetPackage>('readParquet', 'hyparquet', reader);
  const bytes = await bytesOf('readParquet', file);
  // The reader wants a buffer of the file alone.
  const whole = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength) as ArrayBuffer;
  try {
    const metadata = parquet.parquetMetadata(whole) as never;
    const names = parquet.parquetSchema(metadata).children.map(({ element }) => element.name);
    const lost = columns?.find((name) => !names.includes(name));
    if (lost !== undefined) {
      const problem = `${nameOf(file)} has no column ${lost}: it has ${names.join(', ')}`;
      throw new TensorError('E_VALUE', 'readParquet', problem, arg.nearest(lost, names));
    }
    const rows = await parquet.parquetReadObjects({ file: whole, metadata, columns, compressors } as never);
    return fromArray(rows as readonly T[]);
  } catch (error) {
    throw malformed('readParquet', file, error);
  }
}
