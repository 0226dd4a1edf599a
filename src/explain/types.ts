// The plain data of an explanation, as `toJSON` gives it: version 1 of a schema that only gains
// fields. Nodes, kernels and pipelines are named by their places in the lists. Times are in µs by
// the target's figures, sizes in bytes.

import type { CollectiveOp } from '../ir/ops.ts';
import type { StorageReason } from '../schedule/fusion/rejection.ts';
import type { Reason } from '../schedule/fusion-diagnostic.ts';
import type { Communication, Sharding } from '../sharding/report.ts';
import type { SizeVariant } from '../tensor/sizes/report.ts';

/** Everything an explanation tells. */
export interface Explained {
  readonly version: 1;
  /** The profile kernels are made for: `wgsl`, `wgsl:software`. */
  readonly target: string;
  /** The figures of the profile that times are computed with. */
  readonly model: CostModel;
  /** The recorded graph as IR text, before any pass. */
  readonly graph: string;
  /** The graph that kernels were made from, inputs first. */
  readonly nodes: readonly ExplainedNode[];
  /** Nodes that are results of the program, in order. */
  readonly outputs: readonly number[];
  /** In the order they run. */
  readonly kernels: readonly ExplainedKernel[];
  /** Pairs of kernels that are not one, and why. */
  readonly fusionDiagnostics: readonly ExplainedFusionDiagnostic[];
  readonly totals: Totals;
  readonly memory: MemoryUse;
  /** Of a compiled function with varying sizes: its programs; this is the one for the arguments. */
  readonly sizes: readonly SizeVariant[];
  /** Of a function that was compiled with a budget of memory: what is computed again for it. */
  readonly recomputed?: Recomputation;
  /** Of a program that processes share: what each of them holds and sends. The rest is of the program of one process. */
  readonly parallel?: ExplainedParallel;
}

/** How the processes of a mesh share the program, and where they meet. */
export interface ExplainedParallel extends Communication {
  /** The process whose program is explained. Others differ in which parts they have. */
  readonly rank: number;
  /** The collectives of the program in the order they run; those in the iterations of loops are in `collectives` only. */
  readonly steps: readonly ExplainedCollective[];
}

/** A collective among the kernels. */
export interface ExplainedCollective {
  readonly kind: CollectiveOp;
  /** Which of `collectives` it is, or is a part of, as an exchange of what kernels add up is; absent where it is not known. */
  readonly collective?: number;
  /** How many kernels run before it. */
  readonly after: number;
  readonly reads: ExplainedAccess;
  readonly writes: ExplainedAccess;
}

/** What modelled times follow from. */
export interface CostModel {
  /** µs of a dispatch. */
  readonly launch: number;
  /** Bytes per µs. */
  readonly bandwidth: number;
  /** Arithmetic per µs. */
  readonly arithmetic: number;
}

/**
 * A part of a train step: what gradients go back through, what carries them, and what is made of
 * them or for that alone. A program without gradients is all forward.
 */
export type TrainStage = 'forward' | 'backward' | 'update';

/** A node of the scheduled graph. */
export interface ExplainedNode {
  /**
   * Its name in `graph`, e.g. `%12`; of a node that a pass made, the name of what it was made for.
   */
  readonly name: string;
  readonly op: string;
  /**
   * The op with what matters of its attributes, e.g. `reduce max [1]`; for a parameter, what it
   * stands for.
   */
  readonly label: string;
  readonly inputs: readonly number[];
  readonly type: string;
  readonly bytes: number;
  /** Which part of a train step it belongs to; absent of inputs and constants. */
  readonly stage?: TrainStage;
  /** The call it was recorded in, where one is known. */
  readonly source?: ExplainedSource;
  /** How processes hold the value, where they share the program; absent of values that passes arranged otherwise. */
  readonly sharding?: Sharding;
}

/** The user's call that a node comes from. */
export interface ExplainedSource {
  /** The operation, e.g. `softmax`. */
  readonly op?: string;
  /** The module's method or the optimizer that called it, e.g. `Linear.forward`. */
  readonly module?: string;
  /** File, line and column, e.g. `model.ts:12:8`. */
  readonly at?: string;
  /** The node carries a gradient back through that call. */
  readonly gradient: boolean;
}

