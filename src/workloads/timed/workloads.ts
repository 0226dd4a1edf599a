// The workloads that `sinter bench` times. Each is a function of tensors with inputs from fixed
// seeds, and a float64 reference that its results are held to. A name that counted workloads have
// too stands for the same program.

import * as sn from '../../index.ts';
import type { Tensor } from '../../index.ts';
import { adam, type OptimizerState } from '../../optim/index.ts';
import * as data from './inputs.ts';
import * as references from './references.ts';
import type { Reference } from './references.ts';
import { workload } from '../workload.ts';
import { decodeAttentionTimed, gemvQ8Timed, gemvsTimed } from './decoding.ts';
import { convTrainTimed, resnetTrainTimed } from './networks.ts';
import { lstmTrainTimed } from './recurrent.ts';
import type { WorkloadStep, TimedWorkload } from './workload.ts';

/** A function compiled once and called with the same arguments each time. */
function repeated<A extends unknown[]>(
  name: string,
  about: string,
  fn: (...args: A) => Tensor,
  args: () => [...NoInfer<A>],
  reference: () => Reference,
  tolerance = 2e-5,
): TimedWorkload {
  const start = (given: readonly unknown[]): WorkloadStep => {
    const compiled = sn.compile(fn as (...args: unknown[]) => Tensor);
    return () => compiled(...given);
  };
  return { ...workload(name, about, fn, args), start, reference, tolerance };
}

const square = [data.side, data.side];

const gelu = repeated(
  'gelu',
  'gelu_tanh(2x + 1) · x, 4 Mi elements',
  (x: Tensor) => x.mul(2).add(1).gelu({ approximate: 'tanh' }).mul(x),
  () => [sn.tensor(data.chain())],
  references.chain,
);

const softmax = repeated(
  'softmax',
  'softmax of rows, 1024 × 1024',
  (x: Tensor) => x.softmax(),
  () => [sn.tensor(data.softmaxRows(), { shape: square })],
  references.softmax,
);

const layerNorm = repeated(
  'layerNorm',
  'layer norm with weight and bias, 1024 × 1024',
  (x: Tensor, gain: Tensor, shift: Tensor) => sn.layerNorm(x, data.side, gain, shift),
  () => {
    const { x, gain, shift } = data.normRows();
    return [sn.tensor(x, { shape: square }), sn.tensor(gain), sn.tensor(shift)];
  },
  references.layerNorm,
);

function matmul(name: string, m: number, k: number, n: number): TimedWorkload {
  return repeated(
    name,
    `matmul [${m}, ${k}] · [${k}, ${n}]`,
    (a: Tensor, b: Tensor) => a.matmul(b),
    () => {
      const { a, b } = data.product(m, k, n);
      return [sn.tensor(a, { shape: [m, k] }), sn.tensor(b, { shape: [k, n] })];
    },
    () => references.matmul(m, k, n),
  );
}

const conv3x3 = repeated(
  'conv3x3',
  'convolution 3 × 3, padding 1, [1, 32, 56, 56] to 64 channels',
  (x: Tensor, weight: Tensor) => sn.conv2d(x, weight, undefined, { padding: 1 }),
  () => {
    const { channels, filters, size, window } = data.image;
    const { x, weight } = data.convolution();
    return [
      sn.tensor(x, { shape: [1, channels, size, size] }),
      sn.tensor(weight, { shape: [filters, channels, window, window] }),
    ];
  },
  references.convolution,
);

type LayerWeights = Record<data.LayerPart, Tensor>;

/** A pre-norm transformer layer over x [batch, positions, width]. */
function transformerLayer(x: Tensor, p: LayerWeights): Tensor {
  const { batch, length, width, heads } = data.layer;
  const qkv = sn
    .layerNorm(x, width, p.gain1, p.shift1)
    .matmul(p.qkv)
    .add(p.qkvBias)
    .reshape([batch, length, 3, heads, width / heads])
    .permute([2, 0, 3, 1, 4]);
  const [q, k, v] = qkv.unbind() as [Tensor, Tensor, Tensor];
  const seen = sn.scaledDotProductAttention(q, k, v, { isCausal: true });
  const joined = seen.permute([0, 2, 1, 3]).reshape([batch, length, width]);
  const attended = joined.matmul(p.project).add(p.projectBias).add(x);
  const hidden = sn.layerNorm(attended, width, p.gain2, p.shift2).matmul(p.up).add(p.upBias);
  return hidden.gelu({ approximate: 'tanh' }).matmul(p.down).add(p.downBias).add(attended);
}

