// Bundles the bundle runtimes, the code that ahead-of-time bundles run with, into one script for each choice of targets:
// dist/bundle-runtimes/webgpu.js, dist/bundle-runtimes/webgpu-wasm.js and so on, and into modules what these load when it is wanted:
// dist/bundle-runtimes/modules/{check,cuda,wasm,sizes}.js. Part of `npm run build`; `tsx scripts/bundle-runtimes.ts [DIR]` writes them elsewhere.

import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown, type InputOptions, type OutputOptions } from 'rolldown';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const source = path.join(root, 'src', 'bundle-runtime');
const folder = path.resolve(process.argv[2] ?? path.join(root, 'dist', 'bundle-runtimes'));

/** In the order in which a bundle tries them. */
const targets = ['cuda', 'webgpu', 'wasm'];
const choices = targets.reduce<string[][]>(
  (all, target) => [...all, ...all.map((chosen) => [...chosen, target])],
  [[]],
);

/** Everything that `input` needs, in one file. */
async function inOneFile(input: InputOptions, format: OutputOptions): Promise<string> {
  const build = await rolldown(input);
  const { output } = await build.generate(format);
  await build.close();
  if (output.length !== 1) throw new Error(`${String(input.input)} came in ${output.length} files`);
  return output[0].code;
}

/** For pages to load. */
const small: OutputOptions = { format: 'esm', minify: true, comments: false };

/** The file that opens a target; WebAssembly lies apart where others come first. */
function openerOf(target: string, chosen: readonly string[]): string {
  return target === 'wasm' && chosen.length > 1 ? 'open-wasm-module' : `open-${target}`;
}

/** What a text of imports from `source` needs, in one file, but for the file of the bundle that it imports. */
function ofText(text: string, beside: string): Promise<string> {
  const input = path.join(source, 'entry.js');
  const entry = {
    name: 'entry',
    resolveId: (id: string) => (id === input ? id : undefined),
    load: (id: string) => (id === input ? text : undefined),
  };
  return inOneFile({ input, platform: 'browser', plugins: [entry], external: [beside] }, small);
}

/** A module that exports `load(options)`, for these targets, of the bundle that the `files.js` beside it tells of. */
function bundleRuntime(chosen: readonly string[]): Promise<string> {
  const text = [
    "import { files, modules } from './files.js';",
    "import { loadBundle } from './runtime.ts';",
    ...chosen.map((target) => `import { open as ${target} } from './${openerOf(target, chosen)}.ts';`),
    `export const load = (options) => loadBundle({ ${chosen.join(', ')} }, files, modules, options);`,
  ].join('\n');
  return ofText(text, './files.js');
}

/** A module that exports `check(options)`, of the bundle that it lies in. */
function checkScript(): Promise<string> {
  const text = [
    "import { load } from './index.js';",
    "import { checkBundle } from './check.ts';",
    "export const check = (options) => checkBundle(load, new URL('./check.json', import.meta.url), options);",
  ].join('\n');
  return ofText(text, './index.js');
}

mkdirSync(path.join(folder, 'modules'), { recursive: true });
for (const chosen of choices) {
  if (chosen.length > 0)
    writeFileSync(path.join(folder, `${chosen.join('-')}.js`), await bundleRuntime(chosen));
}
for (const name of ['wasm', 'sizes']) {
  const code = await inOneFile({ input: path.join(source, `${name}.ts`), platform: 'browser' }, small);
  writeFileSync(path.join(folder, 'modules', `${name}.js`), code);
}
writeFileSync(path.join(folder, 'modules', 'check.js'), await checkScript());
// The package koffi is asked for when this runs.
const cuda = await inOneFile({ input: path.join(source, 'cuda.ts'), platform: 'node' }, small);
writeFileSync(path.join(folder, 'modules', 'cuda.js'), cuda);
