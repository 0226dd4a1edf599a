// What a loader and its workers say to each other.

import type { Stacked } from '../stacking.ts';

/** What a worker is to load from, first of all. */
export interface WorkerAssignment {
  /** The URL of the module. */
  readonly module: string;
  /** The name of its export: a dataset, or a function that makes one. */
  readonly name: string;
  /** What the function is given. */
  readonly context: WorkerContext;
}

/** What a function that makes a worker's dataset is given. */
export interface WorkerContext {
  /** Which of the workers, from 0. */
  readonly worker: number;
  readonly workers: number;
  /** The option `data` of the loader's workers. */
  readonly data: unknown;
}

/** A batch that is wanted: stacked, or as the items themselves. */
export interface Wanted {
  readonly id: number;
  readonly indices: readonly number[];
  readonly raw: boolean;
}

/** An error of a worker's, in words. */
export interface WorkerFailure {
  readonly name: string;
  readonly message: string;
  readonly stack: string | undefined;
  /** The code of an error of Sinter's. */
  readonly code: string | undefined;
  /** Set where items do not fit together. */
  readonly stacking: string | undefined;
}

/** What a worker answers: how many items there are, once it is ready, then batches. */
export type Answer =
  | { readonly ready: number }
  | { readonly id: number; readonly batch: Stacked }
  | { readonly id: number; readonly items: readonly unknown[] }
  | { readonly id?: number; readonly failure: WorkerFailure };

/** How a worker is spoken to, in Node and in pages. */
export interface WorkerPort {
  send(answer: Answer, transfer: readonly ArrayBuffer[]): void;
  receive(handle: (message: Wanted) => void): void;
}
