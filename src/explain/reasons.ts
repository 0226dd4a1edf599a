// Reasons in words: one sentence per rule, with the figures that it compared.

import type { Node } from '../ir/graph.ts';
import { facts } from '../ir/ops.ts';
import { showType } from '../ir/infer.ts';
import type { StorageReason } from '../schedule/fusion/rejection.ts';
import type { ReductionShape, Loops, Reason } from '../schedule/fusion-diagnostic.ts';
import type { NameOf } from '../schedule/text/print.ts';
import { micros } from './text.ts';

/** Why the second kernel's work is not done in the first. `called` says what is said of the kernel at a place: `kernel 3`. */
export function fusionDiagnosticText(
  reason: Reason,
  second: number,
  name: NameOf,
  called: (place: number) => string,
): string {
  switch (reason.rule) {
    case 'order': {
      const { kernel } = reason;
      const also = `${name(reason.node)} also needs ${name(reason.needs)}`;
      if (kernel === undefined) return also;
      const from = kernel === second ? 'follows from' : 'comes from';
      return `${also}, which ${from} ${called(kernel)}${kernel === second ? "'s own loops" : ''}`;
    }
    case 'scatter':
      return `data decides where elements are written, so no point of the kernel has what ${name(reason.node)} needs there`;
    case 'alignment':
      return alignmentText(reason.node, name);
    case 'position':
      return `${name(reason.node)} reduces a row whose elements the kernel computes at other positions`;
    case 'unshared':
      return `${name(reason.node)} reduces the same rows, but when it was placed nothing it read was read by that kernel`;
    case 'bindings':
      return `with ${name(reason.node)} the kernel would bind ${reason.count} buffers, limit ${reason.limit}`;
    case 'size':
      return `with ${name(reason.node)} the kernel would hold ${reason.count} nodes, limit ${reason.limit}`;
    case 'divisions':
      return `${name(reason.node)} would stand at indices of ${reason.count} divisions, limit ${reason.limit}`;
    case 'own-loops':
      return `${name(reason.node)} runs in loops made for it, and joins no others`;
    case 'no-rows':
      return `${name(reason.node)} has to run over whole rows, and the kernel runs over ${loopsText(reason.loops)}`;
    case 'axes':
      return `${name(reason.node)} reduces ${foldText(reason.own)}, the kernel's rows are ${foldText(reason.theirs)}`;
    case 'update':
      return `${name(reason.node)} updates few elements after a reduction: all such updates share a kernel`;
    case 'joined':
      return `${name(reason.node)} shares ${called(reason.kernel)}, which runs over the same rows`;
    case 'latest':
      return `more than a few kernels over the same rows were open when ${name(reason.node)} was placed`;
    case 'loops':
      return `they run over different points: ${loopsText(reason.first)}, and ${loopsText(reason.second)}`;
    case 'points-differ':
      return `the second needs ${name(reason.value)} at other points than where it is computed`;
    case 'stage': {
      const after = (kernel: number | undefined): string =>
        kernel === undefined ? 'nothing' : called(kernel);
      return `the first waits for ${after(reason.first)}, the second for ${after(reason.second)}`;
    }
    case 'grouped':
      return 'only the newest group of maps of one size takes in more, and the first was not the newest';
    case 'between':
      return `${called(reason.kernel)} needs the first and is needed by the second`;
    case 'merged-bindings':
      return `one kernel would bind ${reason.count} buffers, limit ${reason.limit}`;
    default:
      return reason satisfies never;
  }
}

