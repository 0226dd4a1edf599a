// An operation is declared once: the lists of public names and methods are made of the declarations, and every declaration says what the
// documents need.

import { describe, expect, test } from 'vitest';
import { operations } from '../../scripts/operations/declared.ts';
import { operationLists } from '../../scripts/operations/lists.ts';
import { namesByRule, namesFrom, namesIn, namesPage, peers } from '../../scripts/operations/peers.ts';
import { rowFamilies } from '../../scripts/operations/rows.ts';
import { families } from '../../scripts/operations/families.ts';
import { rowNames } from '../support/opinfo/calls/index.ts';
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

/** What the conversion to a dtype does, properties, and parts of PyTorch that its own functions are made of. */
const withoutOperation = [
  'H',
  'bfloat16',
  'byte',
  'char',
  'constant_pad_nd',
  'double',
  'long',
  'mT',
  'native_batch_norm',
  'native_layer_norm',
  'nn.functional._scaled_dot_product_attention',
  'nn.functional.upsample_bilinear',
  'nn.functional.upsample_nearest',
  'short',
  'zero_',
];

describe('the names in other libraries', () => {
  test('are those of the page', () => {
    expect(readText('docs/names.md'), 'out of date: npm run docs').toBe(namesPage());
  });

  test.each(peers)('are said by a tag only where the rule does not say them: $title', (peer) => {
    const said = operations().filter(
      ({ kind, peers: tags }) => kind !== 'type' && tags[peer.tag] !== undefined,
    );
    expect(said.length).toBeGreaterThan(20);
    const idle = said.filter(
      (operation) => namesIn(peer, operation).join() === namesByRule(peer, operation).join(),
    );
    expect(idle.map(({ path, own }) => `${path}: ${own}`)).toEqual([]);
  });

  test('hold every operator of PyTorch’s samples, but for those that are no operation here', () => {
    const [torch] = peers;
    const known = namesFrom(torch!);
    // Some samples are of a variant: `norm.fro`.
    const isKnown = (name: string): boolean =>
      known.has(name) ||
      known.has(`Tensor.${name}`) ||
      (name.includes('.') && isKnown(name.slice(0, name.lastIndexOf('.'))));
    const missing = rowNames.filter((name) => !isKnown(name) && !/^__\w+__$/.test(name));
    expect(missing.toSorted()).toEqual(withoutOperation);
  });
});
