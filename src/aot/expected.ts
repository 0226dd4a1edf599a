// What the kernels of a bundle compute by the interpreter, for `check.json`. Takes a program as it was compiled and its
// weights, makes inputs of a seed, computes the graph, and measures what each kernel writes that is compared. How far off a
// device may be is found as `check` finds it: a share of the value, and more where the value changes when everything that it
// is computed from, from the inputs on, is changed by a few units of its last place.

import type {
  Digest,
  DigestMeasure,
  DigestNumber,
  ExpectedKernel,
  ExpectedPlace,
  ExpectedProgram,
  ExpectedValue,
  SeededInput,
} from '../bundle-runtime/expected.ts';
import {
  fingerprint,
  measured,
  partOf,
  samplesOf,
  seededBytes,
  weightOf,
} from '../bundle-runtime/expected.ts';
import type { BundledProgram, BundleEntry, ScalarSource, Sizes } from '../bundle-runtime/manifest.ts';
import { programAt, valueOf as sizeOf } from '../bundle-runtime/sizes.ts';
import { Nudging, type Rounding } from '../check/comparison.ts';
import { ComparisonPlan } from '../check/plan.ts';
import type { CompiledGraph } from '../compile.ts';
import { CompilerBug } from '../errors.ts';
import { dtypeBytes, isInexact, lowered } from '../ir/dtype.ts';
import { dims, type Node } from '../ir/graph.ts';
import { valuesFrom } from '../ir/interpret/interpret.ts';
import { unpackBytes, type HostArray } from '../ir/value.ts';
import type { HostTensor } from '../io/host.ts';
import { deviceBytes } from '../runtime/program.ts';
import { Tensor } from '../tensor/tensor.ts';
import { bytesOf, valueOf } from '../tensor/values.ts';
import type { TracedEntry } from './entry.ts';

/** A program of a bundle, and what it was made of. */
export interface ExpectedSubject {
  readonly title: string;
  readonly traced: TracedEntry;
  readonly entry: Pick<BundleEntry, 'derived'>;
  /** Compiled with `inspect`. */
  readonly compiled: CompiledGraph;
  /** The same in the bundle: its first steps are copies, and then those that were compiled come. */
  readonly program: BundledProgram;
  /** By weight. */
  readonly values: readonly HostTensor[];
}

/** Ways in which values are changed to see how much rounding may explain. */
const seeds: readonly number[] = [1, 2, 3];
/** How much more than by these a number may be off: wide ones are rounded in every step of long sums. */
const [slack, narrowSlack] = [64, 16];
/** Below this, numbers are wide. */
const narrowUnit = 2 ** -12;

/** Computes what the kernels of a program write. */
export async function expectedProgram(subject: ExpectedSubject): Promise<ExpectedProgram> {
  const { title, compiled, program } = subject;
  const plan = new ComparisonPlan(compiled);
  const { placed } = plan.inside;
  const inputs = await seededInputs(subject);
  const words = wordsOf(subject);
  const known = givenValues(subject, plan, inputs, words);
  const wanted = new Map<Node, Rounding>();
  for (const at of plan.compared) {
    const rounding = plan.rounding(at, 'f32');
    for (const node of plan.completed(at)) wanted.set(node, rounding);
  }
  const digests = digestsOf(plan, known, wanted);
  const ids = new Map<Node, number>();
  const idOf = (node: Node): number => {
    const id = ids.get(node) ?? ids.size;
    ids.set(node, id);
    return id;
  };
  const steps = placed.steps.map(({ length }) => length);
  const kernels = plan.kernels.map((kernel, at): ExpectedKernel => {
    const open = plan.leftOpen(kernel);
    return {
      steps: steps[at]!,
      reads: [...new Set(plan.readsOf(kernel).map(idOf))],
      writes: plan.writesOf(kernel).map(idOf),
      first: plan.first(at),
      ...(open.length > 0 && { open: open.map((node) => placeOf(node, plan, program)) }),
      ...(plan.compared.has(at) && {
        compared: {
          ...plan.factsOf(at),
          firsts: [...new Set(plan.together(at).map((one) => plan.first(one)))],
          ...(plan.isPartial(at) && { partial: true as const }),
          values: plan.completed(at).map((node): ExpectedValue => ({
            id: idOf(node),
            ...placeOf(node, plan, program),
            dtype: lowered(node.dtype),
            shape: dims(node),
            digest: digests.get(node)!,
          })),
        },
      }),
    };
  });
  const before = program.steps.length - steps.reduce((sum, count) => sum + count, 0);
  return { title, program: fingerprint(JSON.stringify(program)), words, inputs, before, kernels };
}

