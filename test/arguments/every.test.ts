// Every public function refuses every wrong argument by a SinterError that names it, records nothing before, and leaves the next
// computation as it was. An export that no row tells how to call fails here.
//
// Runs in a process of its own: it calls every function of the package, those that change settings included.

import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import * as sn from '../../src/index.ts';
import * as data from '../../src/data/index.ts';
import * as explaining from '../../src/explain/index.ts';
import * as pixels from '../../src/pixels/index.ts';
import * as quant from '../../src/quant/index.ts';
import * as runtime from '../../src/interop/index.ts';
import * as ir from '../../src/ir/index.ts';
import * as io from '../../src/io/index.ts';
import * as nn from '../../src/nn/index.ts';
import * as notation from '../../src/notation/index.ts';
import * as onnx from '../../src/onnx/index.ts';
import * as optim from '../../src/optim/index.ts';
import * as training from '../../src/train/index.ts';
import { callRows, explainRows, notationRows, onnxRows, tensorMethods } from './rows/call.ts';
import { dataRows, metricRows } from './rows/data.ts';
import { fftRows } from './rows/fft.ts';
import { ioRows, trainRows } from './rows/file.ts';
import { linalgRows } from './rows/linalg.ts';
import { builderMethods, irRows } from './rows/ir.ts';
import { methodRows, nnRows, optimRows } from './rows/layer.ts';
import { linalgSpectralRows } from './rows/spectral.ts';
import { maskedRows, operationRows, sparse24Rows, sparseRows, type Rows } from './rows/operation.ts';
import { runtimeRows } from './rows/runtime.ts';
import { pixelsRows } from './rows/pixels.ts';
import { quantRows } from './rows/quant.ts';
import { faultsOf, validFault } from './walk.ts';

// Where a call stands costs a test runner that maps sources much; `arguments.test.ts` has it.
const { stackTraceLimit } = Error;

// Before each: setDevice is among the functions that are called.
beforeEach(() => {
  Error.stackTraceLimit = 0;
  sn.setDevice('interpreter');
});
afterAll(() => {
  Error.stackTraceLimit = stackTraceLimit;
  sn.setDevice(undefined);
});

type Callable = (...args: readonly unknown[]) => unknown;

/** A member called as a function; classes are made. */
function callOf(member: unknown): Callable {
  if (!/^class\b/.test(Function.prototype.toString.call(member))) return member as Callable;
  return (...args) => new (member as new (...given: readonly unknown[]) => unknown)(...args);
}

async function checked(told: string, call: Callable, places: Rows[string]): Promise<void> {
  const row = { call, places };
  expect(await validFault(row)).toEqual([]);
  expect(await faultsOf(told, row)).toEqual([]);
  expect(await sn.tensor([1, 2]).add(1).array()).toEqual([2, 3]);
}

const entries: readonly (readonly [entry: string, members: object, rows: Rows])[] = [
  ['sinter', sn, { ...operationRows, ...callRows }],
  ['sinter, linalg', sn.linalg, { ...linalgRows, ...linalgSpectralRows }],
  ['sinter/nn', nn, nnRows],
  ['sinter/notation', notation, notationRows],
  ['sinter/optim', optim, optimRows],
  ['sinter/io', io, ioRows],
  ['sinter/train', training, trainRows],
  ['sinter/data', data, dataRows],
  ['sinter/data, metrics', data.metrics, metricRows],
  ['sinter/ir', ir, irRows],
  ['sinter/onnx', onnx, onnxRows],
  ['sinter masked', sn.masked, maskedRows],
  ['sinter sparse', sn.sparse, sparseRows],
  ['sinter sparse24', sn.sparse24, sparse24Rows],
  ['sinter/pixels', pixels, pixelsRows],
  ['sinter/quant', quant, quantRows],
  ['sinter/runtime', runtime, runtimeRows],
  ['sinter/explain', explaining, explainRows],
  ['sinter, fft', sn.fft, fftRows],
];

/** Exported to be recognised, to be derived from, or made by the package alone. */
const notCalled = new Set(
  (
    'CompilerBug DeviceError IndexError ParseError SinterError TensorError Tensor Explanation Module Optimizer ' +
    // Made by functions, and of a promise.
    'DeviceBuffer Fence Storage WeakStorage ' +
    'CooMatrix CscMatrix CsrMatrix Packed24 QuantizedTensor ' +
    // Refuses the interpreter, which this file runs on; `tensor/check` has its wrong arguments.
    'check ' +
    // These would write; `mistakes.test.ts` has them.
    'ExportedModel OnnxModel UnsupportedNodesError UnsupportedOpsError writeFile replaceFile saveCheckpoint writeGguf'
  ).split(' '),
);

test.each(entries)('%s has a row for every function and class that is exported', (_, members, rows) => {
  const callable = Object.entries(members).flatMap(([name, at]) => (typeof at === 'function' ? [name] : []));
  expect(callable.filter((name) => !(name in rows) && !notCalled.has(name))).toEqual([]);
});

test('every method of Tensor has a row', () => {
  const own = new Set(tensorMethods.map(({ told }) => told));
  const methods = Object.entries(Object.getOwnPropertyDescriptors(sn.Tensor.prototype)).flatMap(
    ([name, at]) => (typeof at.value === 'function' && name !== 'constructor' ? [name] : []),
  );
  expect(methods.filter((name) => !(name in operationRows) && !own.has(name))).toEqual([]);
});

describe.each(entries)('%s', (_, members, rows) => {
  const known = Object.entries(rows).filter(([name]) => name in members);
  test.each(known)('%s', async (name, places) => {
    await checked(name, callOf((members as Readonly<Record<string, unknown>>)[name]), places);
  });
});

describe('methods of Tensor', () => {
  const methods = Object.entries(operationRows).filter(([name]) => name in sn.Tensor.prototype);
  test.each(methods)('%s', async (name, places) => {
    const method = (sn.Tensor.prototype as unknown as Readonly<Record<string, Callable>>)[name]!;
    await checked(name, (self, ...rest) => method.call(self, ...rest), places);
  });
});

test.each([...methodRows, ...tensorMethods, ...builderMethods])('$name', async ({ told, call, places }) => {
  await checked(told, call, places);
});
