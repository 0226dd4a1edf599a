// dot and conv: result[b,m,n] = Σ_k lhs(b,m,k)·rhs(b,k,n). The schedule (contract/schedule.ts) says which of the shapes of
// this computation is built. Operands are expressions, so casts, scalings and a convolution's padded window are read in
// place.

import { CompilerBug } from '../../../errors.ts';
import type { Expr } from '../../../schedule/body/expr.ts';
import type { Loop } from '../../loop/loop.ts';
import {
  contractProblem,
  flipped,
  flippedProblem,
  narrowed,
  windowOf,
  type Contract,
  type ContractProblem,
} from './problem.ts';
import { directLoop } from './cpu/direct.ts';
import { packedLoop } from './cpu/packed.ts';
import { registerLoop } from './gpu/registers.ts';
import { contractSchedule, isLegal, type ContractSchedule } from './schedule.ts';
import { slicedLoop } from './gpu/split-k.ts';
import { stagedLoop } from './gpu/staged.ts';
import { streamLoop } from './cpu/gemv.ts';
import { tensorLoop } from './gpu/mma.ts';
import { warpgroupLoop } from './gpu/wgmma.ts';
import { windowLoop } from './gpu/window.ts';
import type { Frame } from '../shared/frame.ts';

/** The Loop of a dot or conv kernel, by a pinned schedule or else the model's. */
export function contractLoop(frame: Frame): Loop {
  const { kernel, target } = frame;
  const { body } = kernel;
  if (body.kind !== 'contract') throw new CompilerBug('contract template', `got a ${body.kind} kernel`);
  const problem = onlyRead(frame, body, contractProblem(kernel, body));
  const pinned = frame.pinned(problem);
  // What was pinned elsewhere need not fit here.
  const fits = pinned !== undefined && isLegal(pinned, problem, target);
  const schedule = fits ? pinned : contractSchedule(problem, target);
  const [turned, sizes] = schedule.flip ? [flipped(body), flippedProblem(problem)] : [body, problem];
  return fill(frame, turned, schedule, sizes);
}

/** Tiles are copied from what no one writes meanwhile: an operand whose memory takes a result is none. */
function onlyRead({ bound }: Frame, { lhs, rhs }: Contract, problem: ContractProblem): ContractProblem {
  const isRead = (operand: Expr): boolean => {
    const read = narrowed(operand);
    return (
      read.kind === 'read' &&
      bound.some(({ nodes, access }) => access === 'read' && nodes.includes(read.node))
    );
  };
  if (problem.tiled === undefined || (isRead(lhs) && isRead(rhs))) return problem;
  const { tiled: _, ...rest } = problem;
  return rest;
}

function fill(frame: Frame, body: Contract, schedule: ContractSchedule, problem: ContractProblem): Loop {
  switch (schedule.kind) {
    case 'registers':
      return registerLoop(frame, body, schedule);
    case 'staged':
      return stagedLoop(frame, body, schedule);
    case 'tensor':
      return tensorLoop(frame, body, schedule);
    case 'warpgroup':
      return warpgroupLoop(frame, body, schedule);
    case 'direct':
      return directLoop(frame, body, schedule, problem);
    case 'packed':
    case 'image':
      return packedLoop(frame, body, schedule, problem);
    case 'stream':
      return streamLoop(frame, body, schedule);
    case 'slices':
      return slicedLoop(frame, body, schedule);
    case 'window':
      return windowLoop(frame, body, windowOf(body)!, schedule);
    default:
      return schedule satisfies never;
  }
}