/** Where a node lies when the program runs. */
function placeOf(node: Node, plan: ComparisonPlan, { buffers }: BundledProgram): ExpectedPlace {
  const { placed, memory } = plan.inside;
  const bytes = deviceBytes(dtypeBytes(node.dtype), elementsOf(dims(node)));
  const own = placed.bufferOf.get(node);
  if (own !== undefined) return { buffer: own, offset: 0, bytes };
  // A member of a pack in scratch memory has no buffer of its own: it is found from another in this memory.
  const place = memory.placeOf.get(node);
  const beside = buffers.findIndex(({ role, arena }) => role === 'scratch' && arena === place?.arena);
  if (place === undefined || beside < 0) throw new CompilerBug('check', `${node.op} lies nowhere`);
  return { buffer: beside, offset: place.offset - buffers[beside]!.offset!, bytes };
}

/**
 * What is given for each input: numbers between the least and the largest of its example, where these differ; else floats
 * from 0 to 1, and integers from 0 to 1 or to the example's.
 */
async function seededInputs({ traced, program }: ExpectedSubject): Promise<(SeededInput | null)[]> {
  const found: (SeededInput | null)[] = [];
  for (const [i, input] of traced.inputs.entries()) {
    const buffer = program.buffers[program.ports.args[i]!];
    if (input.kind === 'number' || buffer === undefined) {
      found.push(null);
      continue;
    }
    const { dtype } = input;
    // Small integers may lie in words.
    const bytes = elementsOf(buffer.shape) * dtypeBytes(buffer.dtype);
    const count = Math.floor(bytes / dtypeBytes(dtype));
    const [low, high] = await rangeOf(traced.examples[i]!);
    found.push({ dtype, count, low, high });
  }
  return found;
}

async function rangeOf(example: Tensor | number): Promise<readonly [low: number, high: number]> {
  if (!(example instanceof Tensor)) return [0, 1];
  const { dtype, shape } = example;
  const array = unpackBytes(await bytesOf(valueOf(example)), dtype, shape as readonly number[]);
  let [low, high] = [Infinity, -Infinity];
  for (const element of array.data) {
    const value = Number(element);
    if (!Number.isFinite(value)) continue;
    [low, high] = [Math.min(low, value), Math.max(high, value)];
  }
  if (low < high) return [low, high];
  return isInexact(dtype) || low > high ? [0, 1] : [Math.min(low, 0), Math.max(high, 1)];
}

/** The run-time scalars of a call with the examples' numbers and the seed 1. */
function wordsOf({ traced, entry, program }: ExpectedSubject): number[] {
  const derived = Object.entries(entry.derived ?? {});
  const sizes: Sizes = {
    ...program.sizes,
    ...Object.fromEntries(derived.map(([name, formula]) => [name, sizeOf(formula, program.sizes)])),
  };
  return programAt(program, sizes).ports.scalars.map((source: ScalarSource): number => {
    if ('argument' in source)
      return new Int32Array(Float32Array.of(traced.examples[source.argument] as number).buffer)[0]!;
    if ('word' in source) return source.word;
    if ('seed' in source) return source.seed === 0 ? 1 : 0;
    if ('counter' in source) return source.counter === 0 ? Number(source.offset) : 0;
    throw new CompilerBug('build', 'a scalar of sizes has no value');
  });
}

/** The values of the graph's parameters. */
function givenValues(
  { program, values }: ExpectedSubject,
  plan: ComparisonPlan,
  inputs: readonly (SeededInput | null)[],
  words: readonly number[],
): Map<Node, HostArray> {
  const { inside } = plan;
  const { ports } = program;
  const known = new Map<Node, HostArray>();
  for (const node of inside.graph.parameters as readonly Node[]) {
    const slot = inside.scalars.indexOf(node);
    if (slot >= 0 && program.scalars[slot]!.input === undefined) {
      const bytes = new Uint8Array(Int32Array.of(words[slot]!).buffer);
      known.set(node, unpackBytes(bytes, node.dtype, []));
      continue;
    }
    const buffer = inside.placed.bufferOf.get(node);
    const argument = buffer === undefined ? -1 : ports.args.indexOf(buffer);
    const weight = ports.weights.find((port) => port.buffer === buffer)?.weight;
    const input = inputs[argument];
    const bytes = input
      ? seededBytes(input, argument)
      : weight === undefined
        ? undefined
        : values[weight]!.data;
    if (bytes === undefined) continue;
    const needed = new Uint8Array(Math.max(bytes.length, elementsOf(dims(node)) * dtypeBytes(node.dtype)));
    needed.set(bytes);
    known.set(node, unpackBytes(needed, node.dtype, dims(node)));
  }
  return known;
}

/** What is kept of each value: computed as it is, and with everything changed a little. */
function digestsOf(
  plan: ComparisonPlan,
  known: ReadonlyMap<Node, HostArray>,
  wanted: ReadonlyMap<Node, Rounding>,
): Map<Node, Digest> {
  const units = unitsOf(plan);
  const allowances = new Map<Node, Allowance>();
  const measures = new Map(Array.from(wanted.keys(), (node): [Node, DigestMeasure[]] => [node, []]));
  const run = (given: ReadonlyMap<Node, HostArray>, nudging: Nudging | undefined): void => {
    valuesFrom([...wanted.keys()], given, undefined, (value, node) => {
      const changed = nudging?.of(value, units.get(node)) ?? value;
      const rounding = wanted.get(node);
      if (rounding === undefined) return changed;
      if (nudging === undefined) allowances.set(node, allowanceOf(value, rounding));
      measures.get(node)!.push(measured(changed.data));
      return changed;
    });
  };
  run(known, undefined);
  for (const seed of seeds) {
    const nudging = new Nudging({ unit: 2 ** -23 }, seed);
    run(new Map([...known].map(([node, value]) => [node, nudging.of(value, units.get(node))])), nudging);
  }
  const digests = new Map<Node, Digest>();
  for (const [node, rounding] of wanted)
    digests.set(node, digestOf(measures.get(node)!, allowances.get(node)!, rounding, !isInexact(node.dtype)));
  return digests;
}

