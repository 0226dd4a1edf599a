// Bundles, for GPUs: a train step that was built ahead of time learns on the device what it learns on WebAssembly, by machine code of the
// GPU's own generation, by PTX that the driver compiles, and from sources.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runCli } from '../../src/cli/commands.ts';
import type { Inputs, LoadOptions, Outputs } from '../../src/bundle-runtime/runtime.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
/** TypeScript here, JavaScript where it was packed. */
const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
const module = join(root, 'test', 'aot', `perceptron.${extension}`);

interface Trainable {
  train(inputs: Inputs): Promise<Outputs>;
  weight(name: string): Promise<Float32Array>;
  dispose(): void;
}
type Load = (options: LoadOptions) => Promise<Trainable>;

/** What `sinter build --arch` is given: a cubin of the GPU's, PTX, and one that no later generation runs. */
export function bundleArchs(features: readonly string[]): readonly string[] {
  const own = features.filter((feature) => /^sm_\d+$/.test(feature)).at(-1);
  return [...new Set([...(own === undefined ? [] : [own]), 'compute_80', 'sm_80'])];
}

/** Builds a bundle for `arch` and trains it; throws where it does not learn the same as on WebAssembly. */
export async function checkBundle(arch: string, ordinal: number): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'sinter-gpu-bundle-'));
  const before = process.cwd();
  // Where the bundle finds koffi.
  process.chdir(root);
  try {
    const said: string[] = [];
    const say = (line: string): void => void said.push(line);
    const output = { columns: undefined, line: say, note: say, mark: say, part: say, live: () => undefined };
    const options = ['--target', 'cuda,wasm', '--arch', arch, '--export', 'train', '--out', folder];
    const status = await runCli(['build', module, ...options], output);
    if (status !== 0) throw new Error(said.join('\n'));
    const { load } = (await import(join(folder, 'index.js'))) as { load: Load };
    const expected = await trained(load, { target: 'wasm' });
    const found = await trained(load, { target: 'cuda', device: ordinal });
    expected.forEach((value, i) => {
      const off = Math.abs(value - found[i]!);
      if (!(off <= 1e-4 + 1e-3 * Math.abs(value)))
        throw new Error(`number ${i} is ${found[i]}, not ${value}`);
    });
  } finally {
    process.chdir(before);
    rmSync(folder, { recursive: true });
  }
}

/** The losses of some steps, and a weight after them. */
async function trained(load: Load, options: LoadOptions): Promise<number[]> {
  const model = await load(options);
  try {
    const images = Float32Array.from({ length: 160 }, (_, i) => Math.sin(i));
    const labels = Int32Array.of(0, 1, 2, 3, 0, 1, 2, 3);
    const numbers: number[] = [];
    for (let step = 0; step < 8; step++) {
      const { loss } = await model.train({ 'batch.images': images, 'batch.labels': labels, rate: 0.01 });
      numbers.push(Number(loss![0]));
    }
    if (!(numbers.at(-1)! < numbers[0]!)) throw new Error(`it does not learn: ${numbers.join(', ')}`);
    return [...numbers, ...(await model.weight('model.layers.0.weight'))];
  } finally {
    model.dispose();
  }
}
