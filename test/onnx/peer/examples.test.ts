// The examples of operations as files: ONNX Runtime computes from them what the interpreter does. Each run draws some of the table of
// operations and dtypes. A cell that ONNX has no spelling for is refused by name, and a type that ONNX Runtime's CPU has no kernel for is
// counted.

import * as fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { setDevice } from '../../../src/index.ts';
import type { HostTensor } from '../../../src/io/host.ts';
import type { DType } from '../../../src/ir/dtype.ts';
import { packBytes, unpackBytes, type HostArray } from '../../../src/ir/value.ts';
import { exportOnnx, loadOnnx, UnsupportedOpsError } from '../../../src/onnx/index.ts';
import { recorded, tensorsIn } from '../../support/coverage/call.ts';
import { applies, judged, pairs, prepared, type Prepared } from '../../support/coverage/cells.ts';
import { allRows } from '../../support/coverage/report.ts';
import { runInPeer } from '../../support/onnx/runtime.ts';
import { seed } from '../../support/property.ts';
import { casesOf } from '../../support/sample.ts';

// Where a call stands costs a test runner that maps sources much.
const { stackTraceLimit } = Error;
beforeAll(() => {
  Error.stackTraceLimit = 0;
  setDevice('interpreter');
});
afterAll(() => {
  Error.stackTraceLimit = stackTraceLimit;
  setDevice(undefined);
});

/** bf16 goes neither into nor out of ONNX Runtime's own arrays. */
const dtypes: readonly DType[] = ['f32', 'f64', 'f16', 'i64', 'i32', 'u32', 'i8', 'u8', 'bool', 'c64'];
const lacking = /Could not find an implementation|Unsupported data type: 16/;

const arrayOf = (host: HostTensor): HostArray => {
  const { dtype, shape, data } = pairs(host);
  return unpackBytes(data, dtype, shape);
};

/** How a row comes out in ONNX Runtime. */
async function outcomeOf({ row, dtype, inputs, sized }: Prepared): Promise<'same' | 'unspelled' | 'lacking'> {
  const names = Object.keys(inputs);
  const call = (...args: readonly unknown[]): unknown =>
    recorded(row, dtype, Object.fromEntries(names.map((name, i) => [name, args[i] as never])));
  try {
    const file = await exportOnnx(call as never, Object.values(tensorsIn(inputs, false)), { opset: 26 });
    const { inputs: ports, outputs } = await loadOnnx(file.bytes);
    const given = Object.values(inputs).map((x, i) => [ports[i]!.name, arrayOf(x)] as const);
    // Its own rewriting keeps factors of doubles in f32.
    const found = await runInPeer(file.bytes, Object.fromEntries(given), {
      graphOptimizationLevel: 'disabled',
    });
    const results = outputs.map(({ name }): HostTensor => {
      const array = found[name]!;
      return { dtype: array.dtype, shape: array.shape, data: packBytes(array) };
    });
    expect({ row: row.name, dtype, outcome: judged(results, sized.map(pairs), dtype) }).toEqual({
      row: row.name,
      dtype,
      outcome: { kind: 'ok' },
    });
    return 'same';
  } catch (error) {
    if (error instanceof UnsupportedOpsError) return 'unspelled';
    if (error instanceof Error && lacking.test(error.message)) return 'lacking';
    throw error;
  }
}

test('examples of operations mean the same in ONNX Runtime', async () => {
  const cells = allRows.flatMap((row) => dtypes.map((dtype) => ({ row, dtype })));
  const count = casesOf(160, 40);
  const drawn = fc.sample(fc.shuffledSubarray(cells, { minLength: count, maxLength: count }), {
    seed,
    numRuns: 1,
  })[0]!;
  const counts = { same: 0, unspelled: 0, lacking: 0, refused: 0 };
  for (const { row, dtype } of drawn) {
    const item = await prepared(row, dtype);
    if ('kind' in item) counts.refused += 1;
    else if (applies(item, 'exported')) counts[await outcomeOf(item)] += 1;
  }
  console.log(`random cells from SINTER_SEED=${seed}: ${JSON.stringify(counts)}`);
  expect(counts.same).toBeGreaterThan(count / 2);
}, 120_000);