/** A tensor for each part, in its shape. */
function tensors<P extends string>(
  shapes: Readonly<Record<P, readonly number[]>>,
  parts: Readonly<Record<NoInfer<P>, Float32Array>>,
): Record<P, Tensor> {
  const names = Object.keys(shapes) as P[];
  const pairs = names.map((name) => [name, sn.tensor(parts[name], { shape: shapes[name] })]);
  return Object.fromEntries(pairs) as Record<P, Tensor>;
}

const gptBlockForward = repeated(
  'gptBlockForward',
  'transformer layer forward, width 256, 4 heads, batch 4, 128 positions, hidden 1024, causal',
  transformerLayer,
  () => {
    const { batch, length, width } = data.layer;
    const parts = data.transformerLayer();
    return [sn.tensor(parts.x, { shape: [batch, length, width] }), tensors(data.layerShapes, parts)];
  },
  references.transformerLayer,
  2e-4,
);

type Perceptron = Record<data.PerceptronPart, Tensor>;

const optimizer = adam({ lr: data.perceptron.rate });

function trainStep(
  params: Perceptron,
  state: OptimizerState,
  x: Tensor,
  labels: Tensor,
): readonly [loss: Tensor, params: Perceptron, state: OptimizerState] {
  const loss = (p: Perceptron): Tensor => {
    const logits = x.matmul(p.w1).add(p.b1).relu().matmul(p.w2).add(p.b2);
    return sn.crossEntropy(logits, labels);
  };
  const { value, grad } = sn.valueAndGrad(loss)(params);
  return [value, ...optimizer.update(params, grad, state)];
}

const mlpTrainAdam: TimedWorkload = {
  ...workload(
    'mlpTrainAdam',
    'train step of a perceptron 784-256-10, batch 64, cross-entropy, Adam',
    trainStep,
    (): [Perceptron, OptimizerState, Tensor, Tensor] => {
      const { batch, inputs } = data.perceptron;
      const { x, labels, parameters } = data.trainStep();
      const params = tensors(data.perceptronShapes, parameters);
      return [params, optimizer.init(params), sn.tensor(x, { shape: [batch, inputs] }), sn.tensor(labels)];
    },
  ),
  start: (args) => {
    let [params, state, x, labels] = args as Parameters<typeof trainStep>;
    const compiled = sn.compile(trainStep, { donate: [0, 1] });
    return () => {
      const [loss, nextParams, nextState] = compiled(params, state, x, labels);
      [params, state] = [nextParams, nextState];
      return loss;
    };
  },
  reference: references.losses,
  tolerance: 1e-4,
};

function manyAdditions(a: Tensor, b: Tensor): Tensor {
  let sum = a;
  for (let i = 0; i < data.additions; i++) sum = sum.add(b);
  return sum;
}

function smallVectors(): [Tensor, Tensor] {
  const { a, b } = data.smallVectors();
  return [sn.tensor(a), sn.tensor(b)];
}

const additionsAbout = `${data.additions} chained additions of 64 elements`;

/** Recorded anew at each call. */
const additionsEager: TimedWorkload = {
  ...workload('additionsEager', `${additionsAbout}, eager`, manyAdditions, smallVectors),
  start: (args) => () => manyAdditions(...(args as [Tensor, Tensor])),
  reference: references.sums,
  tolerance: 2e-5,
};

const additionsCompiled = repeated(
  'additionsCompiled',
  `${additionsAbout}, compiled`,
  manyAdditions,
  smallVectors,
  references.sums,
);

/** In the order of reports. */
export const timedWorkloads: readonly TimedWorkload[] = [
  gelu,
  softmax,
  layerNorm,
  matmul('matmul256', 256, 256, 256),
  matmul('matmul512', 512, 512, 512),
  matmul('matmul1024', 1024, 1024, 1024),
  matmul('vectorMatmul', 1, 1024, 4096),
  conv3x3,
  gptBlockForward,
  mlpTrainAdam,
  additionsEager,
  additionsCompiled,
  convTrainTimed,
  resnetTrainTimed,
  lstmTrainTimed,
  decodeAttentionTimed,
  ...gemvsTimed,
  gemvQ8Timed,
];
