// Pages only: keeps the text of a schedule store in an IndexedDB database of one record.

import type { Shelf } from './shelf.ts';

const table = 'schedules';
const record = 'book';

/** The database of this name, `sinter` by default. */
export function databaseShelf(given: string | undefined): Shelf {
  const name = given ?? 'sinter';
  /** Runs one transaction; resolves when it is complete. */
  const within = async <T>(
    mode: IDBTransactionMode,
    work: (records: IDBObjectStore, done: (value: T) => void) => void,
  ): Promise<T | undefined> => {
    const database = await open(name);
    try {
      return await new Promise<T | undefined>((resolve, reject) => {
        const transaction = database.transaction(table, mode);
        let result: T | undefined;
        transaction.addEventListener('complete', () => resolve(result));
        transaction.addEventListener('abort', () => reject(transaction.error ?? new Error('aborted')));
        work(transaction.objectStore(table), (value) => {
          result = value;
        });
      });
    } finally {
      database.close();
    }
  };
  return {
    place: `the database ${name}`,
    read: () =>
      within<string>('readonly', (records, done) => {
        const asked = records.get(record) as IDBRequest<unknown>;
        asked.addEventListener('success', () => {
          if (asked.result !== undefined) done(String(asked.result));
        });
      }),
    async write(update) {
      await within<never>('readwrite', (records) => {
        const asked = records.get(record) as IDBRequest<unknown>;
        asked.addEventListener('success', () =>
          records.put(update(asked.result === undefined ? undefined : String(asked.result)), record),
        );
      });
    },
  };
}

function open(name: string): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const asked = indexedDB.open(name, 1);
    asked.addEventListener('upgradeneeded', () => asked.result.createObjectStore(table));
    asked.addEventListener('success', () => resolve(asked.result));
    asked.addEventListener('error', () => reject(asked.error ?? new Error(`${name} did not open`)));
    asked.addEventListener('blocked', () => reject(new Error(`${name} is held open by an older page`)));
  });
}
