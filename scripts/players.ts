// Bundles the players, the code that ahead-of-time bundles run with, into one script each: dist/players/{webgpu,wasm,either}.js. Part of
// `npm run build`; `tsx scripts/players.ts [DIR]` writes them elsewhere.

import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const folder = path.resolve(process.argv[2] ?? path.join(root, 'dist', 'players'));

mkdirSync(folder, { recursive: true });
for (const kind of ['webgpu', 'wasm', 'either']) {
  const build = await rolldown({
    input: path.join(root, 'src', 'player', `open-${kind}.ts`),
    platform: 'browser',
  });
  const { output } = await build.generate({ format: 'iife', name: 'sinterPlayer', minify: true });
  await build.close();
  if (output.length !== 1) throw new Error(`the player for ${kind} came in ${output.length} files`);
  writeFileSync(path.join(folder, `${kind}.js`), output[0].code);
}
