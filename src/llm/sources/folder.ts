// Folders of files that make a model, as Hugging Face has them: a folder of Node, a base URL, or files that
// a page was given. Files are found by their names, and lie in the folder itself.

import { beside } from '../../beside.ts';
import { ParseError, SinterError, TensorError } from '../../errors.ts';
import type { ByteSource } from '../../io/source/bytes.ts';
import { openSource, webUrl, type SourceInput } from '../../io/source/source.ts';

/** A model: one source, several, or sources by the names of their files. */
export type ModelInput = SourceInput | readonly SourceInput[] | ReadonlyMap<string, SourceInput>;

/** A folder. */
export interface ModelFolder {
  /** What messages call it. */
  readonly name: string;
  /** Opens the file of a name; undefined where there is none. */
  open(file: string, signal?: AbortSignal): Promise<ByteSource | undefined>;
}

const op = 'loadModel';
/** A tokenizer of 260,000 tokens takes 35 MB. */
const largestText = 2 ** 28;

/**
 * The folder that an input is; undefined for files. Rejects with E_UNSUPPORTED for paths in a page, with E_IO for a
 * path that ends in `/` where there is no folder.
 */
export async function folderOf(input: ModelInput): Promise<ModelFolder | undefined> {
  if (input instanceof Map) return ofFiles(input as ReadonlyMap<string, SourceInput>);
  if (Array.isArray(input)) {
    const files = new Map((input as readonly SourceInput[]).map((file) => [fileName(file), file]));
    return files.has('config.json') ? ofFiles(files) : undefined;
  }
  if (typeof input !== 'string' && !(input instanceof URL)) return undefined;
  const url = webUrl(input);
  if (url !== undefined) return url.pathname.endsWith('/') ? ofUrl(url) : undefined;
  const { filesOfFolder } = await import('../../io/files.ts');
  const names = await filesOfFolder(input);
  if (names === undefined) {
    if (!/[/\\]$/.test(String(input))) return undefined;
    const hint = 'the path of a folder of Hugging Face, or of a GGUF file';
    throw new SinterError('E_IO', `${op}: ${String(input)}: there is no such folder\n  try: ${hint}`);
  }
  const place = (file: string): string | URL => {
    if (input instanceof URL || input.startsWith('file:'))
      return beside(op, `${String(input).replace(/\/$/, '')}/`, file);
    return `${input.replace(/\/$/, '')}/${file}`;
  };
  return { ...ofFiles(new Map(names.map((file) => [file, place(file)]))), name: String(input) };
}

/** The name of a file without the folders that it lies in. */
function fileName(input: SourceInput): string {
  const text =
    typeof input === 'object' && 'name' in input && typeof input.name === 'string'
      ? input.name
      : typeof input === 'string' || input instanceof URL
        ? String(input).replace(/[?#].*$/, '')
        : '';
  return text.slice(Math.max(text.lastIndexOf('/'), text.lastIndexOf('\\')) + 1);
}

function ofFiles(files: ReadonlyMap<string, SourceInput>): ModelFolder {
  return {
    name: 'the files',
    async open(file, signal) {
      const input = files.get(file);
      return input === undefined ? undefined : openSource(op, input, signal);
    },
  };
}

function ofUrl(base: URL): ModelFolder {
  return {
    name: base.href,
    async open(file, signal) {
      const url = beside(op, base, file);
      url.search = base.search;
      try {
        return await openSource(op, url, signal);
      } catch (error) {
        if (error instanceof SinterError && isAbsent(error.cause)) return undefined;
        throw error;
      }
    },
  };
}

function isAbsent(cause: unknown): boolean {
  return typeof cause === 'object' && cause !== null && 'status' in cause && cause.status === 404;
}

/** The text of a file; undefined where there is none. */
export async function textIn(
  folder: ModelFolder,
  file: string,
  signal?: AbortSignal,
): Promise<string | undefined> {
  const source = await folder.open(file, signal);
  if (source === undefined) return undefined;
  try {
    if (source.size > largestText) {
      throw new TensorError('E_LIMIT', op, `${file} takes ${source.size} bytes, over ${largestText}`);
    }
    const bytes = await source.read(0, source.size, signal);
    return new TextDecoder('utf-8', { fatal: true }).decode(new Uint8Array(bytes));
  } catch (error) {
    if (error instanceof TypeError) throw new ParseError('E_FORMAT', file, 'is not text in UTF-8');
    throw error;
  } finally {
    await source.close();
  }
}

/** What a file of JSON says; undefined where there is none. */
export async function jsonIn(folder: ModelFolder, file: string, signal?: AbortSignal): Promise<unknown> {
  const text = await textIn(folder, file, signal);
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw new ParseError('E_FORMAT', file, `is not JSON: ${error instanceof Error ? error.message : ''}`);
  }
}
