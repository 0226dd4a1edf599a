// Every failure Sinter raises. Three kinds: the user's (TensorError, ParseError), the device's (DeviceError), ours
// (CompilerBug). Messages read `op: what is wrong: the values that clash`, then where, then `try: …`.

/** What kind of failure an error is, for programs that handle it. */
export type ErrorCode =
  | 'E_SHAPE'
  | 'E_DTYPE'
  | 'E_VALUE'
  | 'E_AXIS'
  | 'E_INDEX'
  | 'E_PARSE'
  | 'E_FORMAT'
  | 'E_STATE'
  | 'E_GRAD'
  | 'E_UNSUPPORTED'
  | 'E_DEVICE'
  | 'E_VALIDATION'
  | 'E_OOM'
  | 'E_DEVICE_LOST'
  | 'E_LIMIT'
  | 'E_IO'
  | 'E_WORKER'
  | 'E_COLLECTIVE'
  | 'E_BUG';

/** The base of every error Sinter throws: catch this, then look at `code`. */
export class SinterError extends Error {
  // Spelled out in every class: a minifier renames the classes.
  override name: string = 'SinterError';
  readonly code: ErrorCode;
  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** A mistake in what was asked of a tensor operation; thrown when the operation is recorded. */
export class TensorError extends SinterError {
  override name: string = 'TensorError';
  readonly op: string;
  /** `place`: where the operation was recorded, if that is not where the error is thrown. */
  constructor(code: ErrorCode, op: string, problem: string, hint?: string, place: string = userLocation()) {
    super(code, `${op}: ${problem}${place}${hint === undefined ? '' : `\n  try: ${hint}`}`);
    this.op = op;
  }
}

/** A label that is no class, or an index outside its axis; rejects the next read. */
export class IndexError extends TensorError {
  override name: string = 'IndexError';
  /** The integer that is outside. */
  readonly index: number | bigint;
  /** The least and the greatest integer that are allowed. */
  readonly allowed: readonly [from: number, to: number];
  constructor(
    op: string,
    problem: string,
    index: number | bigint,
    allowed: readonly [from: number, to: number],
    hint?: string,
    place?: string,
  ) {
    super('E_INDEX', op, problem, hint, place);
    this.index = index;
    this.allowed = allowed;
  }
}

/** The same mistake, as one of the operation that was called; whatever else it is stays. */
export function ofCaller(error: unknown, op: string): unknown {
  if (!(error instanceof TensorError) || error.op === op) return error;
  return new TensorError(error.code, op, error.message.slice(error.op.length + 2), undefined, '');
}

/** Malformed text or bytes: IR text, einsum notation, safetensors, npy, idx. */
export class ParseError extends SinterError {
  override name: string = 'ParseError';
  /** 1-based; undefined for binary formats. */
  readonly line: number | undefined;
  readonly column: number | undefined;
  constructor(
    code: 'E_PARSE' | 'E_FORMAT',
    what: string,
    problem: string,
    at?: { line: number; column: number },
  ) {
    super(
      code,
      at === undefined ? `${what}: ${problem}` : `${what}: line ${at.line}, column ${at.column}: ${problem}`,
    );
    this.line = at?.line;
    this.column = at?.column;
  }
}

/** The device refused or failed: names the kernel or buffer, the limit, and the value asked for. */
export class DeviceError extends SinterError {
  override name: string = 'DeviceError';
  /** The kernel that failed, when one can be named. */
  readonly kernel: string | undefined;
  constructor(
    code: ErrorCode,
    device: string,
    problem: string,
    options?: { kernel?: string; hint?: string; cause?: unknown },
  ) {
    const kernel = options?.kernel === undefined ? '' : ` in kernel ${options.kernel}`;
    const hint = options?.hint === undefined ? '' : `\n  try: ${options.hint}`;
    super(code, `${device}${kernel}: ${problem}${hint}`, { cause: options?.cause });
    this.kernel = options?.kernel;
  }
}

/** A broken invariant of the compiler itself; names the pass and carries IR text for the report. */
export class CompilerBug extends SinterError {
  override name: string = 'CompilerBug';
  readonly pass: string;
  constructor(pass: string, problem: string, irText?: string) {
    super('E_BUG', `compiler bug in ${pass}: ${problem}${irText === undefined ? '' : `\n${irText}`}`);
    this.pass = pass;
  }
}

/** The error of a file of the package that does not come when it is needed, or that cannot run. */
export function notLoading(part: string, cause: unknown): SinterError {
  const hint =
    'ServiceWorkerGlobalScope' in globalThis
      ? 'make one file of the worker, because service workers import nothing later'
      : 'serve all files of the bundle, those of the version that the page was built with';
  return new SinterError('E_IO', `sinter: ${part} does not load: ${String(cause)}\n  try: ${hint}`, {
    cause,
  });
}

/** The error with a note on where it happened, if it is one of ours. */
export function within(error: unknown, note: string): unknown {
  if (!(error instanceof SinterError)) return error;
  const before = error.message;
  error.message = `${before}\n  ${note}`;
  if (error.stack !== undefined) error.stack = error.stack.replace(before, () => error.message);
  return error;
}

/** Where tensors and layers name the copy of the package that made them. It is the same name in all copies. */
export const copyKey: unique symbol = Symbol.for('sinter.copy');

/** This copy of the package. */
export const thisCopy: object = {};

/**
 * What an object that another copy of the package made is called, undefined for other values: two versions in one program, or a
 * page whose scripts each contain one. Each copy has devices and graphs of its own.
 */
export function fromOtherCopy(value: object): string | undefined {
  const copy = (value as { readonly [copyKey]?: object })[copyKey];
  return copy === undefined || copy === thisCopy
    ? undefined
    : 'an object of another copy of Sinter (this program has loaded the package twice)';
}

/** What came, in words for a message: `'abc'`, `undefined`, `[1,2]`, `a function`, `an object {min}`, `a Promise`. */
export function showValue(value: unknown): string {
  if (typeof value === 'string') return value.length > 20 ? `'${value.slice(0, 20)}…'` : `'${value}'`;
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'function') return 'a function';
  if (typeof value !== 'object' || value === null) return Object.is(value, -0) ? '-0' : String(value);
  if (Array.isArray(value)) {
    const items = Array.from(value.slice(0, 6), (item: unknown) =>
      Array.isArray(item) ? '[…]' : showValue(item),
    );
    return `[${items.join(',')}${value.length > 6 ? ',…' : ''}]`;
  }
  const other = fromOtherCopy(value);
  if (other !== undefined) return other;
  const tells = typeof value.toString === 'function' && value.toString !== Object.prototype.toString;
  if (tells && !ArrayBuffer.isView(value)) {
    const told = described(value);
    // Methods of layers are never the engine's own.
    if (!told.startsWith('[object ')) return told;
  }
  const kind = typeof value.constructor === 'function' ? value.constructor.name : 'Object';
  if (kind !== 'Object') return `${/^[AEIOU]/.test(kind) ? 'an' : 'a'} ${kind}`;
  return `an object {${Object.keys(value).slice(0, 4).join(', ')}}`;
}

