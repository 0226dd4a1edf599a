// The type of a row of the export table: a function for each primitive that adds ONNX nodes for one
// node of the graph and gives their value.

import type { Graph, Node, NodeOf } from '../../ir/graph.ts';
import type { Op } from '../../ir/ops.ts';
import type { Emitter, Val } from './emitter.ts';
import type { Patterns } from './pattern.ts';

/** Where rows find the values of a node's inputs. */
export interface Scope {
  readonly e: Emitter;
  /**
   * The value in the node's shape, or in one that broadcasts to it: what operators that broadcast
   * take.
   */
  readonly compact: (node: Node) => Val;
  /** The value in the node's own shape. */
  readonly full: (node: Node) => Val;
  /** Operations that nodes were compared with so far. */
  readonly patterns: Patterns;
  /** Results of loops that were spelled, by what their nodes share. */
  readonly loops: Map<string, readonly Val[]>;
  /** Adds what computes a graph whose parameters have these values; gives its outputs. */
  readonly spellInside: (e: Emitter, graph: Graph, values: readonly Val[]) => Val[];
}

/**
 * Adds what computes a node; its value may lack broadcasts. Throws Unspelled where the format has
 * no words for it.
 */
export type Row<K extends Op> = (scope: Scope, node: NodeOf<K>) => Val;

/** Rows of some primitives. */
export type Rows<K extends Op> = { readonly [Each in K]: Row<Each> };
