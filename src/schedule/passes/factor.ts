// Large matrix algorithms as panels and products (ir/passes/blocks.ts), of the sizes that fit a
// kernel of the target.

import type { FactorKind, Size } from '../../ir/factor.ts';
import { dims, rewrite, type Graph, type Node } from '../../ir/graph.ts';
import { inBlocks, type Panels } from '../../ir/passes/blocks.ts';
import { sizeOf } from '../../ir/shape.ts';
import { goesByPanels, mostColumns } from '../factor-panels.ts';
import { packsOperands } from '../machine.ts';
import type { Target } from '../target.ts';

/** What a kernel takes that goes column by column; of a core, where a whole matrix is too much to go by panels. */
function panelsOf(target: Target): Panels {
  return packsOperands(target)
    ? { cholesky: 256, triangle: 64, columns: 16 }
    : { cholesky: 64, triangle: 64, columns: 32 };
}

const isSolve = (kind: FactorKind): boolean => kind === 'lowerSolve' || kind === 'unitLowerSolve';

/** Rewrites large matrix algorithms to small ones and products. */
export function splitFactors(graph: Graph, target: Target): Graph {
  const panels = panelsOf(target);
  return rewrite(graph, (node, inputs, b) => {
    if (node.op !== 'factor' || sizeOf(dims(node as Node)) === 0) return undefined;
    const { kind } = node.attrs;
    const sizes = inputs.map((input) => dims(input).slice(1) as unknown as Size);
    if (goesByPanels(kind, sizes, node.dtype, target)) return undefined;
    // Columns of a larger matrix that go by panels.
    const most = mostColumns(kind);
    const rows = kind === 'cholesky' || isSolve(kind) ? most : sizes[0]![0];
    const fits = goesByPanels(kind, [[rows, most], ...sizes.slice(1)], node.dtype, target);
    const isLarge = Math.min(...sizes[0]!) > most;
    const large = { cholesky: mostColumns('cholesky'), triangle: mostColumns('lowerSolve'), columns: most };
    return inBlocks(b, kind, inputs, fits && isLarge ? large : panels);
  });
}
