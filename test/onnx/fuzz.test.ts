// Nodes that no tool writes: every operator with attributes and inputs of every kind, most of them valid nodes with one to three things
// wrong. Each runs, or is refused by a typed error, in little time and memory.
//
// SINTER_FUZZ_RUNS=100000 npx vitest run test/onnx/fuzz.test.ts looks further; SINTER_SEED repeats a run, and SINTER_FUZZ_TRACE=1 says
// each case before it runs, for one that never ends.

import { readdirSync, readFileSync } from 'node:fs';
import * as path from 'node:path';
import * as fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { setDevice, SinterError } from '../../src/index.ts';
import { sizeOf } from '../../src/ir/shape.ts';
import { emptyData, type HostArray } from '../../src/ir/value.ts';
import { loadOnnx } from '../../src/onnx/index.ts';
import { domains } from '../../src/onnx/ops/index.ts';
import type { Draft } from '../support/onnx/file.ts';
import { seed } from '../support/property.ts';
import { evaluate, modelOf } from './peer/compare.ts';
import { Draw, drawn, type NodeCase } from './peer/draw.ts';
import { families } from './peer/index.ts';

const runs = Number(process.env['SINTER_FUZZ_RUNS'] ?? 3000);
const isTraced = process.env['SINTER_FUZZ_TRACE'] !== undefined;
const limits = { maxBytes: 2 ** 22, maxNodes: 3000 };
/** Milliseconds of processor time that a case may take; the first ones warm the engine up. */
const mostTime = 3000;

beforeAll(() => setDevice('interpreter'));
afterAll(() => setDevice(undefined));

const operators = [
  ...Object.keys(domains['']!),
  'If',
  'Loop',
  'Scan',
  'constructor',
  '__proto__',
  'toString',
  '',
];

/** Every name that a row reads an attribute by, and every word that one compares with. */
const folder = path.resolve(import.meta.dirname, '../../src/onnx/ops');
const source = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts'))
  .map((file) => readFileSync(path.join(folder, file), 'utf8'))
  .join('');
