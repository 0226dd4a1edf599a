// What authors of pages do with Vite, webpack, Rollup and esbuild: a page that imports a bundle's folder, a module worker that
// imports the package, and the package itself, served from a path below the root. The package is the build, as npm links it.

import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { nodeResolve } from '@rollup/plugin-node-resolve';
import * as esbuild from 'esbuild';
import { rollup, watch } from 'rollup';
import { build, createServer } from 'vite';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import webpack from 'webpack';
import { type Chromium, openChromium } from '../support/browser/chromium.ts';
import { filesUnder, serve } from './serve.ts';

const root = path.resolve(import.meta.dirname, '../..');
const folder = fs.mkdtempSync(path.join(tmpdir(), 'sinter-bundlers-'));
const base = '/below/the/root/';
let browser: Chromium;

const program = `import { randn, softmax, zeros } from 'sinter';
const w = zeros([40, 40]).add(0.5);
export const fn = (x) => ({ output: softmax(x.matmul(w), 1) });
export const inputs = { fn: [randn([2, 40])] };
`;

const page = `import { tensor } from 'sinter';
import { load } from './bundle/index.js';

const told = (async () => {
  const model = await load({ target: 'wasm', threads: 1 });
  const { output } = await model.fn({ x: new Float32Array(80) });
  const sum = await tensor(output).sum().item();
  return [model.target, sum.toFixed(3)];
})();
globalThis.told = told.catch((error) => ['error', String(error)]);
`;

const worker = `import { tensor } from 'sinter';
onmessage = async ({ data }) => postMessage(await tensor(data).mul(2).sum().item());
`;
const pageWithWorker = `const worker = new Worker(new URL('./worker.js', import.meta.url), { type: 'module' });
globalThis.told = new Promise((resolve) => {
  worker.onmessage = ({ data }) => resolve([data]);
  worker.onerror = ({ message }) => resolve(['error', message]);
  worker.postMessage([1, 2, 3]);
});
`;

const html = (script: string): string =>
  `<!doctype html><title>Sinter</title><link rel="icon" href="data:,"><script type="module" src="${script}"></script>`;

beforeAll(async () => {
  fs.mkdirSync(path.join(folder, 'node_modules'));
  fs.symlinkSync(root, path.join(folder, 'node_modules/sinter'));
  const write = (name: string, text: string): void => fs.writeFileSync(path.join(folder, name), text);
  write('package.json', '{ "private": true, "type": "module" }');
  write('program.js', program);
  write('page.js', page);
  write('worker.js', worker);
  write('with-worker.js', pageWithWorker);
  write('index.html', html('./page.js'));
  write('worker.html', html('./with-worker.js'));
  const cli = path.join(root, 'dist/cli/main.js');
  const { status, stderr } = spawnSync(process.execPath, [cli, 'build', 'program.js', '--out', 'bundle'], {
    cwd: folder,
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(stderr);
  browser = await openChromium();
});
afterAll(async () => {
  await browser?.close();
  fs.rmSync(folder, { recursive: true, force: true });
});

/** What a page told, and what its console and network complained of. */
async function visited(address: string): Promise<{ told: unknown; complaints: readonly string[] }> {
  const tab = await browser.context.newPage();
  const complaints: string[] = [];
  tab.on('pageerror', (error) => complaints.push(String(error)));
  tab.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
  });
  tab.on('response', (response) => {
    if (response.status() >= 400) complaints.push(`${response.status()} ${response.url()}`);
  });
  try {
    await tab.goto(address);
    await tab.waitForFunction(() => 'told' in globalThis);
    return { told: await tab.evaluate(() => (globalThis as { told?: unknown }).told), complaints };
  } finally {
    await tab.close();
  }
}

/** The same of a page among built files, below `base`. */
async function visitedBuild(files: ReadonlyMap<string, Uint8Array | string>, name: string) {
  const served = await serve((at) => {
    const body = at.startsWith(base) ? files.get(at.slice(base.length)) : undefined;
    return body === undefined ? undefined : { body };
  });
  try {
    return await visited(`${served.origin}${base}${name}`);
  } finally {
    await served.close();
  }
}

const ran = { told: ['wasm', '2.000'], complaints: [] };

/** The bundle's files that it reads while it loads, for bundlers that leave them where they are. */
function copied(): ReadonlyMap<string, Uint8Array> {
  const read = /^(?:kernels\/|program\.json$|.*\.safetensors$)/;
  return new Map([...filesUnder(path.join(folder, 'bundle'))].filter(([name]) => read.test(name)));
}

describe('Vite', () => {
  const options = { root: folder, configFile: false, envFile: false, logLevel: 'silent', base } as const;

  test.each([
    ['index.html', ran.told],
    ['worker.html', [12]],
  ])('builds %s', async (name, told) => {
    const outDir = path.join(folder, `vite-${name}`);
    await build({
      ...options,
      worker: { format: 'es' },
      build: { outDir, rolldownOptions: { input: path.join(folder, name) } },
    });
    expect(await visitedBuild(filesUnder(outDir), name)).toEqual({ told, complaints: [] });
  });

  test.each([
    ['index.html', ran.told],
    ['worker.html', [12]],
  ])('serves %s while it is written', async (name, told) => {
    const server = await createServer({
      ...options,
      cacheDir: path.join(folder, `cache-${name}`),
      server: { port: 0, host: '127.0.0.1', hmr: false, ws: false, fs: { strict: false } },
    });
    await server.listen();
    try {
      const { port } = server.httpServer!.address() as { port: number };
      const { told: got, complaints } = await visited(`http://127.0.0.1:${port}${base}${name}`);
      expect(got).toEqual(told);
      // Its own client wants a socket, which this server does not have.
      expect(complaints.filter((text) => !/WebSocket|\[vite\]/.test(text))).toEqual([]);
    } finally {
      await server.close();
    }
  });
});

