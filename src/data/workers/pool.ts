// The workers of one loop over a loader. A batch goes to the worker that has the fewest to make. If a worker
// ends, every batch that is waited for still resolves or rejects.

import { SinterError, TensorError, type ErrorCode } from '../../errors.ts';
import type { Stacked } from '../stacking.ts';
import { stackingError } from '../collate.ts';
import type { Answer, WorkerFailure } from './message.ts';
import { startThread, type Thread } from './thread.ts';
import type { FileLocation } from '../../platform.ts';

/** Where the workers of a loader find their dataset. */
export interface WorkerOptions {
  /** How many. */
  readonly count: number;
  /** The module that they load: `new URL('./dataset.js', import.meta.url)`. */
  readonly module: FileLocation;
  /**
   * The name of its export, `dataset` by default: a dataset, or a function that is given a
   * `WorkerContext` and makes one. It must be that of the loader.
   */
  readonly name?: string;
  /** What the function is given besides: anything that can be sent to a worker; nothing by default. */
  readonly data?: unknown;
  /** Milliseconds that a batch may take; by default as long as it does. */
  readonly timeout?: number;
}

/** A batch from a worker. */
export type FromWorker = { readonly batch: Stacked } | { readonly items: readonly unknown[] };

interface Waiting {
  readonly resolve: (made: FromWorker) => void;
  readonly reject: (error: unknown) => void;
  readonly worker: number;
  readonly indices: readonly number[];
}

/** The workers of one loop. */
export class WorkerPool {
  readonly #threads: Thread[] = [];
  readonly #ready: Promise<void>[] = [];
  readonly #load: number[] = [];
  readonly #waiting = new Map<number, Waiting>();
  readonly #timeout: number | undefined;
  /** Why a worker is there no more. */
  readonly #gone = new Map<number, SinterError>();
  #next = 0;
  #isEnding = false;

  /** Starts them. `length` is how many items the loader's own dataset has. */
  constructor(options: WorkerOptions, length: number) {
    const { count, module, name = 'dataset', data, timeout } = options;
    this.#timeout = timeout;
    const url = moduleUrl(module);
    for (let worker = 0; worker < count; worker++) {
      this.#load.push(0);
      this.#ready.push(
        new Promise((resolve, reject) => {
          const assignment = { module: url, name, context: { worker, workers: count, data } };
          const listener = {
            answer: (answer: Answer): void => {
              if ('ready' in answer) {
                const other = `the dataset of worker ${worker} has ${answer.ready} items, the loader's ${length}`;
                if (answer.ready === length) resolve();
                else reject(new TensorError('E_VALUE', 'DataLoader', other));
              } else if ('failure' in answer && answer.id === undefined) {
                reject(failed(`worker ${worker} could not start`, answer.failure));
              } else this.#answered(answer as Exclude<Answer, { readonly ready: number }>);
            },
            ended: (reason: string): void => {
              if (this.#isEnding) return;
              const error = new SinterError('E_WORKER', `DataLoader: worker ${worker} has ended: ${reason}`);
              this.#gone.set(worker, error);
              reject(error);
              for (const [id, waiting] of this.#waiting)
                if (waiting.worker === worker) this.#settled(id)?.reject(error);
            },
          };
          this.#threads.push(started(assignment, listener));
        }),
      );
    }
    // Whoever asks a worker for a batch hears of it.
    for (const ready of this.#ready) ready.catch(() => undefined);
  }

  /** The batch of these items, stacked or, where `raw`, as they are. */
  async load(indices: readonly number[], raw: boolean): Promise<FromWorker> {
    const worker = this.#load.indexOf(Math.min(...this.#load));
    const id = this.#next++;
    this.#load[worker] = (this.#load[worker] as number) + 1;
    const made = new Promise<FromWorker>((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject, worker, indices });
    });
    this.#ready[worker]?.then(
      () => {
        const gone = this.#gone.get(worker);
        if (gone !== undefined) this.#settled(id)?.reject(gone);
        else if (this.#waiting.has(id)) this.#threads[worker]?.ask({ id, indices, raw });
      },
      (error: unknown) => this.#settled(id)?.reject(error),
    );
    const limit = this.#timeout;
    if (limit === undefined) return made;
    const late = setTimeout(() => {
      const error = new SinterError('E_WORKER', `DataLoader: worker ${worker} took more than ${limit} ms`);
      this.#settled(id)?.reject(error);
    }, limit);
    return made.finally(() => clearTimeout(late));
  }

  /** Whether the process has to stay for what the workers do. */
  hold(needed: boolean): void {
    for (const thread of this.#threads) thread.hold(needed);
  }

  /** Ends the workers; what is still waited for never comes. */
  async close(): Promise<void> {
    this.#isEnding = true;
    await Promise.all(this.#threads.map((thread) => thread.end()));
    const error = new SinterError('E_WORKER', 'DataLoader: the loop is over');
    for (const id of this.#waiting.keys()) this.#settled(id)?.reject(error);
  }

  #settled(id: number): Waiting | undefined {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (waiting !== undefined) this.#load[waiting.worker] = (this.#load[waiting.worker] as number) - 1;
    return waiting;
  }

  #answered(answer: Exclude<Answer, { readonly ready: number }>): void {
    const waiting = answer.id === undefined ? undefined : this.#settled(answer.id);
    if (waiting === undefined) return;
    if (!('failure' in answer)) return waiting.resolve(answer);
    const { worker, indices } = waiting;
    const shown = indices.length > 8 ? `${indices.slice(0, 8).join(', ')}, …` : indices.join(', ');
    waiting.reject(failed(`worker ${worker} failed at items ${shown}`, answer.failure));
  }
}

function started(...given: Parameters<typeof startThread>): Thread {
  try {
    return startThread(...given);
  } catch (cause) {
    if (cause instanceof SinterError) throw cause;
    const reason = cause instanceof Error ? cause.message : String(cause);
    const hint = 'options that can be copied: no functions, no tensors';
    throw new SinterError('E_WORKER', `DataLoader: a worker cannot start: ${reason}\n  try: ${hint}`, {
      cause,
    });
  }
}

/** The error that a worker has told of: with its own code where it is one of Sinter's. */
function failed(what: string, { name, message, stack, code, stacking }: WorkerFailure): unknown {
  if (stacking !== undefined)
    return stackingError('DataLoader', Object.assign(new Error(message), { stacking }));
  const cause = Object.assign(new Error(message), { name, stack });
  const isOurs = code !== undefined && /^E_[A-Z_]+$/.test(code);
  const text = `DataLoader: ${what}: ${isOurs ? '' : `${name}: `}${message}`;
  return new SinterError(isOurs ? (code as ErrorCode) : 'E_WORKER', text, { cause });
}

/** The URL of a module: paths are taken from the working directory. */
function moduleUrl(module: FileLocation): string {
  if (module instanceof URL || URL.canParse(module)) return String(module);
  const { process } = globalThis;
  const url = process?.getBuiltinModule?.('node:url');
  const path = process?.getBuiltinModule?.('node:path');
  if (url !== undefined && path !== undefined) return url.pathToFileURL(path.resolve(module)).href;
  return new URL(module, globalThis.location.href).href;
}
