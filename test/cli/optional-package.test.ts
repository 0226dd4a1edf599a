// Optional packages: a missing one is asked for by name, any other failure passes.

import { expect, test } from 'vitest';
import { fromPackage } from '../../src/cli/optional-package.ts';

const failure = (code: string, message: string): Error => Object.assign(new Error(message), { code });

test('gives what is imported', async () => {
  expect(await fromPackage('one', 'this', () => Promise.resolve({ value: 3 }))).toEqual({ value: 3 });
});

test('a package that is missing is asked for', async () => {
  const load = (): Promise<never> =>
    Promise.reject(failure('ERR_MODULE_NOT_FOUND', "Cannot find package 'fast-png' imported from here"));
  await expect(fromPackage('fast-png', 'a.png: reading PNG images', load)).rejects.toMatchObject({
    code: 'E_UNSUPPORTED',
    message:
      'a.png: reading PNG images needs the package fast-png, which is not installed\n  try: npm install fast-png',
  });
});

test('other failures are told as they are', async () => {
  for (const error of [failure('ERR_MODULE_NOT_FOUND', "Cannot find package 'other'"), new Error('fast-png')])
    await expect(fromPackage('fast-png', 'this', () => Promise.reject(error))).rejects.toBe(error);
});
