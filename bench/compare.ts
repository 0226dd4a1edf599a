// The timed workloads beside other libraries: runs the driver of a folder with their runners,
// Sinter among them, and prints how many times as fast Sinter is as the fastest of the others. See
// --help.

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { explainFor } from '../src/explain/explain.ts';
import { cTarget, gpuTarget, softwareTarget, wasmTarget, type Target } from '../src/schedule/target.ts';
import type { TimedWorkload } from '../src/workloads/timed/workload.ts';
import { timedWorkloads } from '../src/workloads/timed/workloads.ts';
import {
  compare,
  comparisonTable,
  geometricMean,
  ours,
  type Counted,
  type Result,
} from './compare/comparison.ts';
import { driverIn, runDriver } from './compare/driver.ts';
import { isPytorch, pytorchOn, runPytorch, workloadsOfPytorch } from './compare/pytorch.ts';
import { count } from './options.ts';

/** What is compared on a device: our runner, ours on other devices, and other libraries, by the names that the driver knows them by. */
interface Field {
  readonly ours: string;
  readonly beside: readonly string[];
  readonly rivals: readonly string[];
}

/** By the device's name and the number of threads, which WebGPU ignores. */
export const devices: Readonly<Record<string, (threads: number) => Field>> = {
  webgpu: () => ({
    ours,
    beside: [],
    rivals: ['jax-webgpu', 'ort-node-webgpu', 'ort-web-webgpu', 'tfjs-webgpu'],
  }),
  wasm: (threads) => ({
    ours: `ours-wasm-${threads}t`,
    beside: [],
    rivals: ['jax-wasm', 'ort-web-wasm', 'tfjs-wasm'].map((name) => `${name}-${threads}t`),
  }),
  native: (threads) => ({
    ours: `ours-native-${threads}t`,
    beside: [`ours-wasm-${threads}t`],
    rivals: [`ort-node-${threads}t`, pytorchOn(threads)],
  }),
};

const help = `usage: npx tsx bench/compare.ts DIR [options]

Runs DIR/driver.mjs, which measures libraries by turns, each workload in a process of its own; Sinter is bench/peer.mjs there, so
\`npm run build\` comes first. The ratio is the fastest other library over Sinter; above 1, Sinter is faster. Progress goes to stderr.
On \`native\`, PyTorch (bench/train-torch.py) takes its turn too, and Sinter on WebAssembly.

  --device NAME     ${Object.keys(devices).join(', ')}; webgpu by default
  --threads N       threads of every library on wasm and native; 1 by default
  --workload NAMES  these only, as the driver names them, e.g. W1,W6
  --against NAMES   these libraries only: ${Object.values(devices)
    .flatMap((field) => field(1).rivals)
    .join(', ')}
  --repeat N        rounds over all workloads; the best is kept (default 1)
  --least           compares the least of all calls, in place of the lowest median of a round
  --timeout S       seconds that one library may take for one workload; the driver's limit by default
  --python PATH     python3 by default: one that has torch
  --json            the result as JSON on stdout
  --help            this text`;

/** Workloads of `sinter bench` by the names that the driver knows them by. */
const names = JSON.parse(readFileSync(new URL('peer/names.json', import.meta.url), 'utf8')) as Readonly<
  Record<string, string>
>;

/**
 * Runs the command with these arguments; what it prints goes to `line`, progress to `note`. Rejects
 * at mistakes.
 */
