// Which tiling a dot or conv kernel takes: those that are legal for its problem on the target, in
// the order of their modelled times, and the few that are worth measuring.

import type { Target } from '../../../schedule/target.ts';
import { CompilerBug } from '../../../errors.ts';
import { flippedProblem, type ContractProblem } from './problem.ts';
import { isPresent, presentStrategies, strategyOf, type ContractTiling } from './strategies.ts';

/** Candidates a kernel is measured with at most. */
const mostCandidates = 8;

/** The problem as a tiling sees it: with its sides exchanged where the tiling is flipped. */
export function asSeenBy({ flip }: ContractTiling, problem: ContractProblem): ContractProblem {
  return flip ? flippedProblem(problem) : problem;
}

/** Whether the templates can build this tiling for the problem within the target's limits. */
export function isLegal(tiling: ContractTiling, problem: ContractProblem, target: Target): boolean {
  if (!isPresent(tiling)) return false;
  const { together, isLegal: fits } = strategyOf(tiling);
  for (const more of ['products', 'stages', 'folds'] as const)
    if (problem[more] !== undefined && (tiling.flip || together?.[more] !== true)) return false;
  return fits(tiling, asSeenBy(tiling, problem), target);
}

/** The tiling that the model takes to be the fastest. */
export function chosenTiling(problem: ContractProblem, target: Target): ContractTiling {
  const [first] = ranked(problem, target);
  if (first === undefined) throw new CompilerBug('contract template', 'no tiling is legal here');
  return first;
}

/** What is worth measuring: the model's choice first, then the next best. */
export function candidateTilings(problem: ContractProblem, target: Target): readonly ContractTiling[] {
  return ranked(problem, target).slice(0, mostCandidates);
}

/** Every candidate of every strategy that is legal here. */
export function legalTilings(problem: ContractProblem, target: Target): readonly ContractTiling[] {
  return presentStrategies()
    .flatMap((strategy) => [...strategy.candidates(problem, target)])
    .filter((tiling) => isLegal(tiling, problem, target));
}

function ranked(problem: ContractProblem, target: Target): readonly ContractTiling[] {
  const timed = legalTilings(problem, target).map((tiling) => ({
    tiling,
    time: strategyOf(tiling).time(tiling, asSeenBy(tiling, problem), target),
  }));
  // Of equals the first: larger tiles come first, and read less.
  return timed.toSorted((a, b) => a.time - b.time).map(({ tiling }) => tiling);
}
