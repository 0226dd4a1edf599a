// dot and conv: result[b,m,n] = Σ_k lhs(b,m,k)·rhs(b,k,n). The tiling says which of the shapes of
// this computation is built (strategies.ts). Operands are expressions, so casts, scalings and a
// convolution's padded window are read in place.

import { CompilerBug } from '../../../errors.ts';
import type { Node } from '../../../ir/graph.ts';
import type { Loop } from '../../loop/loop.ts';
import { isOnlyRead, type Frame } from '../shared/frame.ts';
import { asSeenBy, chosenTiling, isLegal } from './choose.ts';
import { contractProblem, copiedNodes, flipped, type Contract, type ContractProblem } from './problem.ts';
import { strategyOf, type PinnedTilings } from './strategies.ts';

/** The Loop of a dot or conv kernel, by a pinned tiling or else the model's. */
export function contractLoop(frame: Frame, pinned: PinnedTilings): Loop {
  const { kernel, target } = frame;
  const { body } = kernel;
  if (body.kind !== 'contract') throw new CompilerBug('contract template', `got a ${body.kind} kernel`);
  const problem = onlyRead(frame, body, contractProblem(kernel, body));
  const given = pinned(problem);
  // What was pinned elsewhere need not fit here.
  const fits = given !== undefined && isLegal(given, problem, target);
  const tiling = fits ? given : chosenTiling(problem, target);
  const seen = tiling.flip ? flipped(body) : body;
  return strategyOf(tiling).loop(frame, seen, tiling, asSeenBy(tiling, problem));
}

/**
 * Tiles are copied from what no one writes meanwhile: an operand whose memory takes a result is
 * none.
 */
function onlyRead(frame: Frame, body: Contract, problem: ContractProblem): ContractProblem {
  const isRead = (node: Node): boolean => isOnlyRead(frame, node);
  if (problem.tiled === undefined || copiedNodes.filled?.(body)?.every(isRead) === true) return problem;
  const { tiled: _, ...rest } = problem;
  return rest;
}
