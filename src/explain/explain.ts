// explain and lower: what a function or a pending tensor becomes, graph to kernels, without running it and without a device.
// What there is to tell is gathered in explain/describe.ts.

import { compileGraph } from '../compile.ts';
import { SinterError } from '../errors.ts';
import type { CompileStage } from '../dump/stage.ts';
import { describe } from './describe.ts';
import { Explanation } from './explanation.ts';
import { explanationText } from './text.ts';
import { texts } from './slots.ts';
import { Origins } from './origins.ts';
import { passReport, type PassReport } from './passes.ts';
import * as arg from '../ir/arguments.ts';
import { rewrite, type Graph, type Node } from '../ir/graph.ts';
import {
  cTarget,
  cudaTarget,
  gpuTarget,
  softwareTarget,
  targetOf,
  targetOfName,
  wasmTarget,
  type Target,
} from '../schedule/target.ts';
import { budgetOf } from '../tensor/compile/budget.ts';
import { expectFunction, expectTensor } from '../tensor/expect.ts';
import { pendingGraph } from '../tensor/values.ts';
import { reportOf } from '../tensor/sizes/report.ts';
import { expectedDevice } from '../tensor/device.ts';
import { Tensor } from '../tensor/tensor.ts';
import { traceFlat, type Traced } from '../tensor/tracing.ts';
import { flatten } from '../tensor/tree.ts';

export { Explanation } from './explanation.ts';
export type { ExplainedKernel, ExplainedNode, ExplainedFusionDiagnostic } from './types.ts';

texts.fill(explanationText);

/**
 * What computing `subject` would run: a function, traced on `args` (trees of tensors and numbers; only their shapes count), or
 * a pending tensor, which stays pending. Nothing is computed and no device is opened. Kernels are those for the device that
 * would run: the one that is open, or that `setDevice` or `SINTER_DEVICE` name; where there is none, or it is the
 * interpreter, those for a GPU.
 */
export function explain(
  subject: Tensor | ((...args: never[]) => unknown),
  ...args: readonly unknown[]
): Explanation {
  return explainFor(expectedTarget(), subject, ...args);
}

/** The machine of the device that would run. The interpreter runs no kernels: what is told of is a GPU. */
export function expectedTarget(): Target {
  const device = expectedDevice();
  const target = typeof device === 'object' ? targetOf(device) : targetOfName(device ?? '');
  return target === undefined || target.id === 'interpreter' ? gpuTarget : target;
}

/** As `explain`, for another target: `targetOf(device.facts)` is that of an open device. */
export function explainFor(
  target: Target,
  subject: Tensor | ((...args: never[]) => unknown),
  ...args: readonly unknown[]
): Explanation {
  const origins = new Origins();
  return origins.during(() => {
    const { graph, scalars } = subjectGraph('explain', subject, args);
    const compiled = compileGraph(graph, target, {
      scalars,
      ...budgetFor(subject),
      inspect: true,
      title: () => titleOf(subject),
    });
    const sizes = reportOf(subject)?.variants() ?? [];
    return new Explanation(describe({ graph, scalars, compiled, origins, target, sizes }));
  });
}

/** What each pass of the compiler changes of `subject`, and by which rule. */
export function explainPasses(
  target: Target,
  subject: Tensor | ((...args: never[]) => unknown),
  ...args: readonly unknown[]
): readonly PassReport[] {
  const { graph, scalars } = subjectGraph('explain', subject, args);
  const reports: PassReport[] = [];
  const observe = (stage: CompileStage): void => {
    if (stage.kind === 'pass') reports.push(passReport(stage));
  };
  compileGraph(graph, target, { scalars, ...budgetFor(subject), observe, title: () => titleOf(subject) });
  return reports;
}

/** A generated kernel. */
export interface LoweredSource {
  readonly name: string;
  readonly kind: string;
  readonly source: string;
}

export interface LowerOptions {
  /**
   * Which language: `wgsl` (the default), `cuda`, `wasm`, whose modules come as text (WAT), or
   * `native`, whose kernels are C.
   */
  readonly target?: string;
  /** Schedules kernels for a software adapter instead of a GPU; WGSL only; false by default. */
  readonly software?: boolean;
}

