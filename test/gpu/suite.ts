// What a GPU must get right, without a test framework, for machines that have none: every operation against PyTorch's figures, the
// golden kernels and products on matrix units against the interpreter, and bundles against themselves on WebAssembly. Comes in: a device's name; goes out: a report that is plain data.

import { interpret } from '../../src/ir/interpret/interpret.ts';
import { dims, type Graph } from '../../src/ir/graph.ts';
import { isFloat } from '../../src/ir/dtype.ts';
import { sizeOf } from '../../src/ir/shape.ts';
import { hostArray, type HostArray } from '../../src/ir/value.ts';
import type { Device } from '../../src/runtime/device.ts';
import { targetOf } from '../../src/schedule/target.ts';
import { device as chosenDevice, setDevice } from '../../src/tensor/device.ts';
import { Sketch } from '../codegen/cases.ts';
import { goldenPrograms } from '../codegen/golden-programs.ts';
import { runOnDevice } from '../support/execute.ts';
import { openDevice } from '../../src/runtime/registry.ts';
import { bundleArchs, checkBundle } from './bundles.ts';
import { calledFamilies } from '../tensor/ops/torch-check.ts';
import { runOperations } from './operations.ts';
import { productChecks, withFewWorkgroups } from './products.ts';
import { gpuPrograms, runBoth } from './programs.ts';
import { runtimeChecks } from './runtime.ts';

export interface SuiteChoice {
  /** Families of operations; all without. */
  readonly families?: readonly string[];
  /** So many operations, spread over all; all without. */
  readonly spread?: number;
  /** Names of golden kernels; all of the device's target without. */
  readonly golden?: readonly string[];
  /** Schedules of products on matrix units: those whose names contain this, `none` for none; all without. */
  readonly products?: string;
  /** Whole programs whose names match this, `none` for none; all without. */
  readonly programs?: string;
  /** Checks of the runtime whose names match this, `none` for none; all without. */
  readonly runtime?: string;
  /** Bundles built for these GPUs, on CUDA; for all of `bundleArchs` without. */
  readonly bundles?: readonly string[];
  /** Of everything that was chosen, each `of`-th from `at` on (0, 1, …) only: other processes do the rest. */
  readonly shard?: { readonly at: number; readonly of: number };
  /** Told of each part when it is done. */
  readonly say?: (line: string) => void;
}

export interface SuiteReport {
  readonly device: string;
  readonly description: string;
  readonly passed: number;
  /** Cases whose dtypes the device lacks, and that were refused as they should be. */
  readonly refused: number;
  readonly failed: readonly { readonly name: string; readonly error: string }[];
  readonly seconds: number;
}

