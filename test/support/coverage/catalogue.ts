// The catalogue of what has to be there: 229 operations and services in 28 sections, each with the dtypes that it asks for and the rows of
// `rows/` that are it, or, of services that compute nothing, the test that shows them.

import type { DType } from '../../../src/ir/dtype.ts';

/** Dtypes that a row of the catalogue asks for. */
const wanted = {
  FL: ['f16', 'bf16', 'f32', 'f64'],
  FD: ['f32', 'f64'],
  INT: ['i32', 'i64', 'u32'],
  NUM: ['f16', 'bf16', 'f32', 'f64', 'i32', 'i64', 'u32'],
  ANY: ['f16', 'bf16', 'f32', 'f64', 'i32', 'i64', 'u32', 'bool'],
  bits: ['i32', 'i64', 'u32', 'bool'],
  halves: ['f16', 'bf16'],
  packed: ['f32', 'f16', 'bf16'],
  f32: ['f32'],
} as const satisfies Readonly<Record<string, readonly DType[]>>;

type Wanted = keyof typeof wanted;

/** A test that shows a capability: its file in `test/`, and its title. */
export interface Shown {
  readonly file: string;
  readonly title: string;
}

export interface CatalogueRow {
  /** Section and number within it. */
  readonly id: string;
  readonly name: string;
  readonly dtypes: readonly DType[];
  /** Rows of operations that are it; their gradients after the word `grad`. */
  readonly calls: readonly string[];
  readonly shown: readonly Shown[];
}

/** An operation: its rows by name, several apart by commas. */
function op(id: string, name: string, dtypes: Wanted, calls: string): CatalogueRow {
  return { id, name, dtypes: wanted[dtypes], calls: calls.split(', '), shown: [] };
}

/** A service, and the tests that show it, each as `file: title`. */
function service(id: string, name: string, ...tests: readonly string[]): CatalogueRow {
  return { id, name, dtypes: [], calls: [], shown: tests.map(shownBy) };
}

export function shownBy(text: string): Shown {
  const at = text.indexOf(': ');
  return { file: text.slice(0, at), title: text.slice(at + 2) };
}

const storage = [
  op('1.1', 'tensor', 'ANY', 'tensor'),
  service(
    '1.2',
    'tensorPinned, uploadBuffer',
    'interop/buffer.test.ts: what is uploaded comes back, in every dtype, and a tensor of it computes',
  ),
  service(
    '1.3',
    'toHost, data',
    'tensor/evaluate/lazy.test.ts: bool is 0 and 1 in data, false and true in array and item',
    'tensor/evaluate/lazy.test.ts: a value is computed once and read as often as asked',
  ),
  service('1.4', 'toHostRaw', 'io/tensors.test.ts: keep every bit of every dtype on the way through tensors'),
  op('1.5', 'clone', 'ANY', 'clone'),
  op('1.6', 'zeros', 'ANY', 'zeros'),
  op('1.7', 'full', 'ANY', 'full'),
  service(
    '1.8',
    'DeviceBuffer accessors',
    'interop/buffer.test.ts: a buffer knows its device, its elements and its size, and shows them',
  ),
  service(
    '1.9',
    'DeviceBuffer.as, asMut, take',
    'interop/buffer.test.ts: what nobody holds any more is refused, by name',
    'interop/buffer.test.ts: makes buffers by its functions only',
  ),
  service('1.10', 'elemSize', 'interop/storage.test.ts: have sizes by their words'),
  service(
    '1.11',
    'rawHandle, rawHandleMut',
    'interop/buffer.test.ts: a write that the buffer is only told of takes the value away',
    'interop/cuda.test.ts: memory of theirs is a tensor, and a value of ours is memory to them',
  ),
  service(
    '1.12',
    'backend.as',
    'interop/backend.test.ts: a device tells what it does by itself',
    'interop/webgpu.test.ts: Sinter computes on a GPUDevice of theirs, which stays theirs',
  ),
];

