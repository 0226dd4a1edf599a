// Fusion diagnostics: which rule of fusion or storage rejected something, with the figures that it compared.
// They are recorded where the decision is made, so that reports say what happened and infer nothing.

import type { Node } from '../../ir/graph.ts';
import type { FusionGroup } from './place.ts';

/**
 * Why a node did not join the kernel of a fusion group that it depends on, or that reads what it reads.
 */
export type Rejection =
  /** It also needs a value that a later kernel computes. */
  | { readonly rule: 'order'; readonly needs: Node }
  /**
   * A scatter's slots are final only when every update is done; where the data decides what is
   * written, nothing is aligned.
   */
  | { readonly rule: 'scatter' }
  /** Its own indices cannot be derived at the points of the fusion group's domain. */
  | { readonly rule: 'alignment' }
  /** A reduction whose input the kernel has, but at other positions than those of its row. */
  | { readonly rule: 'position' }
  /**
   * Several reductions are followed by a small update of their own: one kernel does all updates.
   */
  | { readonly rule: 'update' }
  /** A reduction over the same rows that reads nothing the kernel reads. */
  | { readonly rule: 'unshared' }
  | Divisions
  | Limit;

/** More buffers than a kernel may bind, or more nodes than it may hold. */
export interface Limit {
  readonly rule: 'bindings' | 'size';
  readonly count: number;
  readonly limit: number;
}

/** More divisions on the way to an element than an index may have. */
export interface Divisions {
  readonly rule: 'divisions';
  readonly count: number;
  readonly limit: number;
}

/** Why a value is not computed inline. */
export type Overflow =
  | Limit
  /** Something would be evaluated at too many different points. */
  | { readonly rule: 'points'; readonly count: number; readonly limit: number }
  /** Inline, it would take more expressions, all points counted. */
  | { readonly rule: 'expressions'; readonly count: number; readonly limit: number }
  /** Views of views would be read at indices of that many divisions. */
  | Divisions
  /** The kernels of a sort compute from it, and must agree on every bit of it. */
  | { readonly rule: 'agreement' };

/** One fusion group that refused a node. */
export interface Refused {
  readonly fusionGroup: FusionGroup;
  readonly rejection: Rejection;
}

/** Why a value is in memory, when its readers could have computed it. */
export type StorageReason =
  /** It is one of the program's results. */
  | { readonly rule: 'output' }
  /** A loop reads it. */
  | { readonly rule: 'read-by-loop' }
  /**
   * It is computed by loops of its own (a reduction, a product, a scan, a scatter), which no
   * expression can hold.
   */
  | { readonly rule: 'loops' }
  /** It is computed from such a value, which is not stored and is as large. */
  | { readonly rule: 'source'; readonly needs: Node }
  /** Arithmetic per element that each reader would repeat. */
  | { readonly rule: 'work'; readonly work: number; readonly limit: number }
  /**
   * A contraction reads its operands once per tile, so several values would be read many times
   * instead of one.
   */
  | { readonly rule: 'tiles'; readonly tiles: number; readonly values: number }
  /**
   * Computing it again in each of `kernels` kernels takes longer (µs by the target's figures) than
   * storing and reading it.
   */
  | {
      readonly rule: 'cost';
      readonly again: number;
      readonly stored: number;
      readonly kernels: number;
    }
  /** A product packs it once for each of the windows that see it, from its own layout. */
  | { readonly rule: 'windows' }
  /** A device copies tiles of it for one tap of a convolution at a time. */
  | { readonly rule: 'taps' }
  /** Tiles of it are copied for matrix units, by the products of an attention kernel: what lies in memory needs no arithmetic. */
  | { readonly rule: 'copies' }
  | Overflow;
