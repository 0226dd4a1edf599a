// Checks the kernels of a run, and looks for what computes them rightly where the device does not: other schedules
// of the kernels that are wrong, the device without one of its features, or another device.

import { candidateTilings } from '../../codegen/template/contract/choose.ts';
import { contractProblem } from '../../codegen/template/contract/problem.ts';
import type { ContractTiling } from '../../codegen/template/contract/strategies.ts';
import { load, loadedCompiler } from '../../compile/chunks.ts';
import type { CompiledGraph } from '../../compile/compile.ts';
import type { Device, DeviceFacts } from '../../runtime/device.ts';
import { optionalFeatures, targetOf, withoutFeatures, withPrecision } from '../../schedule/target.ts';
import { scheduleKey } from '../../tune/key.ts';
import { copied, withRoom } from '../evaluate/copy.ts';
import type { Question } from '../evaluate/executable.ts';
import type { Run } from '../evaluate/execute.ts';
import { matmulPrecision, type MatmulPrecision } from '../precision.ts';
import { withSession, type Session } from '../session.ts';
import type { Resident } from '../storage/resident.ts';
import { adjusted } from './adjusting.ts';
import { checkKernels, type Found, type KernelCheck } from './kernels.ts';
import type { Workaround } from './workarounds.ts';

/** What was found of one run. */
export interface RunChecked {
  readonly kernels: readonly KernelCheck[];
  /** What has the device compute rightly, where something was wrong. */
  readonly workaround?: Workaround;
}

/** What differs from how the program is compiled otherwise. */
interface Attempt {
  readonly avoid: readonly string[];
  readonly schedules: ReadonlyMap<string, ContractTiling>;
}

/** What a program is compiled for without an attempt. */
interface Asked {
  readonly question: Question;
  readonly facts: DeviceFacts;
  readonly precision: MatmulPrecision;
}

/** Devices that take over, in this order. */
const substitutes: readonly string[] = ['wasm', 'interpreter'];

export type OnKernel = (done: number, total: number) => void;

/** Checks a run of a session on the device that it will run on. */
export async function checkRun(
  device: Device,
  run: Run,
  session: Session,
  onKernel?: OnKernel,
): Promise<RunChecked> {
  await Promise.all([load(['interpreter']), device.whole?.()]);
  const asked = withSession(session, () => ({
    question: run.executable.questionOn(device),
    facts: adjusted(device.facts).facts,
    precision: matmulPrecision(),
  }));
  const { facts } = asked;
  const attempted = (attempt: Attempt): Promise<readonly Found[]> =>
    checkAttempt(device, run, asked, attempt, onKernel);
  const first = await attempted({ avoid: [], schedules: new Map() });
  const kernels = first.map(({ check }) => check);
  const wrong = kernels.filter(({ verdict }) => verdict !== 'right');
  if (wrong.length === 0) return { kernels };
  const found =
    (await otherSchedules(first, asked, device.facts, attempted)) ?? (await withoutOne(facts, attempted));
  const instead = substitutes.find((name) => name !== facts.name)!;
  const { name, description } = device.facts;
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

function areRight(found: readonly Found[]): boolean {
  return found.every(({ check }) => check.verdict === 'right');
}

/** Other schedules for the products that are wrong, where nothing but products is. */
async function otherSchedules(
  first: readonly Found[],
  { facts, precision }: Asked,
  own: DeviceFacts,
  attempted: (attempt: Attempt) => Promise<readonly Found[]>,
): Promise<Attempt | undefined> {
  const target = withPrecision(targetOf(facts), precision);
  const schedules = new Map<string, ContractTiling>();
  const left = new Map<string, ContractTiling[]>();
  for (let found = first; !areRight(found);) {
    for (const { kernel, check } of found) {
      if (check.verdict === 'right') continue;
      if (kernel.body.kind !== 'contract') return undefined;
      const problem = contractProblem(kernel, kernel.body);
      const key = scheduleKey(problem, own);
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
async function withoutOne(
  facts: DeviceFacts,
  attempted: (attempt: Attempt) => Promise<readonly Found[]>,
): Promise<Attempt | undefined> {
  for (const feature of optionalFeatures(facts)) {
    const attempt: Attempt = { avoid: [feature], schedules: new Map() };
    if (areRight(await attempted(attempt))) return attempt;
  }
  return undefined;
}

async function checkAttempt(
  device: Device,
  { inputs, scalars }: Run,
  { question: { graph, target, options, casts }, facts, precision }: Asked,
  { avoid, schedules }: Attempt,
  onProgress: OnKernel | undefined,
): Promise<readonly Found[]> {
  const own = avoid.length === 0 ? target : withPrecision(targetOf(withoutFeatures(facts, avoid)), precision);
  const pinned: typeof options.schedules = (problem) =>
    schedules.get(scheduleKey(problem, device.facts)) ?? options.schedules?.(problem);
  const compiled: CompiledGraph = loadedCompiler().compileGraph(graph, own, {
    ...options,
    schedules: pinned,
    inspect: true,
  });
  const { program } = compiled;
  const held: Resident[] = [];
  try {
    for (const [i, input] of inputs.entries()) {
      const dtype = casts[i];
      const memory = (dtype === undefined ? input : input.cast(dtype)).on(device)!;
      const isOverwritten = program.donated.some(({ input: donated }) => donated === i);
      // Values of fewer elements than the program has room for lie at the beginning of its buffers.
      const { bytes } = program.buffers[program.inputs[i]!]!;
      const isShort = memory.buffer.bytes < bytes;
      held.push(isShort ? withRoom(memory, bytes) : isOverwritten ? copied(memory) : memory.share());
    }
    const buffers = held.map(({ buffer }) => buffer);
    return await checkKernels({ device, compiled, inputs: buffers, scalars, precision, onProgress });
  } finally {
    for (const memory of held) memory.release();
  }
}
