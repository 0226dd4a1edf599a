// An explanation: the plain data of what a program will do, with the ways to show it that need
// nothing else. The page is made by `sinter/explain`, which draws.

import * as arg from '../ir/arguments.ts';
import type { SizeVariant } from '../tensor/sizes/report.ts';
import type { TextOptions } from './text.ts';
import { texts } from './slots.ts';
import type {
  CostModel,
  Explained,
  ExplainedKernel,
  ExplainedNode,
  ExplainedParallel,
  ExplainedFusionDiagnostic,
  MemoryUse,
  Recomputation,
  Totals,
} from './types.ts';

const textOptions = arg.options<TextOptions>({
  columns: arg.count(1),
  graph: arg.flag,
  details: arg.flag,
  reasons: arg.flag,
  sources: arg.flag,
});

/**
 * What a program will do: read its fields, print it, or make a page of it with `explanationPage` of
 * `sinter/explain`.
 */
export class Explanation implements Explained {
  readonly version = 1;
  readonly target: string;
  readonly model: CostModel;
  readonly graph: string;
  readonly nodes: readonly ExplainedNode[];
  readonly outputs: readonly number[];
  readonly kernels: readonly ExplainedKernel[];
  readonly fusionDiagnostics: readonly ExplainedFusionDiagnostic[];
  readonly totals: Totals;
  readonly memory: MemoryUse;
  readonly sizes: readonly SizeVariant[];
  readonly recomputed?: Recomputation;
  readonly parallel?: ExplainedParallel;

  constructor(explained: Explained) {
    this.target = explained.target;
    this.model = explained.model;
    this.graph = explained.graph;
    this.nodes = explained.nodes;
    this.outputs = explained.outputs;
    this.kernels = explained.kernels;
    this.fusionDiagnostics = explained.fusionDiagnostics;
    this.totals = explained.totals;
    this.memory = explained.memory;
    this.sizes = explained.sizes;
    if (explained.recomputed !== undefined) this.recomputed = explained.recomputed;
    if (explained.parallel !== undefined) this.parallel = explained.parallel;
  }

  /**
   * The graph, a table of its kernels and what they come to; sources and reasons are left to the
   * fields and `toText`.
   */
  toString(): string {
    return texts.value(this, { graph: true });
  }

  /** As text: choose the parts, and how wide lines may be. */
  toText(options: TextOptions = {}): string {
    if (!textOptions.accepts(options)) textOptions.refuse('toText', 'options', options);
    return texts.value(this, options);
  }

  /** Plain data for `JSON.stringify`, version 1 of the schema of `Explained`. */
  toJSON(): Explained {
    const { version, target, model, graph, nodes, outputs, kernels, fusionDiagnostics, totals, memory } =
      this;
    const { recomputed, sizes, parallel } = this;
    return {
      version,
      target,
      model,
      graph,
      nodes,
      outputs,
      kernels,
      fusionDiagnostics,
      totals,
      memory,
      sizes,
      ...(recomputed && { recomputed }),
      ...(parallel && { parallel }),
    };
  }
}
