// Matrix factorisations beside our own product of matrices, by turns, so that whatever else the machine
// does meets both: how much of the product's rate of arithmetic they reach. See --help.

import { parseArgs } from 'node:util';
import * as sn from '../src/index.ts';
import { table } from '../src/table.ts';
import { clock } from './clock.ts';

const help = `usage: npx tsx bench/linalg.ts [options]

Compiled calls on one matrix, or a stack of them, by the WebAssembly device; results stay there. Each round runs everybody once; times are medians in ms. A rate is
the arithmetic that the algorithm is counted with (of n x n matrices: cholesky n^3/3, lu 2n^3/3, geqrf 4n^3/3, qr 8n^3/3 for it makes Q as well,
solveTriangular n^3 with n right-hand sides) by its time; the ratio is that rate over the rate of the product (2n^3) of the same shape in the
same round, the median over rounds, and likewise over that of the product of 512 x 512; "best" are those of the best times. Progress goes to stderr.

  --sizes LIST     matrices x rows, e.g. 1x512,256x64 (default: 1x64,1x128,1x256,1x512,1x1024,256x64)
  --dtype D        f32 (default) or f64
  --threads N      workers of the device (default 1)
  --seconds N      for a size (default 6)
  --cpu            count the processor's time of this process instead of the clock's: for one thread, where other programs run as well
  --json           one line of JSON a size on stdout
  --help           this text`;

const { values } = parseArgs({
  options: {
    sizes: { type: 'string', default: '1x64,1x128,1x256,1x512,1x1024,256x64' },
    dtype: { type: 'string', default: 'f32' },
    threads: { type: 'string', default: '1' },
    seconds: { type: 'string', default: '6' },
    cpu: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

const now = clock(values.cpu);

interface Contender {
  readonly name: string;
  readonly flops: number;
  readonly run: () => Promise<void>;
}

interface Figure {
  readonly name: string;
  readonly ms: number;
  readonly gflops: number;
  readonly ofProduct: number;
  readonly of512: number;
  /** Of the best times instead of medians, which what else the machine does meets least. */
  readonly bestMs: number;
  readonly bestOfProduct: number;
  readonly bestOf512: number;
}

const median = (list: readonly number[]): number =>
  list.toSorted((x, y) => x - y)[Math.floor(list.length / 2)]!;

/** A compiled call whose results stay on the device. */
function called(
  f: (...all: sn.Tensor[]) => sn.Tensor | readonly sn.Tensor[],
  ...all: sn.Tensor[]
): () => Promise<void> {
  const compiled = sn.compile(f);
  return async () => {
    const results = [compiled(...all)].flat() as sn.Tensor[];
    await sn.synchronize();
    for (const one of results) one.dispose();
  };
}

function contenders(lines: number, n: number, dtype: 'f32' | 'f64'): readonly Contender[] {
  const x = sn.randn([lines, n, n], { dtype });
  const y = sn.randn([lines, n, n], { dtype });
  const spd = sn.add(sn.div(sn.matmul(x, sn.transpose(x, 1, 2)), n), sn.eye(n, n, { dtype }));
  const triangle = sn.add(sn.div(sn.tril(y), n), sn.eye(n, n, { dtype }));
  const each = lines * n ** 3;
  return [
    { name: 'matmul', flops: 2 * each, run: called((a, b) => sn.matmul(a, b), x, y) },
    { name: 'cholesky', flops: each / 3, run: called((a) => sn.cholesky(a), spd) },
    { name: 'lu', flops: (2 * each) / 3, run: called((a) => sn.linalg.luFactor(a), x) },
    { name: 'geqrf', flops: (4 * each) / 3, run: called((a) => sn.geqrf(a), x) },
    { name: 'qr', flops: (8 * each) / 3, run: called((a) => sn.qr(a), x) },
    {
      name: 'solveTriangular',
      flops: each,
      run: called((l, b) => sn.linalg.solveTriangular(l, b, { upper: false }), triangle, y),
    },
    {
      name: 'solveTriangular, upper',
      flops: each,
      run: called(
        (u, b) => sn.linalg.solveTriangular(u, b, { upper: true }),
        sn.transpose(triangle, 1, 2),
        y,
      ),
    },
  ];
}

/** Everybody by turns; a round's times in ms, of each. */
async function timed(all: readonly Contender[], seconds: number): Promise<readonly (readonly number[])[]> {
  // Code is compiled, and optimised while it runs.
  for (const { run } of all) for (let i = 0; i < 4; i++) await run();
  const rounds: number[][] = [];
  const until = performance.now() + 1000 * seconds;
  while (rounds.length < 5 || performance.now() < until) {
    const round: number[] = [];
    for (const { run } of all) {
      const start = now();
      await run();
      round.push(now() - start);
    }
    rounds.push(round);
  }
  return rounds;
}

async function measure(size: string, dtype: 'f32' | 'f64', seconds: number): Promise<readonly Figure[]> {
  const [lines, n] = size.split('x').map(Number);
  if (lines === undefined || n === undefined || !(lines * n >= 1)) throw new Error(`${size} is no size`);
  const whole = contenders(1, 512, dtype)[0]!;
  const all = [...contenders(lines, n, dtype), whole];
  const rounds = await timed(all, seconds);
  const rates = rounds.map((round) => round.map((ms, i) => all[i]!.flops / ms / 1e6));
  const best = all.map((_, i) => Math.max(...rates.map((round) => round[i]!)));
  return all.slice(0, -1).map(({ name, flops }, i) => ({
    name,
    bestMs: flops / best[i]! / 1e6,
    bestOfProduct: best[i]! / best[0]!,
    bestOf512: best[i]! / best[all.length - 1]!,
    ms: median(rounds.map((round) => round[i]!)),
    gflops: median(rates.map((round) => round[i]!)),
    ofProduct: median(rates.map((round) => round[i]! / round[0]!)),
    of512: median(rates.map((round) => round[i]! / round[all.length - 1]!)),
  }));
}

if (values.help) console.log(help);
else {
  const { dtype } = values;
  if (dtype !== 'f32' && dtype !== 'f64') throw new Error(`--dtype ${dtype}: f32 or f64`);
  sn.setDevice(`wasm:${values.threads}`);
  const head = ['matrices x rows', 'call', 'ms', 'Gflop/s', 'of product', 'of 512 x 512'];
  head.push('best ms', 'best of product', 'best of 512 x 512');
  const rows: string[][] = [];
  for (const size of values.sizes.split(',')) {
    console.error(`${size} …`);
    const figures = await measure(size, dtype, Number(values.seconds));
    if (values.json) console.log(JSON.stringify({ size, dtype, figures }));
    const percent = (share: number): string => `${(100 * share).toFixed(0)} %`;
    for (const { name, ms, gflops, ofProduct, of512, bestMs, bestOfProduct, bestOf512 } of figures)
      rows.push(
        [size, name, ms.toFixed(3), gflops.toFixed(1), percent(ofProduct), percent(of512)].concat([
          bestMs.toFixed(3),
          percent(bestOfProduct),
          percent(bestOf512),
        ]),
      );
  }
  if (!values.json) console.log(table(head, rows));
  await sn.setDevice(undefined);
}
