// How long after a page is opened a network has its first result, beside ONNX Runtime Web in the same browser: cold caches, visits by
// turns. `npx tsx bench/page-load.ts --help` says what can be chosen.

import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { showBytes, table } from '../src/table.ts';
import { chosen, count } from './options.ts';
import { missingNetworks, networks, type Network } from '../test/support/onnx/networks.ts';
import {
  hostOf,
  machines,
  sides,
  type Machine,
  type Side,
  type Visit,
  type VisitOptions,
} from './page-visit.ts';

/** A network on one machine, run by both. */
export interface Comparison {
  readonly network: Network;
  readonly machine: Machine;
  readonly threads: number;
  /** The visit of each that had its result first: on a shared machine noise only adds. */
  readonly best: Readonly<Partial<Record<Side, Visit>>>;
  /** Time to the first result: ONNX Runtime Web's over ours, and the same for later inferences. */
  readonly ratio: number | undefined;
  readonly laterRatio: number | undefined;
  /** What did not run, or computed something else. */
  readonly problems: readonly string[];
}

export interface Plan extends Omit<VisitOptions, 'machine'> {
  readonly machines: readonly Machine[];
  readonly repeat: number;
  readonly note?: (text: string) => void;
}

/** Visits both pages by turns. */
export async function comparePages(network: Network, plan: Plan): Promise<Comparison[]> {
  const host = await hostOf(network);
  try {
    const comparisons: Comparison[] = [];
    for (const machine of plan.machines) {
      const best: Partial<Record<Side, Visit>> = {};
      const problems = new Set<string>();
      for (let i = 0; i < plan.repeat; i++) {
        for (const side of sides) {
          plan.note?.(`${network} on ${machine}: ${side}, visit ${i + 1} of ${plan.repeat}`);
          try {
            const visit = await host.visit(side, { ...plan, machine });
            if (!(visit.error < 1e-3))
              problems.add(`${side}: its result is off by ${visit.error.toPrecision(2)}`);
            if (visit.total < (best[side]?.total ?? Infinity)) best[side] = visit;
          } catch (error) {
            problems.add(`${side}: ${(error as Error).message.split('\n')[0]}`);
          }
        }
      }
      const { sinter: own, 'ort-web': other } = best;
      comparisons.push({
        network,
        machine,
        threads: machine === 'wasm' ? plan.threads : 1,
        best,
        ratio: own && other && other.total / own.total,
        laterRatio: own && other && other.later / own.later,
        problems: [...problems],
      });
    }
    return comparisons;
  } finally {
    await host.close();
  }
}

export function pageTable(comparisons: readonly Comparison[]): string {
  const ms = (value: number): string => value.toFixed(value < 100 ? 1 : 0);
  const head = ['network', 'on', 'page', 'sent', 'files', 'ready', 'first', 'to first result', 'later'];
  const rows = comparisons.flatMap(({ network, machine, threads, best, ratio, laterRatio }) => {
    const on = machine === 'wasm' ? `wasm, threads: ${threads}` : machine;
    const visits = sides.flatMap((side) => {
      const visit = best[side];
      if (visit === undefined) return [[network, on, side, ...Array<string>(6).fill('–')]];
      const { bytes, requests, ready, first, total, later } = visit;
      return [
        [network, on, side, showBytes(bytes), String(requests), ...[ready, first, total, later].map(ms)],
      ];
    });
    const times = (value: number | undefined): string => (value === undefined ? '–' : `${value.toFixed(2)}x`);
    return [...visits, ['', '', 'ours is faster', '', '', '', '', times(ratio), times(laterRatio)]];
  });
  const problems = comparisons.flatMap(({ network, machine, problems: found }) =>
    found.map((problem) => `${network} on ${machine}: ${problem}`),
  );
  return [`${table(head, rows, [3, 4, 5, 6, 7, 8])}\ntimes in ms`, ...problems].join('\n');
}

const help = `usage: npx tsx bench/page-load.ts [options]

  --model LIST      of ${networks.join(', ')}; all by default
  --target LIST     of ${machines.join(', ')}; wasm by default
  --threads N       on wasm; 2 by default
  --repeat N        visits of each page; 3 by default
  --later N         inferences after the first; 10 by default
  --megabits N      throughput of the line between server and browser; the loopback's by default
  --latency MS      its latency; 40 where --megabits is given
  --json            figures as JSON`;

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      model: { type: 'string', default: networks.join() },
      target: { type: 'string', default: 'wasm' },
      threads: { type: 'string', default: '2' },
      repeat: { type: 'string', default: '3' },
      later: { type: 'string', default: '10' },
      megabits: { type: 'string' },
      latency: { type: 'string', default: '40' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return console.log(help);
  if (missingNetworks !== undefined) throw new Error(missingNetworks);
  const [threads, repeat, later] = [
    count('threads', values),
    count('repeat', values),
    count('later', values),
  ];
  const line = {
    megabits: values.megabits === undefined ? 0 : count('megabits', values),
    latency: count('latency', values),
  };
  const plan: Plan = {
    machines: chosen('target', values.target, machines),
    threads,
    repeat,
    later,
    ...(values.megabits !== undefined && { line }),
    note: (text) => void process.stderr.write(`${text}\n`),
  };
  const comparisons: Comparison[] = [];
  for (const network of chosen('model', values.model, networks))
    comparisons.push(...(await comparePages(network, plan)));
  console.log(values.json ? JSON.stringify(comparisons) : pageTable(comparisons));
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href)
  await main().catch((error: unknown) => {
    console.error(`${(error as Error).message}\n\n${help}`);
    process.exitCode = 2;
  });
