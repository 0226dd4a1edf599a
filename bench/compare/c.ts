// An ONNX model as C beside ONNX Runtime, on one thread and by turns in one process, with the portable kernels and with those of
// instruction sets. See --help.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { readTensor } from '../../src/onnx/weights.ts';
import { decode } from '../../src/onnx/wire.ts';
import type { Koffi } from '../../src/runtime/koffi.ts';
import { table } from '../../src/table.ts';
import { count } from '../options.ts';

const help = `usage: npx tsx bench/compare/c.ts DIR [options]

DIR has model.onnx, which takes one f32 and gives one, and input_0.pb and output_0.pb. The model is built by \`sinter build
--target c\`, once as it is and once with --isa, and compiled by \`make\`; \`npm run build\` comes first. Times are the least of the
rounds, in ms; the ratio is the time of ONNX Runtime by that of C.

  --rounds N   calls of each, by turns; 30 by default
  --isa LIST   instruction sets of the second build; avx512,avx2 by default
  --help       this text`;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: 'string', default: '30' },
    isa: { type: 'string', default: 'avx512,avx2' },
    help: { type: 'boolean', default: false },
  },
});
const [given] = positionals;
if (values.help || given === undefined) {
  console.log(help);
  process.exit(values.help ? 0 : 2);
}
const rounds = count('rounds', values);
const koffi = createRequire(import.meta.url)('koffi') as Koffi;
const cli = resolve(import.meta.dirname, '../../dist/cli/main.js');

/** Memory at a multiple of 64 bytes. */
function aligned(bytes: number): Uint8Array {
  const all = new Uint8Array(bytes + 64);
  return all.subarray((64 - (Number(koffi.address(all)) % 64)) % 64).subarray(0, bytes);
}

/** What the library reads by pointers: it has to live as long as this process. */
const kept: Uint8Array[] = [];

/** The model as a call from memory to memory. */
function compiled(folder: string, options: readonly string[]): (x: Float32Array, y: Float32Array) => void {
  const model = join(given!, 'model.onnx');
  execFileSync(process.execPath, [cli, 'build', model, '--target', 'c', '--out', folder, ...options]);
  const flags = options.length > 0 ? '-O3 -fPIC' : '-O3 -march=native -fPIC';
  execFileSync('make', ['-s', '-C', folder, `CFLAGS=${flags}`, 'libmodel.a']);
  const whole = ['-Wl,--whole-archive', join(folder, 'libmodel.a'), '-Wl,--no-whole-archive'];
  execFileSync('cc', ['-shared', '-o', join(folder, 'model.so'), ...whole, '-lm']);
  const library = koffi.load(join(folder, 'model.so'));
  const header = readFileSync(join(folder, 'model.h'), 'utf8');
  const bytesOf = (name: string): number => Number(new RegExp(`MODEL_${name}_BYTES (\\d+)`).exec(header)![1]);
  const init = library.func('int model_init(void *ctx, void *weights, size_t bytes)');
  const run = library.func('int model_run(void *ctx, void *x, void *y)');
  const weights = aligned(bytesOf('WEIGHTS'));
  weights.set(readFileSync(join(folder, 'model.bin')));
  // The context ends with a few pointers and numbers.
  const context = aligned(bytesOf('STATE') + bytesOf('ARENA') + 256);
  kept.push(weights, context);
  if (init(context, weights, weights.length) !== 0) throw new Error('the model was not initialized');
  return (x, y) => {
    if (run(context, x, y) !== 0) throw new Error('the call failed');
  };
}

function tensorIn(name: string): { readonly data: Float32Array; readonly shape: readonly number[] } {
  const { array } = readTensor(decode('Tensor', readFileSync(join(given!, name))));
  return { data: array.data as Float32Array, shape: array.shape };
}

const input = tensorIn('input_0.pb');
const expected = tensorIn('output_0.pb').data;
const session = await InferenceSession.create(join(given, 'model.onnx'), {
  intraOpNumThreads: 1,
  interOpNumThreads: 1,
  logSeverityLevel: 3,
});
const feeds = { [session.inputNames[0]!]: new Tensor('float32', input.data, [...input.shape]) };
const rows: string[][] = [];
for (const options of [[], ['--isa', values.isa]]) {
  const folder = mkdtempSync(join(tmpdir(), 'sinter-c-'));
  const call = compiled(folder, options);
  const result = new Float32Array(expected.length);
  let [own, other] = [Infinity, Infinity];
  for (let i = 0; i < rounds; i++) {
    const start = performance.now();
    call(input.data, result);
    const middle = performance.now();
    await session.run(feeds);
    own = Math.min(own, middle - start);
    other = Math.min(other, performance.now() - middle);
  }
  const wrong = result.findIndex(
    (value, i) => !(Math.abs(value - expected[i]!) <= 1e-7 + 1e-3 * Math.abs(expected[i]!)),
  );
  if (wrong >= 0) throw new Error(`result ${wrong} is ${result[wrong]}, expected ${expected[wrong]}`);
  rows.push([options.join(' ') || 'portable', own.toFixed(1), other.toFixed(1), (other / own).toFixed(2)]);
  rmSync(folder, { recursive: true });
}
console.log(table(['kernels', 'C', 'ONNX Runtime', 'ratio'], rows, [1, 2, 3]));
