// Who uses which register, so that it is known what is needed of a register after statements were merged.

import type { Stmt, Value } from '../../../loop/loop.ts';
import { printValue } from '../../../loop/print.ts';
import { bodiesOf, valuesOf } from '../../../loop/walk.ts';
import { eachStretch, partsOf, push, type Segment } from './segments.ts';

interface Use {
  readonly segment: Segment | undefined;
  readonly at: number;
  readonly weight: number;
  count: number;
}

export class RegisterUses {
  readonly #uses = new Map<string, Use[]>();

  /** `segments`: those of the body, in the order of a walk. */
  constructor(body: readonly Stmt[], segments: readonly Segment[]) {
    let next = 0;
    const walk = (stmts: readonly Stmt[], weight: number): void =>
      eachStretch(
        stmts,
        () => {
          const segment = segments[next++]!;
          segment.stmts.forEach((stmt, at) => this.#add(valuesOf(stmt), segment, at, segment.weight));
        },
        (stmt) => {
          this.#add(valuesOf(stmt), undefined, -1, weight);
          const inside = stmt.kind === 'for' ? weight * 16 : weight;
          for (const inner of bodiesOf(stmt)) walk(inner, inside);
        },
      );
    walk(body, 1);
  }

  #add(values: readonly Value[], segment: Segment | undefined, at: number, weight: number): void {
    for (const value of values)
      for (const name of RegisterUses.namesOf(value)) {
        const known = this.#uses.get(name)?.find((use) => use.segment === segment && use.at === at);
        if (known !== undefined && segment !== undefined) known.count += 1;
        else push(this.#uses, name, { segment, at, weight, count: 1 });
      }
  }

  /** A use by a statement is one of a wide register now, or (−1) is not any more. */
  consume(name: string, segment: Segment, at: number, by: 1 | -1): void {
    const use = this.#uses.get(name)?.find((one) => one.segment === segment && one.at === at);
    if (use !== undefined) use.count -= by;
  }

  /** The weight of the statements that use a register as it was. */
  left(name: string): number {
    return (this.#uses.get(name) ?? []).reduce((sum, { count, weight }) => sum + (count > 0 ? weight : 0), 0);
  }

  /** The registers in a value, each as often as it occurs. */
  static namesOf(value: Value): readonly string[] {
    const names: string[] = [];
    for (const part of partsOf(value)) if (part.kind === 'variable') names.push(part.name);
    return names;
  }
}

/** Whether two values are one, wherever they are computed at a time. */
export function sameValue(a: Value, b: Value): boolean {
  if (a === b) return true;
  return a.kind === b.kind && a.type === b.type && a.width === b.width && printValue(a) === printValue(b);
}
