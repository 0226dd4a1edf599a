// `sinter` as bundled pages get it: the same names, and every operation gives the same where what it is given waits.

import { beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../src/index.ts';
import { Lazy, NotLoaded } from '../../src/lazy.ts';
import * as page from '../../src/page/index.ts';
import { patient } from '../../src/tensor/waiting.ts';
import { tensorsOf } from '../support/coverage/call.ts';
import { families } from '../support/coverage/rows/all.ts';
import { rowsOf, type Row } from '../support/coverage/row.ts';

type Space = Readonly<Record<string, unknown>>;

const namesOf = (space: object): string[] => Object.keys(space).sort();

describe('the page’s names', () => {
  test('are those of the package, in its namespaces too', () => {
    expect(namesOf(page)).toEqual(namesOf(sn));
    const spaces = Object.entries(sn).filter(([, value]) => typeof value === 'object');
    expect(spaces.length).toBeGreaterThan(5);
    for (const [name, space] of spaces)
      expect(namesOf((page as unknown as Space)[name]!)).toEqual(namesOf(space));
  });
});

/** A part that comes when it is told to, and a tensor that waits for it as if it were the value. */
function waitingFor(): { readonly late: (x: sn.Tensor) => sn.Tensor; come(): Promise<void> } {
  let release: () => void = () => undefined;
  const gate = new Promise<void>((resolve) => (release = resolve));
  const part = new Lazy<(x: sn.Tensor) => sn.Tensor>('a part of this test', async () => {
    await gate;
    return (x) => x;
  });
  return {
    late: patient((x: sn.Tensor) => part.value(x)) as (x: sn.Tensor) => sn.Tensor,
    come() {
      release();
      return part.load();
    },
  };
}

function called(row: Row, over: Space, given: Space): unknown {
  const run = new Function('sn', ...Object.keys(given), `return ${row.call};`) as (
    ...args: unknown[]
  ) => unknown;
  return run(over, ...Object.values(given));
}

async function numbersOf(result: unknown): Promise<readonly (readonly unknown[])[]> {
  return Promise.all(tensorsOf(await result).map(async (x) => [x.dtype, x.shape, [...(await x.data())]]));
}

/** Operations that cannot wait, because what they give is no tensor, or nobody knows how many. */
const untold = new Set(
  [
    'isComplex gradient histogramdd unravelIndex broadcastTensors meshgrid split chunk unbind tensorSplit hsplit',
    'vsplit dsplit repeatInterleave tripletMarginWithDistanceLoss sparse24.compress',
    ...[
      'coalesce',
      'coo',
      'csc',
      'csr',
      'fromDense',
      'scale',
      'toCoo',
      'toCsc',
      'toCsr',
      'toDense',
      'transpose',
    ].map((name) => `sparse.${name}`),
    'sparse.spmm sparse.spmv sparse24.matmul sparse24.decompress',
  ].flatMap((names) => names.split(' ')),
);

describe.each(families.map((family) => [family.name, family] as const))('%s of a page', (_, family) => {
  beforeAll(() => sn.setDevice('interpreter'));

  test('give of what waits what they give of what is there', async () => {
    let waited = 0;
    for (const row of rowsOf(family)) {
      const given = Object.fromEntries(
        Object.entries(row.given).map(([name, code]) => [
          name,
          new Function('sn', `return ${code}`)(sn) as unknown,
        ]),
      );
      sn.manualSeed(11);
      const expected = await numbersOf(called(row, sn, given));
      const { late, come } = waitingFor();
      const waiting = Object.fromEntries(
        Object.entries(given).map(([name, x]) => [name, x instanceof sn.Tensor ? late(x) : x]),
      );
      sn.manualSeed(11);
      let result: unknown;
      try {
        result = called(row, page as unknown as Space, waiting);
      } catch (error) {
        if (!(error instanceof NotLoaded)) throw new Error(`${row.name}: ${String(error)}`, { cause: error });
        const [name] = row.name.split('/') as [string];
        const isUntold =
          untold.has(name) || name.startsWith('distributions.') || /\bsize|\.shape/.test(row.call);
        expect([row.name, isUntold]).toEqual([row.name, true]);
        await come();
        // What had not come has now: nothing is to be awaited any more.
        await page.loadCompiler();
        sn.manualSeed(11);
        result = called(row, page as unknown as Space, given);
        expect([row.name, await numbersOf(result)]).toEqual([row.name, expected]);
        continue;
      }
      if (Object.keys(given).length > 0) waited += 1;
      const numbers = come()
        .then(() => result)
        .then(async (at) => {
          // A call may take several parts.
          for (const x of tensorsOf(at)) await x.data();
          return numbersOf(at);
        });
      expect([row.name, await numbers]).toEqual([row.name, expected]);
    }
    if (!['making', 'sparse'].includes(family.name)) expect(waited).toBeGreaterThan(0);
  });
});
