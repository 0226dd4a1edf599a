// What the functions take that record nothing by themselves: those of derivatives, compiling, devices and seeds, and those of
// `sinter/onnx` and `sinter/explain`.

import * as sn from '../../../src/index.ts';
import type { Tensor } from '../../../src/index.ts';
import { exportOnnx } from '../../../src/onnx/index.ts';
import {
  anything,
  count,
  dtype,
  flag,
  fn,
  like,
  maybe,
  meaning,
  notNegative,
  options,
  shape,
  t,
  text,
  word,
} from '../kinds.ts';
import type { MethodRow } from './layer.ts';
import { aBuffer } from './runtime.ts';
import type { Rows } from './operation.ts';

const double = (x: Tensor): Tensor => sn.mul(x, 2);
const seeds = sn.saveRngState();
const model = (await exportOnnx(double, [sn.ones([2])])).bytes;
/** What a place takes where a function is meant that may be anything else for its own reasons. */
const traced = meaning(() => double, 'function', 'asynchronous', 'tensor', 'bool', 'integers');
const argumentsOf = meaning(
  () => [sn.ones([2])],
  'tensors',
  'emptyList',
  'holes',
  'numbers',
  'texts',
  'nested',
  'nothing',
);

/** An axis, null, or any tree of these. */
const mappedAxes = meaning(
  () => 0,
  'number',
  'negative',
  'nothing',
  'null',
  'object',
  'bare',
  'numbers',
  'nested',
  'emptyList',
  'emptyObject',
);

/** Arguments, and what is given for each of them: how many there are depends on the function. */
const listOfOne = meaning(() => [sn.ones([2])], 'tensors');

export const callRows: Rows = {
  fromBuffer: [
    aBuffer,
    options({ shape: shape(2), dtype, strides: shape(1), offset: meaning(() => 0, 'number'), copy: flag }),
  ],
  close: [maybe(word('interpreter'))],
  compile: [
    fn,
    options({
      donate: meaning(() => [0], 'emptyList'),
      tune: meaning(() => false, 'true', 'emptyObject'),
      schedules: meaning(() => ({ version: 1, entries: {} })),
      memory: meaning(() => 2 ** 30, 'number'),
    }),
  ],
  checkpoint: [
    fn,
    options({ policy: meaning(() => 'products', 'emptyList', 'texts', 'function', 'asynchronous') }),
  ],
  checkpointName: [t(2), text('scores')],
  customJvp: [fn, fn],
  customVjp: [fn, fn],
  detectAnomaly: [meaning(() => () => 1, 'function', 'asynchronous', 'true')],
  devices: [],
  profile: [like(fn, () => () => 1)],
  useWorkarounds: [maybe(meaning(() => ({ version: 1, entries: [] })))],
  setChecks: [like(flag, () => true)],
  setDebug: [like(flag, () => false)],
  setAutoDims: [flag],
  dim: [
    meaning(() => 'n', 'text'),
    options({ min: like(count, () => 1), max: like(count, () => 64), multipleOf: like(count, () => 1) }),
  ],
  stats: [],
  enableGrad: [like(fn, () => () => 1)],
  autocast: [like(fn, () => () => 1), options({ dtype: word('f16'), enabled: flag })],
  withAutocast: [fn, options({ dtype: word('f16'), enabled: flag })],
  noGrad: [like(fn, () => () => 1)],
  explain: [traced, anything],
  grad: [fn, options({ argnums: anything, hasAux: flag })],
  valueAndGrad: [fn, options({ argnums: anything, hasAux: flag })],
  jvp: [like(fn, () => double), listOfOne, listOfOne],
  hvp: [like(fn, () => (x: Tensor) => sn.sum(double(x))), listOfOne, listOfOne],
  stopGradient: [anything],
  linearize: [like(fn, () => double), like(anything, () => sn.ones([2]))],
  jacfwd: [fn, options({ argnums: anything })],
  jacrev: [fn, options({ argnums: anything })],
  hessian: [fn, options({ argnums: anything })],
  vmap: [fn, options({ inAxes: mappedAxes, outAxes: mappedAxes, randomness: word('different', 'same') })],
  gradients: [
    meaning(() => gradientOf()[0], 'tensor', 'bool', 'integers', 'tensors', 'emptyList'),
    meaning(() => gradientOf()[1], 'tensors', 'emptyList'),
    meaning(() => undefined, 'tensors', 'nothing', 'emptyList'),
  ],
  scan: [
    like(fn, () => (c: Tensor) => [c, undefined]),
    like(anything, () => sn.ones([2])),
    like(anything, () => sn.ones([2])),
    options({
      reverse: flag,
      length: meaning(() => 2, 'number'),
      checkpoint: meaning(() => 2, 'number'),
    }),
  ],
  foriLoop: [
    meaning(() => 0, 'number', 'negative'),
    meaning(() => 2, 'number', 'negative'),
    like(fn, () => (_: Tensor, c: Tensor) => c),
    like(anything, () => sn.ones([2])),
    options({ checkpoint: meaning(() => 2, 'number') }),
  ],
  cond: [
    like(anything, () => sn.tensor(true)),
    like(fn, () => double),
    like(fn, () => double),
    like(anything, () => sn.ones([2])),
  ],
  switchCase: [
    like(anything, () => sn.tensor(1, { dtype: 'i32' })),
    like(anything, () => [double, double]),
    like(anything, () => sn.ones([2])),
  ],
  whileLoop: [
    like(fn, () => (c: Tensor) => c.sum().lt(9)),
    like(fn, () => double),
    like(anything, () => sn.ones([2])),
    options({ maxTurns: meaning(() => 2, 'number') }),
  ],
  map: [like(fn, () => double), like(anything, () => sn.ones([2]))],
  associativeScan: [
    like(fn, () => (a: Tensor, b: Tensor) => a.add(b)),
    like(anything, () => sn.ones([2])),
    options({ axis: meaning(() => 0, 'number'), reverse: flag }),
  ],
  vjp: [like(fn, () => double), like(anything, () => sn.ones([2]))],
  lower: [traced, argumentsOf, options({ target: word('wgsl'), software: flag })],
  key: [meaning(() => 1, 'bigint', 'number', 'negative')],
  splitKey: [like(anything, () => sn.key(1)), meaning(() => 2, 'number', 'nothing')],
  foldIn: [like(anything, () => sn.key(1)), meaning(() => 2, 'number', 'tensor')],
  withKey: [like(anything, () => sn.key(1)), like(fn, () => () => 1)],
  manualSeed: [meaning(() => 1, 'bigint', 'number', 'negative')],
  matmulPrecision: [],
  loadCompiler: [],
  measuredSchedules: [],
  restoreRngState: [meaning(() => seeds)],
  saveRngState: [],
  setDevice: [meaning(() => 'interpreter', 'nothing')],
  setRetainedMemoryLimit: [notNegative],
  setMatmulPrecision: [word('f32')],
  synchronize: [],
  treeLeaves: [anything],
  treeMap: [fn, anything],
};

