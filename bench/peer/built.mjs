// The library as plain Node can load it: what `npm run build` makes of src. Takes the path of a
// file of dist from the folder of the package, and gives the module.

import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Throws where there is no build. */
export async function built(path) {
  const url = new URL(`../../${path}`, import.meta.url);
  if (existsSync(url)) return import(url.href);
  throw new Error(`${fileURLToPath(url)} is not there: run \`npm run build\` first`);
}
