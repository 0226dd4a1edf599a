// Matrix algorithms whose steps wait for each other: a template a kind. Large matrices come here in
// blocks (ir/passes/blocks.ts), so that most of the arithmetic is in products.

import { CompilerBug } from '../../../errors.ts';
import type { FactorKind, Size } from '../../../ir/factor.ts';
import type { Loop } from '../../loop/loop.ts';
import type { Frame } from '../shared/frame.ts';
import { goesByPanels } from '../../../schedule/factor-panels.ts';
import { choleskyByPanels } from './cpu/cholesky.ts';
import { luByPanels } from './cpu/lu.ts';
import { householderByPanels, qrByPanels } from './cpu/reflections.ts';
import { solveByPanels } from './cpu/solve.ts';
import { choleskyLoop } from './cholesky.ts';
import { householderLoop, householderOfPairsLoop } from './householder.ts';
import { ldlLoop } from './ldl.ts';
import { exchangesLoop, luLoop, luOfPairsLoop } from './lu.ts';
import type { FactorBody } from './panel.ts';
import { schurLoop } from './schur.ts';
import { solveLoop } from './solve.ts';

const templates: { readonly [K in FactorKind]: (frame: Frame, body: FactorBody) => Loop } = {
  schur: schurLoop,
  cholesky: choleskyLoop,
  lowerSolve: (frame, body) => solveLoop(frame, body, false),
  unitLowerSolve: (frame, body) => solveLoop(frame, body, true),
  lu: luLoop,
  householder: householderLoop,
  exchanges: exchangesLoop,
  ldlSymmetric: (frame, body) => ldlLoop(frame, body, false),
  ldlHermitian: (frame, body) => ldlLoop(frame, body, true),
  luOfPairs: luOfPairsLoop,
  householderOfPairs: householderOfPairsLoop,
  qr: () => {
    throw new CompilerBug('factor template', 'qr is made of reflectors before it comes here');
  },
};

/** Those of whole matrices on a core. */
const templatesByPanels: { readonly [K in FactorKind]?: (frame: Frame, body: FactorBody) => Loop } = {
  cholesky: choleskyByPanels,
  lowerSolve: (frame, body) => solveByPanels(frame, body, false),
  unitLowerSolve: (frame, body) => solveByPanels(frame, body, true),
  lu: luByPanels,
  householder: householderByPanels,
  qr: qrByPanels,
};

/** The Loop of a matrix algorithm. */
export function factorLoop(frame: Frame): Loop {
  const { body } = frame.kernel;
  if (body.kind !== 'factor') throw new CompilerBug('factor template', `got a ${body.kind} kernel`);
  const { kind } = body.node.attrs;
  const sizes = body.operands.map(({ row, column }): Size => [row.extent, column.extent]);
  const wanted = goesByPanels(kind, sizes, body.node.dtype, frame.target)
    ? templatesByPanels[kind]
    : undefined;
  return (wanted ?? templates[kind])(frame, body);
}
