// What JavaScript users pass by mistake, where no type checker looks: refused when recorded, by a message that names the
// operation, what is expected and what came; never NaN, never a bare TypeError.

import { describe, expect, test } from 'vitest';
import { SinterError, type ErrorCode } from '../../src/errors.ts';
import * as typed from '../../src/index.ts';

/** The public names as JavaScript sees them. */
// oxlint-disable-next-line typescript/no-explicit-any
const sn = typed as unknown as Record<string, (...args: readonly unknown[]) => any>;
const x = sn['ones']!([2, 3]);
const v = sn['ones']!([3]);
const image = sn['ones']!([1, 1, 4, 4]);

type Case = readonly [call: string, run: () => unknown, code: ErrorCode, message: RegExp];

/** A call of a public function. */
function call(name: string, ...args: readonly unknown[]): () => unknown {
  return () => sn[name]!(...args);
}

const operands: readonly Case[] = [
  ['add a string', call('add', x, 'a'), 'E_VALUE', /^add: expects tensors or numbers, got 'a'/],
  ['add null', call('add', x, null), 'E_VALUE', /^add: expects tensors or numbers, got null/],
  ['add nothing', () => x.add(), 'E_VALUE', /^add: expects tensors or numbers, got undefined/],
  ['add an array', call('add', x, [1, 2, 3]), 'E_VALUE', /^add: .+ got \[1,2,3\][^]*try: tensor\(…\)/],
  ['add a bigint', call('add', x, 1n), 'E_VALUE', /^add: expects tensors or numbers, got 1n/],
  ['add an object', call('add', {}, x), 'E_VALUE', /^add: expects tensors or numbers, got an object \{\}/],
  ['add a function', call('add', x, () => 1), 'E_VALUE', /^add: .+ got a function/],
  ['add a symbol', call('add', x, Symbol('s')), 'E_VALUE', /^add: .+ got Symbol\(s\)/],
  ['add a promise', call('add', x, Promise.resolve(x)), 'E_VALUE', /^add: .+ Promise/],
  ['add a typed array', call('add', x, new Float32Array(3)), 'E_VALUE', /^add: .+ got a Float32Array/],
  ['add a date', call('add', x, new Date(0)), 'E_VALUE', /^add: expects tensors or numbers, got /],
  ['sub nothing', () => x.sub(), 'E_VALUE', /^sub: .+ got undefined/],
  ['maximum of null', () => x.maximum(null), 'E_VALUE', /^maximum: .+ got null/],
  ['pow of nothing', () => x.pow(), 'E_VALUE', /^pow: .+ got undefined/],
  ['eq to a string', () => x.eq('1'), 'E_VALUE', /^eq: .+ got '1'/],
  ['where without an else', () => sn['where']!(x.gt(0), x), 'E_VALUE', /^where: .+ got undefined/],
  ['lerp without a weight', call('lerp', x, x), 'E_VALUE', /^lerp: .+ got undefined/],
  ['clamp by options', call('clamp', x, { min: 0 }), 'E_VALUE', /^clamp: .+ got an object \{min\}/],
  ['clamp by a string', call('clamp', x, '0', 1), 'E_VALUE', /^clamp: .+ got '0'/],
  ['clamp by null', call('clamp', x, null, 1), 'E_VALUE', /^clamp: .+ got null/],
  [
    'addScaled without a factor',
    call('addScaled', x, x),
    'E_VALUE',
    /^addScaled: alpha must be a number, got und/,
  ],
  [
    'add with alpha as text',
    call('add', x, 1, { alpha: '2' }),
    'E_VALUE',
    /^add: alpha must be a number, got '2'/,
  ],
  ['add with a bare alpha', call('add', x, 1, 2), 'E_VALUE', /^add: expects options as an object, got 2/],
  ['leakyRelu with text', () => x.leakyRelu('a'), 'E_VALUE', /^leakyRelu: slope must be a number, got 'a'/],
  ['elu with null', () => x.elu(null), 'E_VALUE', /^elu: alpha must be a number, got null/],
  [
    'dropout with text',
    call('dropout', x, '0.5'),
    'E_VALUE',
    /^dropout: p must be a number in \[0, 1\], got '0.5'/,
  ],
];