const elementwise = [
  op('2.1', 'add', 'NUM', 'add, add/alpha'),
  op('2.2', 'sub', 'NUM', 'sub, rsub'),
  op('2.3', 'mul', 'NUM', 'mul'),
  op('2.4', 'div', 'NUM', 'div'),
  op('2.5', 'neg', 'NUM', 'neg'),
  op('2.6', 'addScaled', 'FL', 'addScaled'),
  op('2.7', 'mulScalar', 'FL', 'mul/number'),
  op('2.8', 'pow', 'FL', 'pow, pow/tensor'),
  op('2.9', 'clamp', 'NUM', 'clamp'),
  op('2.10', 'clampBackward', 'FL', 'grad clamp'),
  op('3.1', 'exp', 'FL', 'exp'),
  op('3.2', 'log', 'FL', 'log'),
  op('3.3', 'sqrt', 'FL', 'sqrt'),
  op('3.4', 'abs', 'NUM', 'abs'),
  op('3.5', 'absBackward', 'FL', 'grad abs'),
  op('3.6', 'tanh', 'FL', 'tanh'),
  op('3.7', 'tanhBackward', 'FL', 'grad tanh'),
  op('4.1', 'relu', 'NUM', 'relu'),
  op('4.2', 'reluBackward', 'FL', 'grad relu'),
  op('4.3', 'sigmoid', 'FL', 'sigmoid'),
  op('4.4', 'sigmoidBackward', 'FL', 'grad sigmoid'),
  op('4.5', 'gelu by sigmoid', 'FL', 'gelu/sigmoid'),
  op('4.6', 'gelu by tanh', 'FL', 'gelu/tanh'),
  op('4.7', 'gelu', 'FL', 'gelu'),
  op('4.8', 'geluBackward', 'FL', 'grad gelu, grad gelu/tanh, grad gelu/sigmoid'),
  op('4.9', 'silu', 'FL', 'silu'),
  op('4.10', 'siluBackward', 'FL', 'grad silu'),
  op('4.11', 'elu', 'FL', 'elu'),
  op('4.12', 'eluBackward', 'FL', 'grad elu'),
  op('4.13', 'mish', 'FL', 'mish'),
  op('4.14', 'mishBackward', 'FL', 'grad mish'),
  op('5.1', 'eq, ne, lt, le, gt, ge', 'NUM', 'eq, ne, lt, le, gt, ge'),
  op('5.2', 'neScalar', 'NUM', 'ne/number'),
  op('5.3', 'isfinite', 'NUM', 'isFinite'),
  op('5.4', 'logicalAnd, logicalOr, logicalXor', 'ANY', 'logicalAnd, logicalOr, logicalXor'),
  op('5.5', 'logicalNot', 'ANY', 'logicalNot'),
  op('5.6', 'any', 'ANY', 'any'),
  op('5.7', 'all', 'ANY', 'all'),
  op('5.8', 'hasInfNan', 'FL', 'hasInfNan'),
  op('6.1', 'floorDivide', 'NUM', 'floorDivide'),
  op('6.2', 'remainder', 'NUM', 'remainder'),
  op('6.3', 'bitwiseAnd, bitwiseOr, bitwiseXor', 'bits', 'bitwiseAnd, bitwiseOr, bitwiseXor'),
  op('6.4', 'bitwiseNot', 'bits', 'bitwiseNot'),
  op('6.5', 'bitwiseLeftShift', 'INT', 'bitwiseLeftShift'),
  op('6.6', 'bitwiseRightShift', 'INT', 'bitwiseRightShift'),
  op('7.1', 'cast float to int', 'FL', 'cast/i32, cast/i64, cast/u32'),
  op('7.2', 'cast int to float', 'INT', 'cast, cast/bf16, cast/f32, cast/f64'),
  op('7.3', 'cast int to int', 'INT', 'cast/i32, cast/i64, cast/u32'),
  op('7.4', 'cast bool to float or int, and back', 'ANY', 'cast, cast/f32, cast/i32, toBool'),
  op('7.5', 'cast float to float', 'FL', 'cast, cast/bf16, cast/f32, cast/f64'),
  service(
    '7.6',
    'quantizeQ8, dequantizeQ8',
    'interop/storage.test.ts: holds what its format holds: f16 rounds, blocks quantise, on both sides alike',
    'interop/storage.test.ts: no element of q8 is off by more than half a step of its block',
    'interop/buffer.test.ts: blocks of q8 are read as what they stand for',
  ),
];

