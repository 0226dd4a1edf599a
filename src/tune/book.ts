// Schedules under keys, as JSON: what a store keeps, what is exported to be pinned, and what is
// given to `compile`. Text and objects from outside are checked entry by entry.

import { ParseError } from '../errors.ts';
import { tilingFields, type TilingFieldContent } from '../codegen/template/contract/fields.ts';
import type { ContractTiling } from '../codegen/template/contract/strategies.ts';

/**
 * Schedules of kernels by key, as `tunedSchedules` gives them and `compile` takes them. Plain JSON.
 */
export interface Schedules {
  readonly version: 1;
  readonly entries: Readonly<Record<string, ContractTiling>>;
}

export type Book = ReadonlyMap<string, ContractTiling>;

/** What strategies were called before: books of earlier versions name them so. */
const formerKinds: Readonly<Record<string, ContractTiling['kind']>> = {
  tensor: 'mma',
  warpgroup: 'wgmma',
  slices: 'split-k',
  stream: 'gemv',
};

const tile = { flip: 'flag', rows: 'count', columns: 'count' } as const;

/** Whether a field of an entry holds what it should. */
const holds: Readonly<Record<TilingFieldContent | 'flag', (value: unknown) => boolean>> = {
  flag: (value) => typeof value === 'boolean',
  count: (value) => Number.isSafeInteger(value) && (value as number) > 0,
  'n or k': (value) => value === 'n' || value === 'k',
};

/**
 * The entries of a book as data. Throws ParseError E_FORMAT naming `what` and the entry that is
 * wrong.
 */
export function readBook(what: string, data: unknown): Book {
  const fail = (problem: string): never => {
    throw new ParseError('E_FORMAT', what, problem);
  };
  if (!isRecord(data) || data['version'] !== 1 || !isRecord(data['entries']))
    return fail('expects { version: 1, entries: { … } }');
  const book = new Map<string, ContractTiling>();
  for (const [key, entry] of Object.entries(data['entries'])) {
    const tiling = tilingFrom(entry);
    if (tiling === undefined) return fail(`the entry '${key}' is no schedule`);
    book.set(key, tiling);
  }
  return book;
}

/** The same from JSON text. */
export function parseBook(what: string, text: string): Book {
  return readBook(what, parseData(what, text));
}

/** JSON text as data. Throws ParseError E_FORMAT naming `what` where it is none. */
export function parseData(what: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new ParseError('E_FORMAT', what, `is not JSON: ${error instanceof Error ? error.message : error}`);
  }
}

/** Keys in order, so that equal books are equal texts. */
export function schedulesOf(book: Book): Schedules {
  const entries = [...book].sort(([a], [b]) => (a < b ? -1 : 1));
  return { version: 1, entries: Object.fromEntries(entries) };
}

export function printBook(book: Book): string {
  return `${JSON.stringify(schedulesOf(book), undefined, 1)}\n`;
}

/** An entry as a tiling; undefined where it is none. */
function tilingFrom(entry: unknown): ContractTiling | undefined {
  if (!isRecord(entry) || typeof entry['kind'] !== 'string') return undefined;
  const named = entry['kind'];
  const kind = Object.hasOwn(formerKinds, named) ? formerKinds[named] : named;
  if (kind === undefined || !Object.hasOwn(tilingFields, kind)) return undefined;
  const fields = { ...tile, ...tilingFields[kind as ContractTiling['kind']] };
  const wanted = Object.entries<TilingFieldContent | 'flag'>(fields);
  if (Object.keys(entry).length !== wanted.length + 1) return undefined;
  const fits = wanted.every(([name, field]) => Object.hasOwn(entry, name) && holds[field](entry[name]));
  return fits ? ({ ...entry, kind } as ContractTiling) : undefined;
}

/** Whether data has entries by name. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
