// Node only: optional packages, found where Sinter or the program that uses it has them, and
// imported when they are needed. Mapped to nothing in package.json's `browser`. Bundlers have to leave
// these calls as they are, because names of packages are values here: they would put a function that
// finds nothing in place of an imported `createRequire` and of an `import`.

import nodeModule from 'node:module';
import * as path from 'node:path';
import { pathToFileURL } from 'node:url';
import { missingPackage, nameOfPackage } from './missing.ts';

/**
 * Finds a package from Sinter's own folder, then from the working directory; throws when neither
 * has it.
 */
export type Resolve = (specifier: string) => string;

/**
 * Resolves a package as Sinter itself would, then as the program in the working directory would.
 */
export function resolveFromProject(specifier: string): string {
  try {
    return nodeModule.createRequire(import.meta.url).resolve(specifier);
  } catch {
    return nodeModule.createRequire(path.join(process.cwd(), 'package.json')).resolve(specifier);
  }
}

/** Where a package is that `purpose` needs. Throws E_UNSUPPORTED with what to install where it is nowhere. */
export function placeFor(purpose: string, specifier: string): string {
  try {
    return resolveFromProject(specifier);
  } catch (cause) {
    throw missingPackage(purpose, nameOfPackage(specifier), cause);
  }
}

/** A CommonJS module, at once. Throws E_UNSUPPORTED with what to install where there is none. */
export function requireFor<Module>(purpose: string, name: string): Module {
  const place = placeFor(purpose, name);
  return nodeModule.createRequire(place)(place) as Module;
}

/** Imports a module by its path; of a CommonJS one, what it exports. */
export async function importFrom<Module>(file: string): Promise<Module> {
  const module = (await import(
    /* webpackIgnore: true */ /* @vite-ignore */ pathToFileURL(file).href
  )) as Module & { default?: Module };
  return module.default ?? module;
}