const folds = [
  op('8.1', 'sum', 'ANY', 'sum, sum/i64'),
  op('8.2', 'mean', 'FL', 'mean, mean/f32'),
  op('8.3', 'prod', 'NUM', 'prod'),
  op('8.4', 'prodBackward', 'FL', 'grad prod'),
  op('8.5', 'amin, min', 'NUM', 'amin, min, minWithIndices'),
  op('8.6', 'amax, max', 'NUM', 'amax, max, maxWithIndices'),
  op('8.7', 'maskedMin, maskedMax', 'NUM', 'maskedMin, maskedMax'),
  op('8.8', 'argmax, argmin', 'NUM', 'argmax, argmin'),
  op('8.9', 'repeatAlongDim', 'ANY', 'expand'),
  op('8.10', 'reduceGradToShape', 'FL', 'sumToSize'),
  op('9.1', 'cumsum', 'NUM', 'cumsum'),
  op('9.2', 'cumprod', 'NUM', 'cumprod'),
  op('9.3', 'cummax', 'NUM', 'cummax'),
  op('9.4', 'cummin', 'NUM', 'cummin'),
  op('9.5', 'logcumsumexp', 'FL', 'logcumsumexp'),
];

const products = [
  op('10.1', 'matmul', 'NUM', 'matmul'),
  op('10.2', 'matmul in 16 bits', 'halves', 'matmul'),
  op('10.3', 'matmul rounding f32 to 16 bits', 'f32', 'matmul/bf16'),
  op('10.4', 'matmulNT (linear)', 'FL', 'linear'),
  op('10.5', 'dot', 'FL', 'dot'),
  op('10.6', 'mv', 'FL', 'mv'),
  op('10.7', 'vm', 'FL', 'matmul/vector'),
  op('10.8', 'bmm', 'FL', 'bmm'),
  op('10.9', 'matmul of stacks', 'FL', 'matmul/stack'),
  op('11.1', 'layerNorm', 'FL', 'layerNorm'),
  op('11.2', 'layerNormBackward', 'FL', 'grad layerNorm'),
  op('11.3', 'rmsNorm', 'FL', 'rmsNorm'),
  op('11.4', 'rmsNormBackward', 'FL', 'grad rmsNorm'),
  op('11.5', 'groupNorm', 'FL', 'groupNorm'),
  op('11.6', 'batchNorm', 'FL', 'batchNorm, batchNorm/training, batchNormUpdate'),
  op('11.7', 'batchNormBackward', 'FL', 'grad batchNorm, grad batchNorm/training'),
  op('11.8', 'localResponseNorm', 'FL', 'localResponseNorm'),
  op('11.9', 'localResponseNormBackward', 'FL', 'grad localResponseNorm'),
  op('12.1', 'softmax', 'FL', 'softmax'),
  op('12.2', 'softmaxBackward', 'FL', 'grad softmax'),
  op('12.3', 'logSoftmax', 'FL', 'logSoftmax'),
  op('12.4', 'logSoftmaxBackward', 'FL', 'grad logSoftmax'),
  op('12.5', 'softmax2d', 'FL', 'softmax2d'),
  op('13.1', 'conv2d', 'FL', 'conv2d, conv2d/groups'),
  op('13.2', 'maxPool2d', 'FL', 'maxPool2d, maxPool2dWithIndices'),
  op('13.3', 'avgPool2d', 'FL', 'avgPool2d'),
  op('13.4', 'conv1d, conv3d, convTranspose2d', 'FL', 'conv1d, conv3d, convTranspose2d'),
  op('14.1', 'gruCellFused', 'FL', 'gruCellFused'),
  op('14.2', 'lstmCell, rnnCell', 'FL', 'lstmCell, rnnCell'),
  op(
    '15.1',
    'scaledDotProductAttention',
    'FL',
    'scaledDotProductAttention, scaledDotProductAttention/causal',
  ),
];