/** Why a value is stored. */
export function keptText(kept: StorageReason, value: Node, name: NameOf): string {
  const what = name(value);
  switch (kept.rule) {
    case 'output':
      return `${what} is a result, so it is in memory anyway`;
    case 'read-by-loop':
      return `a loop reads ${what}, and everything that a loop reads is in memory`;
    case 'loops':
      return `${what} takes loops to compute, which its reader would have to run again for every element`;
    case 'source':
      return `to compute ${what} again its reader would need ${name(kept.needs)}, which is not in memory`;
    case 'work':
      return `to compute ${what} again takes more than ${kept.limit} operations an element`;
    case 'tiles':
      return `its reader reads ${what} ${kept.tiles} times, once a tile, and would read ${kept.values} values that often to compute it`;
    case 'cost': {
      const readers = kept.kernels === 1 ? 'one kernel' : `${kept.kernels} kernels`;
      return `computing ${what} again in ${readers} costs more than storing it (${micros(kept.again)} against ${micros(kept.stored)})`;
    }
    case 'bindings':
      return `a kernel that computes ${what} again would bind ${kept.count} buffers, limit ${kept.limit}`;
    case 'size':
      return `a kernel that computes ${what} inline would hold ${kept.count} nodes, limit ${kept.limit}`;
    case 'points':
      return `inline, ${what} would lead to ${kept.count} evaluations of one value at different points, limit ${kept.limit}`;
    case 'expressions':
      return `inline, ${what} would take ${kept.count} operations, at all points together, limit ${kept.limit}`;
    case 'divisions':
      return `inline, ${what} would be read at indices of ${kept.count} divisions, limit ${kept.limit}`;
    case 'windows':
      return `a product packs ${what} once for each window that sees it, so it is laid out for that`;
    case 'taps':
      return `the device copies ${what} tap by tap for a convolution, so it is laid out for that`;
    case 'copies':
      return `products of attention copy tiles of ${what} for matrix units`;
    case 'agreement':
      return `several kernels of a sort compute from ${what} and must agree on every bit of it`;
    default:
      return kept satisfies never;
  }
}

/** `a 64×32×16 product`, `64 rows of 32`. */
export function loopsText({ kind, extents, parts = [] }: Loops): string {
  // Several in one dispatch: those that are equal are counted.
  if (parts.length > 0) {
    const counts = new Map<string, number>();
    for (const text of parts.map(loopsText)) counts.set(text, (counts.get(text) ?? 0) + 1);
    const told = [...counts].map(([text, count]) => (count === 1 ? text : `${count} times ${text}`));
    return `${parts.length} small kernels in one dispatch (${told.join('; ')})`;
  }
  const size = (axis: string): number => extents[axis] ?? 1;
  const sizes = Object.values(extents);
  switch (kind) {
    case 'map':
      return `${sizes[0] ?? 1} elements`;
    case 'row-reduction':
      return `${size('row')} rows of ${size('col')}`;
    case 'dot':
    case 'conv': {
      const batch = size('batch') === 1 ? '' : `${size('batch')} of `;
      return `${batch}${size('m')}×${size('n')} results of ${size('k')} terms`;
    }
    case 'attention':
      return `${size('batch') === 1 ? '' : `${size('batch')} of `}${size('row')} rows over ${size('key')} keys`;
    case 'sort':
      return `${size('line')} lines of ${size('pos')} keys`;
    case 'scan':
      return `${size('line')} lines of ${size('pos')}, in order`;
    case 'scatter':
      return `${size('line')} lines of ${size('slot')} slots`;
    default:
      // Kinds that have no words of their own yet.
      return sizes.length === 0 ? `loops of its own (${kind})` : `${kind} over ${sizes.join('×')}`;
  }
}

function foldText({ shape, axes }: ReductionShape): string {
  return `[${shape.join(',')}] over ${axes.length === 1 ? 'axis' : 'axes'} ${axes.join(', ')}`;
}

function alignmentText(node: Node, name: NameOf): string {
  if (node.op === 'broadcast') return `${name(node)} spreads values over more points than the kernel has`;
  if (facts(node.op).class === 'view' || node.op === 'gather')
    return `${name(node)} moves elements: they are needed at other points than those where the kernel computes them`;
  return `${name(node)} reads values of the kernel at different positions (${showType(node)})`;
}