const tensors: readonly Case[] = [
  ['exp of a number', call('exp', 1), 'E_VALUE', /must be a tensor, got 1[^]*try: tensor\(…\)/],
  ['exp of nothing', call('exp'), 'E_VALUE', /must be a tensor, got undefined/],
  ['exp of a promise', call('exp', Promise.resolve(x)), 'E_VALUE', /must be a tensor, got [^]*try: await it/],
  ['relu of null', call('relu', null), 'E_VALUE', /^relu: .+ must be a tensor, got null/],
  ['sum of an array', call('sum', [1, 2]), 'E_VALUE', /^sum: .+ must be a tensor, got \[1,2\]/],
  ['mean of a string', call('mean', 'x'), 'E_VALUE', /^mean: .+ must be a tensor, got 'x'/],
  ['matmul by a number', () => x.matmul(2), 'E_VALUE', /^matmul: the second operand must be a tensor, got 2/],
  ['matmul by nothing', () => x.matmul(), 'E_VALUE', /^matmul: .+ got undefined/],
  ['linear without a weight', call('linear', x), 'E_VALUE', /^linear: the weight must be a tensor, got und/],
  ['zerosLike a number', call('zerosLike', 3), 'E_VALUE', /^zerosLike: .+ must be a tensor, got 3/],
  ['cast of a number', call('cast', 3, 'f32'), 'E_VALUE', /^cast: .+ must be a tensor, got 3/],
  ['gather by a number', () => x.gather(0, 1), 'E_VALUE', /^gather: the index must be a tensor, got 1/],
  ['indexSelect by an array', () => x.indexSelect(0, [0]), 'E_VALUE', /^indexSelect: .+ got \[0\]/],
  ['oneHot of a number', call('oneHot', 3), 'E_VALUE', /^oneHot: .+ must be a tensor, got 3/],
  [
    'einsum of a number',
    call('einsum', 'ij->i', 3),
    'E_VALUE',
    /^einsum: every operand must be a tensor, got 3/,
  ],
  [
    'conv2d without a weight',
    call('conv2d', image),
    'E_VALUE',
    /^conv2d: .+ must be a tensor, got undefined/,
  ],
  ['conv1d of a number', call('conv1d', 1, x), 'E_VALUE', /^conv1d: .+ must be a tensor, got 1/],
  [
    'attention without keys',
    call('scaledDotProductAttention', x),
    'E_VALUE',
    /each of q, k, v must be a tensor/,
  ],
  [
    'crossEntropy with a list',
    call('crossEntropy', x, [0, 1]),
    'E_VALUE',
    /^crossEntropy: the target must be a tensor/,
  ],
  ['mseLoss without a target', call('mseLoss', x), 'E_VALUE', /^mseLoss: .+ got undefined/],
  [
    'cat of one tensor',
    call('cat', x),
    'E_VALUE',
    /^cat: expects tensors as an array of tensors, got Tensor f32\[2,3\]/,
  ],
  ['cat with a number', call('cat', [x, 1]), 'E_VALUE', /^cat: tensors\[1\] must be a tensor, got 1/],
  [
    'stack of nothing',
    call('stack'),
    'E_VALUE',
    /^stack: expects tensors as an array of tensors, got undefined/,
  ],
  [
    'new Tensor',
    () => new typed.Tensor(undefined as never),
    'E_VALUE',
    /^Tensor: tensors are not made by `new`/,
  ],
];

