// Normalisations and dropout.

import { isFloat } from '../../ir/dtype.ts';
import * as sn from '../../operations/index.ts';
import { variance as varianceOf } from '../../tensor/ops/reduce/reduce.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import type { Call, Rows } from '../call.ts';
import { hostType } from '../element.ts';
import { Value } from '../value.ts';
import { hosted, row } from './row.ts';
import { wantedType } from './convert.ts';

/**
 * One value per channel, in front of axes that broadcast; before opset 9 there may be one per
 * element of a sample.
 */
function perChannel(x: Tensor, values: Tensor, isSpatial: boolean): Tensor {
  if (!isSpatial) return sn.reshape(values, x.shape.slice(1));
  return sn.reshape(values, [values.size, ...new Array<number>(Math.max(0, x.rank - 2)).fill(1)]);
}

function batchNormalization(call: Call): (Tensor | undefined)[] {
  const { attributes } = call;
  const x = call.tensor(0);
  const [scale, shift, mean, variance] = [1, 2, 3, 4].map((place) => call.tensor(place));
  const eps = attributes.float('epsilon', 1e-5);
  const momentum = attributes.float('momentum', 0.9);
  // Some exporters deny it and give one value a channel all the same.
  const hasChannels = scale!.rank === 1 && scale!.size === x.shape[1];
  const isSpatial = attributes.int('spatial', 1) === 1 || hasChannels;
  const training = isTraining(call);
  const widest = (t: Tensor): Tensor => perChannel(x, x.dtype === 'f64' ? t : sn.cast(t, 'f32'), isSpatial);
  const apply = (m: Tensor, v: Tensor): Tensor => {
    const scaled = sn.mul(sn.rsqrt(sn.add(widest(v), eps)), widest(scale!));
    const centred = sn.sub(x.dtype === 'f64' ? x : sn.cast(x, 'f32'), widest(m));
    return sn.cast(sn.add(sn.mul(centred, scaled), widest(shift!)), x.dtype);
  };
  if (!training) return [apply(mean!, variance!)];
  const axes = isSpatial ? x.shape.map((_, axis) => axis).filter((axis) => axis !== 1) : [0];
  const [ownMean, ownVariance] = [sn.mean(x, axes), varianceOf(x, axes, { correction: 0 })];
  const blend = (old: Tensor, now: Tensor): Tensor =>
    sn.add(sn.mul(old, momentum), sn.mul(now, 1 - momentum));
  return [
    apply(ownMean, ownVariance),
    sn.cast(blend(mean!, ownMean), mean!.dtype),
    sn.cast(blend(variance!, ownVariance), variance!.dtype),
    ...(call.opset < 14 ? [ownMean, ownVariance] : []),
  ];
}

/**
 * Opset 14 has an attribute for it; before that training shows by its results, unless an attribute
 * denies it.
 */
function isTraining({ opset, attributes, outputs }: Call): boolean {
  if (opset >= 14) return attributes.int('training_mode', 0) === 1;
  return outputs.length > 1 && attributes.int('is_test', 0) === 0;
}

/**
 * Standardised over the axes from `axis` on, in f32 at least; gives the mean and the inverse
 * deviation too.
 */
function layerNormalization(call: Call): (Tensor | undefined)[] {
  const { attributes } = call;
  const x = call.tensor(0);
  const axes = trailing(call, x);
  const wide = x.dtype === 'f64' ? x : sn.cast(x, 'f32');
  const mean = sn.mean(wide, axes, { keepdim: true });
  const centred = sn.sub(wide, mean);
  const variance = sn.mean(sn.square(centred), axes, { keepdim: true });
  const inverse = sn.rsqrt(sn.add(variance, attributes.float('epsilon', 1e-5)));
  const scaled = sn.mul(sn.cast(sn.mul(centred, inverse), x.dtype), call.tensor(1));
  const bias = call.optional(2);
  const out = bias === undefined ? scaled : sn.add(scaled, bias);
  // Statistics have a type of their own.
  const stash = hostType(wantedType(attributes.int('stash_type', 1)));
  return [out, ...[mean, inverse].map((x, i) => (call.wants(i + 1) ? sn.cast(x, stash) : undefined))];
}

function trailing(call: Call, x: Tensor): number[] {
  const axis = call.axis(call.attributes.int('axis', -1), x.rank);
  return x.shape.map((_, i) => i).slice(axis);
}

function rmsNormalization(call: Call): Tensor {
  const x = call.tensor(0);
  const wide = x.dtype === 'f64' ? x : sn.cast(x, 'f32');
  const power = sn.mean(sn.square(wide), trailing(call, x), { keepdim: true });
  const standard = sn.mul(wide, sn.rsqrt(sn.add(power, call.attributes.float('epsilon', 1e-5))));
  return sn.mul(sn.cast(standard, x.dtype), call.tensor(1));
}

function groupNormalization(call: Call): Tensor {
  const x = call.tensor(0);
  const groups = call.attributes.int('num_groups', 1);
  const eps = call.attributes.float('epsilon', 1e-5);
  const [scale, bias] = [call.tensor(1), call.tensor(2)];
  if (call.opset >= 21) return sn.groupNorm(x, groups, scale, bias, { eps });
  // Opset 18 has one scale a group.
  const per = x.shape[1]! / groups;
  return sn.groupNorm(x, groups, sn.repeatInterleave(scale, per), sn.repeatInterleave(bias, per), { eps });
}

