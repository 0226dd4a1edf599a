// The memory plan: which buffer each stored value lives in. Intermediates share slots by liveness (first slot of sufficient
// size that is free, as in linear-scan register allocation); a slot is a buffer of its own, so no kernel reads and writes the
// same one. A donated parameter's buffer takes the result it was donated for when the kernel that writes it is the parameter's
// last reader and reads each element only at the point where it writes it.

import type { Node } from '../ir/graph.ts';
import type { Expr } from './expr.ts';
import { argsOf } from './expr.ts';
import type { Kernel } from './kernel.ts';

export interface MemoryPlan {
  /** Arena index of each intermediate. */
  readonly arenaOf: ReadonlyMap<Node, number>;
  /** Bytes of each arena. */
  readonly arenas: readonly number[];
  /** Results written over a donated parameter: result node → parameter. */
  readonly overwrites: ReadonlyMap<Node, Node>;
}

/** Plans buffers. `bytesOf` gives device bytes; `donations` pairs an output node with the parameter offered for it. */
export function planMemory(
  kernels: readonly Kernel[],
  outputs: ReadonlySet<Node>,
  donations: ReadonlyMap<Node, Node>,
  bytesOf: (node: Node) => number,
): MemoryPlan {
  const lastRead = new Map<Node, number>();
  kernels.forEach((kernel, i) => kernel.reads.forEach((node) => lastRead.set(node, i)));
  const arenas: number[] = [];
  const free: number[] = [];
  const arenaOf = new Map<Node, number>();
  const expiring = new Map<number, number[]>();
  kernels.forEach((kernel, i) => {
    for (const { node } of kernel.writes) {
      if (outputs.has(node)) continue;
      const bytes = bytesOf(node);
      const arena = takeArena(arenas, free, bytes);
      arenaOf.set(node, arena);
      const end = Math.max(i, lastRead.get(node) ?? i);
      expiring.set(end, [...(expiring.get(end) ?? []), arena]);
    }
    free.push(...(expiring.get(i) ?? []));
  });
  const overwrites = new Map<Node, Node>();
  kernels.forEach((kernel, i) => {
    for (const write of kernel.writes) {
      const parameter = donations.get(write.node);
      if (parameter === undefined || [...overwrites.values()].includes(parameter)) continue;
      const last = lastRead.get(parameter) ?? -1;
      if (last < i || (last === i && readsOnlyWhereWritten(kernel, parameter, write.node)))
        overwrites.set(write.node, parameter);
    }
  });
  return { arenaOf, arenas, overwrites };
}

/** The smallest free arena that fits, else the largest free one grown, else a new one. */
function takeArena(arenas: number[], free: number[], bytes: number): number {
  let best = -1;
  for (const [place, arena] of free.entries()) {
    const size = arenas[arena]!;
    const chosen = best < 0 ? -1 : arenas[free[best]!]!;
    const better =
      best < 0 || (size >= bytes ? chosen < bytes || size < chosen : chosen < bytes && size > chosen);
    if (better) best = place;
  }
  if (best < 0) return arenas.push(bytes) - 1;
  const [arena] = free.splice(best, 1) as [number];
  arenas[arena] = Math.max(arenas[arena]!, bytes);
  return arena;
}

/** Whether the kernel reads `parameter` solely at the index at which it writes `result`, once per element. */
function readsOnlyWhereWritten(kernel: Kernel, parameter: Node, result: Node): boolean {
  const { body } = kernel;
  if (body.kind === 'scatter' || body.kind === 'ranks') return false;
  const own = kernel.writes.find((write) => write.node === result)!;
  const prologues: Expr[] = [];
  if (body.kind === 'contract') prologues.push(body.lhs, body.rhs);
  if (body.kind === 'row') prologues.push(...body.stages.map((stage) => stage.value));
  if (body.kind === 'attention') {
    prologues.push(...body.inners.flatMap(({ ofRow, ofKey }) => [ofRow, ofKey]));
    prologues.push(...body.stages.map((stage) => stage.value));
    prologues.push(...body.outers.flatMap(({ weight, value }) => [weight, value]));
  }
  if (body.kind === 'scan') prologues.push(body.value);
  if (body.kind === 'sort') prologues.push(body.key);
  if (body.kind === 'search') prologues.push(body.boundary, body.value);
  if (body.kind === 'segments') prologues.push(body.first, body.last, body.update);
  // Prologues run at other times than the write (other tiles, earlier passes): the parameter must not be in them.
  const seen = new Set<Expr>();
  const touches = (expr: Expr, allow: boolean): boolean => {
    if (seen.has(expr)) return false;
    seen.add(expr);
    if (expr.kind === 'read' && expr.node === parameter) return !allow || expr.index !== own.index;
    return argsOf(expr).some((arg) => touches(arg, allow));
  };
  if (prologues.some((expr) => touches(expr, false))) return false;
  for (const dynamic of kernel.pool.dynamics.values()) if (touches(dynamic, false)) return false;
  seen.clear();
  return !kernel.writes.some((write) => touches(write.value, true));
}
