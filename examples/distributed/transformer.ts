// A small transformer that learns to continue a text, trained by several processes together. The model and the step are written as for
// one process; a layout for each parameter says how the processes of a mesh hold it. Start it with
//
//   npx sinter launch -n 4 examples/distributed/transformer.ts --parallel tensor --mesh data=2,model=2
//
// With --save FOLDER it saves its state, every 5 steps or as --every says, and goes on from what the folder holds; `sinter launch --restarts 3` starts
// it again when a process has died.

import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import * as sn from 'sinter';
import type { Tensor } from 'sinter';
import {
  byName,
  findSharded,
  firstOf,
  fullySharded,
  join,
  loadSharded,
  mesh as meshOf,
  pipelined,
  ringAttention,
  saveSharded,
  shard,
  shardTree,
  statePlan,
  type Mesh,
  type ShardPlan,
  type Spec,
} from 'sinter/distributed';
import { adamW, type OptimizerState } from 'sinter/optim';

/** A linear map, weight [out, in], or the scale and shift of a norm. */
type Affine = { readonly weight: Tensor; readonly bias: Tensor };

type Layer = {
  readonly norm1: Affine;
  readonly query: Affine;
  readonly key: Affine;
  readonly value: Affine;
  readonly project: Affine;
  readonly norm2: Affine;
  readonly up: Affine;
  readonly down: Affine;
};

type Model = {
  /** [vocabulary, width] */
  readonly tokens: Tensor;
  /** [context, width] */
  readonly positions: Tensor;
  readonly layers: readonly Layer[];
  readonly norm: Affine;
  /** [vocabulary, width] */
  readonly head: Tensor;
};

export interface Settings {
  readonly text: string;
  readonly layers: number;
  readonly width: number;
  readonly heads: number;
  readonly context: number;
  readonly batch: number;
  readonly steps: number;
  readonly rate: number;
  readonly seed: number;
}

/** Where a training saves its state, after how many steps each time. */
export interface Saving {
  readonly folder: string;
  readonly every: number;
}

/** How the processes share the work. */
export type Parallel = 'data' | 'fsdp' | 'tensor' | 'sequence' | 'pipeline';

function initial(vocabulary: number, { layers, width, context }: Settings): Model {
  const norm = (): Affine => ({ weight: sn.ones([width]), bias: sn.zeros([width]) });
  const linear = (from: number, to: number): Affine => ({
    weight: sn.normal([to, from], { std: 1 / Math.sqrt(from) }),
    bias: sn.zeros([to]),
  });
  const layer = (): Layer => ({
    norm1: norm(),
    query: linear(width, width),
    key: linear(width, width),
    value: linear(width, width),
    project: linear(width, width),
    norm2: norm(),
    up: linear(width, 4 * width),
    down: linear(4 * width, width),
  });
  return {
    tokens: sn.normal([vocabulary, width], { std: 0.5 }),
    positions: sn.normal([context, width], { std: 0.1 }),
    layers: Array.from({ length: layers }, layer),
    norm: norm(),
    head: sn.normal([vocabulary, width], { std: 0.02 }),
  };
}

const normed = (x: Tensor, { weight, bias }: Affine): Tensor =>
  sn.layerNorm(x, x.shape.at(-1)!, weight, bias);
const linear = (x: Tensor, { weight, bias }: Affine): Tensor => sn.linear(x, weight, bias);

/** Causal attention of q, k and v, each [batch, heads, positions, features]. */
type Attend = (q: Tensor, k: Tensor, v: Tensor) => Tensor;

const attendAll: Attend = (q, k, v) => sn.scaledDotProductAttention(q, k, v, { isCausal: true });

/** [batch, positions] to [batch, positions, width]. */
function embedded({ tokens, positions }: Pick<Model, 'tokens' | 'positions'>, numbers: Tensor): Tensor {
  return sn.embedding(numbers, tokens).add(positions.narrow(0, 0, numbers.shape[1]!));
}

function layerOf(layer: Layer, x: Tensor, heads: number, attend: Attend): Tensor {
  const [batch, length, width] = x.shape as [number, number, number];
  const apart = (y: Tensor): Tensor => y.reshape([batch, length, heads, width / heads]).permute([0, 2, 1, 3]);
  const y = normed(x, layer.norm1);
  const [q, k, v] = [layer.query, layer.key, layer.value].map((map) => apart(linear(y, map))) as [
    Tensor,
    Tensor,
    Tensor,
  ];
  const seen = attend(q, k, v).permute([0, 2, 1, 3]).reshape([batch, length, width]);
  const after = linear(seen, layer.project).add(x);
  return linear(linear(normed(after, layer.norm2), layer.up).gelu({ approximate: 'tanh' }), layer.down).add(
    after,
  );
}

