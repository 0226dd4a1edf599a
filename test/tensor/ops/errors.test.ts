// Mistakes are found when the operation is recorded, and the message names the public operation, what was seen and what helps.

import { describe, expect, test } from 'vitest';
import { SinterError, type ErrorCode } from '../../../src/errors.ts';
import * as sn from '../../../src/operations/index.ts';
import type { DType } from '../../../src/ir/dtype.ts';
import type { Tensor } from '../../../src/tensor/tensor.ts';

const f = (...shape: number[]): Tensor => sn.ones(shape);
const of = (dtype: DType, ...shape: number[]): Tensor => sn.ones(shape, { dtype });

type Case = readonly [call: string, run: () => unknown, code: ErrorCode, message: RegExp];

const shapes: readonly Case[] = [
  ['add', () => sn.add(f(3, 4), f(5)), 'E_SHAPE', /^add: shapes do not broadcast: f32\[3,4\], f32\[5\]/],
  [
    'where',
    () => sn.where(of('bool', 2), f(3), f(4)),
    'E_SHAPE',
    /^where: shapes do not broadcast: bool\[2\]/,
  ],
  [
    'matmul inner',
    () => sn.matmul(f(8, 3), f(4, 5)),
    'E_SHAPE',
    /^matmul: inner sizes differ: f32\[8,3\] @ f32\[4,5\]/,
  ],
  ['matmul hint', () => sn.matmul(f(8, 3), f(5, 3)), 'E_SHAPE', /try: transpose\(\) on the second operand/],
  [
    'matmul batch',
    () => sn.matmul(f(2, 3, 4), f(3, 4, 5)),
    'E_SHAPE',
    /^matmul: leading axes do not broadcast/,
  ],
  ['matmul rank 0', () => sn.matmul(f(), f(3)), 'E_SHAPE', /^matmul: expects at least one axis each/],
  ['bmm', () => sn.bmm(f(2, 3, 4), f(1, 4, 5)), 'E_SHAPE', /^bmm: batch sizes differ/],
  [
    'mm',
    () => sn.mm(f(2, 3, 4), f(4, 5)),
    'E_SHAPE',
    /^mm: the first operand must have rank 2: f32\[2,3,4\]/,
  ],
  [
    'linear',
    () => sn.linear(f(2, 3), f(4, 5)),
    'E_SHAPE',
    /^linear: inner sizes differ: x f32\[2,3\], weight f32\[4,5\]/,
  ],
  [
    'linear bias',
    () => sn.linear(f(2, 3), f(4, 3), f(5)),
    'E_SHAPE',
    /^linear: the bias must be \[4\]: f32\[5\]/,
  ],
  [
    'reshape',
    () => sn.reshape(f(2, 3), [4, 2]),
    'E_SHAPE',
    /^reshape: \[4,2\] takes 8 elements, f32\[2,3\] has 6/,
  ],
  ['reshape -1', () => sn.reshape(f(2, 3), [-1, 4]), 'E_SHAPE', /^reshape: \[-1,4\] takes a multiple of 4/],
  [
    'reshape two open',
    () => sn.reshape(f(2, 3), [-1, -1]),
    'E_SHAPE',
    /^reshape: sizes must be non-negative/,
  ],
  [
    'unflatten',
    () => sn.unflatten(f(2, 6), 1, [4, -1]),
    'E_SHAPE',
    /^unflatten: .*axis 1 of f32\[2,6\] has 6/,
  ],
  [
    'expand',
    () => sn.expand(f(2, 3), [2, 6]),
    'E_SHAPE',
    /^expand: f32\[2,3\] does not broadcast to \[2,6\]/,
  ],
  [
    'cat',
    () => sn.cat([f(2, 3), f(2, 4)]),
    'E_SHAPE',
    /^cat: sizes must agree but for axis 0: f32\[2,3\], f32\[2,4\]/,
  ],
  ['cat nothing', () => sn.cat([]), 'E_VALUE', /^cat: expects at least one tensor/],
  ['stack', () => sn.stack([f(2), f(3)]), 'E_SHAPE', /^stack: shapes must agree/],
  [
    'split',
    () => sn.split(f(5), [2, 2]),
    'E_SHAPE',
    /^split: sizes \[2,2\] do not add up to axis 0 of f32\[5\]/,
  ],
  [
    'pad',
    () =>
      sn.pad(f(3), [
        [1, 1],
        [1, 1],
      ]),
    'E_SHAPE',
    /^pad: 2 pairs for f32\[3\]/,
  ],
  [
    'pad reflect',
    () => sn.pad(f(3), [[3, 0]], { mode: 'reflect' }),
    'E_SHAPE',
    /^pad: cannot pad axis 0 of f32\[3\] by \[3,0\] \(reflect\)/,
  ],
  ['repeat', () => sn.repeat(f(2, 3), [2]), 'E_SHAPE', /^repeat: expects at least 2 repeats/],
  ['tril', () => sn.tril(f(3)), 'E_SHAPE', /^tril: expects matrices: f32\[3\]/],
  [
    'conv2d rank',
    () => sn.conv2d(f(3, 4), f(2, 3, 1, 1)),
    'E_SHAPE',
    /^conv2d: expects x of rank 4 \(or 3\)/,
  ],
  [
    'conv2d channels',
    () => sn.conv2d(f(1, 3, 4, 4), f(2, 4, 1, 1)),
    'E_SHAPE',
    /^conv2d: 3 channels \(axis -3\) in 1 group do not fit the weight: x f32\[1,3,4,4\][^]*try: x as \[N,C,H,W\] \(NCHW\)/,
  ],
  [
    'conv2d kernel',
    () => sn.conv2d(f(1, 1, 2, 2), f(1, 1, 3, 3)),
    'E_SHAPE',
    /^conv2d: the kernel is larger than the padded input/,
  ],
  [
    'conv2d bias',
    () => sn.conv2d(f(1, 1, 2, 2), f(4, 1, 1, 1), f(3)),
    'E_SHAPE',
    /^conv2d: the bias must be \[4\]/,
  ],
  [
    'conv2d stride',
    () => sn.conv2d(f(1, 1, 2, 2), f(1, 1, 1, 1), undefined, { stride: [1, 2, 3] }),
    'E_SHAPE',
    /^conv2d: stride takes 2 values/,
  ],
  [
    'convTranspose2d',
    () => sn.convTranspose2d(f(1, 3, 2, 2), f(4, 1, 2, 2)),
    'E_SHAPE',
    /^convTranspose2d: 3 channels \(axis -3\) in 1 group do not fit the weight/,
  ],
  [
    'maxPool2d',
    () => sn.maxPool2d(f(1, 1, 2, 2), 3),
    'E_SHAPE',
    /^maxPool2d: the kernel \[3,3\] is larger than f32/,
  ],
  ['layerNorm', () => sn.layerNorm(f(2, 3), [4]), 'E_SHAPE', /^layerNorm: x must end in \[4\]: f32\[2,3\]/],
  [
    'layerNorm weight',
    () => sn.layerNorm(f(2, 3), 3, f(2)),
    'E_SHAPE',
    /^layerNorm: weight and bias must be \[3\]: f32\[2\]/,
  ],
  [
    'groupNorm',
    () => sn.groupNorm(f(2, 5, 3), 2),
    'E_SHAPE',
    /^groupNorm: 5 channels do not split into 2 groups/,
  ],
  [
    'batchNorm',
    () => sn.batchNorm(f(2, 3)),
    'E_VALUE',
    /^batchNorm: needs running statistics unless training/,
  ],
  [
    'amax of nothing',
    () => sn.amax(f(2, 0), 1),
    'E_SHAPE',
    /^amax: nothing to choose from along axes \[1\]: f32\[2,0\]/,
  ],
  ['argmax of nothing', () => sn.argmax(f(0)), 'E_SHAPE', /^argmax: nothing to choose from/],
  ['max of nothing', () => sn.max(f(0)), 'E_SHAPE', /^max: nothing to choose from/],
  [
    'gather',
    () => sn.gather(f(2, 3), 1, of('i32', 3, 1)),
    'E_SHAPE',
    /^gather: the index must have x's rank and fit it outside axis 1/,
  ],
  [
    'scatter',
    () => sn.scatter(f(2, 3), 1, of('i32', 2, 2), f(2, 1)),
    'E_SHAPE',
    /^scatter: the source must cover the index/,
  ],
  [
    'indexAdd',
    () => sn.indexAdd(f(4, 2), 0, of('i32', 3), f(2, 2)),
    'E_SHAPE',
    /^indexAdd: the source must be \[3,2\]/,
  ],
  [
    'attention',
    () => sn.scaledDotProductAttention(f(2, 3), f(4, 5), f(4, 5)),
    'E_SHAPE',
    /^scaledDotProductAttention: expects q/,
  ],
  [
    'attention mask',
    () => sn.scaledDotProductAttention(f(2, 3), f(4, 3), f(4, 5), { mask: of('bool', 3, 4) }),
    'E_SHAPE',
    /mask must be bool or float and broadcast to \[2,4\]/,
  ],
  [
    'crossEntropy',
    () => sn.crossEntropy(f(4, 3), of('i32', 3)),
    'E_SHAPE',
    /^crossEntropy: targets must be \[4\] classes for f32\[4,3\]/,
  ],
  [
    'crossEntropy probabilities',
    () => sn.crossEntropy(f(4, 3), f(4)),
    'E_SHAPE',
    /^crossEntropy: class probabilities must have the logits' shape/,
  ],
  ['mseLoss', () => sn.mseLoss(f(2), f(3)), 'E_SHAPE', /^mseLoss: shapes do not broadcast/],
  ['zeros', () => sn.zeros([2, -1]), 'E_SHAPE', /^zeros: sizes must be non-negative integers: \[2,-1\]/],
  ['randn', () => sn.randn([1.5]), 'E_SHAPE', /^randn: sizes must be non-negative integers/],
  ['glu', () => sn.glu(f(3)), 'E_SHAPE', /^glu: axis -1 does not halve/],
];

