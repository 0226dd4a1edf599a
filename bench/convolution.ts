// Convolutions of 3 × 3 taps on one core of WebAssembly: how far from sums in float64, and how long. See --help.

import { parseArgs } from 'node:util';
import * as sn from '../src/index.ts';
import { uniform } from '../src/workloads/timed/inputs.ts';

const help = `usage: npx tsx bench/convolution.ts [IMAGES,CHANNELS,FILTERS,LINES,COLUMNS …]

Prints for each shape the error of a sample of results, as a part of their norm, and the least milliseconds of a call: by the wall
clock, and of the processor.`;

const defaults = [
  '8,64,64,56,56',
  '8,128,128,28,28',
  '64,16,16,28,28',
  '64,32,32,14,14',
  '64,64,64,7,7',
  '1,32,64,56,56',
];

/** ‖y − y₆₄‖ / ‖y₆₄‖ over places that are spread over all. */
function errorOf(
  got: ArrayLike<number>,
  x: Float32Array,
  weight: Float32Array,
  [, channels, filters, lines, columns]: readonly [number, number, number, number, number],
): number {
  let [difference, norm] = [0, 0];
  for (let place = 0; place < got.length; place += Math.max(1, Math.floor(got.length / 2000)) | 1) {
    const [column, line] = [place % columns, Math.floor(place / columns) % lines];
    const plane = Math.floor(place / (lines * columns));
    const [filter, image] = [plane % filters, Math.floor(plane / filters)];
    let sum = 0;
    for (let c = 0; c < channels; c++)
      for (let tap = 0; tap < 9; tap++) {
        const [y, z] = [line + Math.floor(tap / 3) - 1, column + (tap % 3) - 1];
        if (y < 0 || y >= lines || z < 0 || z >= columns) continue;
        sum +=
          x[((image * channels + c) * lines + y) * columns + z]! * weight[(filter * channels + c) * 9 + tap]!;
      }
    difference += (got[place]! - sum) ** 2;
    norm += sum ** 2;
  }
  return Math.sqrt(difference / norm);
}

async function measured(shape: readonly [number, number, number, number, number]): Promise<string> {
  const [images, channels, filters, lines, columns] = shape;
  const data = [uniform(images * channels * lines * columns, 1), uniform(filters * channels * 9, 2)] as const;
  const x = sn.tensor(data[0], { shape: [images, channels, lines, columns] });
  const weight = sn.tensor(data[1], { shape: [filters, channels, 3, 3] });
  const convolve = sn.compile((a: sn.Tensor, b: sn.Tensor) => sn.conv2d(a, b, undefined, { padding: 1 }));
  const got = (await convolve(x, weight).data()) as Float32Array;
  let [wall, used] = [Infinity, Infinity];
  for (let call = 0; call < 15; call++) {
    const [began, before] = [performance.now(), process.cpuUsage()];
    const result = convolve(x, weight);
    await sn.synchronize();
    const { user, system } = process.cpuUsage(before);
    [wall, used] = [Math.min(wall, performance.now() - began), Math.min(used, (user + system) / 1e3)];
    result.dispose();
  }
  return `error ${errorOf(got, ...data, shape).toExponential(1)}, wall ${wall.toFixed(2)} ms, processor ${used.toFixed(2)} ms`;
}

const { values, positionals } = parseArgs({ allowPositionals: true, options: { help: { type: 'boolean' } } });
if (values.help === true) {
  console.log(help);
} else {
  sn.setDevice('wasm:1');
  for (const text of positionals.length > 0 ? positionals : defaults) {
    const shape = text.split(',').map(Number);
    if (shape.length !== 5 || !shape.every((size) => size > 0))
      throw new Error(`expected five sizes, got ${text}\n\n${help}`);
    console.log(`${text}: ${await measured(shape as [number, number, number, number, number])}`);
  }
  process.exit();
}
