// Names of kernels.

import type { Op } from '../../ir/ops.ts';
import type { Kernel, KernelKind } from '../kernel.ts';
import type { Packs } from './pack.ts';

/** The op that a kernel of this kind always computes, which its name need not repeat. */
const plainOps: Partial<Record<KernelKind, Op>> = {
  'row-reduction': 'reduce',
  fft: 'fftPart',
  sort: 'argSort',
  'radix-rank': 'radixRank',
  'jacobi-rows': 'jacobiRows',
  'complete-rows': 'completeRows',
  'search-sorted': 'searchSorted',
  'segment-reduce': 'segmentReduce',
};

/**
 * Names tell what a kernel computes: its fusion root, of how many tensors at once, the op of its first
 * result, then its place in the program.
 */
export function nameKernels(kernels: readonly Kernel[], packs: Packs = new Map()): Kernel[] {
  return kernels.map((kernel, i) => {
    const [{ node, value }] = kernel.writes as [Kernel['writes'][0]];
    const pack = packs.get(node);
    const op = pack === undefined ? node.op : value.kind === 'op' ? value.op : value.kind;
    const roles = kernel.writes.filter((write) => write.node === node).length;
    const count = pack === undefined ? '' : `_x${pack.members.length / roles}`;
    const tail = op === kernel.kind || op === plainOps[kernel.kind] ? '' : `_${op}`;
    // Names are identifiers of every target's language, which have no hyphens.
    const name = `${kernel.kind}${count}${tail}_${i}`.toLowerCase().replaceAll('-', '_');
    if (kernel.body.kind !== 'batched-dispatch') return { ...kernel, name };
    const parts = kernel.body.parts.map((part, p) => ({ ...part, name: `${name}_${p}` }));
    return { ...kernel, name, body: { kind: 'batched-dispatch' as const, parts } };
  });
}

/** The kernel, and its parts, under a longer name. */
export function withPrefix(kernel: Kernel, prefix: string): Kernel {
  if (prefix === '') return kernel;
  const { name, body } = kernel;
  const longer = { ...kernel, name: `${prefix}${name}` };
  if (body.kind !== 'batched-dispatch') return longer;
  return { ...longer, body: { ...body, parts: body.parts.map((part) => withPrefix(part, prefix)) } };
}
