// What a compiled function has been compiled to: a trace, and a program, for each kind of arguments
// that it was called with. The reason of each compilation is kept with it, and printed once when
// there are many.

import { faceOf, handlesOf, leavesLike, type Face } from '../trace/argument.ts';
import { Compiled } from './compiled.ts';
import { compiling, watching } from '../debug.ts';
import { autocastType, type AutocastType } from '../autocast.ts';
import { changes } from '../handle/recorded.ts';
import type { Executable, FindSchedules } from '../evaluate/executable.ts';
import type { Handle } from '../handle/handle.ts';
import { parameterNames } from '../tracing.ts';
import { gradEnabled } from '../handle/recording.ts';
import { about, areCompilesWatched } from '../report/compiles.ts';
import { differenceOf } from '../report/reason.ts';
import { currentSession } from '../session.ts';
import { traceFlat } from '../tracing.ts';
import type { Declared } from '../sizes/dim.ts';
import { Varying } from '../sizes/varying.ts';
import type { Flat } from '../tree.ts';

/** Beyond so many, those that were not used for longest give way. */
const capacity = 256;
/** Beyond so many compilations a warning is printed. */
const many = 8;

/** A trace that holds for arguments like those it was made for. */
interface Specialisation {
  readonly face: Face;
  readonly gradEnabled: boolean;
  /** What operations are checked for (debug.ts). */
  readonly watching: ReturnType<typeof watching>;
  /** The dtype of products in the scope of mixed precision that it was called in. */
  readonly autocast: AutocastType | undefined;
  /** How often hooks and dtypes had changed (handle/recorded.ts). */
  readonly changes: number;
  /** The number of the session that it was made in: what it watches is told there. */
  readonly session: number;
  readonly compiled: Compiled;
}

type Traceable = (...args: never[]) => unknown;

/** What to call, and with what. */
export interface Recalled {
  readonly compiled: Compiled;
  readonly leaves: readonly unknown[];
  readonly handles: readonly (Handle | undefined)[];
}

export class Specialisations {
  readonly #fn: Traceable;
  readonly #donate: ReadonlySet<number>;
  readonly #find: FindSchedules | undefined;
  readonly varying: Varying;
  readonly #memory: number | undefined;
  /** The most recently used first. */
  readonly #known: Specialisation[] = [];
  #made = 0;
  #hasToldOfNumbers = false;

  /** `memory`: bytes that a run may take. */
  constructor(
    fn: Traceable,
    donate: ReadonlySet<number>,
    find: FindSchedules | undefined,
    declared?: Declared,
    memory?: number,
  ) {
    this.#memory = memory;
    this.#fn = fn;
    this.#donate = donate;
    this.#find = find;
    this.varying = new Varying(nameOf(fn), find, declared, donate.size > 0 || memory !== undefined);
  }

