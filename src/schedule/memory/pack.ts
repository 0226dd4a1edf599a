// Packs: tensors of one dtype laid out one behind another in one buffer, so that a kernel can treat
// them as one long tensor with one binding. In kernels a pack is an ordinary stored node, as long
// as all its slots together; where its members lie is known to the Program alone, and no kernel
// needs a table of offsets.

import { dtypeBytes, type DType } from '../../ir/dtype.ts';
import { dims, GraphBuilder, type Node } from '../../ir/graph.ts';
import { sizeOf } from '../../ir/shape.ts';
import type { Kernel } from '../kernel.ts';

export interface Pack {
  /** The stored node that kernels read and write for the whole pack. */
  readonly node: Node;
  /** In order of their offsets. */
  readonly members: readonly PackMember[];
}

export interface PackMember {
  readonly node: Node;
  /** Elements before it; its first byte is aligned as a binding's must be. */
  readonly offset: number;
  /** Elements of its slot, padding included. */
  readonly elements: number;
}

/** The packs of a schedule, by the node that stands for each. */
export type Packs = ReadonlyMap<Node, Pack>;

/** Bytes that the offset of a binding is a multiple of. */
const alignment = 256;

/** Elements that every buffer holds beyond its last whole group of four, see `deviceBytes`. */
export const slack = 4;

/** Elements of the slot of a tensor, where the narrowest member dtype has `narrowest` bytes. */
export function slotElements(size: number, narrowest: number): number {
  const unit = alignment / narrowest;
  return Math.ceil((Math.ceil(size / 4) * 4 + slack) / unit) * unit;
}

/** Bytes of the narrowest of these dtypes. */
export function narrowestBytes(dtypes: readonly DType[]): number {
  return Math.min(...dtypes.map(dtypeBytes));
}

/**
 * A pack over `elements` elements of slots. The pack includes the slack of its last slot, so that
 * packs can be adjacent.
 */
export function makePack(dtype: DType, elements: number, members: readonly PackMember[]): Pack {
  const attrs = { index: 0, name: 'pack', dtype, shape: [elements - slack] };
  return { node: new GraphBuilder().add('parameter', [], attrs) as Node, members };
}

/** The tensors behind a stored node: the members of a pack, or the node itself. */
export function membersOf(node: Node, packs: Packs): readonly Node[] {
  return packs.get(node)?.members.map((member) => member.node) ?? [node];
}

/** A kernel with packs replaced by their members in its reads and writes, for reports. */
export function unpacked(kernel: Kernel, packs: Packs): Kernel {
  if (packs.size === 0) return kernel;
  return {
    ...kernel,
    reads: kernel.reads.flatMap((node) => membersOf(node, packs)),
    writes: kernel.writes.flatMap((write, i) => {
      // Results of several roles may share a pack: their members are counted with the first of
      // these.
      const isFirst = kernel.writes.findIndex(({ node }) => node === write.node) === i;
      return isFirst ? membersOf(write.node, packs).map((node) => ({ ...write, node })) : [];
    }),
  };
}

/** Where each member lies. */
export function slotsOf(packs: Packs): Map<Node, PackSlot> {
  const found = new Map<Node, PackSlot>();
  for (const pack of packs.values()) {
    for (const { node, offset, elements } of pack.members) {
      const width = dtypeBytes(node.dtype);
      found.set(node, { pack, offset: width * offset, bytes: width * elements });
    }
  }
  return found;
}

/** A member's place in its pack, in bytes, padding included. */
export interface PackSlot {
  readonly pack: Pack;
  readonly offset: number;
  readonly bytes: number;
}

/** Elements of a node. */
export function elementsOf(node: Node): number {
  return sizeOf(dims(node));
}