const data: readonly Case[] = [
  ['tensor of nothing', call('tensor', undefined), 'E_VALUE', /^tensor: expects numbers, .+ got undefined/],
  ['tensor of null', call('tensor', null), 'E_VALUE', /^tensor: expects numbers, .+ got null/],
  ['tensor of a string', call('tensor', 'abc'), 'E_VALUE', /^tensor: expects numbers, .+ got 'abc'/],
  ['tensor of strings', call('tensor', ['1', '2']), 'E_VALUE', /^tensor: expects numbers, .+ got '1'/],
  ['tensor of an object', call('tensor', { data: [1] }), 'E_VALUE', /^tensor: .+ got an object \{data\}/],
  ['tensor of a tensor', call('tensor', x), 'E_VALUE', /^tensor: .+ got Tensor f32\[2,3\][^]*try: clone\(\)/],
  ['tensor of tensors', call('tensor', [v, v]), 'E_VALUE', /^tensor: .+ got Tensor f32\[3\][^]*stack/],
  ['tensor with null inside', call('tensor', [1, null]), 'E_VALUE', /^tensor: .+ got null/],
  ['tensor with a hole', call('tensor', new Array(2)), 'E_VALUE', /^tensor: .+ got undefined/],
  ['tensor of a buffer', call('tensor', new ArrayBuffer(4)), 'E_VALUE', /^tensor: .+ got an ArrayBuffer/],
  [
    'tensor of a view',
    call('tensor', new DataView(new ArrayBuffer(4))),
    'E_DTYPE',
    /^tensor: no dtype holds a DataView/,
  ],
  ['full without a value', call('full', [2]), 'E_VALUE', /^full: the value must be a number, got undefined/],
  ['full of a string', call('full', [2], '1'), 'E_VALUE', /^full: the value must be a number, got '1'/],
  ['full of null', call('full', [2], null), 'E_VALUE', /^full: the value must be a number, got null/],
  [
    'arange to a string',
    call('arange', '3'),
    'E_VALUE',
    /^arange: every bound must be a finite number, got '3'/,
  ],
  [
    'linspace from a string',
    call('linspace', '0', 1, 3),
    'E_VALUE',
    /^linspace: every bound must be a finite number/,
  ],
  [
    'pad by text',
    call('pad', x, [[1, 1]], { value: 'a' }),
    'E_VALUE',
    /^pad: value must be a number, or \{ re, im \}, got 'a'/,
  ],
];

