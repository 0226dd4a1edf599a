// What a page loads when it is first needed: templates, emitters, passes for rare operations, operations that are not
// everybody's (page/). Compiling is a synchronous function over what is loaded; where something is not, it throws NotLoaded,
// and who waits for a result loads that and compiles again. Elsewhere than in a bundled page all is there from the start
// (whole.ts).

import { SinterError } from './errors.ts';

/** Something of a module that comes by `import()`. */
export class Lazy<T> {
  readonly name: string;
  readonly #import: () => Promise<T>;
  #value: T | undefined = undefined;
  #coming: Promise<void> | undefined = undefined;

  constructor(name: string, importing: () => Promise<T>) {
    this.name = name;
    this.#import = importing;
    everything.push(this);
  }

  /** Throws NotLoaded where it has not come yet. */
  get value(): T {
    if (this.#value === undefined) throw new NotLoaded(this);
    return this.#value;
  }

  /** Undefined where it has not come yet. */
  get loaded(): T | undefined {
    return this.#value;
  }

  /** Gives what it stands for, where that is loaded anyway. */
  supply(value: T): void {
    this.#value = value;
  }

  /** Rejects with E_IO where it does not come; the next call tries again. */
  load(): Promise<void> {
    if (this.#value !== undefined) return Promise.resolve();
    this.#coming ??= this.#import().then(
      (value) => {
        this.supply(value);
        arrived();
      },
      (cause: unknown) => {
        this.#coming = undefined;
        const problem = `sinter: its part '${this.name}' does not load: ${String(cause)}`;
        const hint = 'serve all files of the bundle, those of the version that the page was built with';
        throw new SinterError('E_IO', `${problem}\n  try: ${hint}`, { cause });
      },
    );
    return this.#coming;
  }
}

const everything: Lazy<unknown>[] = [];
let arrived: () => void = () => undefined;

/** Calls `listener` after a part has come, before anything that waits for it goes on. */
export function onArrival(listener: () => void): void {
  arrived = listener;
}

/** A part of Sinter that the work at hand needs has not been loaded; `lack` is what cannot be had without it. */
export class NotLoaded extends SinterError {
  override name: string = 'NotLoaded';
  readonly part: Lazy<unknown>;
  constructor(part: Lazy<unknown>, lack: string = '') {
    const problem = `sinter: its part '${part.name}' is not loaded in this page yet${lack}`;
    super('E_STATE', `${problem}\n  try: await loadCompiler() before what cannot wait`);
    this.part = part;
  }
}

/** Throws NotLoaded unless all of the compiler is loaded. */
export function requireAll(): void {
  for (const part of everything) void part.value;
}

/** What `work` gives once all is loaded that it needs; it is begun anew after each part. */
export async function whenLoaded<T>(work: () => T): Promise<T> {
  for (;;) {
    try {
      return work();
    } catch (error) {
      if (!(error instanceof NotLoaded)) throw error;
      await error.part.load();
    }
  }
}

/**
 * Loads all of the compiler, and all operations. A page loads them bit by bit otherwise, as they are needed where results are
 * awaited; what cannot wait (`explain`, `lower`, the shape of what an operation gives that has not come) throws E_STATE where
 * something is not there.
 */
export async function loadCompiler(): Promise<void> {
  // A part may bring parts of its own.
  for (let seen = 0; seen < everything.length;) {
    const parts = everything.slice(seen);
    seen = everything.length;
    await Promise.all(parts.map((part) => part.load()));
  }
}