/** A value that a kernel reads from memory or writes there. */
export interface ExplainedAccess {
  readonly node: number;
  readonly type: string;
  readonly bytes: number;
  /** An input of the program, one of its results, or something between. */
  readonly role: 'input' | 'output' | 'intermediate';
}

/** One kernel. */
export interface ExplainedKernel {
  /** Unique in the program. */
  readonly name: string;
  readonly kind: string;
  /**
   * The stage of the work in its loops; absent of a kernel whose nodes are not told, as inside
   * loops of the program.
   */
  readonly stage?: TrainStage;
  /** How it is spread over the machine, in words. */
  readonly schedule: string;
  /** How often a run has it run: more than once in a loop. Flops, bytes and time are of all of them. */
  readonly times: number;
  /** Kernels with equal source share a pipeline. */
  readonly pipeline: number;
  /**
   * The nodes it computes: what feeds its loops, what needs them, and what follows from their
   * results.
   */
  readonly prologue: readonly number[];
  readonly body: readonly number[];
  readonly epilogue: readonly number[];
  readonly reads: readonly ExplainedAccess[];
  readonly writes: readonly ExplainedAccess[];
  readonly flops: number;
  /** Each distinct element read once, each element written once. */
  readonly bytes: number;
  /** Arithmetic per byte. */
  readonly intensity: number;
  /** The launch, and the longer of traffic and arithmetic. */
  readonly time: number;
  /** What takes longest of launch, traffic and arithmetic. */
  readonly limitedBy: 'launch' | 'bandwidth' | 'arithmetic';
  /** Part of the program's modelled time. */
  readonly timeShare: number;
  /** Bytes as a multiple of what the whole program must move at least. */
  readonly boundShare: number;
  readonly source: string;
}

/** Why something is not otherwise: the rule, and the rule in words with its figures. */
export interface ExplainedReason {
  readonly rule: Reason['rule'] | StorageReason['rule'];
  readonly text: string;
}

/** Two kernels that are not one. */
export interface ExplainedFusionDiagnostic {
  /** `reads`: the second reads what the first writes; `siblings`: both read something large. */
  readonly relation: 'reads' | 'siblings';
  readonly first: number;
  readonly second: number;
  /** The value between them, or that both read. */
  readonly value: number;
  /** Why the second's work is not done in the first. */
  readonly apart: readonly ExplainedReason[];
  /** Why the value is stored rather than computed by the second; of `reads` only. */
  readonly kept?: ExplainedReason;
}

/** Sums over the kernels of an explanation. */
export interface Totals {
  readonly kernels: number;
  /** Distinct sources: what has to be compiled. */
  readonly pipelines: number;
  readonly dispatches: number;
  readonly flops: number;
  /**
   * Every distinct element a kernel reads once, and every element it writes once, over all kernels.
   */
  readonly bytes: number;
  /** What one perfect kernel would move: each input read once, each output written once. */
  readonly lowerBoundBytes: number;
  readonly time: number;
  /**
   * What one perfect kernel would take: one launch, and the longer of least traffic and all
   * arithmetic.
   */
  readonly lowerBoundTime: number;
}

/** What a budget of memory (`compile(fn, { memory })`) has done. */
export interface Recomputation {
  /** Bytes that a run may take. */
  readonly budget: number;
  /** Bytes that it would take with everything kept, and those that are saved. */
  readonly plainPeak: number;
  readonly savedBytes: number;
  /** Arithmetic that is added. */
  readonly addedFlops: number;
  /** Values that are computed again instead of being kept, as the way forward makes them. */
  readonly values: readonly { readonly op: string; readonly type: string; readonly bytes: number }[];
}

/** Device memory of one run, in bytes. */
export interface MemoryUse {
  readonly inputs: number;
  readonly outputs: number;
  /** Intermediate values that reach memory, sharing what they can. */
  readonly scratch: number;
  /** All of these together. */
  readonly peak: number;
  /**
   * The least that these kernels in this order can do with: inputs, outputs, and the intermediates
   * needed at once.
   */
  readonly lowerBound: number;
}
