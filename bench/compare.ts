// The timed workloads beside other libraries: runs the driver of a folder with their runners,
// Sinter among them, and prints how many times as fast Sinter is as the fastest of the others. See
// --help.

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { explainFor } from '../src/explain/explain.ts';
import { gpuTarget, softwareTarget, wasmTarget, type Target } from '../src/schedule/target.ts';
import { timedWorkloads } from '../src/workloads/timed/workloads.ts';
import { compare, comparisonTable, geometricMean, ours, type Counted } from './compare/comparison.ts';
import { driverIn, runDriver } from './compare/driver.ts';
import { count } from './options.ts';

/** What can be compared: our runner on a device, and other libraries on the same one, by the names that the driver knows them by. */
export const devices: Readonly<
  Record<string, { readonly ours: string; readonly rivals: readonly string[] }>
> = {
  webgpu: { ours, rivals: ['jax-webgpu', 'ort-node-webgpu', 'ort-web-webgpu', 'tfjs-webgpu'] },
  wasm: { ours: 'ours-wasm-1t', rivals: ['jax-wasm-1t', 'ort-web-wasm-1t', 'tfjs-wasm-1t'] },
};

const help = `usage: npx tsx bench/compare.ts DIR [options]

Runs DIR/driver.mjs, which measures libraries by turns, each workload in a process of its own; Sinter is bench/peer.mjs there, so
\`npm run build\` comes first. The ratio is the fastest other library over Sinter; above 1, Sinter is faster. Progress goes to stderr.

  --device NAME     ${Object.keys(devices).join(' or ')} (one thread); webgpu by default
  --workload NAMES  these only, as the driver names them, e.g. W1,W6
  --against NAMES   these libraries only: ${Object.values(devices)
    .flatMap(({ rivals }) => rivals)
    .join(', ')}
  --repeat N        rounds over all workloads; the best is kept (default 1)
  --timeout S       seconds that one library may take for one workload; the driver's limit by default
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
      workload: { type: 'string' },
      against: { type: 'string' },
      repeat: { type: 'string', default: '1' },
      timeout: { type: 'string' },
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
  const { ours: own, rivals } = devices[device!]!;
  const workloads = chosenOf('workload', values.workload, Object.keys(names));
  const against = chosenOf('against', values.against, rivals);
  const repeat = count('repeat', values);
  const timeout = values.timeout === undefined ? undefined : Number(values.timeout);
  if (timeout !== undefined && !(timeout > 0))
    throw new Error(`--timeout: expects a number of seconds above 0, got '${values.timeout}'`);
  const driver = driverIn(folder);
  const counted = new Map(
    workloads.map((workload) => [workload, countsOf(names[workload]!, targets[device!]!)]),
  );
  const results = await runDriver(
    driver,
    { peers: [own, ...against], workloads, repeat, ...(timeout !== undefined && { timeout }) },
    note,
  );
  const compared = compare(workloads, results, own);
  const mean = geometricMean(compared.flatMap(({ ratio }) => ratio ?? []));
  if (values.json === true) {
    const rows = compared.map((one) => ({ ...one, ...counted.get(one.workload) }));
    line(JSON.stringify({ workloads: rows, geometricMean: mean }));
    return;
  }
  line(comparisonTable(counted, compared));
  if (mean !== undefined) line(`\ngeometric mean of the ratios: ${mean.toFixed(2)}`);
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
};

/** Kernels and bytes of one call, on the device that is measured. */
function countsOf(name: string, target: Target): Counted {
  const workload = timedWorkloads.find((one) => one.name === name);
  if (workload === undefined) throw new Error(`there is no workload ${name}`);
  const { kernels, bytes } = explainFor(target, workload.fn, ...workload.args()).totals;
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
