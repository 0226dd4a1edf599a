// Recurrent layers, written out step by step. Weights come as [directions, gates·hidden, …]; a
// sequence that has ended keeps its state and gives zeros.

import { SinterError } from '../../errors.ts';
import * as sn from '../../operations/index.ts';
import { overTime } from '../../tensor/ops/sequence/time.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { currentBudget } from '../budget.ts';
import type { Call, Rows } from '../call.ts';
import { row } from './row.ts';

type Activation = (x: Tensor) => Tensor;

/** Which activations take an alpha and a beta: what a list of numbers is dealt out to, in order. */
const takesAlpha: ReadonlySet<string> = new Set(
  'affine leakyrelu thresholdedrelu scaledtanh hardsigmoid elu'.split(' '),
);
const takesBeta: ReadonlySet<string> = new Set('affine scaledtanh hardsigmoid'.split(' '));

/**
 * The activations of all directions: those that take no number are passed over where numbers are
 * dealt out.
 */
function activationsOf(
  names: readonly string[],
  alphas: readonly number[] = [],
  betas: readonly number[] = [],
): Activation[] {
  let [alpha, beta] = [0, 0];
  return names.map((name) => {
    const own = name.toLowerCase();
    return activationOf(
      name,
      takesAlpha.has(own) ? alphas[alpha++] : undefined,
      takesBeta.has(own) ? betas[beta++] : undefined,
    );
  });
}

function activationOf(name: string, alpha: number | undefined, beta: number | undefined): Activation {
  switch (name.toLowerCase()) {
    case 'sigmoid':
      return sn.sigmoid;
    case 'tanh':
      return sn.tanh;
    case 'relu':
      return sn.relu;
    case 'affine':
      return (x) => sn.add(sn.mul(x, alpha ?? 1), beta ?? 0);
    case 'leakyrelu':
      return (x) => sn.leakyRelu(x, alpha ?? 0.01);
    case 'thresholdedrelu':
      return (x) => sn.where(sn.gt(x, alpha ?? 1), x, sn.zerosLike(x));
    case 'scaledtanh':
      return (x) => sn.mul(sn.tanh(sn.mul(x, beta ?? 1)), alpha ?? 1);
    case 'hardsigmoid':
      return (x) => sn.clamp(sn.add(sn.mul(x, alpha ?? 0.2), beta ?? 0.5), 0, 1);
    case 'elu':
      return (x) => sn.elu(x, alpha ?? 1);
    case 'softsign':
      return sn.softsign;
    case 'softplus':
      return (x) => sn.softplus(x);
    default:
      throw new SinterError('E_UNSUPPORTED', `no activation '${name}'`);
  }
}

/** What one direction of a layer works with. */
export interface Direction {
  readonly hidden: number;
  /** Weights of the input and of the state, each turned: [input, gates·hidden]. */
  readonly w: Tensor;
  readonly r: Tensor;
  /** Products with these, where they are not of floats. */
  readonly byInput?: (x: Tensor) => Tensor;
  readonly byState?: (h: Tensor) => Tensor;
  readonly wb: Tensor | undefined;
  readonly rb: Tensor | undefined;
  readonly peephole: Tensor | undefined;
  readonly activations: readonly Activation[];
  readonly clip: Activation;
}

/** State after one step; the first part is what the layer gives. */
type Cell = (x: Tensor, state: readonly Tensor[], at: Direction) => Tensor[];

function parts(x: Tensor, at: Direction): Tensor[] {
  return sn.split(x, at.hidden, -1);
}

/** x·W + h·R with both biases. */
function gates(x: Tensor, h: Tensor, at: Direction): Tensor {
  const sum = sn.add(at.byInput?.(x) ?? sn.matmul(x, at.w), at.byState?.(h) ?? sn.matmul(h, at.r));
  return at.wb === undefined ? sum : sn.add(sn.add(sum, at.wb), at.rb!);
}

const simple: Cell = (x, [h], at) => [at.activations[0]!(at.clip(gates(x, h!, at)))];

function gru(linearBeforeReset: boolean): Cell {
  return (x, [h], at) => {
    const [f, g] = at.activations as [Activation, Activation];
    const biased = (value: Tensor, bias: Tensor | undefined): Tensor =>
      bias === undefined ? value : sn.add(value, bias);
    const [xz, xr, xh] = parts(biased(sn.matmul(x, at.w), at.wb), at) as [Tensor, Tensor, Tensor];
    const [rz, rr, rh] = parts(at.r, at) as [Tensor, Tensor, Tensor];
    const [bz, br, bh] = at.rb === undefined ? [] : parts(at.rb, at);
    const z = f(at.clip(sn.add(xz, biased(sn.matmul(h!, rz), bz))));
    const r = f(at.clip(sn.add(xr, biased(sn.matmul(h!, rr), br))));
    const recurrent = linearBeforeReset
      ? sn.mul(r, biased(sn.matmul(h!, rh), bh))
      : biased(sn.matmul(sn.mul(r, h!), rh), bh);
    const candidate = g(at.clip(sn.add(xh, recurrent)));
    return [sn.add(sn.mul(sn.sub(1, z), candidate), sn.mul(z, h!))];
  };
}