const takesLower = arg.takes<typeof lower>(
  ['the function', arg.anything()],
  ['the arguments', arg.optional(arg.listOf(arg.anything<unknown>()))],
  ['options', arg.options<LowerOptions>({ target: arg.text, software: arg.flag })],
);

/**
 * The kernels of `fn` as sources, in the order they run, without a device. Throws E_UNSUPPORTED for a target that there is no
 * generator for.
 */
export function lower(
  fn: Tensor | ((...args: never[]) => unknown),
  args: readonly unknown[] = [],
  options: LowerOptions = {},
): LoweredSource[] {
  takesLower('lower', fn, args, options);
  const target = loweringTarget(options);
  const { graph, scalars } = subjectGraph('lower', fn, args);
  const { kernels } = compileGraph(graph, target, { scalars, ...budgetFor(fn), title: () => titleOf(fn) });
  return kernels.map(({ name, kind, source }) => ({ name, kind, source }));
}

/** The machine that kernels of a language are lowered for. */
const lowerings: Readonly<Record<string, Target>> = {
  wgsl: gpuTarget,
  cuda: cudaTarget,
  wasm: wasmTarget,
  native: cTarget,
};

/** The target that `lower` generates kernels for. Throws E_UNSUPPORTED where there is none. */
export function loweringTarget({ target = 'wgsl', software = false }: LowerOptions): Target {
  const profile = Object.hasOwn(lowerings, target) ? lowerings[target] : undefined;
  if (profile === undefined) {
    const known = Object.keys(lowerings).join(', ');
    throw new SinterError('E_UNSUPPORTED', `lower: there is no target ${target}: expected one of ${known}`);
  }
  if (!software) return profile;
  if (target === 'wgsl') return softwareTarget;
  throw new SinterError('E_UNSUPPORTED', `lower: ${target} has no software adapter\n  try: target wgsl`);
}

/** What a subject is called where its stages are shown. */
function titleOf(subject: Tensor | ((...args: never[]) => unknown)): string {
  return subject instanceof Tensor ? 'tensor' : subject.name || 'function';
}

/** The budget of memory that the subject was compiled with. */
function budgetFor(subject: object): { readonly memory?: number } {
  const memory = budgetOf(subject);
  return memory === undefined ? {} : { memory };
}

interface SubjectGraph {
  readonly graph: Graph;
  readonly scalars: ReadonlySet<number>;
}

function subjectGraph(
  op: string,
  subject: Tensor | ((...args: never[]) => unknown),
  args: readonly unknown[],
): SubjectGraph {
  if (subject instanceof Tensor) {
    expectTensor(op, 'the value', subject);
    return { graph: pendingGraph(subject), scalars: new Set() };
  }
  expectFunction(op, subject);
  const shared = reportOf(subject)?.programOf(args);
  if (shared !== undefined) return shared;
  const flat = flatten(args, op);
  const traced = traceFlat(subject, flat, 'explain', true);
  return { graph: withNames(traced, flat.paths), scalars: traced.scalarIndices };
}

/** The traced graph with parameters named after where they come from: `arg0.layers[1].w`, `captured2`, `seed0`. */
function withNames(traced: Traced, paths: readonly string[]): Graph {
  const argument = (leaf: number): string => paths[leaf]!.replace(/^\[(\d+)\]/, 'arg$1');
  let [tensor, scalar] = [0, 0];
  const names = traced.graph.parameters.map((_, i) => {
    if (traced.scalarIndices.has(i)) {
      const origin = traced.scalars[scalar++]!;
      return origin.kind === 'number' ? argument(origin.leaf) : `${origin.kind}${scalar - 1}`;
    }
    const { origin, part } = traced.inputs[tensor++]!;
    const name = origin.kind === 'argument' ? argument(origin.leaf) : `captured${tensor - 1}`;
    return part === 'grad' ? `${name}.grad` : name;
  });
  return rewrite(traced.graph, (node, _, b) => {
    if (node.op !== 'parameter') return undefined;
    return b.add('parameter', [], { ...node.attrs, name: names[node.attrs.index]! }) as Node;
  });
}
