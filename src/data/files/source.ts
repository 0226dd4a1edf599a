// Where readers take their bytes from, and the packages that they need: found in Node where the
// program has them, handed in by pages, whose bundlers could not know of them.

import { ParseError, showValue, SinterError, TensorError } from '../../errors.ts';
import * as arg from '../../ir/arguments.ts';
import { readFile } from '../../io/tensors.ts';
import { nameOfPackage } from '../../packages/missing.ts';
import type { FileLocation } from '../../platform.ts';

/** A file: its path or URL, or what is in it. */
export type FileSource = FileLocation | Uint8Array | Blob;

export const aSource: arg.Kind<FileSource> = arg.kind(
  'a path, a URL, a Blob or bytes',
  (value) =>
    (typeof value === 'string' && value !== '') ||
    value instanceof URL ||
    arg.isBytes(value) ||
    (typeof Blob !== 'undefined' && value instanceof Blob),
);

/** Whether files can be read by their paths, and packages found. */
export const isNode = (): boolean => typeof process !== 'undefined' && process.versions?.node !== undefined;

/** The bytes of a file. Rejects with E_IO where they cannot be had. */
export async function bytesOf(op: string, source: FileSource): Promise<Uint8Array> {
  if (typeof source === 'string' || source instanceof URL) {
    const isWeb = /^(?:https?|blob|data):/i.test(String(source));
    return isWeb || !isNode() ? fetched(op, source) : readFile(source);
  }
  return arg.isBytes(source) ? source : new Uint8Array(await source.arrayBuffer());
}

async function fetched(op: string, source: FileLocation): Promise<Uint8Array> {
  const told = (reason: string, cause?: unknown): SinterError =>
    new SinterError('E_IO', `${op}: ${String(source)}: ${reason}`, { cause });
  let response: Response;
  try {
    response = await fetch(source);
  } catch (cause) {
    throw told(cause instanceof Error ? cause.message : String(cause), cause);
  }
  if (!response.ok) throw told(`${response.status} ${response.statusText}`);
  return new Uint8Array(await response.arrayBuffer());
}

/** What a file is called in messages. */
export function nameOf(source: FileSource): string {
  return typeof source === 'string' || source instanceof URL ? String(source) : 'the file';
}

/**
 * A package that a reader needs: what was handed in, else what Node finds. Throws E_UNSUPPORTED with
 * what to do where there is none.
 */
export async function packageFor<Module extends object>(
  op: string,
  specifier: string,
  given: Module | undefined,
): Promise<Module> {
  if (given !== undefined) return given;
  if (!isNode()) {
    const name = nameOfPackage(specifier);
    const hint = `import * as reader from '${specifier}', and the option { reader }`;
    throw new TensorError('E_UNSUPPORTED', op, `a page has to pass the package ${name}`, hint);
  }
  const { importFrom } = await import('../../packages/node.ts');
  return importFrom<Module>(await placeOf(op, specifier));
}

/** Where Node finds a package. Throws E_UNSUPPORTED with what to do where there is none. */
export async function placeOf(op: string, specifier: string): Promise<string> {
  return (await import('../../packages/node.ts')).placeFor(op, specifier);
}

/** A package handed in: a module that has this function. */
export function aModuleWith<Module extends object>(name: string): arg.Kind<Module> {
  return arg.kind(
    `a module with the function ${name}`,
    (value) =>
      typeof value === 'object' &&
      value !== null &&
      typeof (value as Readonly<Record<string, unknown>>)[name] === 'function',
  );
}

/** The error of a reader that could not make sense of a file, as one of ours. */
export function malformed(op: string, source: FileSource, cause: unknown): unknown {
  if (cause instanceof SinterError) return cause;
  const reason = cause instanceof Error ? cause.message : showValue(cause);
  const error = new ParseError('E_FORMAT', op, `${nameOf(source)}: ${reason}`);
  error.cause = cause;
  return error;
}
