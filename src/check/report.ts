// What `check` found: the kernels that were compared, those that are wrong, and a table that programs obey.

import type { DeviceFacts } from '../runtime/device.ts';
import { table } from '../table.ts';
import type { Workaround, Workarounds } from './workarounds.ts';

/** Where an element is wrong. */
export interface ValueDifference {
  /** How many elements are wrong, and of how many. */
  readonly wrong: number;
  readonly count: number;
  /** The element that is furthest off, and what stands there. */
  readonly at: readonly number[];
  readonly got: number;
  readonly expected: number;
}

/** The place in a value of this shape of an element in row-major order. */
export function placeOf(element: number, shape: readonly number[]): readonly number[] {
  const at: number[] = [];
  let rest = element;
  for (const size of shape.toReversed()) {
    at.unshift(rest % size);
    rest = Math.floor(rest / size);
  }
  return at;
}

/** A kernel that is compared. */
export interface ComparedFacts {
  readonly name: string;
  readonly kind: string;
  /** How it is spread over the machine, in words. */
  readonly schedule: string;
  /** How many kernels of the program have the same source and size; the first of them is compared. */
  readonly count: number;
  /** What it reads and writes: dtypes and shapes. */
  readonly reads: readonly string[];
  readonly writes: readonly string[];
}

/** A kernel beside the interpreter. */
export interface KernelCheck extends ComparedFacts {
  readonly verdict: 'right' | 'wrong' | 'failed';
  /** Where it is wrong. */
  readonly difference?: ValueDifference;
  /** What the device said of a kernel that failed, or what is wrong where no single element is known. */
  readonly problem?: string;
}

/** What was found of one run. */
export interface RunChecked {
  readonly kernels: readonly KernelCheck[];
  /** What has the device compute rightly, where something was wrong. */
  readonly workaround?: Workaround;
  /** Kernels that were not compared, because they read what a wrong kernel wrote. */
  readonly skipped?: number;
}

/** A kernel beside the interpreter, and the program that it is of. */
export interface CheckedKernel extends KernelCheck {
  readonly program: string;
}

export interface CheckedProgram extends RunChecked {
  readonly title: string;
}

/** What `check` found. `String(check)` says it. */
export class DeviceCheck<T = unknown> {
  /** What the function gave. */
  readonly value: T;
  readonly device: string;
  /** The adapter and its driver. */
  readonly description: string;
  readonly kernels: readonly CheckedKernel[];
  /** Those that differ from the interpreter, or that the device refuses. */
  readonly wrong: readonly CheckedKernel[];
  /** Kernels of a bundle that were not compared, because they read what a wrong kernel wrote. */
  readonly skipped: number;
  /** How programs go without what is wrong: for `useWorkarounds`. Undefined where nothing is wrong. */
  readonly workarounds: Workarounds | undefined;

  constructor(
    value: T,
    { name, description }: Pick<DeviceFacts, 'name' | 'description'>,
    programs: readonly CheckedProgram[],
  ) {
    this.value = value;
    this.device = name;
    this.description = description;
    this.kernels = programs.flatMap(({ title, kernels }) =>
      kernels.map((kernel) => ({ program: title, ...kernel })),
    );
    this.wrong = this.kernels.filter(({ verdict }) => verdict !== 'right');
    this.skipped = programs.reduce((sum, { skipped = 0 }) => sum + skipped, 0);
    const found = programs.flatMap(({ workaround }) => workaround ?? []);
    this.workarounds = found.length === 0 ? undefined : { version: 1, entries: [together(found)] };
  }

  toString(): string {
    const { device, description, kernels, wrong, skipped, workarounds } = this;
    const all = kernels.reduce((sum, { count }) => sum + count, 0);
    const where = `${device}: ${description}`;
    if (kernels.length === 0) return `no kernel ran on ${where}`;
    const compared = `${kernels.length} different kernels (of ${all}) beside the interpreter, on ${where}`;
    if (wrong.length === 0) return `all right: ${compared}`;
    const rows = wrong.map((kernel) => [
      kernel.program,
      kernel.name,
      kernel.writes.join(', '),
      problemOf(kernel),
    ]);
    const lines = [
      `${wrong.length} wrong: ${compared}`,
      '',
      table(['program', 'kernel', 'writes', 'what is wrong'], rows),
    ];
    if (skipped > 0)
      lines.push(
        '',
        `${skipped} more read what these wrote, and ${skipped === 1 ? 'was' : 'were'} not compared`,
      );
    for (const { avoid, schedules, instead } of workarounds?.entries ?? []) {
      const pinned = Object.keys(schedules).length;
      const ways = [
        ...(avoid.length > 0 ? [`the device is used without ${avoid.join(', ')}`] : []),
        ...(pinned > 0
          ? [`${pinned} ${pinned === 1 ? 'product has another schedule' : 'products have other schedules'}`]
          : []),
        ...(instead === undefined ? [] : [`${instead} computes instead`]),
      ];
      lines.push('', `right where ${ways.join(', and ')}`);
    }
    return lines.join('\n');
  }
}

Object.defineProperty(DeviceCheck.prototype, Symbol.for('nodejs.util.inspect.custom'), {
  value(this: DeviceCheck) {
    return this.toString();
  },
});

function problemOf({ difference, problem }: KernelCheck): string {
  if (difference === undefined) return problem ?? '';
  const { wrong, count, at, got, expected } = difference;
  return `${wrong} of ${count} elements; at [${at.join(', ')}] ${got}, expected ${expected}`;
}

/** One entry for what was found with several programs. */
function together(found: readonly Workaround[]): Workaround {
  const [{ device, description }] = found as readonly [Workaround, ...Workaround[]];
  const instead = found.find((one) => one.instead !== undefined)?.instead;
  return {
    device,
    description,
    avoid: [...new Set(found.flatMap(({ avoid }) => avoid))],
    schedules: Object.assign({}, ...found.map(({ schedules }) => schedules)) as Workaround['schedules'],
    ...(instead !== undefined && { instead }),
    wrong: [...new Set(found.flatMap(({ wrong }) => wrong))],
  };
}
