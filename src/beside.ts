// Finds a file that another file names: in the folder of that file or below it, and nowhere else. Readers
// that follow a name from a file use this function (a bundle knows its own files). A name is not a URL: each
// of its parts is encoded as a part of a path, and the resulting URL is compared with that of the folder,
// because URL parsers know more ways out of a folder than a check of the text does.

import { SinterError } from './errors.ts';

/**
 * The address of the file that `file`, an absolute address, calls `name`. Throws E_FORMAT where that
 * lies elsewhere.
 */
export function beside(what: string, file: string | URL, name: string): URL {
  try {
    const folder = new URL('./', file);
    const parts = name.split(/[/\\]/);
    const found = new URL(parts.map(encodeURIComponent).join('/'), folder);
    const isFile = parts.every((part) => part !== '' && part !== '..') && parts.at(-1) !== '.';
    if (isFile && found.href.startsWith(folder.href)) return found;
  } catch {
    // An address without folders, such as `data:`, or half of a character.
  }
  throw outside(what, name);
}

/** The error of a name that leads out of the folder. */
export function outside(what: string, name: string): SinterError {
  return new SinterError(
    'E_FORMAT',
    `${what}: '${name}' lies outside of the folder of the file that names it`,
  );
}
