// What a schedule becomes: lowered kernels, loops whose iterations are kernels (iteration.ts), and collectives.

import type { CollectiveNode, Graph, Node } from '../../ir/graph.ts';
import type { ProgramStep } from '../../runtime/program.ts';
import type { Body, Kernel } from '../../schedule/kernel.ts';
import type { MemoryPlan } from '../../schedule/memory/plan.ts';
import { Slot } from '../../slot.ts';
import type { LoweredKernel } from './kernel.ts';

/**
 * How a value is handed on: unchanged, overwritten where it lies, by exchanging two buffers, or by
 * a copy into the second of them (of another carry, or of another one's next value).
 */
export type Handing = 'unchanged' | 'in-place' | 'exchanged' | 'copied';

/** A value that turns hand on, and the keys of its buffers in the memory plan around the loop. */
export interface Held {
  readonly handing: Handing;
  /** Where it begins: zeros, anything, or the value of a node. */
  readonly start: 'zeros' | 'anything' | Node;
  /** The wanted result that it ends as. */
  readonly result: Node | undefined;
  /** Stands for its buffer where no result does. */
  readonly spare: Node;
  /** Stands for the second buffer, of those that are exchanged. */
  readonly other: Node | undefined;
}

export interface LoopTrips {
  readonly trips: number;
  /** The place in `held` of what must not be 0 before an iteration, in a loop that may end early. */
  readonly guard: number | undefined;
  /** One iteration; its first parameters and its outputs are what is held, in order. */
  readonly graph: Graph;
  readonly memory: MemoryPlan;
  readonly lowered: readonly Lowered[];
  readonly held: readonly Held[];
  /** The nodes outside that the further parameters stand for. */
  readonly read: readonly Node[];
}

/** A loop of the program, with the kernels of its iterations. */
export interface LoweredIteration {
  readonly kernel: Kernel;
  readonly turns: LoopTrips;
}

/** What processes do together: a step of its own. */
export interface LoweredCollective {
  readonly kernel: Kernel;
  readonly node: CollectiveNode;
  readonly operand: Node;
}

export type Lowered = LoweredKernel | LoweredIteration | LoweredCollective;

/** Lowers the graph of one iteration; `donations` pair its outputs with parameters. */
export type LowerTurn = (
  graph: Graph,
  donations: ReadonlyMap<number, number>,
) => { readonly graph: Graph; readonly memory: MemoryPlan; readonly lowered: readonly Lowered[] };

/** What the steps of a loop are made with: buffers of the program, by number. */
export interface TurnFrame {
  /** The buffer of what is held, of its second buffer, of where it begins, of what an iteration reads. */
  readonly home: (held: Held, place: number) => number;
  readonly bufferOf: (node: Node) => number;
  /** The steps of one iteration over these buffers of its parameters and outputs. */
  readonly turn: (buffers: ReadonlyMap<Node, number>) => readonly ProgramStep[];
}

export type IterateBody = Extract<Body, { readonly kind: 'iterate' }>;

/** What makes loops of the program: a chunk brings it. */
export const programLoops: Slot<{
  readonly lowerTurns: (body: IterateBody, lower: LowerTurn) => LoopTrips;
  readonly loopSteps: (trips: LoopTrips, frame: TurnFrame) => ProgramStep[];
}> = new Slot('loops of programs');
