// Where measured schedules are kept between runs: a JSON file in Node, IndexedDB in a page, else
// the memory of the process. A store that cannot be read or written loses its schedules but fails
// no computation; the problem is warned of once.

import { SinterError } from '../errors.ts';
import { parseBook, printBook, type Book } from './book.ts';
import type { Shelf } from './shelf.ts';

/** A book kept on a shelf: read once, and merged with entries of other processes when written. */
export class Store {
  readonly #shelf: Shelf | undefined;
  readonly #book = new Map<string, Book extends ReadonlyMap<string, infer S> ? S : never>();
  #loading: Promise<void> | undefined;

  constructor(shelf: Shelf | undefined) {
    this.#shelf = shelf;
  }

  /** What is known, once `load` has settled. */
  get book(): Book {
    return this.#book;
  }

  load(): Promise<void> {
    this.#loading ??= this.#read();
    return this.#loading;
  }

  async #read(): Promise<void> {
    const shelf = this.#shelf;
    if (shelf === undefined) return;
    try {
      const text = await shelf.read();
      if (text === undefined) return;
      for (const [key, schedule] of parseBook(shelf.place, text)) this.#book.set(key, schedule);
    } catch (error) {
      warn(`measured schedules are not read, and will be measured again`, error);
    }
  }

  /** Adds entries, here at once and on the shelf before the promise settles. */
  async add(entries: Book): Promise<void> {
    for (const [key, schedule] of entries) this.#book.set(key, schedule);
    const shelf = this.#shelf;
    if (shelf === undefined || entries.size === 0) return;
    try {
      await shelf.write((text) => printBook(new Map([...readable(shelf, text), ...entries])));
    } catch (error) {
      warn('measured schedules are not kept', error);
    }
  }
}

/** What another process wrote; nothing when it cannot be read, which was warned of at loading. */
function readable(shelf: Shelf, text: string | undefined): Book {
  try {
    return text === undefined ? new Map() : parseBook(shelf.place, text);
  } catch (error) {
    if (error instanceof SinterError) return new Map();
    throw error;
  }
}

function warn(consequence: string, error: unknown): void {
  console.warn(`sinter: ${consequence}: ${error instanceof Error ? error.message : String(error)}`);
}

const stores = new Map<string, Store>();

/**
 * The store of a place: a file's path in Node, a database's name in a page; undefined is the usual
 * place, false none.
 */
export function storeAt(place: string | false | undefined): Promise<Store> {
  const key = place === false ? '' : (place ?? ' usual');
  const known = stores.get(key);
  if (known !== undefined) return Promise.resolve(known);
  return open(place).then((store) => {
    // Another call may have been faster.
    const first = stores.get(key) ?? store;
    stores.set(key, first);
    return first;
  });
}

async function open(place: string | false | undefined): Promise<Store> {
  if (place === false) return new Store(undefined);
  try {
    if (typeof process !== 'undefined' && process.versions?.node !== undefined) {
      const { fileShelf } = await import('./file.ts');
      return new Store(fileShelf(place));
    }
    if (typeof indexedDB === 'undefined') return new Store(undefined);
    const { databaseShelf } = await import('./database.ts');
    return new Store(databaseShelf(place));
  } catch (error) {
    warn('measured schedules are not kept', error);
    return new Store(undefined);
  }
}

/** Every schedule that this process has measured or read. */
export function everyBook(): Book {
  return new Map([...stores.values()].flatMap((store) => [...store.book]));
}
