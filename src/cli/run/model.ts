// A model in a file as something to call by names: an ONNX model, a function of a module, or a
// folder that `sinter build` wrote.

import { existsSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { SinterError } from '../../errors.ts';
import { elementsOf, type TypedElements } from '../../aot/arrays.ts';
import { argumentNames } from '../../aot/names.ts';
import { outputName, placesOf, twin } from '../../aot/names.ts';
import { compile, Tensor, type DType } from '../../index.ts';
import { fromHostTensor, toHostTensor, type HostTensor } from '../../io/index.ts';
import { device } from '../../tensor/device.ts';
import { holds, sizesOf } from '../../bundle-runtime/sizes.ts';
import type { Span } from '../../tensor/report/spans.ts';
import { flatten, unflatten } from '../../tensor/tree.ts';
import type {
  BundledProgram,
  BundleTarget,
  Manifest,
  OpenType,
  Sizes,
} from '../../bundle-runtime/manifest.ts';
import { isOnnxFile } from '../program/choice.ts';
import { UsageError } from '../command.ts';
import { fromPackage } from '../../packages/missing.ts';
import { programFile } from '../program/module-file.ts';

/** What goes in: names stand for sizes that the model leaves open. */
export interface ModelPort {
  readonly name: string;
  readonly dtype: DType | undefined;
  readonly shape: readonly (number | string)[] | undefined;
  /** What it is when nothing is given. */
  readonly example?: HostTensor;
  /** It may be left out. */
  readonly optional?: true;
}

export type NamedTensors = ReadonlyMap<string, HostTensor>;

export interface RunnableModel {
  readonly name: string;
  readonly inputs: readonly ModelPort[];
  /** Calls with these inputs, over and over. */
  prepare(inputs: NamedTensors): () => Promise<NamedTensors>;
  /** What it runs on, in words. */
  device(): Promise<string>;
  /** The steps of a call, where they cannot be timed one by one. */
  readonly steps?: readonly Span[];
  close(): void;
}

export interface ModelChoice {
  /** Which function of a module, or entry of a bundle. */
  readonly name: string | undefined;
  /** The device asked for. */
  readonly device: string | undefined;
  readonly onProgress: (text: string) => void;
}

/** Opens a model. Throws UsageError where there is none. */
export async function modelFile(file: string, choice: ModelChoice): Promise<RunnableModel> {
  const found = await stat(file).catch(() => undefined);
  if (found === undefined) throw new UsageError(`there is no file or folder ${file}`);
  if (found.isDirectory()) return bundleModel(file, choice);
  return isOnnxFile(file) ? onnxModel(file) : moduleModel(file, choice.name);
}

async function currentDevice(): Promise<string> {
  const { facts } = await device();
  return `${facts.name}: ${facts.description}`;
}

async function onnxModel(file: string): Promise<RunnableModel> {
  const { loadOnnx } = await fromPackage(
    '@bufbuild/protobuf',
    `${file}: reading ONNX files`,
    () => import('../../onnx/index.ts'),
  );
  const model = await loadOnnx(file);
  return {
    name: basename(file),
    inputs: model.inputs,
    prepare: (inputs) => {
      const given = Object.fromEntries([...inputs].map(([name, host]) => [name, fromHostTensor(host)]));
      return async () => hosts(Object.entries(await model.run(given)));
    },
    device: currentDevice,
    close: () => undefined,
  };
}

async function moduleModel(file: string, name: string | undefined): Promise<RunnableModel> {
  const { name: title, subject, args } = await programFile(file, name);
  if (subject instanceof Tensor) {
    const run = async (): Promise<NamedTensors> => hosts([['output', subject]]);
    return {
      name: title,
      inputs: [],
      prepare: () => run,
      device: currentDevice,
      close: () => undefined,
    };
  }
  const flat = flatten(args, 'run');
  const names = argumentNames(subject, flat, false);
  const inputs: ModelPort[] = [];
  for (const [i, leaf] of flat.leaves.entries()) {
    const port = names[i]!;
    if (leaf instanceof Tensor) {
      const { dtype, shape } = leaf;
      inputs.push({
        name: port,
        dtype,
        shape: shape as readonly number[],
        example: await toHostTensor(leaf),
      });
    } else if (typeof leaf === 'number') {
      const data = new Uint8Array(Float64Array.of(leaf).buffer);
      inputs.push({ name: port, dtype: 'f64', shape: [], example: { dtype: 'f64', shape: [], data } });
    }
  }
  expectApart(
    title,
    inputs.map((port) => [port.name]),
  );
  const fn = compile(subject as (...args: unknown[]) => unknown);
  return {
    name: title,
    inputs,
    prepare: (given) => {
      const leaves = flat.leaves.map((leaf, i) => {
        const host = given.get(names[i]!);
        if (host === undefined) return leaf;
        return typeof leaf === 'number'
          ? new Float64Array(host.data.slice().buffer)[0]!
          : fromHostTensor(host);
      });
      const values = unflatten(flat.structure, leaves) as unknown[];
      return async () => {
        const { leaves: results, structure } = flatten(await fn(...values), 'run');
        const places = placesOf(structure);
        const outputs = results.flatMap((leaf, i) =>
          leaf instanceof Tensor ? [[outputName(places[i]!), leaf] as const] : [],
        );
        expectApart(title, outputs);
        return hosts(outputs);
      };
    },
    device: currentDevice,
    close: () => undefined,
  };
}

/** Throws UsageError where two values go by one name. */
function expectApart(title: string, named: readonly (readonly [string, ...unknown[]])[]): void {
  const name = twin(named.map(([own]) => own));
  if (name === undefined) return;
  throw new UsageError(`${title} has two values called ${JSON.stringify(name)}\n  try: another key for one`);
}

async function hosts(tensors: Iterable<readonly [string, Tensor]>): Promise<NamedTensors> {
  const read = [...tensors].map(async ([name, tensor]) => [name, await toHostTensor(tensor)] as const);
  return new Map(await Promise.all(read));
}

/** What `index.js` of a bundle hands out. */
interface BundleModule {
  load(options: {
    readonly target?: string;
    readonly threads?: number;
    readonly device?: number;
    readonly onProgress?: (progress: BundleProgress) => void;
  }): Promise<BundleModel>;
}

interface BundleProgress {
  readonly loadedBytes: number;
  readonly totalBytes: number;
  readonly compiledKernels: number;
  readonly totalKernels: number;
}

interface BundleModel {
  readonly target: BundleTarget;
  readonly description: string;
  dispose(): void;
  readonly [entry: string]: unknown;
}

async function bundleModel(folder: string, choice: ModelChoice): Promise<RunnableModel> {
  const files = ['index.js', 'program.json'].map((name) => join(folder, name));
  const missing = files.find((file) => !existsSync(file));
  if (missing !== undefined)
    throw new UsageError(
      `${folder} is no bundle: there is no ${basename(missing)}\n  try: sinter build FILE --out ${folder}`,
    );
  const manifest = await manifestOf(files[1]!);
  const known = Object.keys(manifest.entries);
  const name = choice.name ?? (known.length === 1 ? known[0]! : 'run');
  const entry = Object.hasOwn(manifest.entries, name) ? manifest.entries[name] : undefined;
  if (entry === undefined) {
    const problem = choice.name === undefined ? 'has several entries' : `has no entry '${name}'`;
    throw new UsageError(`${folder} ${problem}: ${known.join(', ')}\n  try: --export ${known[0] ?? 'NAME'}`);
  }
  const { load } = (await import(pathToFileURL(resolve(files[0]!)).href)) as BundleModule;
  const [target, number] = choice.device?.split(':') ?? [];
  const threads = number ?? process.env['SINTER_THREADS'];
  const model = await load({
    ...(target !== undefined && { target }),
    ...(target === 'cuda' ? number && { device: Number(number) } : threads && { threads: Number(threads) }),
    onProgress: ({ loadedBytes, totalBytes, compiledKernels, totalKernels }) =>
      choice.onProgress(
        `loading: ${Math.floor((100 * loadedBytes) / Math.max(1, totalBytes))} % of the weights, ${compiledKernels} of ${totalKernels} kernels`,
      ),
  });
  const call = model[name] as (inputs: Record<string, unknown>) => Promise<Record<string, TypedElements>>;
  const inputs = entry.inputs.map((input): ModelPort =>
    input.kind === 'tensor'
      ? { name: input.name, dtype: input.dtype, shape: input.shape }
      : { name: input.name, dtype: 'f64', shape: [] },
  );
  const programs = entry.programs[model.target] ?? [];
  let [program] = programs;
  return {
    name: `${basename(resolve(folder))}: ${name}`,
    inputs,
    prepare: (given) => {
      const own = entry.ranges && sizesOf(name, entry, Object.fromEntries(given));
      program = programs.find((one) =>
        own === undefined
          ? entry.inputs.every(
              (input) =>
                input.kind === 'number' ||
                `${given.get(input.name)!.shape}` === `${shapeAt(input, one.sizes)}`,
            )
          : holds(one, own),
      );
      const sizes = own ?? program?.sizes ?? {};
      const values = Object.fromEntries(
        entry.inputs.map((input) => {
          const { dtype, data, shape } = given.get(input.name)!;
          const elements: TypedElements = elementsOf(dtype, data);
          const number = input.kind === 'number' ? (elements as Float64Array)[0] : undefined;
          return [input.name, number ?? { data: elements, shape }];
        }),
      );
      return async () => {
        const results = await call(values);
        return new Map(
          entry.outputs.map((output) => {
            const { buffer, byteOffset, byteLength } = results[output.name]!;
            const shape = shapeAt(output, sizes);
            const data = new Uint8Array(buffer, byteOffset, byteLength);
            return [output.name, { dtype: output.dtype, shape, data }] as const;
          }),
        );
      };
    },
    device: () => Promise.resolve(model.description),
    get steps() {
      return stepsOf(program);
    },
    close: () => model.dispose(),
  };
}

/** Throws E_FORMAT where it is no manifest, or one of another version. */
async function manifestOf(file: string): Promise<Manifest> {
  const text = await readFile(file, 'utf8');
  try {
    const manifest = JSON.parse(text) as Manifest;
    if (manifest.version === 1) return manifest;
  } catch {
    // No JSON at all.
  }
  throw new SinterError(
    'E_FORMAT',
    `${file} is not a bundle that this version of sinter writes\n  try: sinter build`,
  );
}

/** A shape at the sizes of a program. */
function shapeAt({ shape }: OpenType, sizes: Sizes): number[] {
  return shape.map((size) => (typeof size === 'string' ? sizes[size]! : size));
}

/** What a bundle's program says of its steps: the code that runs it has no clock. */
function stepsOf(program: BundledProgram | undefined): Span[] {
  return (program?.steps ?? []).map((step) => {
    const kernel = step.kind === 'dispatch' ? program?.kernels[step.kernel] : undefined;
    const { name = step.kind, kind = 'memory', flops = 0, bytes = 0 } = kernel ?? {};
    return { name, kind, run: 0, nanoseconds: undefined, flops, bytes };
  });
}
