// Targets that have every dtype: registers of 64 bits, and integers narrower than their registers, in Loops against the reference
// interpreter.

import { expect, test } from 'vitest';

import { interpret } from '../../../src/ir/interpret/interpret.ts';
import { cast, reduce, unary } from '../../../src/ir/build.ts';
import {
  dtypeBytes,
  realDTypes as dtypes,
  integerRange,
  isFloat,
  isInteger,
  isWide,
  type DType,
} from '../../../src/ir/dtype.ts';
import type { Node } from '../../../src/ir/graph.ts';
import { emptyData, fromReal, unpackBytes, type HostArray, type Scalar } from '../../../src/ir/value.ts';
import {
  cudaTarget,
  gpuTarget,
  softwareTarget,
  wasmTarget,
  type Target,
} from '../../../src/schedule/target.ts';
import { runLoops } from '../../support/execute.ts';
import { checkLaw } from '../../support/property.ts';
import { expectClose, randomProgram } from '../../support/random/graph.ts';
import { Sketch } from '../cases.ts';
import { randomInt, randomUnit } from '../values.ts';

const targets: readonly Target[] = [
  cudaTarget,
  wasmTarget,
  { ...gpuTarget, dtypes },
  { ...softwareTarget, dtypes },
];
const programs = randomProgram({ dtypes, values: 'tame' });

test('random programs of every dtype equal the interpreter', () => {
  checkLaw(120, programs, ({ graph, inputs }) => {
    const expected = interpret(graph, inputs);
    for (const target of targets) {
      runLoops(target, graph, inputs).forEach(({ dtype, ...got }, i) =>
        expectClose({ dtype, ...got }, expected[i]!, dtype === 'bf16' ? 2e-2 : dtype === 'f16' ? 4e-3 : 1e-3),
      );
    }
  });
});

const edges = [Number.NaN, -0, 0, Infinity, -Infinity];

/** Elements over the whole range, some of them equal, with the special ones. */
function anyElement(dtype: DType): Scalar {
  if (dtype === 'bool') return randomInt(2);
  if (isInteger(dtype)) {
    const [low, high] = integerRange(dtype);
    const bits = (BigInt(randomInt(2 ** 32)) << 32n) | BigInt(randomInt(2 ** 32));
    const element = randomInt(3) === 0 ? BigInt(randomInt(4)) : low + (bits % (high - low + 1n));
    return isWide(dtype) ? element : Number(element);
  }
  const edge = edges[randomInt(20)];
  return fromReal(dtype)(edge ?? (randomUnit() - 0.5) * 10 ** (randomInt(9) - 4));
}

function arrayOf(dtype: DType, shape: readonly number[]): HostArray {
  const data = emptyData(
    dtype,
    shape.reduce((product, extent) => product * extent, 1),
  );
  for (let i = 0; i < data.length; i++) data[i] = anyElement(dtype);
  return { dtype, shape, data };
}

function agree(
  target: Target,
  inputs: readonly HostArray[],
  make: (s: Sketch, inputs: Node[]) => Node,
): void {
  const sketch = new Sketch();
  const graph = sketch.graph([
    make(
      sketch,
      inputs.map(({ shape, dtype }) => sketch.input([...shape], dtype)),
    ),
  ]);
  const [expected] = interpret(graph, inputs);
  expect(runLoops(target, graph, inputs)[0]!.data).toEqual(expected!.data);
}

/** Where lines of more than 2048 are sorted by digits. */
const little = { ...cudaTarget, limits: { ...cudaTarget.limits, workgroupBytes: 16_384 } };

test.each(dtypes)('%s sorts as in the interpreter, by one kernel and by digits', (dtype) => {
  for (const [target, length] of [[cudaTarget, 100] as const, [little, 2500] as const])
    for (const descending of [false, true])
      agree(target, [arrayOf(dtype, [2, length])], (s, [x]) => {
        return s.b.add('argSort', [x!], { axis: 1, descending }) as Node;
      });
});

test.each(dtypes.filter((dtype) => isInteger(dtype)))(
  'folds of %s wrap around as in the interpreter',
  (dtype) => {
    const x = arrayOf(dtype, [3, 300]);
    for (const monoid of ['sum', 'prod', 'min', 'max'] as const) {
      agree(cudaTarget, [x], (s, [node]) => reduce(s.b, monoid, node!, [1]));
      for (const exclusive of [false, true])
        agree(cudaTarget, [x], (s, [node]) => s.scan(node!, 1, monoid, false, exclusive));
    }
    agree(cudaTarget, [x], (s, [node]) => unary(s.b, 'abs', unary(s.b, 'neg', node!)));
  },
);

test.each(dtypes.flatMap((from) => dtypes.map((to) => [from, to] as const)))(
  '%s casts to %s exactly',
  (from, to) => {
    const x = arrayOf(from, [400]);
    // Through f32, as PyTorch does, so that ties may be rounded twice.
    const short = to === 'f16' || to === 'bf16';
    if (short && (from === 'f64' || isInteger(from))) return;
    agree(cudaTarget, [x], (s, [node]) => cast(s.b, node!, to));
  },
);

const ofTwoBytes = dtypes.filter((dtype) => dtypeBytes(dtype) === 2);

test.each(ofTwoBytes.flatMap((from) => ofTwoBytes.map((to) => [from, to] as const)))(
  'every %s that is a number has the bits of the %s it is read as',
  (from, to) => {
    const bits = Uint16Array.from({ length: 2 ** 16 }, (_, i) => i);
    const all = unpackBytes(new Uint8Array(bits.buffer), from, [2 ** 16]);
    const numbers = [...(all.data as Float32Array)].filter((x) => !Number.isNaN(x));
    const data = emptyData(from, numbers.length);
    data.set(numbers as never);
    const targets = isFloat(from) && isFloat(to) ? [cudaTarget, gpuTarget] : [cudaTarget];
    for (const target of targets)
      agree(target, [{ dtype: from, shape: [numbers.length], data }], (s, [x]) => {
        return s.b.add('bitcast', [x!], { dtype: to }) as Node;
      });
  },
);