/** How coarse the numbers are of kernels that a node is read, computed or written by. */
function unitsOf(plan: ComparisonPlan): Map<Node, number> {
  const units = new Map<Node, number>();
  for (const [at, kernel] of plan.kernels.entries()) {
    const { unit } = plan.rounding(at, 'f32');
    for (const node of plan.nodesOf(kernel)) units.set(node, Math.max(unit, units.get(node) ?? 0));
  }
  return units;
}

/** How far off samples and sums may be, whatever they are computed from. */
interface Allowance {
  readonly samples: readonly number[];
  readonly sums: readonly number[];
}

function allowanceOf({ dtype, data }: HostArray, { unit, units }: Rounding): Allowance {
  // Integers are exact, but where they follow from floats.
  const share = isInexact(dtype) ? unit * units : 0;
  let [squares, finite] = [0, 0];
  for (const element of data) {
    const value = Number(element);
    if (!Number.isFinite(value)) continue;
    squares += value * value;
    finite += 1;
  }
  const scale = finite === 0 || !Number.isFinite(squares) ? 0 : Math.sqrt(squares / finite);
  const allowed = (i: number): number => {
    const value = Math.abs(Number(data[i]));
    return share * Math.max(Number.isFinite(value) ? value : 0, scale);
  };
  const sums: number[] = [];
  if (share > 0)
    for (let i = 0; i < data.length; i++) {
      const part = partOf(i, data.length);
      if (part < 0) break;
      // Weights are of either sign, so errors do not add up but by their squares.
      sums[part] = (sums[part] ?? 0) + (2 * weightOf(i) * allowed(i)) ** 2;
    }
  return { samples: samplesOf(data.length).map(allowed), sums: sums.map((sum) => Math.sqrt(sum)) };
}

function digestOf(
  all: readonly DigestMeasure[],
  allowance: Allowance,
  { unit }: Rounding,
  isExact: boolean,
): Digest {
  const [own, ...others] = all as readonly [DigestMeasure, ...DigestMeasure[]];
  const factor = unit > narrowUnit ? narrowSlack : slack;
  const spreadsOf = (of: (measure: DigestMeasure) => readonly number[]): number[] =>
    of(own).map((value, i) => Math.max(...others.map((other) => Math.abs(of(other)[i]! - value))));
  const limit = (value: number, allowed: number, spread: number): number | null => {
    if (Number.isFinite(value)) return Number.isFinite(spread) ? roundedUp(allowed + factor * spread) : null;
    return null;
  };
  const spreads = spreadsOf(({ samples }) => samples);
  // Integers that follow from floats jump: what changed somewhere may change anywhere.
  const sumSpreads = spreadsOf(({ sums }) => sums);
  const widest = Math.max(
    0,
    ...sumSpreads,
    ...(isExact ? spreads.filter((one) => Number.isFinite(one)) : []),
  );
  const sampleLimits = own.samples.map((value, i) => {
    const isSteady = others.every(({ samples }) => Object.is(samples[i], value));
    if (!Number.isFinite(value)) return isSteady ? 0 : null;
    return limit(value, allowance.samples[i]!, isExact ? Math.max(widest, spreads[i]!) : spreads[i]!);
  });
  const samples = own.samples.map((value, i): DigestNumber => {
    if (!Number.isFinite(value)) return String(value) as DigestNumber;
    return shortened(value, sampleLimits[i]!);
  });
  if (own.sums.length === 0) return { samples, sampleLimits };
  // What changes between finite and not finite is on the edge of it.
  const sumLimits = own.sums.map((value, part) =>
    others.some(({ odd }) => odd[part] !== own.odd[part])
      ? null
      : limit(value, allowance.sums[part] ?? 0, widest),
  );
  const sums = own.sums.map((value, part) => shortened(value, sumLimits[part]!));
  const hasOdd = own.odd.some((code) => code !== 0);
  return { samples, sampleLimits, sums, sumLimits, ...(hasOdd && { odd: own.odd }) };
}

/** A number in as many digits as its limit has use for. */
function shortened(value: number, limit: number | null): number {
  return limit === 0 ? value : Number(value.toPrecision(9));
}

function roundedUp(value: number): number {
  return Number((value * 1.02).toPrecision(2));
}

function elementsOf(shape: readonly number[]): number {
  return shape.reduce((product, size) => product * size, 1);
}
