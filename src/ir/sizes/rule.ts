// What a rule of sizes is: it gives the value of an operation at the capacities of a variant.

import type { Op } from '../ops.ts';
import type { Lowering, Sized } from './lowering.ts';
import type { Part } from './structure.ts';

export type Rule = (ctx: Lowering, part: Part, inputs: readonly Sized[]) => Sized;

/** Rules of some ops. */
export type RulesOf<K extends Op> = { readonly [Each in K]: Rule };
