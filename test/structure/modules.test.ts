// Namespaces of `sinter` are modules of their own too, for pages that want nothing else: `sinter/linalg` is `sn.linalg`.

import { expect, test } from 'vitest';
import * as sn from '../../src/index.ts';
import * as distributions from '../../src/operations/distributions.ts';
import * as fft from '../../src/operations/fft.ts';
import * as linalg from '../../src/operations/linalg.ts';
import * as masked from '../../src/operations/masked.ts';
import * as sparse from '../../src/operations/sparse.ts';
import * as special from '../../src/operations/special.ts';
import { readText } from './source.ts';

const modules = {
  distributions: [distributions, sn.distributions],
  fft: [fft, sn.fft],
  linalg: [linalg, sn.linalg],
  masked: [masked, sn.masked],
  sparse: [sparse, sn.sparse],
  special: [special, sn.special],
} as const;

test.each(Object.keys(modules) as (keyof typeof modules)[])(
  'sinter/%s has what its namespace has',
  (name) => {
    const [module, namespace] = modules[name];
    expect(Object.keys(module).length).toBeGreaterThan(5);
    expect({ ...module }).toEqual({ ...namespace });
    const { exports } = JSON.parse(readText('package.json')) as {
      readonly exports: Readonly<Record<string, { readonly default: string }>>;
    };
    expect(exports[`./${name}`]?.default).toBe(`./dist/operations/${name}.js`);
  },
);