  /** Leaves of arguments that a call gives up. */
  donated(flat: Flat): readonly number[] {
    return flat.leaves.flatMap((_, leaf) => (isDonated(flat, leaf, this.#donate) ? [leaf] : []));
  }

  /** What these arguments were compiled to, if they were; it becomes the most recently used. */
  recall(args: readonly unknown[]): Recalled | undefined {
    const known = this.#known;
    for (let i = 0; i < known.length; i++) {
      const found = known[i]!;
      const leaves =
        found.gradEnabled === gradEnabled() &&
        found.watching === watching() &&
        found.autocast === autocastType() &&
        found.changes === changes() &&
        found.session === currentSession().number
          ? leavesLike(found.face, args)
          : undefined;
      if (leaves === undefined) continue;
      const handles = handlesOf(leaves);
      if (!found.compiled.holds(handles, leaves)) continue;
      if (i > 0) known.unshift(...known.splice(i, 1));
      return { compiled: found.compiled, leaves, handles };
    }
    return undefined;
  }

  /** Compiles for these arguments. */
  add(args: readonly unknown[], flat: Flat): Recalled {
    const handles = handlesOf(flat.leaves);
    const face = faceOf(flat, handles);
    const donated = this.donated(flat);
    const mayTell = this.#made === many;
    // As things stand before the trace.
    const why = mayTell || areCompilesWatched() ? this.#reason(args, flat, face, handles) : 'another call';
    const { traced, bound } = this.varying.trace({
      flat,
      face,
      before: () => this.#known.map((known) => known.face),
      nameOf: (leaf) => namesOf(this.#fn, flat)[leaf]!,
      record: (shapes) => compiling(() => traceFlat(this.#fn, flat, 'compile', true, shapes)),
    });
    if (bound === undefined) this.#made += 1;
    const isTold = bound === undefined && mayTell;
    const others = this.#known.map((other) => other.compiled);
    const what = about(nameOf(this.#fn), why);
    const compiled = new Compiled(traced, donated, this.#find, others, what, bound, this.#memory);
    if (isTold) this.#advise(why);
    this.#tellOfNumbers(flat, compiled);
    this.#known.unshift({
      face,
      gradEnabled: gradEnabled(),
      watching: watching(),
      autocast: autocastType(),
      changes: changes(),
      session: currentSession().number,
      compiled,
    });
    // What an earlier count of changes left behind matches nothing any more.
    for (let i = this.#known.length - 1; i > 0; i--) {
      if (this.#known[i]!.changes !== changes()) this.#drop(this.#known.splice(i, 1)[0]!);
    }
    if (this.#known.length > capacity) this.#drop(this.#known.pop()!);
    return { compiled, leaves: flat.leaves, handles };
  }

  #drop({ compiled }: Specialisation): void {
    const used = new Set<Executable>(this.#known.flatMap((other) => other.compiled.executables()));
    for (const executable of this.varying.executables()) used.add(executable);
    for (const executable of compiled.executables()) if (!used.has(executable)) executable.destroy();
  }

  #advise(why: string): void {
    const name = this.#fn.name === '' ? 'a compiled function' : `the compiled function ${this.#fn.name}`;
    console.warn(
      `sinter: ${name} was traced ${this.#made} times, and each kind of call is a program of its own. The last time: ${why}.\n` +
        '  try: few shapes (pad, cut, or declare them with dims), tensors or numbers for values that change, and the same structure at each call',
    );
  }

  /** What is new about a call, compared with the nearest that is known. */
  #reason(
    args: readonly unknown[],
    flat: Flat,
    face: Face,
    handles: readonly (Handle | undefined)[],
  ): string {
    const names = namesOf(this.#fn, flat);
    for (const known of this.#known) {
      const leaves = leavesLike(known.face, args);
      if (leaves === undefined) continue;
      if (known.gradEnabled !== gradEnabled()) continue;
      if (known.autocast !== autocastType()) return 'it was called in another precision (autocast) before';
      if (known.session !== currentSession().number) return 'it was called in another session before';
      if (known.changes !== changes()) return 'hooks of a layer or the dtype of a tensor have changed';
      return known.compiled.whyNot(handles, leaves, (leaf) => names[leaf]!) ?? 'the same arguments as before';
    }
    if (this.#known.some((known) => leavesLike(known.face, args) !== undefined)) {
      return gradEnabled() ? 'it was called under noGrad before' : 'it is called under noGrad';
    }
    const before = this.#known.map((known) => known.face.leaves);
    return differenceOf(face.leaves, before, (leaf) => names[leaf]!) ?? 'another structure of its arguments';
  }

  /**
   * A condition on a number cannot be caught, as on any object; a number that reaches no result may
   * be in one.
   */
  #tellOfNumbers(flat: Flat, { traced }: Compiled): void {
    if (this.#hasToldOfNumbers) return;
    const read = new Set(traced.scalars.map((origin) => (origin.kind === 'number' ? origin.leaf : -1)));
    for (const { leaf } of traced.recorded.trace.answers) read.add(leaf);
    const names = namesOf(this.#fn, flat);
    const unread = flat.leaves.flatMap((leaf, i) =>
      typeof leaf === 'number' && !read.has(i) ? [names[i]!] : [],
    );
    if (unread.length === 0) return;
    this.#hasToldOfNumbers = true;
    console.warn(
      `sinter: no result of a compiled function depends on the number ${unread.slice(0, 3).join(', ')}. While it is traced a number ` +
        'is a tensor, and a condition on a tensor (if, &&, ?:, ===) is always the same.\n' +
        '  try: where(n.gt(0), a, b); a string or boolean, which are compiled in; or leave the number out',
    );
  }
}

function nameOf(fn: Traceable): string {
  return fn.name === '' ? 'a function' : fn.name;
}

/** Where the leaves lie, as the function calls its parameters: `x`, `model.layers[0].w`. */
function namesOf(fn: Traceable, { paths }: Flat): string[] {
  const own = parameterNames(fn);
  return paths.map((path) =>
    path.replace(/^\[(\d+)\]/, (_, index: string) => own[Number(index)] ?? `argument ${index}`),
  );
}

/** Whether a leaf of the arguments belongs to a donated one. */
function isDonated(flat: Flat, leaf: number, donate: ReadonlySet<number>): boolean {
  const argument = /^\[(\d+)\]/.exec(flat.paths[leaf]!)?.[1];
  return argument !== undefined && donate.has(Number(argument));
}