const moved = [
  op('16.1', 'take', 'ANY', 'take'),
  op('16.2', 'indexSelect', 'ANY', 'indexSelect'),
  op('16.3', 'gather', 'ANY', 'gather'),
  op('16.4', 'scatter', 'ANY', 'scatter'),
  op('16.5', 'scatter of a number', 'ANY', 'scatter/number'),
  op('16.6', 'scatterAdd', 'NUM', 'scatterAdd'),
  op('16.7', 'scatterAdd1d', 'FL', 'scatterAdd/line'),
  op('16.8', 'embedding of one', 'FL', 'embedding/one'),
  op('16.9', 'embedding', 'FL', 'embedding'),
  op('16.10', 'embeddingBackward', 'FL', 'grad embedding'),
  op('16.11', 'segmentSum', 'FL', 'segmentSum'),
  op('17.1', 'where', 'ANY', 'where'),
  op('17.2', 'maskedFill', 'ANY', 'maskedFill'),
  op('17.3', 'maskedZero', 'FL', 'grad maskedFill'),
  op('17.4', 'maskedSelect', 'ANY', 'maskedSelect'),
  op('17.5', 'maskedScatterVjp', 'ANY', 'expandByMask'),
  op('17.6', 'maskedScatter', 'ANY', 'maskedScatter'),
  op('17.7', 'expand of masks', 'ANY', 'expand'),
  service(
    '18.1',
    'Layout.contiguous',
    'interop/layout.test.ts: contiguity is PyTorch’s: axes of one index do not count',
  ),
  service(
    '18.2',
    'Layout queries',
    'interop/layout.test.ts: bounds, density and overlaps are those of the list',
    'interop/layout.test.ts: contiguity is PyTorch’s: axes of one index do not count',
  ),
  op('18.3', 'transpose', 'ANY', 'transpose'),
  op('18.4', 'permute', 'ANY', 'permute'),
  op('18.5', 'reshape', 'ANY', 'reshape'),
  op('18.6', 'stridedCopy', 'ANY', 'asStrided'),
  op('18.7', 'stridedScatter', 'ANY', 'asStridedScatter'),
  op('18.8', 'split, narrow', 'ANY', 'split, narrow'),
  op('18.9', 'cat', 'ANY', 'cat'),
  op('18.10', 'sliceWrite', 'ANY', 'sliceWrite, dynamicUpdateSlice'),
  op('18.11', 'sliceRead', 'ANY', 'narrow, dynamicSlice'),
  op('18.12', 'roll', 'ANY', 'roll'),
  op('18.13', 'meshgrid', 'ANY', 'meshgrid'),
  op('19.1', 'triu, tril', 'ANY', 'triu, tril'),
  op('19.2', 'diagEmbed', 'ANY', 'diag, diagEmbed'),
  op('19.3', 'diagonal', 'ANY', 'diag/matrix, diagonal'),
  op('20.1', 'searchsorted, bucketize', 'NUM', 'searchsorted, bucketize'),
  op('20.2', 'topk', 'NUM', 'topk'),
  op('20.3', 'histc', 'FL', 'histc'),
  op('20.4', 'uniqueConsecutive', 'NUM', 'uniqueConsecutive'),
  op('20.5', 'unique', 'NUM', 'unique'),
  op('20.6', 'sort, argsort', 'NUM', 'sort, argsort'),
];

const drawn = [
  service(
    '21.1',
    'RngState',
    'tensor/recording/generator.test.ts: a state survives JSON and brings the numbers back',
  ),
  service(
    '21.2',
    'manualSeed',
    'tensor/recording/generator.test.ts: equal seeds give equal numbers, in the order of recording',
    'tensor/recording/generator.test.ts: negative seeds are taken modulo 2⁶⁴',
  ),
  service(
    '21.3',
    'saveRngState, restoreRngState',
    'tensor/recording/generator.test.ts: a state survives JSON and brings the numbers back',
  ),
  op('21.4', 'rand', 'FL', 'rand'),
  op('21.5', 'randn', 'FL', 'randn'),
  op('21.6', 'dropout by a seed', 'FL', 'dropout/seed'),
  op('21.7', 'dropout', 'FL', 'dropout'),
];

