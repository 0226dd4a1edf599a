// Parts that come when they are needed: work is begun anew until all is there, and what does not come is an error that says so.

import { expect, test } from 'vitest';
import { SinterError } from '../src/errors.ts';
import { Lazy, loadCompiler, NotLoaded, whenLoaded } from '../src/lazy.ts';

test('work is begun anew after each part that it lacked, and each part is loaded once', async () => {
  let loads = 0;
  const parts = [1, 2, 3].map((n) => new Lazy(`part ${n}`, () => Promise.resolve((++loads, n))));
  let begun = 0;
  const work = (): number => {
    begun += 1;
    return parts.reduce((sum, part) => sum + part.value, 0);
  };
  expect(work).toThrow(NotLoaded);
  await expect(whenLoaded(work)).resolves.toBe(6);
  expect([begun, loads]).toEqual([5, 3]);
  await Promise.all([loadCompiler(), loadCompiler()]);
  expect(work()).toBe(6);
  expect(loads).toBe(3);
});

test('what is supplied is not loaded', async () => {
  const part = new Lazy<string>('a part', () => Promise.reject(new Error('not to be called')));
  part.supply('here');
  await part.load();
  expect(part.value).toBe('here');
});

test('errors of the work are its own', async () => {
  const work = (): never => {
    throw new RangeError('of the work');
  };
  await expect(whenLoaded(work)).rejects.toThrow(RangeError);
});

test('a part that does not come rejects with E_IO, and is asked for again', async () => {
  let reachable = false;
  const part = new Lazy('the template scan', () =>
    reachable ? Promise.resolve(7) : Promise.reject(new TypeError('Failed to fetch')),
  );
  const problem = await whenLoaded(() => part.value).catch((error: unknown) => error);
  expect(problem).toBeInstanceOf(SinterError);
  expect(problem).toMatchObject({ code: 'E_IO' });
  expect(String(problem)).toMatch(/its part 'the template scan' does not load: .*Failed to fetch\n {2}try: /);
  reachable = true;
  await expect(whenLoaded(() => part.value)).resolves.toBe(7);
});
