// The states in a value's life, and the transitions between them. A handle is in one of these states
// at any time; its methods (handle.ts) have the names of the transitions, and nothing else changes it.
//
//   node ──▶ ┌─────────┐               evaluate                ┌───────────┐ ◀── storage
//    keep ↻  │ pending │ ────────────────────────────────────▶ │ evaluated │
//    renew ↻ └─────────┘ ◀──────────────────────────────────── └───────────┘
//              ▲     ▲                  renew                    ▲   ▲   │
//              │     │ setAside ▶        ┌───────┐    evaluate   │   │   │
//              │     └─────────────────▶ │ aside │ ──────────────┘   │   │
//              │       ◀ takeBack, renew └───────┘                   │   │
//              │ passOver ▶             ┌────────┐    evaluate       │   │
//              └──────────────────────▶ │ passed │ ──────────────────┘   │
//                ◀ askAgain, renew      └────────┘                  give ▼
//                                                               ┌──────────┐ donate ┌─────────┐
//   pending ◀────────── renew: the call assigns to it ───────── │ donating │ ─────▶ │ donated │
//                                                               └──────────┘        └─────────┘
//   pending, passed, aside, evaluated ────── dispose ─────▶ disposed
//
// A pending value need not be among those that wait for the next evaluation: values of a traced
// function, variables of a derivative and constants never do. These stay pending, or are disposed.

import { CompilerBug } from '../../errors.ts';
import type { StoredValue } from '../storage/storage.ts';

/**
 * A compiled structure of recorded operations (evaluate/cache.ts), as seen by the values that it
 * passed over.
 */
export interface Structure {
  /** From now on the value at this position is computed for its own sake. */
  want(position: number): void;
}

/** How a value is held while it waits aside (aside.ts). */
export interface Hold {
  /** It waits there no more. */
  leave(): void;
}

/**
 * Whether an evaluation must materialise a value even where other pending values consume it: it may
 * fuse, it is kept (assigned values and leaves), or it was asked for again after an evaluation that did not
 * keep it, and is computed before the others.
 */
export type Keeping = 'fusible' | 'kept' | 'late';

/** Not computed yet. */
export interface Pending {
  readonly kind: 'pending';
  readonly wanted: Keeping;
}

/** An evaluation computed it without keeping it: at this position of a structure. */
export interface Passed {
  readonly kind: 'passed';
  readonly structure: Structure;
  readonly position: number;
}

/** Not computed yet, and held weakly: an evaluation computed only values that are not connected with it. */
export interface SetAside {
  readonly kind: 'aside';
  readonly held: Hold;
  readonly wanted: Keeping;
}

/** Computed. */
export interface Evaluated {
  readonly kind: 'evaluated';
  readonly storage: StoredValue;
}

/** Its value was given to a call of a compiled function that is being made. */
export interface Donating {
  readonly kind: 'donating';
}

/** Given up: it can no longer be used. */
export interface Ended {
  readonly kind: 'disposed' | 'donated';
}

export type HandleState = Pending | Passed | SetAside | Evaluated | Donating | Ended;
export type StateKind = HandleState['kind'];

export type Transition =
  | 'keep'
  | 'passOver'
  | 'askAgain'
  | 'setAside'
  | 'takeBack'
  | 'evaluate'
  | 'renew'
  | 'give'
  | 'donate'
  | 'dispose';

/** Where each transition may start, and where it ends. */
export const transitions: Readonly<Record<Transition, Readonly<Partial<Record<StateKind, StateKind>>>>> = {
  keep: { pending: 'pending' },
  passOver: { pending: 'passed' },
  askAgain: { passed: 'pending' },
  setAside: { pending: 'aside' },
  takeBack: { aside: 'pending' },
  evaluate: { pending: 'evaluated', passed: 'evaluated', aside: 'evaluated' },
  renew: {
    pending: 'pending',
    passed: 'pending',
    aside: 'pending',
    evaluated: 'pending',
    donating: 'pending',
  },
  give: { evaluated: 'donating' },
  donate: { donating: 'donated' },
  dispose: { pending: 'disposed', passed: 'disposed', aside: 'disposed', evaluated: 'disposed' },
};

/** The pending states: they have no data of their own, so that all handles share them. */
export const pending: Readonly<Record<Keeping, Pending>> = Object.freeze({
  fusible: Object.freeze({ kind: 'pending', wanted: 'fusible' }),
  kept: Object.freeze({ kind: 'pending', wanted: 'kept' }),
  late: Object.freeze({ kind: 'pending', wanted: 'late' }),
});
export const donating: Donating = Object.freeze({ kind: 'donating' });
export const disposed: Ended = Object.freeze({ kind: 'disposed' });
export const donated: Ended = Object.freeze({ kind: 'donated' });

/** The state that a transition leads to. Throws E_BUG where none leads there. */
export function moved<S extends HandleState>(by: Transition, from: HandleState, to: S): S {
  if (transitions[by][from.kind] !== to.kind)
    throw new CompilerBug('handle', `no value that is ${from.kind} can ${by} to ${to.kind}`);
  // It waits aside no more, whichever way it leaves.
  if (from.kind === 'aside') from.held.leave();
  return to;
}
