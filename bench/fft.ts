// Fourier transforms beside those on npm, in one process and by turns, so that whatever else the
// machine does meets all of them. See --help.

import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import * as sn from '../src/index.ts';
import { table } from '../src/table.ts';
import { clock } from './clock.ts';
import { calls, devicesOf, functions, programs } from './fft/ours.ts';
import { packages, peersIn, type Contender } from './fft/peers.ts';

const help = `usage: npx tsx bench/fft.ts [options]

Complex transforms of 32 bits, input and output in memory of who transforms. Ours are the functions of the kernels alone, as the peers' are
called; programs of a device, by one thread and by two; and calls of a compiled function. The peers are installed first:
npm install --no-save ${packages.join(' ')}
Each round runs everybody for about two milliseconds, after one run that is not timed. Times are the best of all rounds, in µs. The ratio is the fastest peer's time
over that of our kernels, best against best, and the median over rounds: above 1, ours are faster. Progress goes to stderr.

  --sizes LIST    lines x points, e.g. 1x1024,1000x1023 (default: all that docs/fft.md has)
  --seconds N     for a size (default 4)
  --peers DIR     where the packages are installed (default: here)
  --cpu           count what this process has had of the processors instead of the clock's time: what other programs do beside it is left
                  out, and what two threads do is added up
  --json          one line of JSON a size on stdout
  --help          this text`;

const allSizes = [
  ...Array.from({ length: 11 }, (_, i) => `1x${2 ** (10 + i)}`),
  '64x1024',
  '64x4096',
  '1000x1023',
].join();

interface Result {
  readonly size: string;
  /** Best time of each contender, µs. */
  readonly us: Readonly<Record<string, number>>;
  readonly fastestPeer: string;
  readonly ratio: number;
  readonly medianRatio: number;
}

const { values } = parseArgs({
  options: {
    sizes: { type: 'string', default: allSizes },
    seconds: { type: 'string', default: '4' },
    peers: { type: 'string', default: fileURLToPath(new URL('..', import.meta.url)) },
    cpu: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

const now = clock(values.cpu);

function secondsOf(run: () => void, times: number): number {
  const start = now();
  for (let i = 0; i < times; i++) run();
  return (now() - start) / 1000 / times;
}

const median = (list: readonly number[]): number =>
  list.toSorted((x, y) => x - y)[Math.floor(list.length / 2)]!;

/** Throws where a contender's results are not those of the first. */
async function checkSame(all: readonly Contender[], size: string): Promise<void> {
  const wanted = await all[0]!.output();
  const scale = Math.sqrt(wanted.reduce((sum, x) => sum + x * x, 0) / wanted.length);
  for (const one of all) {
    const found = await one.output();
    const off = wanted.reduce((most, x, i) => Math.max(most, Math.abs(x - found[i]!)), 0);
    if (!(off <= 1e-4 * scale)) throw new Error(`${one.name} gives something else for ${size}`);
  }
}

/** Everybody by turns, once their code has been optimised; best times and those of every round. */
async function timed(all: readonly Contender[], seconds: number): Promise<Map<Contender, number[]>> {
  const times = new Map<Contender, number[]>();
  const turns = new Map<Contender, number>();
  const alone = new Map<Contender, number>();
  for (const one of all) {
    const until = performance.now() + 200;
    let best = Infinity;
    for (let i = 0; i < 30 || performance.now() < until; i++) {
      best = Math.min(
        best,
        secondsOf(() => one.run(), 1),
      );
      if (performance.now() > until + 2000) break;
    }
    turns.set(one, Math.max(1, Math.round(0.002 / Math.max(best, 1e-7))));
    alone.set(one, best);
    times.set(one, []);
    // Optimised code comes from another thread.
    await new Promise((resolve) => setTimeout(resolve, 30));
  }
  const until = performance.now() + 1000 * seconds;
  // Who takes ten times as long as the fastest has three rounds.
  const quickest = Math.min(...alone.values());
  for (let round = 0; round < 7 || performance.now() < until; round++)
    for (const one of all) {
      if (round >= 3 && alone.get(one)! > 10 * quickest) continue;
      // What others left in the caches is theirs.
      one.run();
      times.get(one)!.push(secondsOf(() => one.run(), turns.get(one)!));
    }
  return times;
}

async function measure(
  size: string,
  seconds: number,
  make: (n: number, lines: number, x: Float32Array<ArrayBuffer>) => Promise<readonly Contender[]>,
  ours: number,
): Promise<Result> {
  const [lines, n] = size.split('x').map(Number);
  if (lines === undefined || n === undefined || !(lines * n >= 1)) throw new Error(`${size} is no size`);
  const x = Float32Array.from({ length: 2 * n * lines }, () => Math.random() - 0.5);
  const all = await make(n, lines, x);
  try {
    all.forEach((one) => one.run());
    await checkSame(all, size);
    const times = await timed(all, seconds);
    const best = new Map([...times].map(([one, list]) => [one, Math.min(...list)]));
    const peers = all.slice(ours);
    const fastest = peers.reduce((first, one) => (best.get(one)! < best.get(first)! ? one : first));
    const own = times.get(all[0]!)!;
    const rounds = times.get(fastest)!.map((time, round) => time / own[round]!);
    return {
      size,
      us: Object.fromEntries([...best].map(([one, time]) => [one.name, 1e6 * time])),
      fastestPeer: fastest.name,
      ratio: best.get(fastest)! / best.get(all[0]!)!,
      medianRatio: median(rounds),
    };
  } finally {
    all.forEach((one) => one.free());
  }
}

if (values.help) console.log(help);
else {
  const peers = await peersIn(values.peers);
  const devices = await devicesOf([1, 2]);
  sn.setDevice('wasm:1');
  const results: Result[] = [];
  for (const size of values.sizes.split(',')) {
    console.error(`${size} …`);
    const result = await measure(
      size,
      Number(values.seconds),
      async (n, lines, x) => [
        functions(n, lines, x),
        ...[...devices].map(([threads, device]) => programs(device, threads, n, lines, x)),
        await calls(n, lines, x),
        ...peers.flatMap((peer) => peer(n, lines, x) ?? []),
      ],
      devices.size + 2,
    );
    results.push(result);
    if (values.json) console.log(JSON.stringify(result));
  }
  if (!values.json) {
    const names = [...new Set(results.flatMap(({ us }) => Object.keys(us)))];
    const rows = results.map(({ size, us, ratio, medianRatio }) => [
      size,
      ...names.map((name) => (us[name] === undefined ? '' : us[name].toFixed(1))),
      ratio.toFixed(2),
      medianRatio.toFixed(2),
    ]);
    console.log(table(['lines x points', ...names, 'ratio', 'median'], rows));
  }
  for (const device of devices.values()) await device.destroy();
  await sn.setDevice(undefined);
}