const shapes: readonly Case[] = [
  ['a string', call('zeros', '3'), 'E_VALUE', /^zeros: expects a shape as an array of integers, got '3'/],
  ['a number', call('zeros', 3), 'E_VALUE', /^zeros: expects a shape as an array of integers, got 3/],
  ['numbers', call('zeros', 2, 3), 'E_VALUE', /^zeros: expects /],
  ['nothing', call('ones'), 'E_VALUE', /^ones: expects a shape as an array of integers, got undefined/],
  ['a fraction', call('zeros', [2.5]), 'E_SHAPE', /^zeros: sizes must be non-negative integers: \[2.5\]/],
  ['NaN', call('zeros', [NaN]), 'E_SHAPE', /^zeros: sizes must be non-negative integers: \[NaN\]/],
  ['a negative size', call('zeros', [-1]), 'E_SHAPE', /^zeros: sizes must be non-negative integers: \[-1\]/],
  [
    'infinity',
    call('zeros', [Infinity]),
    'E_SHAPE',
    /^zeros: sizes must be non-negative integers: \[Infinity\]/,
  ],
  ['text inside', call('zeros', ['3']), 'E_SHAPE', /^zeros: sizes must be non-negative integers: \['3'\]/],
  ['null inside', call('zeros', [null]), 'E_SHAPE', /^zeros: sizes must be non-negative integers: \[null\]/],
  [
    'an array inside',
    call('zeros', [[2]]),
    'E_SHAPE',
    /^zeros: sizes must be non-negative integers: \[\[…\]\]/,
  ],
  ['holes', call('zeros', new Array(2)), 'E_SHAPE', /^zeros: sizes .+: \[undefined,undefined\]/],
  ['too many elements', call('zeros', [2 ** 30, 2 ** 30]), 'E_SHAPE', /^zeros: too many elements/],
  ['of tensor', call('tensor', [1, 2], { shape: '2' }), 'E_VALUE', /^tensor: expects a shape .+ got '2'/],
  ['of full', call('full', 2, 1), 'E_VALUE', /^full: expects a shape .+ got 2/],
  ['of randn, a number', call('randn', 2), 'E_VALUE', /^randn: expects a shape .+ got 2/],
  [
    'of rand, a fraction',
    call('rand', [2.5]),
    'E_SHAPE',
    /^rand: sizes must be non-negative integers: \[2.5\]/,
  ],
  ['of randint', call('randint', 0, 3, '2'), 'E_VALUE', /^randint: expects a shape .+ got '2'/],
  ['of eye', call('eye', '2'), 'E_VALUE', /^eye: rows must be an integer of at least 0, got '2'/],
  ['of reshape, a string', () => x.reshape('6'), 'E_VALUE', /^reshape: expects a shape .+ got '6'/],
  ['of reshape, strings', () => x.reshape(['6']), 'E_SHAPE', /^reshape: sizes must be .+: \['6'\]/],
  ['of reshape, numbers', () => x.reshape(3, 2), 'E_VALUE', /^reshape: expects a shape .+ got 3/],
  ['of reshape, nothing', () => x.reshape(), 'E_VALUE', /^reshape: expects a shape .+ got undefined/],
  ['of reshape, NaN', () => x.reshape([NaN]), 'E_SHAPE', /^reshape: sizes must be .+: \[NaN\]/],
  ['of reshape, −2', () => x.reshape([-2, 3]), 'E_SHAPE', /^reshape: sizes must be .+: \[-2,3\]/],
  ['of view', () => x.view(6), 'E_VALUE', /^view: expects a shape .+ got 6/],
  ['of expand', () => x.expand(2, 2, 3), 'E_VALUE', /^expand: expects a shape .+ got 2/],
  [
    'of layerNorm',
    call('layerNorm', x, 'a'),
    'E_VALUE',
    /^layerNorm: expects the normalized shape .+ got 'a'/,
  ],
  [
    'of a pooling window',
    call('maxPool2d', image),
    'E_VALUE',
    /^maxPool2d: expects kernelSize .+ got undefined/,
  ],
  [
    'of a stride',
    call('avgPool2d', image, 2, { stride: '2' }),
    'E_VALUE',
    /^avgPool2d: expects stride .+ got '2'/,
  ],
];