function lstm(inputForget: boolean): Cell {
  return (x, [h, c], at) => {
    const [f, g, out] = at.activations as [Activation, Activation, Activation];
    const [i, o, forget, cell] = parts(gates(x, h!, at), at) as [Tensor, Tensor, Tensor, Tensor];
    const [pi, po, pf] = at.peephole === undefined ? [] : parts(at.peephole, at);
    const peeked = (gate: Tensor, weight: Tensor | undefined, state: Tensor): Tensor =>
      f(at.clip(weight === undefined ? gate : sn.add(gate, sn.mul(weight, state))));
    const taken = peeked(i, pi, c!);
    const kept = inputForget ? sn.sub(1, taken) : peeked(forget, pf, c!);
    const next = sn.add(sn.mul(kept, c!), sn.mul(taken, g(at.clip(cell))));
    return [sn.mul(peeked(o, po, next), out(next)), next];
  };
}

/** The weights of a direction. */
export type Weights = Pick<Direction, 'w' | 'r' | 'byInput' | 'byState'>;

function weightsOf(call: Call, d: number): Weights {
  const [w, r] = [1, 2].map((place) => sn.transpose(sn.select(call.tensor(place), 0, d)));
  return { w: w!, r: r! };
}

/** A layer of one or two directions; `states` is how many tensors a cell hands on. */
function layer(
  call: Call,
  cell: Cell,
  states: 1 | 2,
  defaults: readonly string[],
  weights: (call: Call, d: number) => Weights = weightsOf,
): (Tensor | undefined)[] {
  const { attributes } = call;
  const isBatchFirst = attributes.int('layout', 0) === 1;
  const turned = (x: Tensor): Tensor => (isBatchFirst ? sn.transpose(x, 0, 1) : x);
  const x = turned(call.tensor(0));
  const bias = call.optional(3);
  const lengths = call.optional(4);
  const starts = [5, 6].slice(0, states).map((place) => call.optional(place));
  const hidden = attributes.int('hidden_size', call.tensor(2).shape.at(-1)!);
  const batch = x.shape[1]!;
  const direction = attributes.string('direction', 'forward');
  const limit = attributes.float('clip');
  const ways = call.tensor(1).shape[0]!;
  const names = attributes.strings('activations') ?? new Array<readonly string[]>(ways).fill(defaults).flat();
  const functions = activationsOf(
    names,
    attributes.floats('activation_alpha'),
    attributes.floats('activation_beta'),
  );
  const results = Array.from({ length: ways }, (_, d) => {
    const biases = bias === undefined ? undefined : sn.select(bias, 0, d);
    const half = biases === undefined ? 0 : biases.size / 2;
    const peepholes = states === 2 ? call.optional(7) : undefined;
    const at: Direction = {
      hidden,
      ...weights(call, d),
      wb: biases && sn.narrow(biases, 0, 0, half),
      rb: biases && sn.narrow(biases, 0, half, half),
      peephole: peepholes && sn.select(peepholes, 0, d),
      activations: functions.slice(d * defaults.length, (d + 1) * defaults.length),
      clip: limit === undefined ? (value) => value : (value) => sn.clamp(value, -limit, limit),
    };
    const start = starts.map((given) =>
      given === undefined ? sn.zeros([batch, hidden], { dtype: x.dtype }) : sn.select(turned(given), 0, d),
    );
    const isReverse = direction === 'reverse' || d === 1;
    // A cell is a dozen operations, however often it is run.
    currentBudget().spend(12, 'a recurrent layer');
    return overTime(x, start, (part, state) => cell(part, state, at), lengths, isReverse);
  });
  // [time, directions, batch, hidden], or batch first of all.
  const outputs = sn.stack(
    results.map(({ outputs: given }) => given),
    1,
  );
  const last = Array.from({ length: states }, (_, k) =>
    turned(sn.stack(results.map(({ state }) => state[k]!))),
  );
  return [isBatchFirst ? sn.permute(outputs, [2, 0, 1, 3]) : outputs, ...last];
}

/** A layer of long short-term memory, with weights that come in a way of their own. */
export function lstmLayer(call: Call, weights?: (call: Call, d: number) => Weights): (Tensor | undefined)[] {
  const isCoupled = call.attributes.int('input_forget', 0) === 1;
  return layer(call, lstm(isCoupled), 2, ['Sigmoid', 'Tanh', 'Tanh'], weights);
}

export const recurrent: Rows = {
  GRU: row([1, 3, 7, 14, 22], (call) =>
    layer(call, gru(call.attributes.int('linear_before_reset', 0) === 1), 1, ['Sigmoid', 'Tanh']),
  ),
  LSTM: row([1, 7, 14, 22], (call) => lstmLayer(call)),
  RNN: row([1, 7, 14, 22], (call) => layer(call, simple, 1, ['Tanh'])),
};
