// An operation is declared once: the lists of public names and methods are made of the declarations, and every declaration says what the
// documents need.

import { describe, expect, test } from 'vitest';
import { operations } from '../../scripts/operations/declared.ts';
import { operationLists } from '../../scripts/operations/lists.ts';
import { rowFamilies } from '../../scripts/operations/rows.ts';
import { families } from '../../scripts/operations/families.ts';
import { readText } from './source.ts';

/** Code without what the formatter decides. */
const bare = (code: string): string => code.replaceAll(/\s+/g, '').replaceAll(/,(?=[})\]])/g, '');

describe('the lists', () => {
  test.each([...operationLists()])('%s is what the sources declare', (path, text) => {
    expect(bare(readText(path)), 'out of date: npm run operations').toBe(bare(text));
  });
});

describe('a public operation', () => {
  const shown = operations().filter(({ kind, names }) => kind === 'function' && names.length > 0);
  const of = (operation: (typeof shown)[number]): string => `${operation.path}: ${operation.own}`;

  test('says what it means', () => {
    expect(shown.filter(({ meaning }) => meaning === '').map(of)).toEqual([]);
  });

  test('has an example, but for those whose guide has them', () => {
    const guides = /^src\/tensor\/ops\/(?:control\/|creation\/keys\.ts)/;
    const bare = shown.filter(({ examples, path }) => examples.length === 0 && !guides.test(path));
    expect(bare.map(of)).toEqual([]);
  });

  test('has an example that calls it', () => {
    const strange = rowFamilies()
      .flatMap(({ rows }) => rows)
      .filter(({ name, call }) => !call.includes(`${name.split('/')[0]!}(`) && !call.includes(`.${name}(`));
    expect(strange.map(({ name, call }) => `${name}: ${call}`)).toEqual([]);
  });

  test('has several examples under names of their own', () => {
    const names = rowFamilies().flatMap(({ rows }) => rows.map(({ name }) => name));
    expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([]);
  });

  test('names a family that there is', () => {
    const titles = families.map(({ title }) => title);
    const strange = operations().filter(({ family }) => family !== undefined && !titles.includes(family));
    expect(strange.map(of)).toEqual([]);
  });
});