const attributeNames = [
  ...new Set(Array.from(source.matchAll(/(?:int|float|string|tensor|sparse)s?\('(\w+)'/g), (m) => m[1]!)),
];
const words = [
  ...new Set(Array.from(source.matchAll(/'([\w-]{1,24})'/g), (m) => m[1]!)),
  '',
  'constructor',
  '__proto__',
];

const whole = [
  0n,
  1n,
  -1n,
  2n,
  3n,
  4n,
  7n,
  -2n,
  255n,
  2n ** 16n,
  2n ** 31n - 1n,
  2n ** 31n,
  -(2n ** 31n),
  2n ** 32n,
  2n ** 53n,
];
const wide = [...whole, 2n ** 62n, 2n ** 63n - 1n, -(2n ** 63n)];
const real = [0, -0, 1, -1, 0.5, 2, 3, 1e-40, 1e30, -1e30, Infinity, -Infinity, NaN];

/** One of these. */
function pick<T>(draw: Draw, list: readonly T[]): T {
  return list[draw.int(0, list.length - 1)]!;
}

function some<T>(draw: Draw, most: number, make: () => T): T[] {
  return Array.from({ length: draw.int(0, most) }, make);
}

function attribute(draw: Draw, name: string): Draft {
  const bytes = (): Uint8Array => new TextEncoder().encode(pick(draw, words));
  switch (draw.int(0, 6)) {
    case 0:
    case 1:
      return { name, type: 2, i: pick(draw, wide) };
    case 2:
      return { name, type: 1, f: pick(draw, real) };
    case 3:
      return { name, type: 3, s: bytes() };
    case 4:
      return { name, type: 7, ints: some(draw, 6, () => pick(draw, wide)) };
    case 5:
      return { name, type: 6, floats: some(draw, 6, () => pick(draw, real)) };
    default:
      return { name, type: 8, strings: some(draw, 4, bytes) };
  }
}

const dtypes = ['f32', 'i64', 'i32', 'bool', 'u8', 'f16', 'f64', 'u64'] as const;

function array(draw: Draw, like?: HostArray): HostArray {
  const dtype = like !== undefined && draw.int(0, 3) > 0 ? like.dtype : pick(draw, dtypes);
  const shape =
    like !== undefined && draw.int(0, 1) === 0
      ? like.shape
      : some(draw, 5, () => pick(draw, [0, 1, 1, 2, 3, 4]));
  const data = emptyData(dtype, sizeOf(shape));
  for (let i = 0; i < data.length; i++) {
    const isBig = dtype === 'i64' || dtype === 'u64';
    const value = dtype.startsWith('f')
      ? pick(draw, real)
      : pick(draw, draw.int(0, 3) === 0 ? wide : whole.slice(0, 6));
    data[i] = isBig
      ? BigInt.asIntN(64, BigInt(value))
      : dtype === 'bool'
        ? Number(value !== 0n)
        : Number(value);
  }
  return { dtype, shape, data };
}

/** The case with something else. */
function changed(draw: Draw, item: NodeCase): NodeCase {
  const { attributes = [], inputs, stored = [], outputs = 1 } = item;
  const at = draw.int(0, Math.max(0, inputs.length - 1));
  const put = (value: HostArray | undefined): NodeCase => ({
    ...item,
    inputs: inputs.length === 0 ? [value] : inputs.map((old, i) => (i === at ? value : old)),
  });
  switch (draw.int(0, 9)) {
    case 0:
    case 1:
      return put(array(draw, inputs[at]));
    case 2:
      return put(undefined);
    case 3:
      return { ...item, inputs: inputs.slice(0, at) };
    case 4:
      return { ...item, attributes: [...attributes, attribute(draw, pick(draw, attributeNames))] };
    case 5:
    case 6: {
      if (attributes.length === 0) return { ...item, opset: pick(draw, [1, 7, 11, 13, 18, 21, 24]) };
      const own = draw.int(0, attributes.length - 1);
      const other = attribute(draw, String(attributes[own]!['name']));
      return { ...item, attributes: attributes.map((old, i) => (i === own ? other : old)) };
    }
    case 7:
      return { ...item, attributes: attributes.slice(1) };
    case 8:
      return { ...item, op: pick(draw, operators), outputs: draw.int(0, 3) };
    default:
      return {
        ...item,
        stored: stored.length > 0 ? [] : inputs.map((_, i) => i),
        outputs: draw.int(0, outputs + 2),
      };
  }
}

function wild(draw: Draw): NodeCase {
  const inputs = some(draw, 5, () => (draw.int(0, 5) === 0 ? undefined : array(draw)));
  return {
    op: pick(draw, operators),
    opset: pick(draw, [1, 7, 11, 13, 18, 21, 24]),
    inputs,
    attributes: some(draw, 4, () => attribute(draw, pick(draw, attributeNames))),
    outputs: draw.int(0, 3),
    stored: inputs.flatMap((_, i) => (draw.int(0, 1) === 0 ? [i] : [])),
  };
}

const valid = Object.values(families);

function anyCase(draw: Draw): NodeCase {
  if (draw.int(0, 3) === 0) return wild(draw);
  let item = pick(draw, valid)(draw);
  for (let changes = draw.int(1, 3); changes > 0; changes--) item = changed(draw, item);
  return item;
}

const show = (item: NodeCase): string =>
  JSON.stringify(item, (_, value: unknown) =>
    typeof value === 'bigint'
      ? `${value}n`
      : ArrayBuffer.isView(value)
        ? Array.from(value as Uint8Array, String)
        : value,
  );

test(`${runs} nodes that no tool writes run, or are refused by typed errors`, async () => {
  console.log(`random inputs from SINTER_SEED=${seed}`);
  const counts = { ran: 0, refused: 0 };
  const law = async (item: NodeCase): Promise<void> => {
    if (isTraced) console.log(show(item));
    const before = process.cpuUsage();
    const { file, given } = modelOf(item);
    try {
      const loaded = await loadOnnx(file, limits);
      const outcome = await evaluate(loaded, given);
      if (outcome.kind === 'refused') throw outcome.error;
      counts.ran += 1;
    } catch (error) {
      if (!(error instanceof SinterError) || error.code === 'E_BUG' || !error.message.includes(':'))
        throw new Error(`${show(item)}: ${String((error as Error).stack)}`, { cause: error });
      counts.refused += 1;
    }
    const { user } = process.cpuUsage(before);
    if (user / 1000 > mostTime) throw new Error(`${show(item)} took ${user / 1000} ms`);
  };
  await fc.assert(fc.asyncProperty(drawn(anyCase), law), { numRuns: runs, seed, endOnFailure: true });
  console.log(`${counts.ran} ran, ${counts.refused} were refused`);
  expect(counts.ran).toBeGreaterThan(runs / 50);
  expect(counts.refused).toBeGreaterThan(runs / 10);
});
