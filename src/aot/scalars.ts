// The scalars of a program for many sizes: numbers that follow from sizes, and where those of random
// numbers begin.

import type { Formula, ScalarSource } from '../bundle-runtime/manifest.ts';
import { GraphBuilder, type NodeOf } from '../ir/graph.ts';
import type { SizeScalar } from '../ir/sizes/lowering.ts';
import type { VaryingNumber } from '../ir/sizes/size.ts';
import type { Variant } from '../ir/sizes/variant.ts';
import type { Checking, TracedEntry } from './entry.ts';
import type { Trial } from './trials.ts';

export interface Scalars {
  readonly sources: readonly ScalarSource[];
  readonly draws: Formula;
  readonly checks: readonly Checking[];
}

const words = {
  'low word of double': 'd',
  'high word of double': 'dh',
  'low word of integer': 'i',
  'high word of integer': 'ih',
} as const satisfies Record<Exclude<SizeScalar['part'], 'value'>, string>;

export function offsetOf({ wiring }: TracedEntry, source: number): number {
  return (wiring.sources[source] as { readonly offset: number }).offset;
}

/** The entry as a program for sizes up to those of a trial. */
export function sizedProgram(
  main: TracedEntry,
  { recording }: Trial,
  { graph, scalars }: Variant,
  { sources, draws, checks }: Scalars,
  formulas: ReadonlyMap<VaryingNumber, Formula>,
): TracedEntry {
  const count = recording.partial.graph.parameters.length;
  const parameters = [...graph.parameters];
  const builder = new GraphBuilder();
  // What is handed through comes last.
  for (const { attrs } of recording.traced.graph.parameters.slice(count)) {
    const index = parameters.length;
    parameters.push(builder.add('parameter', [], { ...attrs, index }) as NodeOf<'parameter'>);
  }
  const numbers = scalars.map(({ num, part, parameter }): ScalarSource => {
    const size = formulas.get(num)!;
    const as = part !== 'value' ? words[part] : parameter.dtype === 'f32' ? 'f' : 'i';
    return { size, as };
  });
  return {
    ...main,
    graph: { parameters, outputs: main.kept.map((i) => graph.outputs[i]!) },
    wiring: { ...main.wiring, sources: [...sources, ...numbers], draws, checks },
    scalars: new Set([...main.scalars, ...scalars.map((_, i) => count + i)]),
  };
}