const algebra = [
  op('22.1', 'svd', 'FD', 'linalg.svd'),
  op('22.2', 'cholesky', 'FD', 'linalg.cholesky'),
  op('22.3', 'solve', 'FD', 'linalg.solve'),
  op('22.4', 'qr', 'FD', 'linalg.qr'),
  op('22.5', 'luFactor', 'FD', 'linalg.luFactor'),
  op('22.6', 'lstsq', 'FD', 'linalg.lstsq'),
  op('22.7', 'eig', 'FD', 'linalg.eig'),
  op('22.8', 'eigh', 'FD', 'linalg.eigh'),
  op('22.9', 'eigvalsh', 'FD', 'linalg.eigvalsh'),
  op('22.10', 'inv', 'FD', 'linalg.inv'),
  op('23.1', 'fft, ifft', 'FD', 'fft.fft, fft.ifft'),
  op('23.2', 'padTruncateComplex', 'FD', 'fft.fft/size'),
  op('23.3', 'rfft', 'FD', 'fft.rfft'),
  op('23.4', 'irfft', 'FD', 'fft.irfft'),
  op('23.5', 'hfft', 'FD', 'fft.hfft'),
  op('23.6', 'ihfft', 'FD', 'fft.ihfft'),
  op('23.7', 'fft2, ifft2', 'FD', 'fft.fft2, fft.ifft2'),
  op('23.8', 'fftn of 3 axes', 'FD', 'fft.fftn/cube'),
  op('23.9', 'fftn', 'FD', 'fft.fftn, fft.ifftn, fft.fftn/axes'),
  op('24.1', 'spmm', 'FD', 'sparse.spmm'),
  op('24.2', 'csrToDense', 'FD', 'sparse.csr'),
  op('24.3', 'cscToDense', 'FD', 'sparse.csc'),
  op('24.4', 'denseToCsr', 'FD', 'sparse.fromDense'),
  op('24.5', 'csrToCsc', 'FD', 'sparse.toCsc'),
  op('24.6', 'cooToCsr', 'FD', 'sparse.toCsr'),
  op('24.7', 'csrToCoo', 'FD', 'sparse.toCoo'),
  op('24.8', 'sparseMatmul24', 'packed', 'sparse24.matmul'),
];

const kinds = ['T', 'U', 'V', 'W'];
const chebyshev = ['chebyshevPolynomial', 'shiftedChebyshevPolynomial'].flatMap((name) =>
  kinds.map((kind) => `special.${name}${kind}`),
);

const special = [
  op('25.1', 'Chebyshev polynomials', 'FD', chebyshev.join(', ')),
  ...(
    'hermitePolynomialH hermitePolynomialHe laguerrePolynomialL legendrePolynomialP entr ndtr ndtri i0 i0e i1 i1e sphericalBesselJ0 ' +
    'modifiedBesselK0 scaledModifiedBesselK0 modifiedBesselK1 scaledModifiedBesselK1 airyAi zeta'
  )
    .split(' ')
    .map((name, i) => op(`25.${i + 2}`, name, 'FD', `special.${name}`)),
  op('26.1', 'cdist', 'FD', 'cdist, cdist/p'),
  service('26.2', 'cdistSupports', 'interop/backend.test.ts: a device tells what it does by itself'),
  service(
    '27.1',
    'adamStep',
    'optim/torch.test.ts: $name as a compiled function',
    'optim/state.test.ts: of other shapes are refused: nothing is spread',
  ),
];