/** The mean loss, in nats, of predicting `targets`. */
function predicted({ norm, head }: Pick<Model, 'norm' | 'head'>, x: Tensor, targets: Tensor): Tensor {
  const logits = sn.linear(normed(x, norm), head);
  return sn.crossEntropy(logits.flatten(0, 1), targets.flatten());
}

/** [batch, positions] to the mean loss of predicting `targets`. */
function lossOf(model: Model, tokens: Tensor, targets: Tensor, heads: number, attend: Attend): Tensor {
  const seen = model.layers.reduce((x, layer) => layerOf(layer, x, heads, attend), embedded(model, tokens));
  return predicted(model, seen, targets);
}

// Megatron's layouts (Shoeybi et al., 2019): the first product of a pair is split by rows and the second by columns, so that a pair needs
// one sum over the processes; the vocabulary is split for the embedding and for the loss.
const rows: Spec = ['model', null];
const columns: Spec = [null, 'model'];
const tensorParallel: ShardPlan = byName({
  tokens: rows,
  head: rows,
  ...Object.fromEntries(['query', 'key', 'value', 'up'].map((name) => [`${name}.weight`, rows])),
  ...Object.fromEntries(['query', 'key', 'value', 'up'].map((name) => [`${name}.bias`, ['model']])),
  'project.weight': columns,
  'down.weight': columns,
});

function planFor(parallel: Parallel, mesh: Mesh): ShardPlan {
  if (parallel === 'tensor') return tensorParallel;
  return parallel === 'fsdp' ? fullySharded(mesh, 'data', 64) : firstOf();
}

/** A function of the model, of numbers of letters [batch, positions] and of those that follow them. */
type Slope = (
  model: Model,
  tokens: Tensor,
  targets: Tensor,
) => { readonly value: Tensor; readonly grad: Model };

/** All layers as one, whose tensors have a leading axis of layers: each stage of a pipeline has some of them. */
const stacked = (model: Model): Model => ({
  ...model,
  layers: [sn.treeMap((...each: Tensor[]) => sn.stack(each, 0), model.layers[0]!, ...model.layers.slice(1))],
});

/** The losses of a training, from its first step on, wherever it goes on; without a mesh it is that of one process. */
export async function train(
  settings: Settings,
  mesh?: Mesh,
  parallel: Parallel = 'data',
  saving?: Saving,
): Promise<number[]> {
  const { text, heads, seed } = settings;
  sn.manualSeed(seed);
  const alphabet = [...new Set(text)].sort();
  const numbers = sn.tensor(Int32Array.from(text, (letter) => alphabet.indexOf(letter)));
  // Rounded up, so that processes divide it; what no letter has is never drawn.
  const whole = initial(8 * Math.ceil(alphabet.length / 8), settings);
  if (mesh !== undefined && parallel === 'pipeline') {
    const stages: ShardPlan = (path, { shape }) =>
      path.startsWith('layers') ? shape.map((_, i) => (i === 0 ? 'stage' : null)) : undefined;
    return trained(settings, numbers, stacked(whole), stagesOf(settings, mesh), mesh, stages, saving);
  }
  const ring: Spec = [hasAxis(mesh, 'data') ? 'data' : null, null, 'sequence', null];
  const attend: Attend =
    mesh === undefined || parallel !== 'sequence'
      ? attendAll
      : (q, k, v) => ringAttention(q, k, v, mesh, ring, { isCausal: true });
  const slope: Slope = (model, tokens, targets) =>
    sn.valueAndGrad((at: Model) => lossOf(at, tokens, targets, heads, attend))(model);
  return trained(settings, numbers, whole, slope, mesh, mesh && planFor(parallel, mesh), saving);
}

/** Loss and gradients by stages of a pipeline. */
function stagesOf({ heads }: Settings, mesh: Mesh): Slope {
  const data = hasAxis(mesh, 'data') ? { batch: 'data' } : {};
  const pipeline = pipelined(
    {
      first: embedded,
      layer: (layer: Layer, x) => layerOf(layer, x, heads, attendAll),
      last: predicted,
    },
    { mesh, axis: 'stage', microbatches: 4, ...data },
  );
  return ({ tokens, positions, layers, norm, head }, inputs, targets) => {
    const params = { first: { tokens, positions }, layers: layers[0]!, last: { norm, head } };
    const { value, grad } = pipeline(params, inputs, targets);
    return { value, grad: { ...grad.first, layers: [grad.layers], ...grad.last } };
  };
}

