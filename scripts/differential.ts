// `npm run differential -- --device wasm --programs 20000`: random programs of special values and awkward sizes on a device, held to the
// reference interpreter. Prints the seed and the shrunk program of every difference; exits with 1 where there is one.

import { parseArgs } from 'node:util';
import { openDevice } from '../src/runtime/registry.ts';
import type { Device } from '../src/runtime/device.ts';
import { WasmDevice } from '../src/runtime/wasm/device.ts';
import { useStandIn } from '../test/cuda/standin/standin.ts';
import { chooseDevice } from '../test/runtime/native/waiting.ts';
import { differencesOf } from '../test/support/random/differential.ts';

const usage = `usage: npm run differential -- [options]
  --device NAME     wasm (one thread), wasm:2 (all work shared), webgpu:software, native, cuda (its stand-in where there is no GPU); default wasm
  --programs N      how many programs; default 1000
  --batch N         how many are merged into one graph; default 20
  --seed N          of the first batch; default 1
  --seconds N       stop after this time
  --json            one line of JSON per difference, and a last one with the figures
  --help`;

const { values } = parseArgs({
  options: {
    device: { type: 'string', default: 'wasm' },
    programs: { type: 'string', default: '1000' },
    batch: { type: 'string', default: '20' },
    seed: { type: 'string', default: '1' },
    seconds: { type: 'string', default: 'Infinity' },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});
if (values.help) {
  process.stdout.write(`${usage}\n`);
  process.exit(0);
}

async function open(name: string): Promise<Device> {
  if (name === 'wasm') return WasmDevice.open(name, { threads: 1 });
  if (name.startsWith('wasm:')) {
    // Everything is cut as finely as it can be: programs of tests are too small to be worth a second thread.
    const grain = { program: 0, dispatch: 0, share: 0, piece: 0 };
    return WasmDevice.open(name, { threads: Number(name.slice(5)), grain });
  }
  if (name === 'cuda' && !useStandIn()) throw new Error('cuda: there is no host compiler for the stand-in');
  if (name === 'native') await chooseDevice(name);
  return openDevice(name);
}

const [programs, batch, first] = [values.programs, values.batch, values.seed].map(Number) as [
  number,
  number,
  number,
];
const device = await open(values.device);
const begin = performance.now();
const seconds = (): number => (performance.now() - begin) / 1000;
let [done, differences, shown] = [0, 0, 0];
for (let seed = first; done < programs && seconds() < Number(values.seconds); seed++) {
  const count = Math.min(batch, programs - done);
  for (const difference of await differencesOf(device, seed, count)) {
    differences += 1;
    const { reason, program } = difference;
    const text = `seed ${difference.seed}: ${reason}\n${program}`;
    process.stdout.write(`${values.json ? JSON.stringify(difference) : text}\n`);
  }
  done += count;
  if (seconds() - shown > 10) {
    shown = seconds();
    process.stderr.write(
      `${values.device}: ${done} of ${programs} programs, ${differences} differences, ${shown | 0} s\n`,
    );
  }
}
const figures = { device: values.device, programs: done, differences, seconds: Math.round(seconds()) };
process.stdout.write(
  values.json
    ? `${JSON.stringify(figures)}\n`
    : `${figures.programs} programs on ${figures.device}: ${differences} differences, ${figures.seconds} s\n`,
);
process.exit(differences === 0 ? 0 : 1);
