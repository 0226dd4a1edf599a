// What programs of one device share: one value for equal keys, kept while it has users and, of those
// without, the last so many.

import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { mostIdle, SharedEntries } from '../../src/runtime/shared.ts';
import { checkLaw } from '../support/property.ts';

interface Value {
  readonly key: string;
}

test('values with users stay, and of the others the last that were left', () => {
  const takes = fc.record({ key: fc.nat(3 * mostIdle), holds: fc.boolean() });
  checkLaw(25, fc.array(takes, { minLength: 4 * mostIdle, maxLength: 6 * mostIdle }), (all) => {
    const gone = new Set<Value>();
    const shared = new SharedEntries<Value>((value) => gone.add(value));
    const made = new Map<string, Value>();
    const users = new Map<string, number>();
    /** Keys without users, the one that was left longest ago first. */
    let left: string[] = [];
    for (const { key: number, holds } of all) {
      const key = String(number);
      const value = shared.take(key, () => ({ key }));
      // The same as before, unless it went.
      if (made.has(key)) expect(made.get(key) === value).toBe(!gone.has(made.get(key) as Value));
      made.set(key, value);
      users.set(key, (users.get(key) ?? 0) + 1);
      left = left.filter((one) => one !== key);
      if (!holds) {
        shared.release(value);
        users.set(key, users.get(key)! - 1);
        if (users.get(key) === 0) left.push(key);
        if (left.length > mostIdle) expect(gone.has(made.get(left.shift()!)!)).toBe(true);
      }
      const held = [...users.values()].filter((count) => count > 0).length;
      expect(shared.count).toBe(held + left.length);
    }
    for (const key of [...left, ...[...users].flatMap(([one, count]) => (count > 0 ? [one] : []))])
      expect(shared.has(made.get(key)!)).toBe(true);
  });
});

test('what cannot be made leaves nothing, and what was cleared away is not counted', () => {
  const shared = new SharedEntries<Value>(() => expect.unreachable('nothing was let go for others'));
  const refuse = (): never => {
    throw new Error('refused');
  };
  expect(() => shared.take('a', refuse)).toThrow('refused');
  expect(shared.count).toBe(0);
  const value = shared.take('a', () => ({ key: 'a' }));
  shared.clear();
  shared.release(value);
  expect([shared.count, shared.has(value)]).toEqual([0, false]);
});
