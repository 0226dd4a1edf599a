// What the measure of pages tells of a script's bytes: every byte counts once, for the module that it comes from.

import * as esbuild from 'esbuild';
import { expect, test } from 'vitest';
import { bytesByRoom, bytesBySource, roomOf, type SourceMap } from '../../bench/pages/makeup.ts';

const dist = '/page/node_modules/sinter/dist';
const modules: Readonly<Record<string, string>> = {
  '/page/main.js': `import { a } from '${dist}/ir/a.js';\nimport { b } from '${dist}/ir/passes/b.js';\nconsole.log(a, b, 'ö');\n`,
  [`${dist}/ir/a.js`]: `// ${'a comment '.repeat(50)}\nexport const a = '${'a'.repeat(100)}';\n`,
  [`${dist}/ir/passes/b.js`]: `export const b = [\n  '${'b'.repeat(200)}',\n  '${'ä'.repeat(150)}',\n];\n`,
};

/** The modules as one script, and its source map. */
async function bundled(minify: boolean): Promise<{ readonly code: string; readonly map: SourceMap }> {
  const plugin: esbuild.Plugin = {
    name: 'modules',
    setup(build) {
      build.onResolve({ filter: /.*/ }, (asked) => ({ path: asked.path }));
      build.onLoad({ filter: /.*/ }, (asked) => ({ contents: modules[asked.path]! }));
    },
  };
  const { outputFiles } = await esbuild.build({
    entryPoints: ['/page/main.js'],
    bundle: true,
    format: 'esm',
    charset: 'utf8',
    minify,
    sourcemap: 'external',
    outdir: '/page/assets',
    write: false,
    plugins: [plugin],
  });
  const text = (end: string): string => outputFiles.find((file) => file.path.endsWith(end))!.text;
  return { code: text('.js'), map: JSON.parse(text('.map')) as SourceMap };
}

test.each([false, true])("a script's bytes are those of its modules, minified %s", async (minify) => {
  const { code, map } = await bundled(minify);
  const bytes = bytesBySource(code, map, '/page/assets');
  expect([...bytes.values()].reduce((sum, count) => sum + count)).toBe(Buffer.byteLength(code));
  // A string of 100 and two of 200 and, in UTF-8, 300 bytes, and a few bytes around them.
  const a = bytes.get(`${dist}/ir/a.js`)!;
  const b = bytes.get(`${dist}/ir/passes/b.js`)!;
  expect(a - 100).toSatisfy((rest: number) => rest > 4 && rest < 25);
  expect(b - 500).toSatisfy((rest: number) => rest > 4 && rest < 45);
  expect(bytes.get('/page/main.js')).toBeGreaterThan(10);

  const [ir, ...others] = bytesByRoom(bytes);
  expect(ir).toEqual({ room: 'src/ir', bytes: a + b, folders: [['src/ir/passes', b]] });
  expect(others.map(({ room }) => room)).toContain('the page');
});

test('a module is of the room that its source lies in, or of its package', () => {
  const rooms = (file: string): string[] => [1, 2].map((levels) => roomOf(file, levels));
  expect(rooms(`${dist}/codegen/emit/wasm/text.js`)).toEqual(['src/codegen', 'src/codegen/emit']);
  expect(rooms(`${dist}/ir/graph.js`)).toEqual(['src/ir', 'src/ir']);
  expect(rooms(`${dist}/core.js`)).toEqual(['src/*.ts', 'src/*.ts']);
  expect(roomOf('/page/main.js', 1)).toBe('the page');
  expect(roomOf('/page/node_modules/@jax-js/jax/dist/index.js', 2)).toBe('@jax-js/jax');
});