const axes: readonly Case[] = [
  ['text', () => x.sum('0'), 'E_VALUE', /^sum: expects axes as an array of integers, got '0'/],
  ['text in a list', () => x.sum(['0']), 'E_AXIS', /^sum: axis '0' is out of range for rank 2/],
  ['null', () => x.sum(null), 'E_VALUE', /^sum: expects axes as integers, got null/],
  ['options', () => x.mean({ axis: 0 }), 'E_VALUE', /^mean: expects axes .+ got an object \{axis\}/],
  ['a bigint', () => x.mean(0n), 'E_VALUE', /^mean: expects axes .+ got 0n/],
  ['NaN', () => x.sum(NaN), 'E_AXIS', /^sum: axis NaN is out of range for rank 2/],
  ['of softmax, text', call('softmax', x, '1'), 'E_VALUE', /^softmax: expects axes .+ got '1'/],
  ['of argmax, text', () => x.argmax('0'), 'E_AXIS', /^argmax: axis '0' is out of range/],
  ['of cumsum, nothing', () => x.cumsum(), 'E_AXIS', /^cumsum: axis undefined is out of range/],
  ['of unsqueeze, nothing', () => x.unsqueeze(), 'E_AXIS', /^unsqueeze: axis undefined is out of range/],
  ['of transpose, text', () => x.transpose('0', '1'), 'E_AXIS', /^transpose: axis '0' is out of range/],
  ['of permute, numbers', () => x.permute(1, 0), 'E_VALUE', /^permute: expects an order of axes .+ got 1/],
  ['of permute, text', () => x.permute(['1', '0']), 'E_AXIS', /^permute: axis '1' is out of range/],
  ['of split, nothing', () => x.split(), 'E_VALUE', /^split: expects sizes .+ got undefined/],
  ['of chunk, text', () => x.chunk('2'), 'E_VALUE', /^chunk: the number of chunks must be .+, got '2'/],
  ['of roll, text', () => x.roll('1'), 'E_VALUE', /^roll: expects shifts .+ got '1'/],
  ['of repeat, nothing', call('repeat', x), 'E_VALUE', /^repeat: expects repeats .+ got undefined/],
  ['of pad, a number', call('pad', x, 1), 'E_VALUE', /^pad: expects pairs .+ got 1/],
  ['of pad, numbers', call('pad', x, [1]), 'E_VALUE', /^pad: expects each pair .+ got 1/],
  ['of pad, a mode', call('pad', x, [[1, 1]], { mode: 'mirror' }), 'E_VALUE', /^pad: unknown mode 'mirror'/],
  ['an index of text', () => x.at('a'), 'E_INDEX', /^at: 'a' is no index/],
  ['an index of other keys', () => x.at({ from: 1 }), 'E_INDEX', /^at: an object \{from\} is no index/],
  ['a pattern', call('rearrange', x, 3), 'E_VALUE', /^rearrange: the pattern must be a string, got 3/],
  ['an equation', call('einsum', 3, x), 'E_VALUE', /^einsum: the equation must be a string, got 3/],
];

const dtypes: readonly Case[] = [
  [
    'of zeros',
    call('zeros', [2], { dtype: 'float32' }),
    'E_DTYPE',
    /^zeros: no dtype is called 'float32'[^]*f32/,
  ],
  ['of tensor', call('tensor', [1], { dtype: 'float' }), 'E_DTYPE', /^tensor: no dtype is called 'float'/],
  ['of randn', call('randn', [2], { dtype: 'double' }), 'E_DTYPE', /^randn: no dtype is called 'double'/],
  [
    'of arange',
    call('arange', 3, undefined, 1, { dtype: 'int' }),
    'E_DTYPE',
    /^arange: no dtype is called 'int'/,
  ],
  ['of sum', () => x.sum(0, { dtype: 'x' }), 'E_DTYPE', /^sum: no dtype is called 'x'/],
  ['of cast, nothing', () => x.cast(), 'E_DTYPE', /^cast: no dtype is called undefined/],
  ['of cast, a list', () => x.cast(['f32']), 'E_DTYPE', /^cast: no dtype is called \['f32'\]/],
  [
    'of cast, what every object has',
    () => x.cast('toString'),
    'E_DTYPE',
    /^cast: no dtype is called 'toString'/,
  ],
  [
    'bare',
    call('zeros', [2], 'i32'),
    'E_VALUE',
    /^zeros: expects options .+ got 'i32'[^]*\{ dtype: 'i32' \}/,
  ],
  ['bare, of tensor', call('tensor', [1], 'f16'), 'E_VALUE', /^tensor: expects options .+ got 'f16'/],
];

const identity = (a: unknown): unknown => a;