const dtypes: readonly Case[] = [
  [
    'sub of bool',
    () => sn.sub(of('bool', 2), of('bool', 2)),
    'E_DTYPE',
    /^sub: expects numbers, not bool: bool\[2\], bool\[2\]/,
  ],
  ['neg of bool', () => sn.neg(of('bool', 2)), 'E_DTYPE', /^neg: expects numbers, not bool/],
  [
    'mean of ints',
    () => sn.mean(of('i32', 2)),
    'E_DTYPE',
    /^mean: expects floats or complex numbers: i32\[2\](.|\n)*try: \.cast\('f32'\)/,
  ],
  ['softmax of ints', () => sn.softmax(of('i32', 2)), 'E_DTYPE', /^softmax: expects floats: i32\[2\]/],
  [
    'bitwiseAnd of floats',
    () => sn.bitwiseAnd(f(2), f(2)),
    'E_DTYPE',
    /^bitwiseAnd: expects integers or bool: f32\[2\]/,
  ],
  [
    'shift of bool',
    () => sn.bitwiseLeftShift(of('bool', 1), of('bool', 1)),
    'E_DTYPE',
    /^bitwiseLeftShift: expects integers: bool/,
  ],
  [
    'where of numbers',
    () => sn.where(f(2), f(2), f(2)),
    'E_DTYPE',
    /^where: the condition must be bool: f32\[2\]/,
  ],
  [
    'maskedFill',
    () => sn.maskedFill(f(2), of('i32', 2), 0),
    'E_DTYPE',
    /^maskedFill: the mask must be bool: i32\[2\]/,
  ],
  [
    'gather by floats',
    () => sn.gather(f(2), 0, f(2)),
    'E_DTYPE',
    /^gather: the index must be integers: f32\[2\]/,
  ],
  [
    'embedding by floats',
    () => sn.embedding(f(2), f(4, 2)),
    'E_DTYPE',
    /^embedding: the indices must be integers/,
  ],
  [
    'scatter of another dtype',
    () => sn.scatter(f(2), 0, of('i32', 1), of('f16', 1)),
    'E_DTYPE',
    /^scatter: x and the source must have one dtype/,
  ],
  [
    'matmul of bool',
    () => sn.matmul(of('bool', 2, 2), of('bool', 2, 2)),
    'E_DTYPE',
    /^matmul: bool has no product/,
  ],
  ['cast to nonsense', () => sn.cast(f(2), 'float' as DType), 'E_DTYPE', /^cast: no dtype is called 'float'/],
  ['bitcast', () => sn.bitcast(f(2), 'i16'), 'E_DTYPE', /^bitcast: cannot read f32\[2\] as i16/],
  ['sum in bool', () => sn.sum(f(2), 0, { dtype: 'bool' }), 'E_DTYPE', /^sum: cannot accumulate in bool/],
  ['rand of ints', () => sn.rand([2], { dtype: 'i32' }), 'E_DTYPE', /^rand: i32 has no fractions/],
  [
    'crossEntropy of bool',
    () => sn.crossEntropy(f(2, 3), of('bool', 2)),
    'E_DTYPE',
    /^crossEntropy: the targets must be integers/,
  ],
];

