// `sinter bench`: times workloads on a device of this machine. Takes names of workloads and of a
// device; prints times, kernels and bytes of each, and how long a replayed run keeps the host.

import { SinterError } from '../../errors.ts';
import { explainFor } from '../../explain/explain.ts';
import { setDevice } from '../../index.ts';
import { targetOf, type Target } from '../../schedule/target.ts';
import { showBytes, table } from '../../table.ts';
import { wholeDevice } from '../../tensor/device.ts';
import type { TimedWorkload } from '../../workloads/timed/workload.ts';
import { timedWorkloads } from '../../workloads/timed/workloads.ts';
import { decodeName, decodeTable, measureDecode, type DecodeRates } from './decode.ts';
import { measureReplay, replaySizes, replayTable, type Replay } from './replay.ts';
import { defaultEffort, measure, type Measured } from './measure.ts';
import { text, UsageError, wholeNumber, type Command, type Output } from '../command.ts';

/** What one call of a workload runs. */
interface Budget {
  readonly workload: string;
  readonly kernels: number;
  readonly bytes: number;
}

/** What `--json` prints. */
export interface BenchResult {
  readonly device: string;
  readonly description: string;
  /** Times in ms. */
  readonly workloads: readonly (Budget & Measured)[];
  /** Times in µs. */
  readonly replay: readonly Replay[];
  /** Of `--workload decode`. */
  readonly decode?: DecodeRates;
}

/** The replayed programs, as a name to choose them by. */
const replayName = 'replay';
const replayCalls = 400;

export const benchCommand: Command = {
  name: 'bench',
  about: 'time the workloads on a device of this machine',
  details:
    'Times the workloads. Inputs are on the device, results are checked against float64 references, and each call is awaited.\n' +
    '`first` is the first call, including compilation. Earlier workloads have warmed up the compiler, so to quote a\n' +
    'figure, run a workload alone. `replay` is the cost of a call for the host: the time from calling a\n' +
    'compiled function of 1 to 300 kernels to its return. `decode` writes with a language model, the one of --model or one\n' +
    'with random weights: tokens a second, and the share of the bandwidth of copies that reading the weights takes.',
  options: {
    device: { type: 'string', value: 'NAME', about: 'see `sinter devices`; the best one by default' },
    workload: {
      type: 'string',
      value: 'NAMES',
      about: 'time these only, e.g. gelu,softmax, replay or decode; an unknown name lists them',
    },
    model: {
      type: 'string',
      value: 'MODEL',
      about: 'the model that `decode` writes with: a GGUF file or a folder',
    },
    repeat: { type: 'string', value: 'N', about: 'rounds over all workloads; the best counts (default 1)' },
  },
  examples: [
    'sinter bench --device webgpu:software',
    'sinter bench --workload gptBlockForward --json',
    'sinter bench --device wasm:1 --workload matmul512,replay --repeat 2',
    'sinter bench --workload decode --model model.gguf --json',
  ],
  run: async (values, output) => {
    const { chosen, withReplay, withDecode } = chosenWorkloads(text(values, 'workload'));
    const model = text(values, 'model');
    if (model !== undefined && !withDecode) throw new UsageError('--model: expects --workload decode');
    const repeat = wholeNumber(values, 'repeat', 1, 1);
    const name = text(values, 'device');
    if (name !== undefined) setDevice(name);
    const { facts } = await wholeDevice();
    const budgets = chosen.map((workload) => budgetOf(workload, targetOf(facts)));
    const say = values['json'] === true ? output.note : output.line;
    say(`device   ${facts.name}: ${facts.description}\n`);

    const measured = await measureAll(chosen, repeat, output);
    const workloads = budgets.map((budget, i) => ({ ...budget, ...measured[i]! }));
    if (chosen.length > 0) say(measuredTable(budgets, measured));
    const replay: Replay[] = [];
    if (withReplay) {
      for (const kernels of replaySizes) {
        output.live(`replay of ${kernels} kernels`);
        replay.push(await measureReplay(kernels, replayCalls));
      }
      say(`\nhost time of a replayed run\n${replayTable(replay)}`);
    }
    let decode: DecodeRates | undefined;
    if (withDecode) {
      output.live('decode');
      decode = await measureDecode(model, repeat, (tokens) =>
        output.mark(`decode: ${tokens.toFixed(1)} tokens a second`),
      );
      say(`\n${decode.model}\n${decodeTable(decode)}`);
    }
    const { name: deviceName, description } = facts;
    const result: BenchResult = {
      device: deviceName,
      description,
      workloads,
      replay,
      ...(decode === undefined ? {} : { decode }),
    };
    if (values['json'] === true) output.line(JSON.stringify(result));
    const wrong = workloads.filter(({ ok }) => !ok).map(({ workload }) => workload);
    if (wrong.length > 0) {
      throw new SinterError('E_STATE', `bench: wrong results: ${wrong.join(', ')}`);
    }
  },
};