describe('webpack', () => {
  test.each([
    ['page', 'production', ran.told],
    ['with-worker', 'production', [12]],
    ['page', 'development', ran.told],
    ['with-worker', 'development', [12]],
  ] as const)('builds %s.js for %s', async (name, mode, told) => {
    const out = path.join(folder, `webpack-${name}-${mode}`);
    const stats = await new Promise<webpack.Stats>((resolve, reject) => {
      const config: webpack.Configuration = {
        mode,
        context: folder,
        entry: `./${name}.js`,
        output: { path: out, filename: 'main.js' },
        performance: false,
        // Chunks that two pages share are made small once.
        cache: { type: 'filesystem', cacheDirectory: path.join(folder, 'webpack-cache') },
      };
      webpack(config, (error, result) => (error === null ? resolve(result!) : reject(error)));
    });
    const { errors, warnings } = stats.toJson({ all: false, errors: true, warnings: true });
    expect([errors, warnings]).toEqual([[], []]);
    const files = new Map<string, Uint8Array | string>([...filesUnder(out), ['index.html', html('main.js')]]);
    expect(await visitedBuild(files, 'index.html')).toEqual({ told, complaints: [] });
  });
});

describe('Rollup', () => {
  const options = { input: path.join(folder, 'page.js'), plugins: [nodeResolve({ browser: true })] };

  test('builds the page, whose bundle reads its files from beside the script', async () => {
    const warnings: string[] = [];
    const made = await rollup({ ...options, onwarn: ({ message }) => void warnings.push(message) });
    const { output } = await made.generate({ format: 'es' });
    await made.close();
    expect(warnings).toEqual([]);
    const chunks = output.map(
      (file) => [file.fileName, file.type === 'chunk' ? file.code : file.source] as const,
    );
    const files = new Map<string, Uint8Array | string>([
      ...chunks,
      ...copied(),
      ['index.html', html('page.js')],
    ]);
    expect(await visitedBuild(files, 'index.html')).toEqual(ran);
  });

  test('builds the page again while it is written', async () => {
    const name = path.join(folder, 'watched.js');
    fs.writeFileSync(name, page.replace('toFixed(3)', 'toFixed(1)'));
    const out = path.join(folder, 'rollup-watched');
    const watcher = watch({ ...options, input: name, output: { dir: out, format: 'es' } });
    const built = (): Promise<void> =>
      new Promise((resolve, reject) => {
        watcher.on('event', (event) => {
          if ('result' in event) void event.result?.close();
          if (event.code === 'END') resolve();
          if (event.code === 'ERROR') reject(event.error);
        });
      });
    const seen = (): ReturnType<typeof visitedBuild> =>
      visitedBuild(
        new Map<string, Uint8Array | string>([
          ...filesUnder(out),
          ...copied(),
          ['index.html', html('watched.js')],
        ]),
        'index.html',
      );
    try {
      await built();
      expect(await seen()).toEqual({ told: ['wasm', '2.0'], complaints: [] });
      const again = built();
      fs.writeFileSync(name, page);
      await again;
      expect(await seen()).toEqual(ran);
    } finally {
      await watcher.close();
    }
  });
});

describe('esbuild', () => {
  const options = {
    entryPoints: [path.join(folder, 'page.js')],
    bundle: true,
    format: 'esm',
    write: false,
    absWorkingDir: folder,
  } satisfies esbuild.BuildOptions;

  test.each([true, false])('builds the page, with splitting %s', async (splitting) => {
    const { outputFiles, warnings } = await esbuild.build({ ...options, splitting, outdir: folder });
    expect(warnings).toEqual([]);
    const made = outputFiles.map((file) => [path.relative(folder, file.path), file.contents] as const);
    const files = new Map<string, Uint8Array | string>([
      ...made,
      ...copied(),
      ['index.html', html('page.js')],
    ]);
    expect(await visitedBuild(files, 'index.html')).toEqual(ran);
  });

  test('serves the page while it is written', async () => {
    const servedir = path.join(folder, 'esbuild-served');
    for (const [name, body] of [...copied(), ['index.html', html('page.js')] as const]) {
      fs.mkdirSync(path.dirname(path.join(servedir, name)), { recursive: true });
      fs.writeFileSync(path.join(servedir, name), body);
    }
    const context = await esbuild.context({ ...options, outdir: servedir });
    try {
      const { port } = await context.serve({ servedir, host: '127.0.0.1', port: 0 });
      expect(await visited(`http://127.0.0.1:${port}/index.html`)).toEqual(ran);
    } finally {
      await context.dispose();
    }
  });
});