function localResponse(call: Call): Tensor {
  const { attributes } = call;
  const x = call.tensor(0);
  const size = attributes.int('size', 1);
  const [alpha, beta] = [attributes.float('alpha', 1e-4), attributes.float('beta', 0.75)];
  const bias = attributes.float('bias', 1);
  // The window of even sizes leans the other way than PyTorch's.
  const pairs = x.shape.map((_, axis): [number, number] =>
    axis === 1 ? [Math.floor((size - 1) / 2), Math.ceil((size - 1) / 2)] : [0, 0],
  );
  const squares = sn.unfold(sn.pad(sn.square(x), pairs), 1, size);
  const total = sn.sum(squares, -1, { dtype: x.dtype });
  return sn.div(x, sn.pow(sn.add(sn.mul(total, alpha / size), bias), beta));
}

function lpNormalization(call: Call): Tensor {
  const x = call.tensor(0);
  const axis = call.attributes.int('axis', -1);
  const size = sn.norm(x, call.attributes.int('p', 2), axis, { keepdim: true });
  // What is all 0 stays so.
  return sn.where(sn.eq(size, 0), sn.zerosLike(x), sn.div(x, size));
}

function meanVariance(call: Call): Tensor {
  const x = call.tensor(0);
  const axes = call.attributes.ints('axes') ?? [0, 2, 3];
  const centred = sn.sub(x, sn.mean(x, axes, { keepdim: true }));
  const deviation = sn.sqrt(sn.mean(sn.square(centred), axes, { keepdim: true }));
  return sn.div(centred, sn.add(deviation, 1e-9));
}

/** Nothing is dropped unless training is asked for. */
function dropout(call: Call): (Tensor | undefined)[] {
  const x = call.tensor(0);
  const ratio = call.attributes.float('ratio') ?? call.number(1) ?? 0.5;
  const training =
    call.opset < 12 ? call.opset < 7 && call.attributes.int('is_test', 0) === 0 : call.number(2) === 1;
  // Before opset 10 the mask has the type of what it masks.
  const masked = (mask: Tensor): Tensor => (call.opset < 10 ? sn.cast(mask, x.dtype) : mask);
  const ones = (): Tensor => masked(sn.ones(x.shape, { dtype: 'bool' }));
  if (!training || ratio === 0) return [x, call.wants(1) ? ones() : undefined];
  const kept = sn.ge(sn.rand(x.shape), ratio);
  const scaled = sn.cast(sn.div(x, 1 - ratio), x.dtype);
  return [sn.where(kept, scaled, sn.zerosLike(x)), masked(kept)];
}

function randomLike(draw: (shape: readonly number[], call: Call) => Tensor): (call: Call) => Tensor {
  return (call) => {
    const { shape } = call.value(0);
    const code = call.attributes.int('dtype');
    const type = code === undefined ? call.type(0) : wantedType(code);
    return sn.cast(draw(shape, call), hostType(type));
  };
}

function randomOf(draw: (shape: readonly number[], call: Call) => Tensor): (call: Call) => Tensor {
  return (call) => {
    const type = wantedType(call.attributes.int('dtype', 1));
    return sn.cast(draw(call.attributes.ints('shape') ?? [], call), hostType(type));
  };
}

const uniform = (shape: readonly number[], { attributes }: Call): Tensor =>
  sn.uniform(shape, { low: attributes.float('low', 0), high: attributes.float('high', 1) });
const normal = (shape: readonly number[], { attributes }: Call): Tensor =>
  sn.normal(shape, { mean: attributes.float('mean', 0), std: attributes.float('scale', 1) });

function bernoulli(call: Call): Tensor {
  const x = call.tensor(0);
  const code = call.attributes.int('dtype');
  const type = code === undefined ? call.type(0) : wantedType(code);
  const chance = isFloat(x.dtype) ? x : sn.cast(x, 'f32');
  return sn.cast(sn.lt(sn.rand(x.shape), chance), hostType(type));
}

/** Classes drawn by their logarithms of probability, a line for each of the batch. */
function multinomial(call: Call): Value {
  const type = wantedType(call.attributes.int('dtype', 6));
  const chances = sn.softmax(sn.cast(call.tensor(0), 'f32'), -1);
  const drawn = sn.multinomial(chances, call.attributes.int('sample_size', 1), { replacement: true });
  return Value.of(sn.cast(drawn, hostType(type)), type);
}

const random = { random: true } as const;

export const norm: Rows = {
  BatchNormalization: row([1, 6, 7, 9, 14, 15], batchNormalization),
  Bernoulli: row([15, 22], bernoulli, random),
  Dropout: { ...hosted([1, 6, 7, 10, 12, 13, 22], [1, 2], dropout), ...random },
  GroupNormalization: row([18, 21], groupNormalization),
  InstanceNormalization: row([1, 6, 22], (call) =>
    sn.instanceNorm(call.tensor(0), call.tensor(1), call.tensor(2), {
      eps: call.attributes.float('epsilon', 1e-5),
    }),
  ),
  LRN: row([1, 13], localResponse),
  LayerNormalization: row([17], layerNormalization),
  LpNormalization: row([1, 22], lpNormalization),
  MeanVarianceNormalization: row([9, 13], meanVariance),
  Multinomial: row([7, 22], multinomial, random),
  RMSNormalization: row([23], rmsNormalization),
  RandomNormal: row([1, 22], randomOf(normal), random),
  RandomNormalLike: row([1, 22], randomLike(normal), random),
  RandomUniform: row([1, 22], randomOf(uniform), random),
  RandomUniformLike: row([1, 22], randomLike(uniform), random),
};