const none = 'has no meaning on complex numbers';
/** Operations made of others, and what they refuse: under their own name. */
const composed: readonly (readonly [name: string, run: () => unknown, said: string])[] = [
  ['relu', () => sn.relu(of('c64', 2)), `${none}: c64[2]`],
  ['gt', () => sn.gt(of('c64', 2), 1), `${none}: c64[2], 1`],
  ['logaddexp', () => sn.logaddexp(f(2), of('c64', 2)), `${none}: f32[2], c64[2]`],
  ['argmax', () => sn.argmax(of('c128', 2, 3)), `${none}: c128[2,3]`],
  ['topk', () => sn.topk(of('c64', 2, 3), 1), `${none}: c64[2,3]`],
  ['maxPool2d', () => sn.maxPool2d(of('c64', 1, 4, 4), 2), `${none}: c64[1,4,4]`],
  ['poissonNllLoss', () => sn.poissonNllLoss(of('c64', 2), f(2)), `${none}: c64[2], f32[2]`],
  [
    'scatterReduce',
    () => sn.scatterReduce(of('c64', 2), 0, of('i32', 2), of('c64', 2), 'amax'),
    `${none}: c64[2]`,
  ],
  ['sum', () => sn.sum(of('c64', 2), 0, { dtype: 'i64' }), 'i64 would lose the imaginary part: c64[2]'],
  [
    'div',
    () => sn.div(of('bool', 2), of('bool', 2), { rounding: 'floor' }),
    'expects numbers, not bool: bool[2], bool[2]',
  ],
  ['rsub', () => sn.rsub(of('bool', 2), of('bool', 2)), 'expects numbers, not bool: bool[2], bool[2]'],
  ['inner', () => sn.inner(of('bool', 2, 3), of('bool', 4, 3)), 'bool has no product: bool[2,3], bool[4,3]'],
  [
    'addmm',
    () => sn.addmm(f(2, 2), of('bool', 2, 3), of('bool', 3, 2)),
    'bool has no product: bool[2,3], bool[3,2]',
  ],
  ['stft', () => sn.stft(of('f16', 16), 4), 'does not support 16-bit floats: f16[16]'],
  ['prelu', () => sn.prelu(f(2), of('f64')), 'both must have one dtype: f32[2], f64[]'],
];

