// What an entry with ranges of sizes takes and gives: of its types at many sizes one with names for
// those that vary, and formulas for names that callers do not give.

import type { BundleEntry, Formula } from '../bundle-runtime/manifest.ts';
import type { TracedEntry } from './entry.ts';
import { showFormula } from './formula.ts';
import { uniqueName } from './names.ts';
import { shapeOf, type Trial } from './trials.ts';

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