let made: [Tensor, Tensor[]] | undefined;

function gradientOf(): [Tensor, Tensor[]] {
  if (made === undefined) {
    const x = sn.tensor([1, 2]).requiresGrad_();
    made = [x.mul(2).sum(), [x]];
  }
  return made;
}

export const notationRows: Rows = { kernel: [text('y[i < 2] = i')] };

export const onnxRows: Rows = {
  exportOnnx: [
    traced,
    { ...argumentsOf, accepts: new Set([...argumentsOf.accepts].filter((name) => name !== 'nothing')) },
    options({
      parameters: anything,
      dtype: word('f32', 'f16'),
      opset: meaning(() => 21, 'number', 'negative'),
      externalData: text('a.bin'),
      name: text('named'),
    }),
  ],
  loadOnnx: [
    meaning(() => model, 'text', 'empty', 'bytes'),
    options({
      externalData: meaning(() => ({}), 'emptyObject'),
      maxBytes: notNegative,
      maxNodes: notNegative,
    }),
  ],
};

const explained = sn.explain(double, sn.ones([2]));
export const explainRows: Rows = {
  explanationPage: [meaning(() => explained), options({ title: text('a title') })],
};

function method(name: string, self: () => object, ...places: MethodRow['places']): MethodRow {
  const call = (...args: readonly unknown[]): unknown => {
    const at = self() as Readonly<Record<string, (...given: unknown[]) => unknown>>;
    return at[name]!(...args);
  };
  return { name: `Tensor.${name}`, told: name, call, places };
}

const x = sn.tensor([1, 2]);
const leaf = (): Tensor => sn.tensor([1, 2]);
/** What tensors do by themselves. */
export const tensorMethods: readonly MethodRow[] = [
  method('array', () => x),
  method('buffer', () => x),
  method('data', () => x),
  method('item', () => sn.tensor(1)),
  method('detach', () => x),
  method('dispose', leaf),
  method('zeroGrad', leaf),
  method('toString', () => x),
  method('requiresGrad_', leaf, maybe(flag)),
  method(
    'assign',
    leaf,
    like(t(2), () => sn.tensor([3, 4])),
  ),
  method(
    'backward',
    () => sn.tensor(1).requiresGrad_(),
    maybe(like(t(), () => sn.tensor(1))),
    options({ retainGraph: flag }),
  ),
  {
    name: 'Explanation.toText',
    told: 'toText',
    call: (given) => explained.toText(given as object),
    places: [
      options({
        columns: meaning(() => 80, 'number'),
        graph: flag,
        details: flag,
        reasons: flag,
        sources: flag,
      }),
    ],
  },
];