/** What a command line chooses. */
interface Chosen {
  readonly chosen: readonly TimedWorkload[];
  readonly withReplay: boolean;
  readonly withDecode: boolean;
}

/** What these names choose, comma separated: all but `decode`, which takes long, when there are none. */
function chosenWorkloads(names: string | undefined): Chosen {
  if (names === undefined) return { chosen: timedWorkloads, withReplay: true, withDecode: false };
  const wanted = names.split(',').map((name) => name.trim());
  const chosen = wanted.flatMap((name) => {
    if (name === replayName || name === decodeName) return [];
    const found = timedWorkloads.find((workload) => workload.name === name);
    if (found !== undefined) return [found];
    const width = Math.max(...timedWorkloads.map((workload) => workload.name.length));
    const known = timedWorkloads.map((workload) => `  ${workload.name.padEnd(width)}  ${workload.about}`);
    const problem = `there is no workload '${name}': expected ${replayName}, ${decodeName}, or some of`;
    throw new UsageError([problem, ...known].join('\n'));
  });
  return { chosen, withReplay: wanted.includes(replayName), withDecode: wanted.includes(decodeName) };
}

function budgetOf({ name, fn, args }: TimedWorkload, target: Target): Budget {
  const { kernels, bytes } = explainFor(target, fn, ...args()).totals;
  return { workload: name, kernels, bytes };
}

/**
 * Rounds over all workloads; of each the times of the round with the lowest median, the rest from
 * the first round.
 */
async function measureAll(
  chosen: readonly TimedWorkload[],
  repeat: number,
  output: Output,
): Promise<Measured[]> {
  const best: Measured[] = [];
  for (let round = 0; round < repeat; round++) {
    for (const [i, workload] of chosen.entries()) {
      output.live(`${workload.name}: ${workload.about}`);
      const now = await measure(workload, defaultEffort, round === 0);
      const before = best[i] ?? now;
      const { ms, runs } = now.ms.median < before.ms.median ? now : before;
      best[i] = { ...before, ms, runs };
      output.mark(`${workload.name}: ${now.ms.median.toFixed(2)} ms`);
    }
  }
  return best;
}

function showMs(ms: number): string {
  return ms.toFixed(ms < 1 ? 3 : ms < 100 ? 2 : 0);
}

function measuredTable(budgets: readonly Budget[], measured: readonly Measured[]): string {
  const head = ['workload', 'kernels', 'bytes', 'first ms', 'median ms', 'min', 'quartiles', 'runs', 'error'];
  const rows = measured.map(({ first, ms, runs, error, ok }, i) => [
    budgets[i]!.workload,
    String(budgets[i]!.kernels),
    showBytes(budgets[i]!.bytes),
    showMs(first),
    showMs(ms.median),
    showMs(ms.min),
    `${showMs(ms.lowerQuartile)}–${showMs(ms.upperQuartile)}`,
    String(runs),
    `${error.toExponential(1)}${ok ? '' : ' WRONG'}`,
  ]);
  return table(head, rows, [1, 2, 3, 4, 5, 6, 7, 8]);
}
