// The order in which the Loop interpreter runs the invocations of a workgroup: each runs alone up
// to the next statement at which it waits for others, and goes on when all of them have arrived.
// Those that meet are a subgroup or the whole workgroup; invocations outside it may be at other
// statements.

import type { Frame } from './registers.ts';
import type { Stmt } from '../../../src/codegen/loop/loop.ts';

/** Where invocations wait. */
export interface Meeting {
  /** How many consecutive invocations meet: 1 for one that waits for an event. */
  readonly size: number;
  /** Whether an invocation may go on when all are there; absent: it may. */
  readonly ready?: (item: number) => boolean;
  /** What happens then; `first` is the first of them. */
  readonly act?: (frames: readonly Frame[], first: number) => void;
}

/** A statement with meetings inside hands control back at each of them. */
export type Task = (frame: Frame) => Generator<Stmt, void>;

/** The workgroup that runs. */
export interface Workgroup {
  readonly meetings: ReadonlyMap<Stmt, Meeting>;
  /** Makes `item` the running invocation. */
  readonly enter: (item: number) => void;
  /** Completes one asynchronous copy, where one is under way. */
  readonly happen: () => boolean;
  readonly fail: (problem: string) => never;
}

export function runWorkgroup(task: Task, frames: readonly Frame[], by: Workgroup): void {
  const { meetings, enter, happen, fail } = by;
  const tasks = frames.map((frame) => task(frame));
  const stops = new Array<Stmt | undefined>(tasks.length);
  const advance = (item: number): void => {
    enter(item);
    const { done, value } = tasks[item]!.next();
    stops[item] = done === true ? undefined : value;
  };
  for (let item = 0; item < tasks.length; item++) advance(item);
  for (;;) {
    let moved = false;
    for (let item = 0; item < tasks.length; item++) {
      const stop = stops[item];
      if (stop === undefined) continue;
      const { size, ready, act } = meetings.get(stop)!;
      if (item % size !== 0) continue;
      const end = Math.min(item + size, tasks.length);
      let together = true;
      for (let other = item; other < end && together; other++)
        together = stops[other] === stop && (ready === undefined || ready(other));
      if (!together) continue;
      moved = true;
      enter(item);
      act?.(end - item === frames.length ? frames : frames.slice(item, end), item);
      for (let other = item; other < end; other++) advance(other);
      item = end - 1;
    }
    if (moved || happen()) continue;
    const stuck = stops.findIndex((stop) => stop !== undefined);
    if (stuck < 0) return;
    const waits = stops.findIndex((stop) => stop !== undefined && meetings.get(stop)!.ready !== undefined);
    if (waits >= 0) {
      enter(waits);
      fail('deadlock: nobody can go on, and this invocation waits for what never happens');
    }
    enter(stops.findIndex((stop) => stop !== stops[0]));
    fail('invocations of one workgroup do not reach the same barrier');
  }
}
