// One scheduled kernel becomes a Loop: buffers are bound, and the template of its kind is filled.

import { CompilerBug } from '../../errors.ts';
import type { Kernel } from '../../schedule/kernel.ts';
import type { MemoryPlan } from '../../schedule/memory/plan.ts';
import type { Node } from '../../ir/graph.ts';
import type { Target } from '../../schedule/target.ts';
import type { Loop } from '../loop/loop.ts';
import { roundOnce } from '../loop/rounding.ts';
import { signatureOf } from './signature.ts';
import { batchedDispatchLoop, type DispatchPart } from './batched-dispatch.ts';
import type { PinnedTilings } from '../template/contract/strategies.ts';
import { globalBuffer, type BoundBuffer, type Frame } from '../template/shared/frame.ts';
import { mapLoop } from '../template/map/map.ts';
import { templates } from './templates.ts';

/**
 * A kernel's Loop (of its own name, or of an equal kernel's) and the stored nodes behind its
 * bindings, in order.
 */
export interface LoweredKernel {
  readonly kernel: Kernel;
  readonly loop: Loop;
  readonly bound: readonly BoundBuffer[];
}

/** Loops made so far, by signature. */
export type LoopCache = Map<string, Loop>;

/**
 * Lowers a kernel whose values live where `memory` says. `pinned` are tilings that are not the
 * model's; `known` are Loops that were lowered before, under other names.
 */
export function lowerKernel(
  kernel: Kernel,
  target: Target,
  memory: MemoryPlan,
  cache: LoopCache = new Map(),
  pinned: PinnedTilings = () => undefined,
  known: LoopCache = new Map(),
): LoweredKernel {
  const bound = bindBuffers(kernel, memory, target);
  if (kernel.body.kind === 'batched-dispatch') {
    const parts = kernel.body.parts.map((part) => lowerKernel(part, target, memory, cache, pinned, known));
    return { kernel, loop: loopOfBatch(kernel, target, parts, bound, cache), bound };
  }
  const signature = signatureOf(kernel, bound);
  const cached = cache.get(signature);
  if (cached !== undefined) return { kernel, loop: cached, bound };
  const equal = known.get(signature);
  const loop =
    equal === undefined
      ? roundOnce(fillTemplate({ kernel, target, bound }, pinned))
      : { ...equal, name: kernel.name };
  cache.set(signature, loop);
  return { kernel, loop, bound };
}

/**
 * Names are positions (in0, out0), so that equal kernels of different layers have equal source and
 * share a pipeline. WebGPU forbids binding one device buffer both ways in a dispatch, so what is
 * only read from a buffer that the kernel writes elsewhere is bound `read_write` too.
 */
function bindBuffers(
  kernel: Kernel,
  { overwrites, homeOf }: MemoryPlan,
  { bindsParts }: Target,
): BoundBuffer[] {
  // Values that are read and written at the same time have places of their own in an arena.
  const isOneBuffer = (home: Node | number): boolean => bindsParts !== true || typeof home !== 'number';
  const results = [...new Set(kernel.writes.map(({ node }) => node))];
  const overwritten = new Set(results.map((node) => overwrites.get(node)));
  const written = new Set(results.map(homeOf).filter(isOneBuffer));
  const bound: BoundBuffer[] = [];
  for (const node of kernel.reads) {
    if (overwritten.has(node)) continue;
    const access = written.has(homeOf(node)) ? 'read_write' : 'read';
    bound.push({ name: `in${bound.length}`, access, nodes: [node], written: false });
  }
  for (const [i, node] of results.entries()) {
    const host = overwrites.get(node);
    const nodes = host !== undefined && kernel.reads.includes(host) ? [host, node] : [node];
    bound.push({ name: `out${i}`, access: 'read_write', nodes, written: true });
  }
  return bound;
}

/** One Loop of several; equal parts bound alike give equal Loops. */
function loopOfBatch(
  kernel: Kernel,
  target: Target,
  lowered: readonly LoweredKernel[],
  bound: readonly BoundBuffer[],
  cache: LoopCache,
): Loop {
  const nameOf = new Map(bound.flatMap(({ name, nodes }) => nodes.map((node) => [node, name] as const)));
  const parts = lowered.map((part): DispatchPart => {
    const names = part.bound.map(({ name, nodes }) => [name, nameOf.get(nodes.at(-1)!)!] as const);
    return { loop: part.loop, names: new Map(names) };
  });
  const key = parts.map(({ loop, names }) => `${loop.name}(${[...names.values()].join()})`);
  const signature = ['batched-dispatch', ...key, ...bound.map(({ access }) => access)].join(' ');
  const known = cache.get(signature);
  if (known !== undefined) return known;
  const loop = batchedDispatchLoop(kernel, target, parts, bound.map(globalBuffer));
  cache.set(signature, loop);
  return loop;
}

function fillTemplate(frame: Frame, pinned: PinnedTilings): Loop {
  const { kind } = frame.kernel.body;
  switch (kind) {
    case 'batched-dispatch':
      throw new CompilerBug('lower', 'kernels in one dispatch have no template of their own');
    case 'iterate':
    case 'collective':
      throw new CompilerBug('lower', `a kernel of kind ${kind} has no template`);
    case 'map':
      return mapLoop(frame);
    default:
      return templates[kind].value(frame, pinned);
  }
}