test.each(composed)('%s refuses a dtype in its own name', (name, run, said) => {
  let found: unknown;
  try {
    run();
  } catch (error) {
    found = error;
  }
  expect(found).toBeInstanceOf(SinterError);
  const { code, message } = found as SinterError;
  expect([code, message.split('\n')[0]]).toEqual(['E_DTYPE', `${name}: ${said}`]);
});

const axes: readonly Case[] = [
  ['sum', () => sn.sum(f(2, 3), 2), 'E_AXIS', /^sum: axis 2 is out of range for rank 2/],
  ['sum twice', () => sn.sum(f(2, 3), [0, -2]), 'E_AXIS', /^sum: an axis is named twice: \[0,0\]/],
  ['softmax', () => sn.softmax(f(2), 1), 'E_AXIS', /^softmax: axis 1 is out of range/],
  ['transpose', () => sn.transpose(f(2, 3), 0, 2), 'E_AXIS', /^transpose: axis 2 is out of range/],
  ['permute', () => sn.permute(f(2, 3), [0, 0]), 'E_AXIS', /^permute: \[0,0\] is no order of the 2 axes/],
  ['moveaxis', () => sn.moveaxis(f(2, 3), [0, 1], 0), 'E_AXIS', /^moveaxis: \[0,1\] cannot move to \[0\]/],
  ['unsqueeze', () => sn.unsqueeze(f(2), 3), 'E_AXIS', /^unsqueeze: axis 3 is out of range/],
  ['cumsum', () => sn.cumsum(f(2), 1), 'E_AXIS', /^cumsum: axis 1 is out of range/],
  ['sort', () => sn.sort(f(2), 1), 'E_AXIS', /^sort: axis 1 is out of range/],
  [
    'diagonal',
    () => sn.diagonal(f(2, 2), { axis1: 0, axis2: -2 }),
    'E_AXIS',
    /^diagonal: axis 0 is named twice/,
  ],
  ['flatten', () => sn.flatten(f(2, 3, 4), 2, 1), 'E_AXIS', /^flatten: axis 2 comes after axis 1/],
  ['fractional', () => sn.sum(f(2), 0.5), 'E_AXIS', /^sum: axis 0.5 is out of range/],
];

