// Node only: model files by their paths. Loaded by a dynamic import and mapped to nothing in
// package.json's `browser`.

import { readFile, realpath, writeFile } from 'node:fs/promises';
import { basename, dirname, join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ParseError, SinterError } from '../errors.ts';

export { readFile };

/**
 * A file in the folder of another. Throws E_FORMAT when links lead out of the folder, or nothing is
 * there.
 */
export async function readInFolder(model: string | URL, location: string): Promise<Uint8Array> {
  const folder = await realpath(dirname(typeof model === 'string' ? model : fileURLToPath(model)));
  const path = await realpath(join(folder, location)).catch(() => undefined);
  if (path === undefined) throw new ParseError('E_FORMAT', 'onnx', `there is no external file '${location}'`);
  if (!path.startsWith(folder + sep)) {
    throw new ParseError(
      'E_FORMAT',
      'onnx',
      `external data '${location}' lies outside of the model's folder`,
    );
  }
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
