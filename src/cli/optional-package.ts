// Packages that only some commands need: loaded where they are wanted, and asked for by name where
// they are not installed.

import { SinterError } from '../errors.ts';

/**
 * What `load` imports. Throws E_UNSUPPORTED with what to install when `name` is missing; `purpose`
 * as in `drawing a page`.
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
    if (code !== 'ERR_MODULE_NOT_FOUND' || !String(message).includes(name)) throw error;
    throw new SinterError(
      'E_UNSUPPORTED',
      `${purpose} needs the package ${name}, which is not installed\n  try: npm install ${name}`,
      { cause: error },
    );
  }
}
