// What a rule of sizes is: it gives the value of an operation at the capacities of a variant.

import type { Op } from '../ops.ts';
import type { SizeLowering, SizedNode } from './lowering.ts';
import type { StructurePart } from './structure.ts';

export type SizeRule = (ctx: SizeLowering, part: StructurePart, inputs: readonly SizedNode[]) => SizedNode;

/** Rules of some ops. */
export type SizeRulesOf<K extends Op> = { readonly [Each in K]: SizeRule };
