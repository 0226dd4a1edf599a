// Lowered kernels and a memory plan become a Program: sources once each, buffers, dispatches in order.

import { dtypeBytes, lowered } from '../../ir/dtype.ts';
import { dims, type Node } from '../../ir/graph.ts';
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
import type { MemoryPlan } from '../../schedule/memory/memory.ts';
import type { Pack, Packs } from '../../schedule/merge/pack.ts';
import type { Emitted } from '../emit/emit.ts';
import type { LoweredKernel } from './kernel.ts';
import type { Loop } from '../loop/loop.ts';

export interface Assembly {
  readonly target: TargetId;
  readonly inputs: readonly Node[];
  readonly outputs: readonly Node[];
  readonly scalars: readonly ProgramScalar[];
  readonly kernels: readonly LoweredKernel[];
  readonly packs: Packs;
  readonly memory: MemoryPlan;
  /** Spells a Loop. */
  readonly emit: (loop: Loop) => Emitted;
}

/** Bytes of a stored node on a device. */
export function storedBytes(node: Node): number {
  return deviceBytes(dtypeBytes(node.dtype), sizeOf(dims(node)));
}

/** Builds the Program, and gives the source of each step's kernel in step order. */
export function assemble(parts: Assembly): { program: Program; sources: readonly (() => string)[] } {
  const buffers: ProgramBuffer[] = [];
  const placeOf = new Map<Node, number>();
  const add = (node: Node, role: BufferRole, name: string): number => {
    const place = parts.memory.placeOf.get(node);
    const entry = { name, role, bytes: storedBytes(node), dtype: lowered(node.dtype), shape: dims(node) };
    const index = buffers.push(place === undefined ? entry : { ...entry, ...place }) - 1;
    placeOf.set(node, index);
    return index;
  };
  const inputs = parts.inputs.map((node) =>
    add(node, 'input', node.op === 'parameter' ? node.attrs.name : node.op),
  );
  const donated: { output: number; input: number }[] = [];
  const outputs = parts.outputs.map((node, output) => {
    const known = placeOf.get(node);
    if (known !== undefined) return known;
    const parameter = parts.memory.overwrites.get(node);
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
    const { role } = buffers[members[0]!.buffer]!;
    packs.push({ buffer: add(pack.node, role, name), members });
  };
  for (const pack of parts.packs.values()) {
    if (parts.memory.placeOf.has(pack.node)) add(pack.node, 'scratch', `pack${placeOf.size}`);
    else if (!parts.memory.overwrites.has(pack.node)) addPack(pack, `pack${packs.length}`);
  }
  for (const [result, host] of parts.memory.overwrites) {
    if (parts.packs.has(result)) placeOf.set(result, placeOf.get(host)!);
  }
  const kernels: ProgramKernel[] = [];
  const indexOf = new Map<Loop, number>();
  const bySource = new Map<string, number>();
  const sources: (() => string)[] = [];
  /** Of kernels, to be read. */
  const texts: (() => string)[] = [];
  const steps = parts.kernels.flatMap((lowered): ProgramStep[] => {
    const { loop, kernel, bound } = lowered;
    for (const node of bound.flatMap(({ nodes }) => nodes)) {
      if (!placeOf.has(node)) add(node, 'scratch', kernel.name);
    }
    let index = indexOf.get(loop);
    if (index === undefined) {
      const { source, text = () => source, ...needs } = parts.emit(loop);
      // The name is the only difference between equal kernels: compare without it.
      const key = source.replaceAll(loop.name, 'kernel') + JSON.stringify(needs.tileMaps ?? []);
      index = bySource.get(key) ?? kernels.length;
      bySource.set(key, index);
      indexOf.set(loop, index);
      if (index === kernels.length) {
        texts.push(text);
        kernels.push({
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
      }
    }
    sources.push(texts[index]!);
    const bindings = bound.map(({ nodes }) => placeOf.get(nodes.at(-1)!)!);
    const dispatch: ProgramStep = { kind: 'dispatch', kernel: index, buffers: bindings, grid: loop.grid };
    // What is added to must begin somewhere.
    const { body } = kernel;
    if (body.kind !== 'scatter-add-atomic') return [dispatch];
    return [{ kind: 'clear', buffer: placeOf.get(body.node as Node)! }, dispatch];
  });
  const { arenas } = parts.memory;
  const program: Program = {
    version: 1,
    target: parts.target,
    kernels,
    buffers,
    packs,
    arenas,
    steps,
    inputs,
    outputs,
    donated,
    scalars: parts.scalars,
  };
  return { program, sources };
}
