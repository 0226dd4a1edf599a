// Rows built ahead of time: many functions in one folder for a target, loaded with nothing of the compiler there.

import * as path from 'node:path';
import { pathToFileURL } from 'node:url';
import type { EntryPoint } from '../../../src/aot/entry.ts';
import type { BundleTarget, Manifest } from '../../../src/bundle-runtime/manifest.ts';
import type { Inputs, LoadOptions, Outputs } from '../../../src/bundle-runtime/runtime.ts';
import type { Tensor } from '../../../src/index.ts';
import type { HostTensor } from '../../../src/io/host.ts';
import { dtypeBytes, type RealDType } from '../../../src/ir/dtype.ts';
import { softwareAdapter } from '../../../src/runtime/webgpu/node.ts';
import { built, written } from '../../aot/bundles.ts';
import { recorded, tensorsIn } from './call.ts';
import { applies, inParts, judged, pairs, type Outcome, type Prepared } from './cells.ts';

const targets: Readonly<Record<string, BundleTarget>> = {
  wasm: 'wasm',
  'webgpu:software': 'webgpu',
  cuda: 'cuda',
};

const arrays = {
  bool: Uint8Array,
  i8: Int8Array,
  u8: Uint8Array,
  i16: Int16Array,
  u16: Uint16Array,
  i32: Int32Array,
  u32: Uint32Array,
  i64: BigInt64Array,
  u64: BigUint64Array,
  f16: Uint16Array,
  bf16: Uint16Array,
  f32: Float32Array,
  f64: Float64Array,
} as const satisfies Record<RealDType, unknown>;

/** The elements of a tensor, as callers of a bundle give them. */
function elements(host: HostTensor): Inputs[string] {
  const { dtype, shape, data } = pairs(host);
  const bytes = data.slice().buffer;
  const array = new arrays[dtype as RealDType](bytes, 0, data.byteLength / dtypeBytes(dtype));
  return { data: array, shape };
}

type Model = Readonly<Record<string, (inputs: Inputs) => Promise<Outputs>>> & { dispose(): void };

async function loaded(folder: string, target: BundleTarget): Promise<{ model: Model; close: () => void }> {
  const script = pathToFileURL(path.join(folder, 'index.js')).href;
  const { load } = (await import(script)) as { load: (options: LoadOptions) => Promise<Model> };
  if (target !== 'webgpu') {
    const model = await load(target === 'wasm' ? { target, threads: 1 } : { target });
    return { model, close: () => model.dispose() };
  }
  const device = await (await softwareAdapter()).requestDevice();
  const model = await load({ target, device });
  return {
    model,
    close: () => {
      model.dispose();
      device.destroy();
    },
  };
}

function pointOf({ row, dtype, inputs }: Prepared, i: number): EntryPoint {
  const names = Object.keys(inputs);
  const fn = (...args: readonly Tensor[]): unknown =>
    recorded(row, dtype, Object.fromEntries(names.map((name, k) => [name, args[k]!])));
  return { name: `row${i}`, fn: fn as EntryPoint['fn'], inputs: Object.values(tensorsIn(inputs, false)) };
}

/** Rows as one bundle: what each entry gives. */
async function together(rows: readonly Prepared[], target: BundleTarget): Promise<Outcome[]> {
  const bundle = await built(rows.map(pointOf), { targets: [target] });
  const { entries }: Manifest = bundle.manifest;
  const { model, close } = await loaded(written(bundle), target);
  const outcomes: Outcome[] = [];
  try {
    for (const [i, { inputs, sized, dtype }] of rows.entries()) {
      const entry = entries[`row${i}`]!;
      const hosts = Object.values(inputs);
      const given = entry.inputs.map(({ name }, k) => [name, elements(hosts[k]!)] as const);
      const results = await model[`row${i}`]!(Object.fromEntries(given));
      const found = entry.outputs.map((output): HostTensor => {
        const { buffer, byteOffset, byteLength } = results[output.name]!;
        const shape = output.shape as readonly number[];
        return { dtype: output.dtype, shape, data: new Uint8Array(buffer, byteOffset, byteLength) };
      });
      outcomes.push(judged(found, sized.map(pairs), dtype));
    }
  } finally {
    close();
  }
  return outcomes;
}

/** How many functions go into one bundle. */
const perBundle = 120;

/** Whether rows can be built for a device. */
export const isBuilt = (device: string): boolean => Object.hasOwn(targets, device);

/** The outcome of each row that can be built, on a device. */
export async function runBundled(device: string, rows: readonly Prepared[]): Promise<Map<Prepared, Outcome>> {
  const target = targets[device]!;
  const chosen = rows.filter((row) => applies(row, 'bundled'));
  const outcomes = new Map<Prepared, Outcome>();
  for (let from = 0; from < chosen.length; from += perBundle) {
    const batch = chosen.slice(from, from + perBundle);
    const results = await inParts(batch, (part) => together(part, target));
    batch.forEach((row, i) => outcomes.set(row, results[i]!));
  }
  return outcomes;
}