/** Runs what was chosen on the device; rejects when there is no such device, else whatever fails is in the report. */
export async function runSuite(name: string, choice: SuiteChoice = {}): Promise<SuiteReport> {
  const since = performance.now();
  setDevice(name);
  const { facts } = await chosenDevice();
  const failed: { name: string; error: string }[] = [];
  const results = new Map<Graph, readonly HostArray[]>();
  let passed = 0;
  const attempt = async (what: string, work: () => Promise<void>): Promise<void> => {
    try {
      await work();
      passed += 1;
    } catch (error) {
      failed.push({ name: what, error: messageOf(error) });
      choice.say?.(`FAILED ${what}: ${messageOf(error)}`);
    }
  };
  const { spread, say } = choice;
  const { at, of } = choice.shard ?? { at: 0, of: 1 };
  let count = 0;
  const own = (): boolean => count++ % of === at;
  const families = (choice.families ?? calledFamilies()).filter(own);
  const operations = await runOperations(name, {
    families,
    ...(spread === undefined ? {} : { spread }),
    ...(say === undefined ? {} : { say }),
  });
  passed += operations.passed;
  failed.push(...operations.failed);
  for (const golden of (choice.golden ?? goldenOf(facts.name)).filter(own)) {
    await attempt(`golden ${golden}`, async () => checkGolden(golden, await chosenDevice()));
    choice.say?.(`golden ${golden}: done`);
  }
  if (choice.products !== 'none') {
    const device = await chosenDevice();
    const target = withFewWorkgroups(targetOf(device.facts));
    const wanted = productChecks(target)
      .filter((check) => check.name.includes(choice.products ?? ''))
      .filter(own);
    for (const { name: product, graph, schedule } of wanted)
      await attempt(`product ${product}`, async () => {
        const inputs = inputsOf(graph);
        const expected = results.get(graph) ?? interpret(graph, inputs);
        results.set(graph, expected);
        const found = await runOnDevice(device, target, graph, inputs, new Map(), () => schedule);
        found.forEach((output, i) => checkOutput(`output ${i}`, output, expected[i]!));
      });
    choice.say?.(`${wanted.length} schedules of products: done`);
  }
  if (choice.programs !== 'none') {
    const [device, wasm] = [await chosenDevice(), await openDevice('wasm')];
    const pattern = new RegExp(choice.programs ?? '');
    const wanted = gpuPrograms()
      .filter((program) => pattern.test(program.name))
      .filter(own);
    for (const program of wanted) {
      const before = performance.now();
      let by: readonly string[] = [];
      await attempt(`program ${program.name}`, async () => {
        const { found, expected, schedules } = await runBoth(program, device, wasm);
        by = schedules;
        found.forEach((output, i) =>
          checkOutput(`output ${i} of ${schedules.join(', ')}`, output, expected[i]!),
        );
      });
      const seconds = ((performance.now() - before) / 1000).toFixed(1);
      choice.say?.(`program ${program.name}: ${seconds} s, by ${by.join(', ')}`);
    }
  }
  const checks = choice.runtime === 'none' ? [] : runtimeChecks();
  const pattern = new RegExp(choice.runtime ?? '');
  for (const { name: what, run } of checks.filter((check) => pattern.test(check.name)).filter(own)) {
    await attempt(what, run);
    choice.say?.(`${what}: done`);
  }
  if (facts.name.startsWith('cuda')) {
    const ordinal = Number(facts.name.split(':')[1] ?? 0);
    for (const arch of (choice.bundles ?? bundleArchs(facts.features)).filter(own)) {
      await attempt(`bundle for ${arch}`, () => checkBundle(arch, ordinal));
      choice.say?.(`bundle for ${arch}: done`);
    }
  }
  const seconds = Math.round((performance.now() - since) / 100) / 10;
  return {
    device: facts.name,
    description: facts.description,
    passed,
    refused: operations.refused,
    failed,
    seconds,
  };
}

/** Golden kernels of the device's target. */
function goldenOf(device: string): string[] {
  const id = device.startsWith('cuda') ? 'cuda' : 'wgsl';
  return Object.keys(goldenPrograms).filter((name) => goldenPrograms[name]![0].id === id);
}

/** How far results may be off, relative to all of them together. */
const tolerances: Readonly<Record<string, number>> = { f64: 1e-10, f32: 1e-4, f16: 5e-3, bf16: 2e-2 };

/** Runs a golden program as the device would have it, and with the very kernel of its file. */
async function checkGolden(name: string, device: Device): Promise<void> {
  const golden = goldenPrograms[name];
  if (golden === undefined) throw new Error('there is no such golden kernel');
  const [target, make] = golden;
  const sketch = new Sketch();
  const graph = sketch.graph(make(sketch));
  const inputs = inputsOf(graph);
  const expected = interpret(graph, inputs);
  for (const as of [targetOf(device.facts), target]) {
    const found = await runOnDevice(device, as, graph, inputs);
    found.forEach((output, i) => checkOutput(`output ${i} as ${as.name}`, output, expected[i]!));
  }
}

function checkOutput(what: string, found: HostArray, expected: HostArray): void {
  const allowed = isFloat(expected.dtype) ? tolerances[expected.dtype]! : 0;
  let error = 0;
  let size = 0;
  for (let i = 0; i < expected.data.length; i++) {
    const [got, want] = [Number(found.data[i]), Number(expected.data[i])];
    if (Object.is(got, want) || got === want) {
      if (Number.isFinite(want)) size += want * want;
      continue;
    }
    error += (got - want) ** 2;
    size += want * want;
  }
  const off = Math.sqrt(error / Math.max(size, Number.MIN_VALUE));
  if (!(error === 0 || off <= allowed)) throw new Error(`${what} is off by ${off}, relative to all of it`);
}

/** Numbers between -1 and 1, or whole ones, the same each time. */
function inputsOf(graph: Graph): HostArray[] {
  let state = 12_345;
  const next = (): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
  return graph.parameters.map((node) => {
    const shape = dims(node);
    // A bound beyond all there is: of results, nothing is left open.
    if (node.dtype === 'i32' && shape.length === 0) return hostArray('i32', [], [1000]);
    const isWhole = !isFloat(node.dtype);
    const values = Array.from({ length: sizeOf(shape) }, () =>
      isWhole ? Math.floor(16 * next()) : 2 * next() - 1,
    );
    return hostArray(node.dtype, shape, values);
  });
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