const services = [
  service(
    '28.1',
    'registerBackend',
    'interop/backend.test.ts: a name is given once, and the backend that comes second is handed back',
  ),
  service(
    '28.2',
    'getBackend, hasBackend',
    'interop/backend.test.ts: without a backend the error names those that there are',
  ),
  service('28.3', 'synchronize', 'runtime/registry.test.ts: a lost device is opened again'),
  service('28.4', 'streamCount', 'interop/backend.test.ts: a device tells what it does by itself'),
  service('28.5', 'DType descriptors', 'interop/storage.test.ts: have sizes by their words'),
  service('28.6', 'deviceByteSize', 'interop/storage.test.ts: have sizes by their words'),
  service(
    '28.7',
    'q8 block layout',
    'interop/storage.test.ts: q8 has its scale as f16 in the low half of a word, then its integers, then zeros',
  ),
  service(
    '28.8',
    'Storage constructors',
    'interop/storage.test.ts: a value of a tensor is a storage that does not change',
    'interop/storage.test.ts: holds what its format holds: f16 rounds, blocks quantise, on both sides alike',
  ),
  service(
    '28.9',
    'Storage residency',
    'interop/storage.test.ts: goes from side to side, and each side is copied when it is stale',
  ),
  service(
    '28.10',
    'ensureHost',
    'interop/storage.test.ts: goes from side to side, and each side is copied when it is stale',
    'interop/storage.test.ts: a clean storage is not copied again',
  ),
  service(
    '28.11',
    'ensureDevice, toDevice',
    'interop/storage.test.ts: goes from side to side, and each side is copied when it is stale',
    'interop/storage.test.ts: a clean storage is not copied again',
  ),
  service(
    '28.12',
    'device buffer access',
    'interop/buffer.test.ts: the memory of a value is lent for reading, while it is held',
  ),
  service('28.13', 'read access', 'interop/storage.test.ts: is read once by many at a time'),
  service('28.14', 'write access', 'interop/storage.test.ts: is seen and written to through layouts'),
  service(
    '28.15',
    'transfer protocol',
    'tensor/evaluate/device.test.ts: is looked for again by every run, and leaves another device to the next',
    'tensor/evaluate/queue.test.ts: values move between the two',
  ),
  service(
    '28.16',
    'version counter',
    'interop/storage.test.ts: random uses of a storage keep its elements what they were last written as',
  ),
  service('28.17', 'WeakStorage', 'interop/storage.test.ts: what is held weakly goes'),
  service(
    '28.18',
    'Fence',
    'interop/storage.test.ts: a fence has a number, and none is 0',
    'interop/storage.test.ts: waits for work of others, and stays as it was where a transfer fails',
  ),
  service(
    '28.19',
    'buffer pool',
    'tensor/evaluate/memory.test.ts: over compiled steps that donate their state: nothing is allocated but uploads',
    'runtime/memory.test.ts: a pool never loses or doubles a byte',
  ),
  service(
    '28.20',
    'storageId',
    'interop/storage.test.ts: tensors of one value have one number, before and after it is computed',
  ),
  service('28.21', 'ids', 'interop/storage.test.ts: a fence has a number, and none is 0'),
  service(
    '28.22',
    'Tensor construction and queries',
    'interop/layout.test.ts: a tensor laid out in memory is the tensor again when it is read by the layout',
  ),
  service(
    '28.23',
    'requiresGrad, gradId, meta',
    'interop/storage.test.ts: a tensor tells what made it, and how many gradients come back to it',
    'tensor/backward.test.ts: requiresGrad_(false) makes a constant of a leaf',
  ),
  service(
    '28.24',
    'debug printing, access from many places',
    'tensor/show.test.ts: that is looked at records, compiles, uploads and reads nothing',
    'tensor/show.test.ts: that is pending, disposed, failed or a tracer says so, and what asks for gradients does',
  ),
  service(
    '28.25',
    'tests of handles',
    'interop/buffer.test.ts: a buffer knows its device, its elements and its size, and shows them',
  ),
];

export const catalogue: readonly CatalogueRow[] = [
  ...storage,
  ...elementwise,
  ...folds,
  ...products,
  ...moved,
  ...drawn,
  ...algebra,
  ...special,
  ...services,
];