const hasAxis = (mesh: Mesh | undefined, axis: string): boolean =>
  mesh?.axes.some(({ name }) => name === axis) === true;

async function trained(
  { text, context, batch, steps, rate }: Settings,
  numbers: Tensor,
  start: Model,
  slope: Slope,
  mesh: Mesh | undefined,
  plan: ShardPlan | undefined,
  saving: Saving | undefined,
): Promise<number[]> {
  const optimizer = adamW({ weightDecay: 0.05 });
  let [model, state] = [start, optimizer.init(start)];
  if (mesh !== undefined && plan !== undefined) {
    model = shardTree(start, mesh, plan);
    state = shardTree(state, mesh, statePlan(plan, start));
  }
  const [rows, columns] = ['data', 'sequence'].map((axis) => (hasAxis(mesh, axis) ? axis : null));
  const spread = (x: Tensor): Tensor => (mesh === undefined ? x : shard(x, mesh, [rows!, columns!]));

  const step = sn.compile(
    (before: Model, moments: OptimizerState) => {
      const starts = sn.randint(0, text.length - context, [batch, 1]);
      const windows = numbers.take(starts.add(sn.arange(context + 1)));
      const [tokens, targets] = [windows.narrow(1, 0, context), windows.narrow(1, 1, context)];
      const { value, grad } = slope(before, spread(tokens), spread(targets));
      const [after, next] = optimizer.update(before, grad, moments, { lr: rate });
      return { model: after, state: next, loss: value };
    },
    { donate: [0, 1] },
  );
  let before: readonly number[] = [];
  if (saving !== undefined && (await findSharded(saving.folder)) !== undefined) {
    const { tree, values } = await loadSharded(saving.folder, { model, state });
    ({ model, state } = tree);
    before = (values as { readonly losses: readonly number[] }).losses;
  }
  const losses: Tensor[] = [];
  const all = async (): Promise<number[]> => [
    ...before,
    ...(await Promise.all(losses.map((loss) => loss.item() as Promise<number>))),
  ];
  for (let done = before.length + 1; done <= steps; done++) {
    const made = step(model, state);
    [model, state] = [made.model, made.state];
    losses.push(made.loss);
    if (saving !== undefined && done % saving.every === 0)
      await saveSharded(saving.folder, { model, state }, { values: { losses: await all() } });
  }
  return all();
}

/** What this example trains, but for its length. */
export const small = {
  width: 64,
  heads: 4,
  context: 32,
  batch: 16,
  rate: 3e-3,
  seed: 1,
};

/** `2,2` with the names that go with the way to share, or `data=2,model=2`. */
export function readMesh(text: string, parallel: Parallel): Mesh {
  const sizes = text.split(',');
  const own = { data: 'data', fsdp: 'data', tensor: 'model', sequence: 'sequence', pipeline: 'stage' }[
    parallel
  ];
  const names = sizes.length === 1 ? [own] : ['data', own];
  const axes = sizes.map((size, i): [string, number] => {
    const [name, count] = size.includes('=') ? size.split('=') : [names[i], size];
    return [name!, Number(count)];
  });
  return meshOf(Object.fromEntries(axes));
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      parallel: { type: 'string', default: 'data' },
      mesh: { type: 'string' },
      steps: { type: 'string', default: '20' },
      layers: { type: 'string', default: '2' },
      device: { type: 'string' },
      save: { type: 'string' },
      every: { type: 'string', default: '5' },
      json: { type: 'boolean', default: false },
    },
  });
  const world = await join({ ...(values.device !== undefined && { device: values.device }) });
  const parallel = values.parallel as Parallel;
  const mesh = readMesh(values.mesh ?? String(world.size), parallel);
  const text = await readFile(new URL('../essay.txt', import.meta.url), 'utf8');
  const settings = { ...small, text, layers: Number(values.layers), steps: Number(values.steps) };
  const start = performance.now();
  const saving = values.save === undefined ? undefined : { folder: values.save, every: Number(values.every) };
  const losses = await train(settings, mesh, parallel, saving);
  const seconds = (performance.now() - start) / 1000;
  const bytesByCollective = Object.fromEntries(
    Object.entries(world.traffic).map(([kind, { bytes }]) => [kind, bytes]),
  );
  if (world.rank === 0 && values.json) console.log(JSON.stringify({ losses, bytesByCollective, seconds }));
  else if (world.rank === 0)
    for (const [i, loss] of losses.entries()) console.log(`step ${i + 1}: ${loss.toFixed(4)}`);
  world.leave();
}

if (resolve(process.argv[1] ?? '') === fileURLToPath(import.meta.url)) await main();
