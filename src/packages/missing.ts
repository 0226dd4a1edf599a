// Packages that only some features need: asked for by name where they are not installed.

import { SinterError } from '../errors.ts';

/**
 * That `purpose` (as in `loadOnnx` or `drawing a page`) needs a package that is not there. `cause`:
 * what the host said.
 */
export function missingPackage(purpose: string, name: string, cause: unknown): SinterError {
  const problem = `${purpose} needs the package ${name}, which is not installed`;
  return new SinterError('E_UNSUPPORTED', `${problem}\n  try: npm install ${name}`, { cause });
}

/** The package of a specifier such as `csv-parse/sync`. */
export function nameOfPackage(specifier: string): string {
  return specifier.replace(/^(@[^/]+\/[^/]+|[^/@]+).*$/, '$1');
}

/**
 * What `load` imports by `import(…)`. Rejects with E_UNSUPPORTED and what to install where the
 * package `name` is missing.
 */
export async function fromPackage<Module>(
  name: string,
  purpose: string,
  load: () => Promise<Module>,
): Promise<Module> {
  try {
    return await load();
  } catch (error) {
    const { code, message } = error as { code?: unknown; message?: unknown };
    const isLost = code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND';
    // The package itself, not a file of it or of ours.
    if (isLost && String(message).includes(`package '${name}'`)) throw missingPackage(purpose, name, error);
    throw error;
  }
}