const rest: readonly Case[] = [
  ['compile a number', call('compile', 3), 'E_VALUE', /^compile: expects a function, got 3/],
  ['compile nothing', call('compile'), 'E_VALUE', /^compile: expects a function, got undefined/],
  [
    'donate a number',
    call('compile', identity, { donate: 0 }),
    'E_VALUE',
    /^compile: donate must list .+ got 0/,
  ],
  [
    'donate text',
    call('compile', identity, { donate: ['0'] }),
    'E_VALUE',
    /^compile: donate must list .+ got \['0'\]/,
  ],
  ['grad of a tensor', call('grad', x), 'E_VALUE', /^grad: expects a function, got Tensor f32\[2,3\]/],
  ['valueAndGrad of nothing', call('valueAndGrad'), 'E_VALUE', /^valueAndGrad: expects a function/],
  ['vjp of a number', call('vjp', 3), 'E_VALUE', /^vjp: expects a function, got 3/],
  ['noGrad without a function', call('noGrad', x), 'E_VALUE', /^noGrad: expects a function/],
  [
    'customVjp without a rule',
    call('customVjp', identity),
    'E_VALUE',
    /^customVjp: expects a function, got und/,
  ],
  ['treeMap without a function', call('treeMap', 3, x), 'E_VALUE', /^treeMap: expects a function, got 3/],
  ['explain a number', call('explain', 3), 'E_VALUE', /^explain: expects a function, got 3/],
  [
    'argnums of text',
    () => sn['grad']!(identity, { argnums: '0' })(x),
    'E_VALUE',
    /^grad: there is no argument '0'/,
  ],
  [
    'a result that is none',
    () => sn['grad']!(identity)('s'),
    'E_VALUE',
    /^grad: the function must return one tensor, got 's'/,
  ],
  ['gradients of a number', call('gradients', 3, [x]), 'E_VALUE', /^gradients: expects outputs as an array/],
  [
    'gradients for a number',
    call('gradients', x, [3]),
    'E_VALUE',
    /^gradients: inputs\[0\] must be a tensor, got 3/,
  ],
  [
    'backward from a number',
    () => x.sum().requiresGrad_().backward(1),
    'E_VALUE',
    /^backward: expects a tensor, got 1/,
  ],
  ['assign a number', () => x.assign(1), 'E_VALUE', /^assign: expects a tensor, got 1/],
  ['assign nothing', () => x.assign(), 'E_VALUE', /^assign: expects a tensor, got undefined/],
  ['a gradient of text', () => (x.grad = 'g'), 'E_VALUE', /^grad: expects a tensor, got 'g'/],
  ['requiresGrad_ of text', () => x.requiresGrad_('no'), 'E_VALUE', /^requiresGrad_: expects true or false/],
  ['a seed of text', call('manualSeed', '1'), 'E_VALUE', /^manualSeed: expects an integer, got '1'/],
  ['no seed', call('manualSeed'), 'E_VALUE', /^manualSeed: expects an integer, got undefined/],
  [
    'a budget of NaN',
    call('setRetainedMemoryLimit', NaN),
    'E_VALUE',
    /^setRetainedMemoryLimit: expects a number of bytes/,
  ],
  ['a budget of text', call('setRetainedMemoryLimit', '1'), 'E_VALUE', /^setRetainedMemoryLimit: .+ got '1'/],
];

describe.each([
  ['operands', operands],
  ['tensors', tensors],
  ['data', data],
  ['shapes', shapes],
  ['axes and indices', axes],
  ['dtypes', dtypes],
  ['functions, seeds and settings', rest],
])('wrong %s are refused', (_, cases) => {
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

test('a typed array is a shape, and a list of axes', () => {
  expect(sn['zeros']!(Int32Array.of(2, 3)).shape).toEqual([2, 3]);
  expect(x.reshape(Int32Array.of(3, -1)).shape).toEqual([3, 2]);
  expect(x.permute(Uint8Array.of(1, 0)).shape).toEqual([3, 2]);
  expect(x.sum(Int32Array.of(0, 1)).shape).toEqual([]);
});

test('a shape is copied: the array stays the caller’s', () => {
  const shape = [2, 3];
  const made = ['zeros', 'rand', 'randn'].map((name) => sn[name]!(shape));
  made.push(sn['tensor']!([1, 2, 3, 4, 5, 6], { shape }), x.reshape(shape), x.expand(shape));
  shape[0] = 7;
  for (const tensor of made) expect(tensor.shape).toEqual([2, 3]);
});