/** What an object says of itself, in at most 80 characters; its `toString` may be anything. */
function described(value: object): string {
  try {
    // Not String(value): what stands for a number refuses to become text.
    const told = String(value.toString());
    return told.length > 80 ? `${told.slice(0, 80)}…` : told;
  } catch {
    return 'an object whose toString throws';
  }
}

/**
 * The address of a folder of Sinter, from that of one of its files. It is undefined where a bundler leaves
 * no address of files (as one file that is no module), or one without folders (`blob:`).
 */
export function folderOf(file: string | undefined, relative: string): string | undefined {
  try {
    return new URL(relative, file).href;
  } catch {
    return undefined;
  }
}

/** The first stack frame outside Sinter, as `\n  at file:line:column`; empty when none can be told apart. */
export function userLocation(): string {
  // Ten frames, as engines keep by themselves, end inside of nested layers. Who asks for none gets none.
  const limit = Error.stackTraceLimit;
  if (limit !== 0) Error.stackTraceLimit = 200;
  const stack = new Error('where').stack?.split('\n') ?? [];
  Error.stackTraceLimit = limit;
  const here = folderOf(import.meta.url, '.');
  if (here === undefined) return '';
  for (const frame of stack.slice(1)) {
    if (frame.includes('node:')) continue;
    const place = /\(?((?:file:\/\/|\/|https?:|[A-Za-z]:\\)[^()]*:\d+:\d+)\)?$/.exec(frame)?.[1];
    if (place === undefined) continue;
    const url = place.startsWith('/') ? `file://${place}` : place;
    if (!url.startsWith(here) && !url.includes('/node_modules/')) {
      return `\n  at ${url.replace(/^.*\/([^/]+\/[^/]+)$/, '$1')}`;
    }
  }
  return '';
}
