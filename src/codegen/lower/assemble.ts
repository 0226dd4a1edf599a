// Lowered kernels and a memory plan become a Program: sources once each, buffers, dispatches in order.

import { dtypeBytes, lowered } from '../../ir/dtype.ts';
import { dims, nodeBytes, type Node } from '../../ir/graph.ts';
import { sizeOf } from '../../ir/shape.ts';
import {
  deviceBytes,
  type BufferRole,
  type Program,
  type ProgramBuffer,
  type ProgramKernel,
  type ProgramPack,
  type ProgramScalar,
  type ProgramStep,
  type TargetId,
} from '../../runtime/program.ts';
import { meetingOf } from '../../schedule/collective.ts';
import type { MemoryPlan } from '../../schedule/memory/plan.ts';
import type { Pack, Packs } from '../../schedule/memory/pack.ts';
import type { Emitted } from '../emit/emit.ts';
import { programLoops, type Lowered, type LoweredCollective, type LoweredIteration } from './lowered.ts';
import type { LoweredKernel } from './kernel.ts';
import type { Loop } from '../loop/loop.ts';

export interface Assembly {
  readonly target: TargetId;
  readonly inputs: readonly Node[];
  readonly outputs: readonly Node[];
  readonly scalars: readonly ProgramScalar[];
  readonly kernels: readonly Lowered[];
  readonly packs: Packs;
  readonly memory: MemoryPlan;
  /** Spells a Loop. */
  readonly emit: (loop: Loop) => Emitted;
}

/** Bytes of a stored node on a device. */
export function storedBytes(node: Node): number {
  return deviceBytes(dtypeBytes(node.dtype), sizeOf(dims(node)));
}

/** A kernel of a program for reports: its source, to be read, and how often a run has it run. */
export interface Described {
  readonly lowered: LoweredKernel;
  /** Which of the program's kernels it is. */
  readonly index: number;
  readonly source: () => string;
  readonly times: number;
}

/** Where a program has what it was assembled of. */
export interface AssembledPlaces {
  /** The steps of each kernel, in order: those of a loop are one, but for copies behind it. */
  readonly steps: readonly (readonly ProgramStep[])[];
  /** The buffers of stored nodes, but for those within loops. */
  readonly bufferOf: ReadonlyMap<Node, number>;
}

/** A Program, its kernels in the order of their steps, and where it has what. */
export interface Assembled {
  readonly program: Program;
  readonly described: readonly Described[];
  readonly placed: AssembledPlaces;
}

/** Builds the Program. */
export function assemble(parts: Assembly): Assembled {
  const assembler = new Assembler(parts);
  const program = assembler.program();
  return { program, described: assembler.described, placed: assembler.placed };
}

/** Where the nodes of one graph lie: those of an iteration are bound anew for each phase of a loop. */
interface Scope {
  readonly memory: MemoryPlan;
  /** The program's arenas that the memory plan's are. */
  readonly arenas: readonly number[];
  readonly placeOf: Map<Node, number>;
  /** Buffers of nodes that stand for others in this phase. */
  readonly bound?: ReadonlyMap<Node, number>;
  /** How often a run comes by; undefined where that was told before. */
  readonly times: number | undefined;
}

class Assembler {
  readonly described: Described[] = [];
  placed: AssembledPlaces = { steps: [], bufferOf: new Map() };
  readonly #parts: Assembly;
  readonly #buffers: ProgramBuffer[] = [];
  readonly #kernels: ProgramKernel[] = [];
  readonly #indexOf = new Map<Loop, number>();
  readonly #bySource = new Map<string, number>();
  /** Of kernels, to be read. */
  readonly #texts: (() => string)[] = [];

  constructor(parts: Assembly) {
    this.#parts = parts;
  }

  program(): Program {
    const parts = this.#parts;
    const { memory } = parts;
    const placeOf = new Map<Node, number>();
    const scope: Scope = { memory, arenas: [...memory.arenas.keys()], placeOf, times: 1 };
    const add = (node: Node, role: BufferRole, name: string): number => this.#add(node, role, name, scope);
    const inputs = parts.inputs.map((node) =>
      add(node, 'input', node.op === 'parameter' ? node.attrs.name : node.op),
    );
    const donated: { output: number; input: number }[] = [];
    const outputs = parts.outputs.map((node, output) => {
      const known = placeOf.get(node);
      if (known !== undefined) return known;
      const parameter = memory.overwrites.get(node);
      if (parameter === undefined) return add(node, 'output', `out${output}`);
      const input = parts.inputs.indexOf(parameter);
      donated.push({ output, input });
      placeOf.set(node, inputs[input]!);
      return inputs[input]!;
    });
    const packs: ProgramPack[] = [];
    const addPack = (pack: Pack, name: string): void => {
      const members = pack.members.map(({ node, offset }) => {
        return { buffer: placeOf.get(node)!, offset: offset * dtypeBytes(node.dtype) };
      });
      const { role } = this.#buffers[members[0]!.buffer]!;
      packs.push({ buffer: add(pack.node, role, name), members });
    };
    for (const pack of parts.packs.values()) {
      if (memory.placeOf.has(pack.node)) add(pack.node, 'scratch', `pack${placeOf.size}`);
      else if (!memory.overwrites.has(pack.node)) addPack(pack, `pack${packs.length}`);
    }
    for (const [result, host] of memory.overwrites) {
      if (parts.packs.has(result)) placeOf.set(result, placeOf.get(host)!);
    }
    const steps = parts.kernels.map((kernel) => this.#steps([kernel], scope));
    this.placed = { steps, bufferOf: placeOf };
    return {
      version: 1,
      target: parts.target,
      kernels: this.#kernels,
      buffers: this.#buffers,
      packs,
      arenas: memory.arenas,
      steps: steps.flat(),
      inputs,
      outputs,
      donated,
      scalars: parts.scalars,
    };
  }

  #add(node: Node, role: BufferRole, name: string, { memory, arenas, placeOf }: Scope): number {
    const place = memory.placeOf.get(node);
    const entry = { name, role, bytes: storedBytes(node), dtype: lowered(node.dtype), shape: dims(node) };
    const placed = place === undefined ? entry : { ...entry, ...place, arena: arenas[place.arena]! };
    const index = this.#buffers.push(placed) - 1;
    placeOf.set(node, index);
    return index;
  }

