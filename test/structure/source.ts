// The source tree as text: every file under src with its imports. Parsing is by pattern, which is enough because the formatter
// gives imports one shape.

import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder of the package. */
export const root: string = fileURLToPath(new URL('../../', import.meta.url));

/** How one file names another. */
export interface Import {
  /** As written: `./shape.ts`, `node:fs`, `ohm-js`. */
  readonly specifier: string;
  /** Path from the package's folder when the specifier is relative, e.g. `src/ir/shape.ts`. */
  readonly target: string | undefined;
  /** `type` imports vanish when compiled; `dynamic` ones happen when the code asks. */
  readonly kind: 'value' | 'type' | 'dynamic';
  /** Whether it is written as `import(…)`, in code or in a type, and not at the head of the file. */
  readonly called: boolean;
}

export interface SourceFile {
  /** With forward slashes, from the package's folder. */
  readonly path: string;
  readonly text: string;
  readonly lines: readonly string[];
  readonly imports: readonly Import[];
}

/** The files below a folder of the package whose names end so. */
export function filesUnder(folder: string, suffix = '.ts'): string[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(suffix))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)).split(sep).join('/'))
    .sort();
}

export function readText(path: string): string {
  return readFileSync(join(root, path), 'utf8');
}

const statement = /^(?:import|export)\s+(type\s+)?(?:[\w*{][^;'"]*?\sfrom\s+)?'([^']+)'/gm;
/** A call of `import`, or a type that is named through it: `typeof import('x')`, `import('x').Name`. */
const call = /(?<![\w.])(typeof\s+)?import\(\s*'([^']+)',?\s*\)(\.[A-Z])?/g;

function importsOf(path: string, text: string): Import[] {
  const code = withoutComments(text);
  const make = (specifier: string, kind: Import['kind'], called: boolean): Import => ({
    specifier,
    target: specifier.startsWith('.') ? posix.join(dirname(path), specifier) : undefined,
    kind,
    called,
  });
  return [
    ...[...code.matchAll(statement)].map(([, type, from]) =>
      make(from!, type === undefined ? 'value' : 'type', false),
    ),
    ...[...code.matchAll(call)].map(([, typeOf, from, member]) =>
      make(from!, typeOf === undefined && member === undefined ? 'dynamic' : 'type', true),
    ),
  ];
}

/** The text without comments. A `//` inside a string would be cut too, which no check here minds. */
export function withoutComments(text: string): string {
  return text.replaceAll(/\/\*[\s\S]*?\*\//g, '').replaceAll(/(?<!:)\/\/.*$/gm, '');
}

/** The text without comments and without what stands between quotes. */
export function bareCode(text: string): string {
  return withoutComments(text).replaceAll(/'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`/g, "''");
}

/** Every file of the source tree. */
export const sources: ReadonlyMap<string, SourceFile> = new Map(
  filesUnder('src').map((path) => {
    const text = readText(path);
    return [path, { path, text, lines: text.trimEnd().split('\n'), imports: importsOf(path, text) }];
  }),
);

/**
 * Files reached from one, it included, along imports that `follows` accepts. `instead`: the file that stands in the place of
 * another, or undefined for none.
 */
export function reachable(
  from: string,
  follows: (kind: Import['kind']) => boolean,
  instead: (path: string) => string | undefined = (path) => path,
): string[] {
  const seen = new Set([from]);
  for (const path of seen) {
    for (const { target, kind } of sources.get(path)!.imports) {
      const file = target === undefined || !follows(kind) ? undefined : instead(target);
      if (file !== undefined) seen.add(file);
    }
  }
  return [...seen];
}
