// Singular value decompositions of one matrix beside ml-matrix's, in turns, so that what else the machine does meets both:
// `npm install --no-save ml-matrix && npx tsx bench/svd.ts [side] [rounds] [cpu]`. Prints a row of a table each: the median
// and the best time. With `cpu`, time is what this process has had of the processors, on one thread.

import * as sn from '../src/index.ts';
import { clock } from './clock.ts';

interface Peer {
  readonly Matrix: new (rows: readonly (readonly number[])[]) => object;
  readonly SingularValueDecomposition: new (matrix: object) => object;
}

const side = Number(process.argv[2] ?? 256);
const rounds = Number(process.argv[3] ?? 7);
const now = clock(process.argv[4] === 'cpu');
sn.setDevice(process.argv[4] === 'cpu' ? 'wasm:1' : 'wasm');

const data = Float64Array.from({ length: side * side }, () => Math.random());
const name = 'ml-matrix';
const peer = (await import(name).catch(() => undefined)) as Peer | undefined;
if (peer === undefined) throw new Error('no ml-matrix here: npm install --no-save ml-matrix');
const rows = Array.from({ length: side }, (_, i) => Array.from(data.slice(i * side, (i + 1) * side)));
const theirs = new peer.Matrix(rows);

function ours(dtype: 'f32' | 'f64'): () => Promise<void> {
  const a = sn.reshape(sn.tensor(data, { dtype }), [side, side]);
  const decomposed = sn.compile((x: sn.Tensor) => sn.linalg.svd(x));
  return async () => {
    for (const part of decomposed(a)) await part.data();
  };
}

const runs: Readonly<Record<string, () => unknown>> = {
  'sinter, wasm, f32': ours('f32'),
  'sinter, wasm, f64': ours('f64'),
  'ml-matrix, f64': () => new peer.SingularValueDecomposition(theirs),
};
const times = new Map<string, number[]>(Object.keys(runs).map((each) => [each, []]));
for (let round = 0; round <= rounds; round++) {
  for (const [each, run] of Object.entries(runs)) {
    const start = now();
    await run();
    // The first round compiles.
    if (round > 0) times.get(each)!.push(now() - start);
  }
}
const median = (list: readonly number[]): number =>
  list.toSorted((x, y) => x - y)[Math.floor(list.length / 2)]!;
const theirTime = median(times.get('ml-matrix, f64')!);
const theirBest = Math.min(...times.get('ml-matrix, f64')!);
for (const [each, list] of times) {
  const [time, best] = [median(list), Math.min(...list)];
  const ratios = [theirTime / time, theirBest / best].map((ratio) => `${ratio.toFixed(1)}x`);
  console.log(`| ${each} | ${time.toFixed(1)} ms | ${ratios[0]} | ${best.toFixed(1)} ms | ${ratios[1]} |`);
}