const values: readonly Case[] = [
  ['select', () => sn.select(f(2, 3), 1, 3), 'E_INDEX', /^select: index 3 is outside axis 1 of f32\[2,3\]/],
  ['narrow', () => sn.narrow(f(5), 0, 3, 3), 'E_INDEX', /^narrow: \[3, 6\) leaves axis 0 of f32\[5\]/],
  ['at', () => sn.at(f(2), 0, 0), 'E_INDEX', /^at: 2 indices for f32\[2\]/],
  ['at outside', () => sn.at(f(2), [0, 2]), 'E_INDEX', /^at: index 2 is outside axis 0 of f32\[2\]/],
  ['at twice dots', () => sn.at(f(2), '...', '...'), 'E_INDEX', /^at: '...' stands for all other axes/],
  [
    'at mask',
    () => sn.at(f(2), of('bool', 2)),
    'E_INDEX',
    /^at: a mask selects a number of elements that only its data knows/,
  ],
  [
    'slice step 0',
    () => sn.slice(f(2), 0, 0, 1, 0),
    'E_INDEX',
    /^slice: a range takes integers and a step that is not 0/,
  ],
  ['clamp without ends', () => sn.clamp(f(2)), 'E_VALUE', /^clamp: needs a low or a high end/],
  [
    'gelu',
    () => sn.gelu(f(2), { approximate: 'fast' as 'none' }),
    'E_VALUE',
    /^gelu: unknown approximate 'fast'/,
  ],
  ['dropout', () => sn.dropout(f(2), 1.5), 'E_VALUE', /^dropout: p must be a number in \[0, 1\], got 1.5/],
  [
    'dropout NaN',
    () => sn.dropout(f(2), NaN),
    'E_VALUE',
    /^dropout: p must be a number in \[0, 1\], got NaN/,
  ],
  ['arange', () => sn.arange(3, 0), 'E_VALUE', /^arange: no steps of 1 lead from 3 to 0/],
  ['arange step 0', () => sn.arange(0, 3, 0), 'E_VALUE', /^arange: no steps of 0/],
  [
    'arange to infinity',
    () => sn.arange(0, Infinity),
    'E_VALUE',
    /^arange: every bound must be a finite number/,
  ],
  [
    'linspace',
    () => sn.linspace(0, 1, -1),
    'E_VALUE',
    /^linspace: the count must be an integer of at least 0, got -1/,
  ],
  ['randint', () => sn.randint(3, 3, [2]), 'E_VALUE', /^randint: \[3, 3\) holds no 32-bit integers/],
  [
    'randint beyond its dtype',
    () => sn.randint(0, 2 ** 32, [2]),
    'E_VALUE',
    /^randint: i32 does not hold all integers of \[0, 4294967296\)/,
  ],
  [
    'randint of bytes',
    () => sn.randint(0, 1000, [2], { dtype: 'u8' }),
    'E_VALUE',
    /^randint: u8 does not hold all integers of \[0, 1000\)/,
  ],
  [
    'select by a tensor',
    () => sn.select(f(2, 3), 1, of('i32', 1) as never),
    'E_INDEX',
    /^select: a position is a number, got .*\n.*\n?.*x\.at/,
  ],
  [
    'at a list of tensors',
    () => sn.at(f(2, 3), [of('i32', 1)] as never),
    'E_INDEX',
    /^at: a position is a number, got .*/,
  ],
  ['topk', () => sn.topk(f(3), 4), 'E_VALUE', /^topk: cannot choose 4 of 3 elements/],
  ['norm NaN', () => sn.norm(f(3), NaN), 'E_VALUE', /^norm: p must be a number, got NaN/],
  [
    'integer power',
    () => sn.pow(of('i32', 2), -1),
    'E_VALUE',
    /^pow: integers take exponents ≥ 0: i32\[2\], -1/,
  ],
  ['roll', () => sn.roll(f(3), [1, 2], 0), 'E_VALUE', /^roll: expects one integer shift for each axis/],
  ['unfold', () => sn.unfold(f(3), 0, 4), 'E_VALUE', /^unfold: windows of 4, 1 apart, do not fit axis 0/],
  [
    'same padding',
    () => sn.conv1d(f(1, 1, 4), f(1, 1, 2), undefined, { padding: 'same', stride: 2 }),
    'E_VALUE',
    /^conv1d: padding 'same' needs stride 1/,
  ],
  [
    'pool padding',
    () => sn.maxPool1d(f(1, 4), 2, { padding: 2 }),
    'E_VALUE',
    /^maxPool1d: padding \[2\] exceeds half/,
  ],
  [
    'kernel 0',
    () => sn.avgPool2d(f(1, 1, 4, 4), 0),
    'E_VALUE',
    /^avgPool2d: kernelSize must be an integer of at least 1, got 0/,
  ],
  [
    'reduction',
    () => sn.mseLoss(f(2), f(2), { reduction: 'avg' as 'mean' }),
    'E_VALUE',
    /^mseLoss: unknown reduction 'avg'/,
  ],
  [
    'labelSmoothing',
    () => sn.crossEntropy(f(2, 2), of('i32', 2), { labelSmoothing: 2 }),
    'E_VALUE',
    /^crossEntropy: labelSmoothing must be a number in \[0, 1\]/,
  ],
  [
    'multinomial',
    () => sn.multinomial(f(3), 4),
    'E_VALUE',
    /^multinomial: cannot draw 4 different ones of 3/,
  ],
  [
    'oneHot',
    () => sn.oneHot(of('i32', 2), 0),
    'E_VALUE',
    /^oneHot: the number of classes must be an integer of at least 1/,
  ],
  [
    'scatterReduce',
    () => sn.scatterReduce(f(2), 0, of('i32', 1), f(1), 'mode' as 'sum'),
    'E_VALUE',
    /^scatterReduce: unknown reduction 'mode'/,
  ],
];

describe.each([
  ['shapes and ranks', shapes],
  ['dtypes', dtypes],
  ['axes', axes],
  ['values', values],
])('%s that do not fit are refused', (_, cases) => {
  test.each(cases)('%s', (_call, run, code, message) => {
    let error: unknown;
    try {
      run();
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(SinterError);
    expect((error as SinterError).message).toMatch(message);
    expect((error as SinterError).code).toBe(code);
  });
});

test("an error names the caller's line", () => {
  expect(() => sn.add(f(2), f(3))).toThrow(/\n {2}at ops\/errors\.test\.ts:\d+:\d+/);
});
