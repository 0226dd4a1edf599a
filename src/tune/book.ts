// Schedules under keys, as JSON: what a store keeps, what is exported to be pinned, and what is
// given to `compile`. Text and objects from outside are checked entry by entry.

import { ParseError } from '../errors.ts';
import type { ContractSchedule } from '../codegen/template/contract/schedule.ts';

/**
 * Schedules of kernels by key, as `tunedSchedules` gives them and `compile` takes them. Plain JSON.
 */
export interface Schedules {
  readonly version: 1;
  readonly entries: Readonly<Record<string, ContractSchedule>>;
}

export type Book = ReadonlyMap<string, ContractSchedule>;

/** Fields of each kind besides `kind`: counts, but for those named here. */
const fields: Readonly<Record<ContractSchedule['kind'], readonly string[]>> = {
  registers: [],
  staged: ['tileM', 'tileN', 'tileK'],
  tensor: ['tileM', 'tileN', 'tileK', 'stages'],
  warpgroup: ['tileM', 'tileN', 'tileK', 'stages'],
  packed: ['blockM', 'blockN', 'blockK'],
  direct: ['lines'],
  image: ['blockM', 'lines', 'blockK'],
  stream: ['along'],
  slices: ['threads', 'slices', 'along'],
  window: ['lines', 'taps'],
};
const shared = ['flip', 'rows', 'columns'];

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
  const book = new Map<string, ContractSchedule>();
  for (const [key, schedule] of Object.entries(data['entries'])) {
    if (!isSchedule(schedule)) return fail(`the entry '${key}' is no schedule`);
    book.set(key, schedule);
  }
  return book;
}

/** The entries of a book as JSON text. */
export function parseBook(what: string, text: string): Book {
  let data: unknown;
  try {
    data = JSON.parse(text);
  } catch (error) {
    throw new ParseError('E_FORMAT', what, `is not JSON: ${error instanceof Error ? error.message : error}`);
  }
  return readBook(what, data);
}

/** Keys in order, so that equal books are equal texts. */
export function schedulesOf(book: Book): Schedules {
  const entries = [...book].sort(([a], [b]) => (a < b ? -1 : 1));
  return { version: 1, entries: Object.fromEntries(entries) };
}

export function printBook(book: Book): string {
  return `${JSON.stringify(schedulesOf(book), undefined, 1)}\n`;
}

function isSchedule(value: unknown): value is ContractSchedule {
  if (!isRecord(value)) return false;
  const { kind } = value;
  if (typeof kind !== 'string' || !Object.hasOwn(fields, kind)) return false;
  const wanted = [...shared, ...fields[kind as ContractSchedule['kind']]];
  if (Object.keys(value).length !== wanted.length + 1) return false;
  return wanted.every((name) => {
    const field = value[name];
    if (name === 'flip') return typeof field === 'boolean';
    if (name === 'along') return field === 'n' || field === 'k';
    return Number.isSafeInteger(field) && (field as number) > 0;
  });
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
