// The traces of a compiled function's calls, and for sizes that vary the programs of many: declared
// ones (`dims`), or those that calls turn out to differ in.

import { SinterError } from '../../errors.ts';
import type { FixedShape } from '../../ir/shape.ts';
import type { Face } from '../trace/argument.ts';
import type { Traced } from '../tracing.ts';
import type { Executable, FindSchedules } from '../evaluate/executable.ts';
import { gradEnabled } from '../handle/recording.ts';
import { counts } from '../report/stats.ts';
import { handleOf, Tensor } from '../tensor.ts';
import type { Flat } from '../tree.ts';
import { autoDims, varyingOf } from './auto.ts';
import type { Assignment, Declared } from './dim.ts';
import type { Bound } from './family.ts';
import type { SizeVariant } from './report.ts';
import { Symbolic } from './symbolic.ts';

/** A trace of a call, and its program where that is one for many sizes. */
export interface SizedTrace {
  readonly traced: Traced;
  readonly bound: Bound | undefined;
}

/** One call: its arguments, those of earlier calls, and how to trace. */
export interface TracedCall {
  readonly flat: Flat;
  readonly face: Face;
  readonly before: () => readonly Face[];
  readonly nameOf: (leaf: number) => string;
  /** With `shapes` as a trial at sizes, which is counted apart. */
  readonly record: (shapes?: ReadonlyMap<number, FixedShape>) => Traced;
}

/** How often sizes that nobody declared are looked at anew. */
const mostAttempts = 6;

export class Varying {
  readonly #name: string;
  readonly #find: FindSchedules | undefined;
  readonly #declared: Declared | undefined;
  #symbolic: Symbolic | undefined = undefined;
  /** Programs of earlier symbolics are still run by calls that they know. */
  readonly #old: Symbolic[] = [];
  /** How often undeclared sizes may still be looked for; 0 where they are declared. */
  #attempts: number;

  constructor(
    name: string,
    find: FindSchedules | undefined,
    declared: Declared | undefined,
    isFixed: boolean,
  ) {
    this.#name = name;
    this.#find = find;
    this.#declared = declared;
    // Programs for many sizes write over nothing that a call gives up, and have no budget of memory.
    this.#attempts = declared !== undefined || isFixed ? 0 : mostAttempts;
  }

  executables(): Executable[] {
    return [...this.#old, ...(this.#symbolic === undefined ? [] : [this.#symbolic])].flatMap((each) =>
      each.executables(),
    );
  }

  variants(): readonly SizeVariant[] {
    const families = this.#symbolic?.families ?? [];
    return families.flatMap(({ variants }) =>
      variants.map(({ upTo, isMade }) => ({ upTo: Object.fromEntries(upTo), compiled: isMade })),
    );
  }

  trace(call: TracedCall): SizedTrace {
    return this.#declared === undefined ? this.#undeclared(call) : this.#traceDeclared(call, this.#declared);
  }

  #traceDeclared(call: TracedCall, declared: Declared): SizedTrace {
    const sizes = declared.sizesOf(call.flat, call.nameOf);
    const symbolic = (this.#symbolic ??= new Symbolic(declared, this.#name, this.#find));
    let traced: Traced;
    try {
      traced = call.record(declared.shapesAt(call.flat, sizes));
    } catch (error) {
      throw symbolic.refusal(sizes, error);
    }
    return counted(traced, symbolic.bind(traced, sizes, trials(call, declared)));
  }

  /** Sizes that vary by themselves: where anything stands against them, the call is compiled as it is. */
  #undeclared(call: TracedCall): SizedTrace {
    const symbolic = this.#attempts > 0 && autoDims() ? this.#fitting(call) : undefined;
    if (symbolic === undefined) return { traced: call.record(), bound: undefined };
    const { declared } = symbolic;
    const sizes = declared.sizesOf(call.flat, call.nameOf);
    const traced = call.record(declared.shapesAt(call.flat, sizes));
    // What carries gradients to the outside keeps values for them, which is worth its own program.
    const hasHistory = gradEnabled() && traced.inputs.some(({ origin }) => requiresGrad(call.flat, origin));
    if (hasHistory && !traced.recorded.trace.differentiates) return counted(traced, undefined);
    // Tensors that several processes hold have parts of a fixed size.
    if (traced.inputs.some(({ origin }) => isPart(call.flat, origin))) return counted(traced, undefined);
    try {
      return counted(traced, symbolic.bind(traced, sizes, trials(call, declared)));
    } catch (error) {
      if (!(error instanceof SinterError)) throw error;
      this.#attempts = 0;
      return counted(traced, undefined);
    }
  }

  /** What is known of the sizes, if the call's are among them, or else what is known by now. */
  #fitting({ flat, face, before, nameOf }: TracedCall): Symbolic | undefined {
    const now = this.#symbolic;
    if (now?.declared.holds(flat)) return now;
    const declared = varyingOf(this.#name, flat, face, before(), nameOf);
    // A call that is by itself, as one of nothing often is, says nothing of others.
    if (declared === undefined) return undefined;
    if (now !== undefined) this.#old.push(now);
    this.#attempts -= 1;
    return (this.#symbolic = new Symbolic(declared, this.#name, this.#find, false));
  }
}

function requiresGrad(flat: Flat, origin: Traced['inputs'][number]['origin']): boolean {
  if (origin.kind === 'captured') return origin.handle.requiresGrad;
  return handleOf(flat.leaves[origin.leaf] as Tensor).requiresGrad;
}

/** Whether this process has only a part of what an input stands for. */
function isPart(flat: Flat, origin: Traced['inputs'][number]['origin']): boolean {
  const handle = origin.kind === 'captured' ? origin.handle : handleOf(flat.leaves[origin.leaf] as Tensor);
  return handle.storage?.part !== undefined;
}

/** A trial that became a program of its own was a trace. */
function counted(traced: Traced, bound: Bound | undefined): SizedTrace {
  if (bound === undefined) {
    counts.sizes -= 1;
    counts.traces += 1;
  }
  return { traced, bound };
}

function trials(
  { flat, record }: TracedCall,
  declared: Declared,
): { readonly fixed: ReadonlySet<number>; readonly at: (sizes: Assignment) => Traced } {
  const varying = declared.varyingAxes(flat);
  const fixed = flat.leaves.flatMap((leaf, i) =>
    leaf instanceof Tensor ? handleOf(leaf).shape.filter((_, axis) => !varying.has(`${i} ${axis}`)) : [],
  );
  return { fixed: new Set(fixed), at: (sizes) => record(declared.shapesAt(flat, sizes)) };
}
