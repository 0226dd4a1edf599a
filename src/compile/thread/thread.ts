// Node only: compiles graphs on a thread of its own, so that the program that asks goes on meanwhile. The
// thread starts when it is first asked, and ends when it has had nothing to do for a while. It does
// not keep the process alive. Where no thread can be started, this thread compiles.

import type { Worker } from 'node:worker_threads';
import { SinterError } from '../../errors.ts';
import { stagesWritten } from '../../dump/stages.ts';
import type { Graph } from '../../ir/graph.ts';
import type { Program } from '../../runtime/program.ts';
import type { Target } from '../../schedule/target.ts';
import { loadedCompiler } from '../chunks.ts';
import type { CompileOptions } from '../compile.ts';
import { plainGraph, type CompileAnswer, type CompileRequest } from './message.ts';

/** Milliseconds without work after which the thread ends, and gives back its memory. */
const idleLimit = 10_000;

/** Who waits for a program. */
interface Waiting {
  readonly resolve: (program: Program) => void;
  readonly reject: (error: unknown) => void;
  /** Compiles it on this thread. */
  readonly here: () => Program;
}

/**
 * The module that the thread runs: a source where this one is, so that it runs from sources too. In a bundle
 * it is undefined: what lies beside the bundle under this name is the program's own.
 */
const served = servedBeside(import.meta.url);

function servedBeside(file: string | undefined): URL | undefined {
  const extension = /\/compile\/thread\/thread(\.[jt]s)$/.exec(file ?? '')?.[1];
  return extension === undefined ? undefined : new URL(`./serve${extension}`, file);
}

export class CompilerThread {
  readonly #module: URL | undefined;
  readonly #idleLimit: number;
  #worker: Worker | undefined;
  #isReady = false;
  /** No thread can be started. */
  #isAbsent = false;
  #last = 0;
  readonly #waiting = new Map<number, Waiting>();
  #idle: NodeJS.Timeout | undefined;

  /** `module` is what the thread runs, as serve.ts does; it ends after so many milliseconds without work. */
  constructor(module: URL | undefined = served, idle: number = idleLimit) {
    this.#module = module;
    this.#idleLimit = idle;
  }

  /** Whether the thread is there. */
  get isRunning(): boolean {
    return this.#worker !== undefined;
  }

  /**
   * The program of a graph. Rejects with what the compiler throws, or E_STATE if the thread ends before
   * it is done. Where somebody watches the stages of compilations, or schedules are given, this thread compiles: neither can be
   * sent.
   */
  async compile(graph: Graph, target: Target, options: CompileOptions): Promise<Program> {
    const here = (): Program => loadedCompiler().compileGraph(graph, target, options).program;
    const { observe, schedules } = options;
    if (observe !== undefined || schedules !== undefined || stagesWritten() !== undefined) return here();
    const worker = await this.#start();
    if (worker === undefined) return here();
    const id = ++this.#last;
    const { observe: _observe, schedules: _schedules, title: _title, inspect: _inspect, ...sent } = options;
    const request: CompileRequest = { id, graph: plainGraph(graph), target, options: sent };
    // Throws where something in it cannot be copied: nobody waits for an answer then.
    worker.postMessage(request, []);
    clearTimeout(this.#idle);
    return new Promise((resolve, reject) => void this.#waiting.set(id, { resolve, reject, here }));
  }

  async #start(): Promise<Worker | undefined> {
    const module = this.#module;
    if (this.#worker !== undefined || this.#isAbsent || module === undefined) return this.#worker;
    const { Worker: Thread } = await import('node:worker_threads');
    if (this.#worker !== undefined || this.#isAbsent) return this.#worker;
    // Options and environment of the process are not inherited: they may load modules into every thread.
    const alone = module.pathname.endsWith('.ts') ? {} : { execArgv: [], env: {} };
    try {
      this.#begin(new Thread(module, alone));
    } catch {
      this.#isAbsent = true;
    }
    return this.#worker;
  }

  #begin(worker: Worker): void {
    this.#worker = worker;
    this.#isReady = false;
    let reason: unknown;
    worker.on('message', (answer: CompileAnswer) => this.#hear(answer));
    worker.once('messageerror', (error) => {
      // Whose answer it was is not known: all who wait are told when the thread has ended.
      reason = error;
      void worker.terminate();
    });
    worker.once('error', (error) => (reason = error));
    worker.once('exit', (code) => this.#ended(worker, reason ?? `it exited with ${code}`));
    // Last: a listener of messages would hold the process again.
    worker.unref();
  }

  #hear(answer: CompileAnswer): void {
    if (answer.kind === 'ready') {
      this.#isReady = true;
      if (this.#waiting.size === 0) this.#rest();
      return;
    }
    const asked = this.#waiting.get(answer.id);
    this.#waiting.delete(answer.id);
    if (this.#waiting.size === 0) this.#rest();
    if (answer.kind === 'compiled') asked?.resolve(answer.program);
    else asked?.reject(new SinterError('E_STATE', answer.problem));
  }

  /** Ends the thread unless it is asked again soon. */
  #rest(): void {
    const worker = this.#worker;
    this.#idle = setTimeout(() => {
      if (this.#waiting.size > 0 || worker !== this.#worker) return;
      this.#worker = undefined;
      void worker?.terminate();
    }, this.#idleLimit);
    this.#idle.unref();
  }

  #ended(worker: Worker, reason: unknown): void {
    if (worker !== this.#worker) return;
    this.#worker = undefined;
    this.#isAbsent = !this.#isReady;
    const asked = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { resolve, reject, here } of asked) {
      if (this.#isReady) {
        reject(new SinterError('E_STATE', `the thread that compiles has ended: ${String(reason)}`));
        continue;
      }
      try {
        resolve(here());
      } catch (error) {
        reject(error);
      }
    }
  }
}

const thread = new CompilerThread();

/** Compiles on the thread of this process, see `CompilerThread.compile`. */
export function compileOnThread(graph: Graph, target: Target, options: CompileOptions): Promise<Program> {
  return thread.compile(graph, target, options);
}
