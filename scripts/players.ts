// Bundles the players, the code that ahead-of-time bundles run with, into one script for each choice of targets:
// dist/players/webgpu.js, dist/players/webgpu-wasm.js and so on. Part of `npm run build`; `tsx scripts/players.ts [DIR]` writes them
// elsewhere.

import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const source = path.join(root, 'src', 'player');
const folder = path.resolve(process.argv[2] ?? path.join(root, 'dist', 'players'));

/** In the order in which a bundle tries them. */
const targets = ['webgpu', 'wasm'];
const choices = targets.reduce<string[][]>(
  (all, target) => [...all, ...all.map((chosen) => [...chosen, target])],
  [[]],
);

/** A script that leaves `sinterPlayer.loadBundle(base, options)` behind, for these targets. */
async function player(chosen: readonly string[]): Promise<string> {
  const text = [
    "import { loadBundle as load } from './player.ts';",
    ...chosen.map((target) => `import { open as ${target} } from './open-${target}.ts';`),
    `export const loadBundle = (base, options) => load({ ${chosen.join(', ')} }, base, options);`,
  ].join('\n');
  const input = path.join(source, 'entry.js');
  const build = await rolldown({
    input,
    platform: 'browser',
    plugins: [
      {
        name: 'entry',
        resolveId: (id) => (id === input ? id : undefined),
        load: (id) => (id === input ? text : undefined),
      },
    ],
  });
  const { output } = await build.generate({ format: 'iife', name: 'sinterPlayer', minify: true });
  await build.close();
  if (output.length !== 1) throw new Error(`the player for ${chosen.join()} came in ${output.length} files`);
  return output[0].code;
}

mkdirSync(folder, { recursive: true });
for (const chosen of choices) {
  if (chosen.length > 0) writeFileSync(path.join(folder, `${chosen.join('-')}.js`), await player(chosen));
}
