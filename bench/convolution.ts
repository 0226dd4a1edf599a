// Convolutions of 3 × 3 taps on one core of WebAssembly: how far from sums in float64, and how long. See --help.

import { parseArgs } from 'node:util';
import * as sn from '../src/index.ts';
import { uniform } from '../src/workloads/timed/inputs.ts';

const help = `usage: npx tsx bench/convolution.ts [--gradient] [--device NAME] [IMAGES,CHANNELS,FILTERS,LINES,COLUMNS …]

Prints for each shape the error of a sample of results, as a part of their norm, and the least milliseconds of a call: by the wall
clock, and of the processor. --gradient: of the gradient by the weights. --device: wasm:1 by default.`;

const defaults = [
  '8,64,64,56,56',
  '8,128,128,28,28',
  '64,16,16,28,28',
  '64,32,32,14,14',
  '64,64,64,7,7',
  '1,32,64,56,56',
];

type Shape = readonly [images: number, channels: number, filters: number, lines: number, columns: number];

/** ‖y − y₆₄‖ / ‖y₆₄‖ over places that are spread over all. */
function errorOf(
  got: ArrayLike<number>,
  x: Float32Array,
  weight: Float32Array,
  [, channels, filters, lines, columns]: Shape,
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

/** The same of the gradient by the weights, where `g` is that of the results. */
function errorOfGradient(
  got: ArrayLike<number>,
  x: Float32Array,
  g: Float32Array,
  [images, channels, filters, lines, columns]: Shape,
): number {
  let [difference, norm] = [0, 0];
  for (let place = 0; place < got.length; place += Math.max(1, Math.floor(got.length / 50)) | 1) {
    const [tap, pair] = [place % 9, Math.floor(place / 9)];
    const [c, filter] = [pair % channels, Math.floor(pair / channels)];
    let sum = 0;
    for (let image = 0; image < images; image++)
      for (let line = 0; line < lines; line++)
        for (let column = 0; column < columns; column++) {
          const [y, z] = [line + Math.floor(tap / 3) - 1, column + (tap % 3) - 1];
          if (y < 0 || y >= lines || z < 0 || z >= columns) continue;
          sum +=
            x[((image * channels + c) * lines + y) * columns + z]! *
            g[((image * filters + filter) * lines + line) * columns + column]!;
        }
    difference += (got[place]! - sum) ** 2;
    norm += sum ** 2;
  }
  return Math.sqrt(difference / norm);
}

const convolved = (x: sn.Tensor, weight: sn.Tensor): sn.Tensor =>
  sn.conv2d(x, weight, undefined, { padding: 1 });

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    gradient: { type: 'boolean', default: false },
    device: { type: 'string', default: 'wasm:1' },
    help: { type: 'boolean' },
  },
});

/** The gradient does not depend on the weights. */
function gradient(filters: number): (x: sn.Tensor, g: sn.Tensor) => sn.Tensor {
  return (x, g) => {
    const weight = sn.zeros([filters, x.shape[1]!, 3, 3]);
    return sn.vjp((w: sn.Tensor) => convolved(x, w), weight).vjp(g)[0];
  };
}

async function measured(shape: Shape, isGradient: boolean): Promise<string> {
  const [images, channels, filters, lines, columns] = shape;
  const plane = lines * columns;
  const size = isGradient ? images * filters * plane : filters * channels * 9;
  const data = [uniform(images * channels * plane, 1), uniform(size, 2)] as const;
  const x = sn.tensor(data[0], { shape: [images, channels, lines, columns] });
  const weight = sn.tensor(data[1], {
    shape: isGradient ? [images, filters, lines, columns] : [filters, channels, 3, 3],
  });
  const convolve = sn.compile(isGradient ? gradient(filters) : convolved);
  const got = (await convolve(x, weight).data()) as Float32Array;
  // The device `native` begins with WebAssembly, and changes over when C is compiled.
  for (let call = 0; call < 4; call++) convolve(x, weight).dispose();
  await sn.synchronize();
  if (values.device.startsWith('native')) await new Promise((resolve) => setTimeout(resolve, 8000));
  let [wall, used] = [Infinity, Infinity];
  for (let call = 0; call < 15; call++) {
    const [began, before] = [performance.now(), process.cpuUsage()];
    const result = convolve(x, weight);
    await sn.synchronize();
    const { user, system } = process.cpuUsage(before);
    [wall, used] = [Math.min(wall, performance.now() - began), Math.min(used, (user + system) / 1e3)];
    result.dispose();
  }
  const error = (isGradient ? errorOfGradient : errorOf)(got, ...data, shape);
  return `error ${error.toExponential(1)}, wall ${wall.toFixed(2)} ms, processor ${used.toFixed(2)} ms`;
}

if (values.help === true) {
  console.log(help);
} else {
  sn.setDevice(values.device);
  for (const text of positionals.length > 0 ? positionals : defaults) {
    const shape = text.split(',').map(Number);
    if (shape.length !== 5 || !shape.every((size) => size > 0))
      throw new Error(`expected five sizes, got ${text}\n\n${help}`);
    console.log(`${text}: ${await measured(shape as unknown as Shape, values.gradient)}`);
  }
  process.exit();
}