export async function compareLibraries(
  args: readonly string[],
  line: (text: string) => void,
  note: (text: string) => void,
): Promise<void> {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      device: { type: 'string', default: 'webgpu' },
      threads: { type: 'string', default: '1' },
      workload: { type: 'string' },
      against: { type: 'string' },
      repeat: { type: 'string', default: '1' },
      least: { type: 'boolean', default: false },
      timeout: { type: 'string' },
      python: { type: 'string', default: 'python3' },
      json: { type: 'boolean' },
      help: { type: 'boolean' },
    },
  });
  if (values.help === true) {
    line(help);
    return;
  }
  const [folder, extra] = positionals;
  if (folder === undefined || extra !== undefined) throw new Error(`expected one folder\n\n${help}`);
  const [device] = chosenOf('device', values.device, Object.keys(devices));
  const { ours: own, beside, rivals } = devices[device!]!(count('threads', values));
  const workloads = chosenOf('workload', values.workload, Object.keys(names));
  const against = chosenOf('against', values.against, rivals);
  const repeat = count('repeat', values);
  const timeout = values.timeout === undefined ? undefined : Number(values.timeout);
  if (timeout !== undefined && !(timeout > 0))
    throw new Error(`--timeout: expects a number of seconds above 0, got '${values.timeout}'`);
  const driver = driverIn(folder);
  const counted = new Map(
    workloads.map((workload) => [workload, countsOf(workloadOf(workload), targets[device!]!)]),
  );
  const [inPython, inDriver] = [against.filter(isPytorch), against.filter((name) => !isPytorch(name))];
  const run = { peers: [own, ...beside, ...inDriver], ...(timeout !== undefined && { timeout }) };
  const results =
    inPython.length === 0
      ? await runDriver(driver, { ...run, workloads, repeat }, note)
      : await byTurns(workloads, repeat, async (workload) => [
          ...(await runDriver(driver, { ...run, workloads: [workload], repeat: 1 }, note)),
          ...(await inPytorch(values.python, inPython, workload, note)),
        ]);
  const measure = values.least ? 'least' : 'median';
  const compared = compare(workloads, results, own, measure);
  const mean = geometricMean(compared.flatMap(({ ratio }) => ratio ?? []));
  if (values.json === true) {
    const rows = compared.map((one) => ({ ...one, ...counted.get(one.workload) }));
    line(JSON.stringify({ workloads: rows, geometricMean: mean }));
    return;
  }
  line(comparisonTable(counted, compared, measure));
  if (mean !== undefined) line(`\ngeometric mean of the ratios: ${mean.toFixed(2)}`);
}

/** What `turn` gives for each workload, in so many rounds over all of them. */
async function byTurns(
  workloads: readonly string[],
  rounds: number,
  turn: (workload: string) => Promise<readonly Result[]>,
): Promise<Result[]> {
  const results: Result[] = [];
  for (let round = 0; round < rounds; round++)
    for (const workload of workloads) results.push(...(await turn(workload)));
  return results;
}

/** A workload in PyTorch; nothing where it has no such workload. */
async function inPytorch(
  python: string,
  peers: readonly string[],
  workload: string,
  note: (text: string) => void,
): Promise<Result[]> {
  const known = await workloadsOfPytorch(python);
  const ours = workloadOf(workload);
  const results: Result[] = [];
  for (const peer of known.has(ours.name) ? peers : []) {
    const result = await runPytorch(python, peer, workload, ours);
    results.push(result);
    note(`${workload} ${peer} ${result.error ?? `${result.median_ms} ms (min ${result.min_ms})`}`);
  }
  return results;
}

function workloadOf(called: string): TimedWorkload {
  const name = names[called];
  const workload = timedWorkloads.find((one) => one.name === name);
  if (workload === undefined) throw new Error(`there is no workload ${name ?? called}`);
  return workload;
}

/** A comma-separated list of names out of `known`; all of them without one. */
function chosenOf(option: string, list: string | undefined, known: readonly string[]): readonly string[] {
  const chosen = list?.split(',').map((name) => name.trim()) ?? known;
  const strange = chosen.find((name) => !known.includes(name));
  if (strange === undefined) return chosen;
  throw new Error(`--${option}: there is no '${strange}': expected some of ${known.join(', ')}`);
}

const targets: Readonly<Record<string, Target>> = {
  webgpu: process.env['BENCH_HARDWARE_GPU'] ? gpuTarget : softwareTarget,
  wasm: wasmTarget,
  native: cTarget,
};

/** Kernels and bytes of one call, on the device that is measured. */
function countsOf({ name, fn, args }: TimedWorkload, target: Target): Counted {
  const { kernels, bytes } = explainFor(target, fn, ...args()).totals;
  return { name, kernels, bytes };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    await compareLibraries(process.argv.slice(2), console.log, console.error);
  } catch (error) {
    console.error((error as Error).message);
    process.exitCode = 1;
  }
}