  /** The buffer of a node, made where it is met first. */
  #bufferOf(node: Node, name: string, scope: Scope): number {
    return scope.bound?.get(node) ?? scope.placeOf.get(node) ?? this.#add(node, 'scratch', name, scope);
  }

  #steps(all: readonly Lowered[], scope: Scope): ProgramStep[] {
    return all.flatMap((one) => {
      if ('turns' in one) return this.#loop(one, scope);
      return 'operand' in one ? [this.#collective(one, scope)] : this.#dispatch(one, scope);
    });
  }

  /** A loop, and its results to where they are wanted, if that is elsewhere. */
  #loop({ kernel, turns }: LoweredIteration, scope: Scope): ProgramStep[] {
    const { homes, arenas } = scope.memory.loops.get(kernel)!;
    const placeOf = new Map<Node, number>();
    const own = { memory: turns.memory, arenas: arenas.map((arena) => scope.arenas[arena]!), placeOf };
    let times =
      scope.times === undefined ? undefined : scope.times * (turns.guard === undefined ? turns.trips : 1);
    const bufferOf = (node: Node): number => this.#bufferOf(node, kernel.name, scope);
    const steps = programLoops.value.loopSteps(turns, {
      home: (_, place) => bufferOf(homes[place]!),
      bufferOf,
      turn: (bound) => {
        const made = this.#steps(turns.lowered, { ...own, bound, times });
        times = undefined;
        return made;
      },
    });
    const moved = turns.held.flatMap(({ result }, place): ProgramStep[] => {
      if (result === undefined || homes[place] === result) return [];
      return [{ kind: 'copy', from: bufferOf(homes[place]!), to: bufferOf(result) }];
    });
    return [...steps, ...moved];
  }

  #collective({ kernel, node, operand }: LoweredCollective, scope: Scope): ProgramStep {
    const bufferOf = (each: Node): number => this.#bufferOf(each, kernel.name, scope);
    const [sends, takes] = [nodeBytes(operand), nodeBytes(node as Node)];
    return {
      kind: 'collective',
      ...meetingOf(node),
      from: bufferOf(operand),
      sends,
      to: bufferOf(node as Node),
      takes,
    };
  }

  #dispatch(one: LoweredKernel, scope: Scope): ProgramStep[] {
    const { loop, kernel, bound } = one;
    const index = this.#kernel(one);
    if (scope.times !== undefined)
      this.described.push({ lowered: one, index, source: this.#texts[index]!, times: scope.times });
    const buffers = bound.map(({ nodes }) => this.#bufferOf(nodes.at(-1)!, kernel.name, scope));
    const dispatch: ProgramStep = { kind: 'dispatch', kernel: index, buffers, grid: loop.grid };
    // What is added to must begin somewhere.
    const { body } = kernel;
    if (body.kind !== 'scatter-add-atomic') return [dispatch];
    return [{ kind: 'clear', buffer: this.#bufferOf(body.node as Node, kernel.name, scope) }, dispatch];
  }

  /** The program's kernel for a lowered one. */
  #kernel({ loop, kernel, bound }: LoweredKernel): number {
    const known = this.#indexOf.get(loop);
    if (known !== undefined) return known;
    const { source, text = () => source, ...needs } = this.#parts.emit(loop);
    // The name is the only difference between equal kernels: compare without it.
    const key = source.replaceAll(loop.name, 'kernel') + JSON.stringify(needs.tileMaps ?? []);
    const index = this.#bySource.get(key) ?? this.#kernels.length;
    this.#bySource.set(key, index);
    this.#indexOf.set(loop, index);
    if (index < this.#kernels.length) return index;
    this.#texts.push(text);
    this.#kernels.push({
      name: loop.name,
      kind: kernel.kind,
      source,
      workgroup: loop.workgroup,
      bindings: bound.map((buffer) => buffer.access),
      usesScalars: loop.usesScalars,
      ...needs,
      flops: kernel.flops,
      bytes: kernel.bytes,
    });
    return index;
  }
}
