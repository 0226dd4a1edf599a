// The same pages by other bundlers than Vite, each set up for production as its documentation has it, with code in several
// files. Rollup does not minify; esbuild does it for it, as Vite did for years.

import * as path from 'node:path';
import { nodeResolve } from '@rollup/plugin-node-resolve';
import * as esbuild from 'esbuild';
import { rollup } from 'rollup';
import webpack from 'webpack';
import { filesUnder } from '../../test/browser/serve.ts';
import { buildPage, htmlOf, type BuiltPage } from './build.ts';

export const bundlers = ['Vite', 'Rollup', 'webpack', 'esbuild'] as const;
export type Bundler = (typeof bundlers)[number];

/** Builds the page in `folder`, whose script is `main.js`. */
export const buildBy: Readonly<Record<Bundler, (folder: string) => Promise<BuiltPage>>> = {
  Vite: (folder) => buildPage(folder),

  async Rollup(folder) {
    const made = await rollup({
      input: path.join(folder, 'main.js'),
      plugins: [nodeResolve({ browser: true })],
      logLevel: 'silent',
    });
    const { output } = await made.generate({ format: 'es' });
    await made.close();
    const options = { minify: true, format: 'esm', target: 'es2022' } as const;
    const files = output.map(async (file) => {
      const text = file.type === 'chunk' ? (await esbuild.transform(file.code, options)).code : file.source;
      return [file.fileName, Buffer.from(text)] as const;
    });
    return pageAround(await Promise.all(files));
  },

  async webpack(folder) {
    const out = path.join(folder, 'webpack');
    const config: webpack.Configuration = {
      mode: 'production',
      context: folder,
      entry: './main.js',
      output: { path: out, filename: 'main.js' },
      performance: false,
    };
    const stats = await new Promise<webpack.Stats>((resolve, reject) => {
      webpack(config, (error, result) => (error === null ? resolve(result!) : reject(error)));
    });
    if (stats.hasErrors()) throw new Error(stats.toString({ all: false, errors: true }));
    return pageAround(filesUnder(out));
  },

  async esbuild(folder) {
    const { outputFiles } = await esbuild.build({
      absWorkingDir: folder,
      entryPoints: ['main.js'],
      bundle: true,
      splitting: true,
      format: 'esm',
      minify: true,
      write: false,
      outdir: folder,
      logLevel: 'silent',
    });
    return pageAround(outputFiles.map((file) => [path.relative(folder, file.path), file.contents]));
  },
};

function pageAround(files: Iterable<readonly [string, Uint8Array]>): BuiltPage {
  const html = Buffer.from(htmlOf('./main.js'));
  return { files: new Map([...files, ['index.html', html]]), entry: 'main.js', makeup: new Map() };
}
