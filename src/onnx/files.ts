// Node only: model files by their paths. Loaded by a dynamic import and mapped to nothing in
// package.json's `browser`.

import { readFile, realpath, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join, resolve, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { beside, outside } from '../beside.ts';
import { ParseError, SinterError } from '../errors.ts';

export { readFile };

const what = 'onnx: external data';

/**
 * A file in the folder of another. Throws E_FORMAT when its name or links lead out of the folder, or
 * no file is there.
 */
export async function readInFolder(model: string | URL, location: string): Promise<Uint8Array> {
  const own = typeof model === 'string' ? resolve(model) : fileURLToPath(model);
  const place = beside(what, pathToFileURL(own), location);
  const folder = await realpath(dirname(own));
  const path = await realpath(fileURLToPath(place)).catch(() => undefined);
  if (path !== undefined && !path.startsWith(folder.endsWith(sep) ? folder : folder + sep))
    throw outside(what, location);
  // Neither folders nor what never ends.
  if (path === undefined || !(await stat(path)).isFile())
    throw new ParseError('E_FORMAT', 'onnx', `there is no external file '${location}'`);
  return readFile(path);
}

/** Writes a model, and files that it names in its own folder. */
export async function writeBeside(
  model: string | URL,
  bytes: Uint8Array,
  files: readonly (readonly [name: string, bytes: Uint8Array])[],
): Promise<void> {
  const path = typeof model === 'string' ? model : fileURLToPath(model);
  const own = files.find(([name]) => name === basename(path));
  if (own !== undefined)
    throw new SinterError('E_VALUE', `save: ${path} is the model, and the file of its weights has that name`);
  for (const [name, content] of files) await writeFile(join(dirname(path), name), content);
  await writeFile(path, bytes);
}
