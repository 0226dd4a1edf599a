// Checks the kernels of a run, and looks for what computes them rightly where the device does not: other schedules
// of the kernels that are wrong, the device without one of its features, or another device.

import { candidateTilings } from '../codegen/template/contract/choose.ts';
import { contractProblem } from '../codegen/template/contract/problem.ts';
import type { ContractTiling } from '../codegen/template/contract/strategies.ts';
import { compileGraph } from '../compile/chunks/compiler.ts';
import '../compile/chunks/products.ts';
import type { CompileOptions } from '../compile/compile.ts';
import type { Graph } from '../ir/graph.ts';
import type { Device, DeviceAllocation, DeviceFacts } from '../runtime/device.ts';
import type { Program } from '../runtime/program.ts';
import { optionalFeatures, targetOf, withoutFeatures, withPrecision } from '../schedule/target.ts';
import { scheduleKey } from '../tune/key.ts';
import { checkKernels, type ComparedKernel } from './kernels.ts';
import type { RunChecked } from './report.ts';
import type { Workaround } from './workarounds.ts';

/** A run that is looked at. */
export interface CheckedSubject {
  readonly device: Device;
  readonly graph: Graph;
  readonly options: CompileOptions;
  /** The facts of the device as its programs are compiled. */
  readonly facts: DeviceFacts;
  readonly precision: 'f32' | 'tf32';
  readonly scalars: readonly number[];
  /** Calls with a buffer for each input of the program, which those that it writes over are copies for. */
  readonly withInputs: <T>(
    program: Program,
    work: (buffers: readonly DeviceAllocation[]) => Promise<T>,
  ) => Promise<T>;
  /** Called with the number of kernels that ran, and of all. */
  readonly onProgress?: ((done: number, total: number) => void) | undefined;
}

/** What differs from how the program is compiled otherwise. */
interface Attempt {
  readonly avoid: readonly string[];
  readonly schedules: ReadonlyMap<string, ContractTiling>;
}

type Try = (attempt: Attempt) => Promise<readonly ComparedKernel[]>;

/** Devices that take over, in this order. */
const substitutes: readonly string[] = ['wasm', 'interpreter'];

/** Checks a run. Rejects with E_UNSUPPORTED for programs of several processes, and E_DEVICE_LOST. */
export async function checkRun(subject: CheckedSubject): Promise<RunChecked> {
  const attempted: Try = (attempt) => checkAttempt(subject, attempt);
  const first = await attempted({ avoid: [], schedules: new Map() });
  const kernels = first.map(({ check }) => check);
  const wrong = kernels.filter(({ verdict }) => verdict !== 'right');
  if (wrong.length === 0) return { kernels };
  const found =
    (await otherSchedules(first, subject, attempted)) ?? (await withoutOne(subject.facts, attempted));
  const { name, description } = subject.device.facts;
  const instead = substitutes.find((other) => other !== name)!;
  const workaround: Workaround = {
    device: name,
    description,
    avoid: found?.avoid ?? [],
    schedules: Object.fromEntries(found?.schedules ?? []),
    ...(found === undefined && { instead }),
    wrong: wrong.map(({ name: kernel, writes }) => `${kernel} -> ${writes.join(', ')}`),
  };
  return { kernels, workaround };
}

function areRight(found: readonly ComparedKernel[]): boolean {
  return found.every(({ check }) => check.verdict === 'right');
}

/** Other schedules for the products that are wrong, where nothing but products is. */
async function otherSchedules(
  first: readonly ComparedKernel[],
  { device, facts, precision }: CheckedSubject,
  attempted: Try,
): Promise<Attempt | undefined> {
  const target = withPrecision(targetOf(facts), precision);
  const schedules = new Map<string, ContractTiling>();
  const left = new Map<string, ContractTiling[]>();
  for (let found = first; !areRight(found);) {
    for (const { kernel, check } of found) {
      if (check.verdict === 'right') continue;
      if (kernel.body.kind !== 'contract') return undefined;
      const problem = contractProblem(kernel, kernel.body);
      const key = scheduleKey(problem, device.facts);
      // The first is what the model chooses, which was tried.
      const others = left.get(key) ?? candidateTilings(problem, target).slice(1);
      left.set(key, others);
      const next = others.shift();
      if (next === undefined) return undefined;
      schedules.set(key, next);
    }
    found = await attempted({ avoid: [], schedules });
  }
  return { avoid: [], schedules };
}

/** The device without one of its features. */
async function withoutOne(facts: DeviceFacts, attempted: Try): Promise<Attempt | undefined> {
  for (const feature of optionalFeatures(facts)) {
    const attempt: Attempt = { avoid: [feature], schedules: new Map() };
    if (areRight(await attempted(attempt))) return attempt;
  }
  return undefined;
}

async function checkAttempt(
  { device, graph, options, facts, precision, scalars, withInputs, onProgress }: CheckedSubject,
  { avoid, schedules }: Attempt,
): Promise<readonly ComparedKernel[]> {
  const target = withPrecision(targetOf(withoutFeatures(facts, avoid)), precision);
  const pinned: CompileOptions['schedules'] = (problem) =>
    schedules.get(scheduleKey(problem, device.facts)) ?? options.schedules?.(problem);
  const compiled = compileGraph(graph, target, {
    ...options,
    schedules: pinned,
    inspect: true,
  });
  return withInputs(compiled.program, (inputs) =>
    checkKernels({ device, compiled, inputs, scalars, precision, onProgress }),
  );
}
