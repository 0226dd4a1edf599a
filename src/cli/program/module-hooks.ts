// Hooks of Node's module loader that go by what a file says, where its package says "type": "commonjs" as `npm init` writes it: a
// file with `import` or `export` is a module all the same. module-file.ts registers them.

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { compileFunction } from 'node:vm';

/** `format` is what Node makes of the file by its name and package, and nothing where it will go by what the file says itself. */
interface LoadContext {
  readonly format?: string | null | undefined;
}

const moduleFormats: Readonly<Record<string, string>> = {
  commonjs: 'module',
  'commonjs-typescript': 'module-typescript',
};

/** Whether a file whose name leaves it open is a module. */
function isModule(path: string): boolean {
  const text = readFileSync(path, 'utf8');
  // TypeScript is not compiled here: `import x = require(…)` and `export =` are its words for CommonJS.
  if (/\.tsx?$/.test(path)) return /^\s*(?:import\b(?!\s+\w+\s*=|\s*\()|export\b(?!\s*=))/m.test(text);
  try {
    compileFunction(text, ['exports', 'require', 'module', '__filename', '__dirname']);
    return false;
  } catch (error) {
    const said = /outside a module|Unexpected token 'export'|await is only valid/;
    return error instanceof Error && said.test(error.message);
  }
}

/** Node's hook `load`: the result is `next`'s, a promise where the loader has a thread of its own. */
export function load<Context extends LoadContext, Result>(
  url: string,
  context: Context,
  next: (url: string, context: Context) => Result,
): Result {
  const [address] = url.split('?');
  if (!/^file:(?!.*\/node_modules\/).*\.[jt]sx?$/.test(address!)) return next(url, context);
  const format = moduleFormats[context.format ?? ''];
  if (format === undefined || !isModule(fileURLToPath(address!))) return next(url, context);
  return next(url, { ...context, format });
}
