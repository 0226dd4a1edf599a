// What an entry with ranges of sizes takes and gives: of its types at many sizes one with names for
// those that vary, and formulas for names that callers do not give.

import type { BundleEntry, Formula, ScalarSource } from '../bundle-runtime/manifest.ts';
import type { TracedEntry, Checking } from './entry.ts';
import { showFormula } from './formula.ts';
import { uniqueName } from './names.ts';
import { shapeOf, type Trial } from './trials.ts';
import { GraphBuilder, type NodeOf } from '../ir/graph.ts';
import type { SizeScalar } from '../ir/sizes/lowering.ts';
import type { VaryingNumber } from '../ir/sizes/size.ts';
import type { Variant } from '../ir/sizes/variant.ts';

/** Undefined where more than sizes differs. */
export function openPorts(
  trials: readonly Trial[],
  formulaOf: (sizes: readonly number[], what: string) => Formula,
): Pick<BundleEntry, 'inputs' | 'outputs' | 'derived'> | undefined {
  const [first] = trials as readonly [Trial, ...Trial[]];
  const types = new Set(
    trials.map(({ own }) => JSON.stringify([...own.inputs, ...own.outputs].map(withRank))),
  );
  if (types.size > 1) return undefined;
  const derived: Record<string, Formula> = {};
  const taken = new Set(Object.keys(first.sizes));
  const named = (formula: Formula): number | string => {
    if (typeof formula !== 'object') return formula;
    const known = Object.keys(derived).find((name) => showFormula(derived[name]!) === showFormula(formula));
    if (known !== undefined) return known;
    const name = uniqueName('size1', taken);
    derived[name] = formula;
    return name;
  };
  const open = <T extends object>(of: (own: TracedEntry) => readonly T[]): T[] =>
    of(first.own).map((port, i) => {
      if (!('shape' in port)) return port;
      const shapes = trials.map(({ own }) => shapeOf(of(own)[i]!));
      const shape = shapes[0]!.map((_, axis) => {
        const sizes = shapes.map((all) => all[axis]!);
        return named(formulaOf(sizes, `axis ${axis} of an input or output`));
      });
      return { ...port, shape };
    });
  const ports = { inputs: open((own) => own.inputs), outputs: open((own) => own.outputs) };
  return Object.keys(derived).length > 0 ? { ...ports, derived } : ports;
}

function withRank(port: object): object {
  return 'shape' in port ? { ...port, shape: shapeOf(port).length } : port;
}

// The scalars of a program for many sizes: numbers that follow from sizes, and where those of random
// numbers begin.

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
