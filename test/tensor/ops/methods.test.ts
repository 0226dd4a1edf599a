// Methods are the everyday functions, every other operation is a function, and methods weigh in a page what they are meant to.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { build, type Plugin } from 'esbuild';
import { rolldown } from 'rolldown';
import { operations } from '../../../scripts/operations/declared.ts';
import { beforeAll, describe, expect, expectTypeOf, test } from 'vitest';
import '../../../src/operations/methods.ts';
import * as entry from '../../../src/index.ts';
import * as sn from '../../../src/operations/index.ts';
import { setDevice } from '../../../src/tensor/device.ts';
import { Tensor } from '../../../src/tensor/tensor.ts';
import { read } from './support.ts';

const root = join(import.meta.dirname, '../../..');

/** The names of methods, as the operations declare them. */
const everyday = operations().flatMap(({ method }) => method ?? []);

beforeAll(() => setDevice('interpreter'));

/** Bytes of gzipped code that methods may add to a bundle that has tensors and their derivatives. */
const LIMIT = 25_200;

/** What a program of modules of `src/tensor` weighs when it is bundled, minified and gzipped; what loads later is not in it. */
async function weighed(program: string): Promise<number> {
  const { outputFiles } = await build({
    stdin: { contents: program, resolveDir: join(root, 'src/tensor'), loader: 'ts' },
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'neutral',
    write: false,
    plugins: [asPublished],
  });
  return gzipSync(outputFiles[0]!.contents, { level: 9 }).length;
}

/** Sources as a bundler has them that reads package.json: without side effects but for those listed, and without Node's files. */
const asPublished: Plugin = {
  name: 'as-published',
  setup(bundler) {
    const { sideEffects, browser } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
      readonly sideEffects: readonly string[];
      readonly browser: Readonly<Record<string, string | false>>;
    };
    const sourceOf = (built: string): string =>
      join(root, built.replace('./dist/', 'src/').replace(/\.js$/, '.ts'));
    const effects = new Set(sideEffects.map(sourceOf));
    const absent = new Set(
      Object.entries(browser).flatMap(([built, other]) => (other === false ? [sourceOf(built)] : [])),
    );
    bundler.onResolve({ filter: /^/ }, ({ kind, path, resolveDir }) => {
      if (kind === 'dynamic-import' || !path.startsWith('.')) return { path, external: true };
      const file = join(resolveDir, path);
      return { path: file, sideEffects: effects.has(file) };
    });
    bundler.onLoad({ filter: /\.ts$/ }, ({ path }) => (absent.has(path) ? { contents: '' } : undefined));
  },
};

describe('methods', () => {
  test('are the everyday operations, and those are 151', () => {
    const own = Object.getOwnPropertyNames(Tensor.prototype);
    expect(everyday.filter((name) => !own.includes(name))).toEqual([]);
    const others = own.filter((name) => !everyday.includes(name));
    expect(others.filter((name) => name in sn)).toEqual([]);
    expect(everyday).toHaveLength(151);
  });

  test('and they are functions too', () => {
    expect(everyday.filter((name) => !(name in entry))).toEqual([]);
  });

  test('weigh in a bundle what they may', async () => {
    const tensors = "export { Tensor } from './tensor.ts';";
    const without = await weighed(tensors);
    const added = (await weighed(`import '../operations/methods.ts'; ${tensors}`)) - without;
    expect(added).toBeGreaterThan(LIMIT / 2);
    expect(added).toBeLessThan(LIMIT);
  });

  test('and in a bundle a function brings no signature of others in its file', async () => {
    const file = join(root, 'src/tensor/ops/shape/rearrange.ts');
    const names = ['tile', 'repeat'] as const;
    const codes = await Promise.all(
      names.map(async (name) => {
        const bundled = await rolldown({
          input: 'program',
          external: /^node:/,
          plugins: [
            {
              name: 'program',
              resolveId: (id) => (id === 'program' ? { id, moduleSideEffects: true } : null),
              resolveDynamicImport: (id) => ({ id: String(id), external: true }),
              load: (id) => (id === 'program' ? `export { ${name} } from ${JSON.stringify(file)};` : null),
            },
          ],
        });
        const { output } = await bundled.generate({ format: 'esm' });
        await bundled.close();
        return output.map((part) => (part.type === 'chunk' ? part.code : '')).join('');
      }),
    );
    expect(codes.map((code) => code.includes('the sizes of axes'))).toEqual([false, true]);
  });

  test('are no enumerable properties of tensors', () => {
    expect(Object.keys(Tensor.prototype)).toEqual([]);
  });

  test('call the function on the tensor', async () => {
    const x = sn.tensor([
      [1, -2],
      [3, -4],
    ]);
    expect(await read(x.matmul(x.T).add(1).relu().sum(0))).toEqual([18, 38]);
    expect(await read(x.at(0, { step: -1 }))).toEqual([-2, 1]);
    expect(await read(x.gt(0).where(x, 0))).toEqual([1, 0, 3, 0]);
  });

  test('T reverses all axes', () => {
    expect(sn.ones([2, 3, 4]).T.shape).toEqual([4, 3, 2]);
  });

  test('have the types of the functions', () => {
    const x = sn.ones([2]);
    expectTypeOf(x.sum).parameter(0).toEqualTypeOf<sn.Axes | undefined>();
    expectTypeOf(x.maskedSelect(x.gt(0))).toEqualTypeOf<Promise<Tensor>>();
    expectTypeOf(x.at).parameters.toEqualTypeOf<sn.Index[]>();
  });
});
