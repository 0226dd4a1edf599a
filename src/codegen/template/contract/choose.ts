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

/**
 * The tiling that the model takes to be the fastest. How many threads there are decides about blocks, but not about the
 * strategy: results are the same for any number of threads.
 */
export function chosenTiling(problem: ContractProblem, target: Target): ContractTiling {
  const { threads, ...anyThreads } = target;
  const legal = legalTilings(problem, target);
  const [first] = ranked(legal, problem, anyThreads);
  if (first === undefined) throw new CompilerBug('contract template', 'no tiling is legal here');
  if (threads === undefined) return first;
  const ofStrategy = legal.filter(({ kind }) => kind === first.kind);
  return ranked(ofStrategy, problem, target)[0]!;
}

/** What is worth measuring: the model's choice first, then the next best. */
export function candidateTilings(problem: ContractProblem, target: Target): readonly ContractTiling[] {
  return ranked(legalTilings(problem, target), problem, target).slice(0, mostCandidates);
}

/** Every candidate of every strategy that is legal here. */
export function legalTilings(problem: ContractProblem, target: Target): readonly ContractTiling[] {
  return presentStrategies()
    .flatMap((strategy) => [...strategy.candidates(problem, target)])
    .filter((tiling) => isLegal(tiling, problem, target));
}

function ranked(
  tilings: readonly ContractTiling[],
  problem: ContractProblem,
  target: Target,
): readonly ContractTiling[] {
  const timed = tilings.map((tiling) => ({
    tiling,
    time: strategyOf(tiling).time(tiling, asSeenBy(tiling, problem), target),
  }));
  // Of equals the first: larger tiles come first, and read less.
  return timed.toSorted((a, b) => a.time - b.time).map(({ tiling }) => tiling);
}
