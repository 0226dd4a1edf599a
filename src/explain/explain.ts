// explain and lower: what a function or a pending tensor becomes, graph to kernels, without running it and without a device.
// What there is to tell is gathered in explain/describe.ts.

import { compileGraph } from '../compile.ts';
import type { CompileOptions } from '../compile/compile.ts';
import { SinterError } from '../errors.ts';
import type { CompileStage } from '../dump/stage.ts';
import { describe } from './describe.ts';
import { Explanation } from './explanation.ts';
import { explanationText } from './text.ts';
import { texts } from './slots.ts';
import { Origins } from './origins.ts';
import type { SharedSubject } from './parallel.ts';
import { passReport, type PassReport } from './passes.ts';
import * as arg from '../ir/arguments.ts';
import type { Graph } from '../ir/graph.ts';
import type { Mesh } from '../ir/mesh/mesh.ts';
import type { Split } from '../ir/mesh/split.ts';
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
import { optionsOf } from '../tensor/compile/compiled.ts';
import { partPrograms } from '../tensor/compile/slots.ts';
import { expectFunction, expectTensor } from '../tensor/expect.ts';
import { namedGraph } from '../tensor/compile/names.ts';
import { partOf, pendingGraph } from '../tensor/values.ts';
import { reportOf } from '../tensor/sizes/report.ts';
import { currentRank, expectedDevice } from '../tensor/device.ts';
import { Tensor } from '../tensor/tensor.ts';
import { traceFlat } from '../tensor/tracing.ts';
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
  return explanationOf(target, subject, args);
}

/** Arguments as processes of a mesh would hold them: how each leaf is split. */
export interface PlannedArguments {
  readonly mesh: Mesh;
  readonly splits: readonly (Split | undefined)[];
}

/** As `explainFor`, of what processes of a mesh would run, that of rank 0; there need not be any. */
export function explainShared(
  target: Target,
  planned: PlannedArguments,
  subject: (...args: never[]) => unknown,
  args: readonly unknown[],
): Explanation {
  return explanationOf(target, subject, args, planned);
}

function explanationOf(
  target: Target,
  subject: Tensor | ((...args: never[]) => unknown),
  args: readonly unknown[],
  planned?: PlannedArguments,
): Explanation {
  const origins = new Origins();
  return origins.during(() => {
    const { graph, ...more } = subjectGraph('explain', subject, args, planned);
    const compiled = compileGraph(graph, target, {
      ...optionsFor(more),
      ...budgetFor(subject),
      inspect: true,
      title: () => titleOf(subject),
    });
    const sizes = reportOf(subject)?.variants() ?? [];
    return new Explanation(describe({ graph, ...more, compiled, origins, target, sizes }));
  });
}

/** What each pass of the compiler changes of `subject`, and by which rule. */
export function explainPasses(
  target: Target,
  subject: Tensor | ((...args: never[]) => unknown),
  args: readonly unknown[],
  planned?: PlannedArguments,
): readonly PassReport[] {
  const { graph, ...more } = subjectGraph('explain', subject, args, planned);
  const reports: PassReport[] = [];
  const observe = (stage: CompileStage): void => {
    if (stage.kind === 'pass') reports.push(passReport(stage));
  };
  const title = (): string => titleOf(subject);
  compileGraph(graph, target, { ...optionsFor(more), ...budgetFor(subject), observe, title });
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
  const { graph, ...more } = subjectGraph('lower', fn, args);
  const title = (): string => titleOf(fn);
  const { kernels } = compileGraph(graph, target, { ...optionsFor(more), ...budgetFor(fn), title });
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
  /** What is compiled: where processes share the call, the graph of one of them. */
  readonly graph: Graph;
  readonly scalars: ReadonlySet<number>;
  /** Where processes share the call. */
  readonly shared?: SharedSubject;
  /** Inputs that a call of a compiled function may overwrite: parameter → output. */
  readonly donate?: ReadonlyMap<number, number>;
}

/** How a subject is compiled: for which process, where it is for one of several, and what it may overwrite. */
function optionsFor({ scalars, shared, donate }: Omit<SubjectGraph, 'graph'>): CompileOptions {
  return { scalars, ...(shared && { rank: shared.rank }), ...(donate && { donate }) };
}

function subjectGraph(
  op: string,
  subject: Tensor | ((...args: never[]) => unknown),
  args: readonly unknown[],
  planned?: PlannedArguments,
): SubjectGraph {
  if (subject instanceof Tensor) {
    expectTensor(op, 'the value', subject);
    return { graph: pendingGraph(subject), scalars: new Set() };
  }
  expectFunction(op, subject);
  const report = reportOf(subject);
  const parts = partPrograms.filled;
  const ofSizes = report?.programOf(args);
  const flat = flatten(args, op);
  if (ofSizes !== undefined) {
    const isSplit = flat.leaves.some((leaf) => leaf instanceof Tensor && partOf(leaf) !== undefined);
    if (isSplit || planned !== undefined) partPrograms.value.noVaryingSizes();
    return ofSizes;
  }
  const traced = traceFlat(subject, flat, 'explain', true);
  const graph = namedGraph(traced, flat.paths);
  const { scalars, donate } = optionsOf(traced, traced.graph.outputs, report?.donated(flat) ?? []);
  if (parts === undefined) return { graph, scalars, donate };
  const { leaves } = flat;
  const partAt = planned && parts.partsPlanned(planned.mesh, planned.splits, leaves);
  const values = parts.valuesBy(traced, partAt ?? parts.partsNow(leaves));
  const call = parts.callParts(traced, donate, values, [planned?.mesh, parts.meshWithin(graph)]);
  if (call === undefined) return { graph, scalars, donate };
  const made = parts.partitionCall(graph, scalars, call);
  return { graph: made.graph, scalars, donate, shared: { call: made, rank: planned ? 0 : currentRank() } };
}
