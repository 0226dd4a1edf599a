// The type of a row of the export table: a function for each primitive that adds ONNX nodes for one
// node of the graph and gives their value.

import type { Graph, Node, NodeOf } from '../../ir/graph.ts';
import type { Op } from '../../ir/ops.ts';
import type { ModelEmitter, Val } from './emitter.ts';
import type { Patterns } from './pattern.ts';

/** Where rows find the values of a node's inputs. */
export interface ExportScope {
  readonly e: ModelEmitter;
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
  readonly spellInside: (e: ModelEmitter, graph: Graph, values: readonly Val[]) => Val[];
}

/**
 * Adds what computes a node; its value may lack broadcasts. Throws Unspelled where the format has
 * no words for it.
 */
export type ExportRow<K extends Op> = (scope: ExportScope, node: NodeOf<K>) => Val;

/** Rows of some primitives. */
export type ExportRows<K extends Op> = { readonly [Each in K]: ExportRow<Each> };
