// What a worker tells the run about the tests in it: lines of JSON at the end of a file, written at once, so that they are there
// even when the next test never gives the thread back.

import type { Sample } from '../costs.ts';
import type { Needs } from '../needs.ts';

/** One line. Seconds are of the processor: the worker's and those of programs it started and waited for. */
export type TestEvent =
  | { readonly kind: 'file'; readonly file: string; readonly pid: number }
  | { readonly kind: 'test'; readonly file: string; readonly name: string }
  | {
      readonly kind: 'tested';
      readonly file: string;
      readonly name: string;
      readonly state: 'passed' | 'failed' | 'skipped';
      readonly seconds: number;
      /** Which part of the test's work the quick tier does, from 0 to 1. */
      readonly share: number;
    }
  | {
      readonly kind: 'done';
      readonly file: string;
      readonly seconds: number;
      readonly passed: number;
      readonly failures: readonly Failure[];
      readonly skips: readonly Skip[];
      /** Tests that only the full tier runs. */
      readonly left: number;
    }
  | { readonly kind: 'unhandled'; readonly file: string | undefined; readonly text: string };

export interface Failure {
  readonly test: string;
  readonly text: string;
}

export interface Skip {
  readonly test: string;
  readonly reason: string;
}

/** What a worker is told, in the variable SINTER_TEST_BATCH. */
export interface Batch {
  readonly files: readonly string[];
  readonly needs: Pick<Needs, 'own' | 'sources'>;
  /** By file, which of its tests run; all of a file that is not here. */
  readonly samples: Readonly<Record<string, Sample>>;
  /** The file that events are written to. */
  readonly events: string;
  /** Where the worker's inspector listens once a signal opens it. */
  readonly inspectorPort: number;
}
