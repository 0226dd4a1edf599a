// Operations whose code comes when they are first called, for pages, by the part that they come with.

import { later } from './later.ts';
import type { Operation } from '../tensor/waiting.ts';
import {
  algebra,
  transforms,
  functions,
  statistics,
  selection,
  losses,
  windows,
  convolutions,
  products,
  places,
  arrangements,
  norms,
  orders,
  numbers,
  layers,
} from './families.ts';

// Linear algebra
export const cdist: Operation = /* @__PURE__ */ later(algebra, 'cdist');
export const dist: Operation = /* @__PURE__ */ later(algebra, 'dist');
export const pairwiseDistance: Operation = /* @__PURE__ */ later(algebra, 'pairwiseDistance');
export const pdist: Operation = /* @__PURE__ */ later(algebra, 'pdist');
export const matrixExp: Operation = /* @__PURE__ */ later(algebra, 'matrixExp');
export const norm: Operation = /* @__PURE__ */ later(algebra, 'norm');
export const pinverse: Operation = /* @__PURE__ */ later(algebra, 'pinverse');
export const svd: Operation = /* @__PURE__ */ later(algebra, 'svd', { gives: 3 });
export const cross: Operation = /* @__PURE__ */ later(algebra, 'cross');
export const vander: Operation = /* @__PURE__ */ later(algebra, 'vander');
export const cholesky: Operation = /* @__PURE__ */ later(algebra, 'cholesky');
export const choleskyInverse: Operation = /* @__PURE__ */ later(algebra, 'choleskyInverse');
export const choleskySolve: Operation = /* @__PURE__ */ later(algebra, 'choleskySolve');
export const det: Operation = /* @__PURE__ */ later(algebra, 'det');
export const geqrf: Operation = /* @__PURE__ */ later(algebra, 'geqrf', { gives: 2 });
export const logdet: Operation = /* @__PURE__ */ later(algebra, 'logdet');
export const luUnpack: Operation = /* @__PURE__ */ later(algebra, 'luUnpack', { gives: 3 });
export const matrixPower: Operation = /* @__PURE__ */ later(algebra, 'matrixPower');
export const ormqr: Operation = /* @__PURE__ */ later(algebra, 'ormqr');
export const qr: Operation = /* @__PURE__ */ later(algebra, 'qr', { gives: 2 });
export const slogdet: Operation = /* @__PURE__ */ later(algebra, 'slogdet', { gives: 2 });
export const triangularSolve: Operation = /* @__PURE__ */ later(algebra, 'triangularSolve', { gives: 2 });
export const orgqr: Operation = /* @__PURE__ */ later(algebra, 'orgqr');
export const inverse: Operation = /* @__PURE__ */ later(algebra, 'inverse');

// Fourier transforms
export const istft: Operation = /* @__PURE__ */ later(transforms, 'istft');
export const stft: Operation = /* @__PURE__ */ later(transforms, 'stft');
export const bartlettWindow: Operation = /* @__PURE__ */ later(transforms, 'bartlettWindow');
export const blackmanWindow: Operation = /* @__PURE__ */ later(transforms, 'blackmanWindow');
export const hammingWindow: Operation = /* @__PURE__ */ later(transforms, 'hammingWindow');
export const hannWindow: Operation = /* @__PURE__ */ later(transforms, 'hannWindow');
export const kaiserWindow: Operation = /* @__PURE__ */ later(transforms, 'kaiserWindow');

// Special functions
export const erfc: Operation = /* @__PURE__ */ later(functions, 'erfc');
export const digamma: Operation = /* @__PURE__ */ later(functions, 'digamma');
export const erfinv: Operation = /* @__PURE__ */ later(functions, 'erfinv');
export const i0: Operation = /* @__PURE__ */ later(functions, 'i0');
export const lgamma: Operation = /* @__PURE__ */ later(functions, 'lgamma');
export const sinc: Operation = /* @__PURE__ */ later(functions, 'sinc');
export const igamma: Operation = /* @__PURE__ */ later(functions, 'igamma');
export const igammac: Operation = /* @__PURE__ */ later(functions, 'igammac');
export const logit: Operation = /* @__PURE__ */ later(functions, 'logit');
export const mvlgamma: Operation = /* @__PURE__ */ later(functions, 'mvlgamma');
export const polygamma: Operation = /* @__PURE__ */ later(functions, 'polygamma');
export const xlogy: Operation = /* @__PURE__ */ later(functions, 'xlogy');

// Statistics
export const bincount: Operation = /* @__PURE__ */ later(statistics, 'bincount', { gives: 'promise' });
export const histc: Operation = /* @__PURE__ */ later(statistics, 'histc');
export const histogram: Operation = /* @__PURE__ */ later(statistics, 'histogram', { gives: 2 });
export const histogramdd: Operation = /* @__PURE__ */ later(statistics, 'histogramdd', { gives: 'untold' });
export const aminmax: Operation = /* @__PURE__ */ later(statistics, 'aminmax', { gives: 2 });
export const corrcoef: Operation = /* @__PURE__ */ later(statistics, 'corrcoef');
export const cov: Operation = /* @__PURE__ */ later(statistics, 'cov');
export const nanmean: Operation = /* @__PURE__ */ later(statistics, 'nanmean');
export const nansum: Operation = /* @__PURE__ */ later(statistics, 'nansum');
export const kthvalue: Operation = /* @__PURE__ */ later(statistics, 'kthvalue', { gives: 2 });
export const median: Operation = /* @__PURE__ */ later(statistics, 'median');
export const medianWithIndices: Operation = /* @__PURE__ */ later(statistics, 'medianWithIndices', {
  gives: 2,
});
export const mode: Operation = /* @__PURE__ */ later(statistics, 'mode', { gives: 2 });
export const nanmedian: Operation = /* @__PURE__ */ later(statistics, 'nanmedian');
export const nanmedianWithIndices: Operation = /* @__PURE__ */ later(statistics, 'nanmedianWithIndices', {
  gives: 2,
});
export const nanquantile: Operation = /* @__PURE__ */ later(statistics, 'nanquantile');
export const quantile: Operation = /* @__PURE__ */ later(statistics, 'quantile');

// Selection
export const argwhere: Operation = /* @__PURE__ */ later(selection, 'argwhere', { gives: 'promise' });
export const expandByMask: Operation = /* @__PURE__ */ later(selection, 'expandByMask');
export const maskedAt: Operation = /* @__PURE__ */ later(selection, 'maskedAt', { gives: 'promise' });
export const maskedScatter: Operation = /* @__PURE__ */ later(selection, 'maskedScatter');
export const maskedSelect: Operation = /* @__PURE__ */ later(selection, 'maskedSelect', { gives: 'promise' });
export const nonzero: Operation = /* @__PURE__ */ later(selection, 'nonzero', { gives: 'promise' });
export const addAt: Operation = /* @__PURE__ */ later(selection, 'addAt');
export const maxAt: Operation = /* @__PURE__ */ later(selection, 'maxAt');
export const minAt: Operation = /* @__PURE__ */ later(selection, 'minAt');
export const mulAt: Operation = /* @__PURE__ */ later(selection, 'mulAt');
export const setAt: Operation = /* @__PURE__ */ later(selection, 'setAt');
export const asStrided: Operation = /* @__PURE__ */ later(selection, 'asStrided');
export const asStridedScatter: Operation = /* @__PURE__ */ later(selection, 'asStridedScatter');
export const diagonalScatter: Operation = /* @__PURE__ */ later(selection, 'diagonalScatter');
export const selectScatter: Operation = /* @__PURE__ */ later(selection, 'selectScatter');
export const sliceScatter: Operation = /* @__PURE__ */ later(selection, 'sliceScatter');
export const dynamicSlice: Operation = /* @__PURE__ */ later(selection, 'dynamicSlice');
export const dynamicUpdateSlice: Operation = /* @__PURE__ */ later(selection, 'dynamicUpdateSlice');
export const sliceWrite: Operation = /* @__PURE__ */ later(selection, 'sliceWrite');
export const isin: Operation = /* @__PURE__ */ later(selection, 'isin');
export const unravelIndex: Operation = /* @__PURE__ */ later(selection, 'unravelIndex', { gives: 'untold' });
export const segmentReduce: Operation = /* @__PURE__ */ later(selection, 'segmentReduce');
export const unique: Operation = /* @__PURE__ */ later(selection, 'unique', { gives: 'promise' });
export const uniqueConsecutive: Operation = /* @__PURE__ */ later(selection, 'uniqueConsecutive', {
  gives: 'promise',
});
export const indexFill: Operation = /* @__PURE__ */ later(selection, 'indexFill');
export const indexPut: Operation = /* @__PURE__ */ later(selection, 'indexPut');
export const indexReduce: Operation = /* @__PURE__ */ later(selection, 'indexReduce');
export const put: Operation = /* @__PURE__ */ later(selection, 'put');

// Rare losses
export const cosineEmbeddingLoss: Operation = /* @__PURE__ */ later(losses, 'cosineEmbeddingLoss');
export const marginRankingLoss: Operation = /* @__PURE__ */ later(losses, 'marginRankingLoss');
export const tripletMarginLoss: Operation = /* @__PURE__ */ later(losses, 'tripletMarginLoss');
export const tripletMarginWithDistanceLoss: Operation = /* @__PURE__ */ later(
  losses,
  'tripletMarginWithDistanceLoss',
  { gives: 'untold' },
);
export const multilabelMarginLoss: Operation = /* @__PURE__ */ later(losses, 'multilabelMarginLoss');
export const multilabelSoftMarginLoss: Operation = /* @__PURE__ */ later(losses, 'multilabelSoftMarginLoss');
export const multiMarginLoss: Operation = /* @__PURE__ */ later(losses, 'multiMarginLoss');
export const softMarginLoss: Operation = /* @__PURE__ */ later(losses, 'softMarginLoss');
export const gaussianNllLoss: Operation = /* @__PURE__ */ later(losses, 'gaussianNllLoss');
export const poissonNllLoss: Operation = /* @__PURE__ */ later(losses, 'poissonNllLoss');
export const ctcLoss: Operation = /* @__PURE__ */ later(losses, 'ctcLoss');

// Pools and patches
export const avgPool1d: Operation = /* @__PURE__ */ later(windows, 'avgPool1d');
export const avgPool2d: Operation = /* @__PURE__ */ later(windows, 'avgPool2d');
export const avgPool3d: Operation = /* @__PURE__ */ later(windows, 'avgPool3d');
export const globalAvgPool: Operation = /* @__PURE__ */ later(windows, 'globalAvgPool');
export const lpPool1d: Operation = /* @__PURE__ */ later(windows, 'lpPool1d');
export const lpPool2d: Operation = /* @__PURE__ */ later(windows, 'lpPool2d');
export const lpPool3d: Operation = /* @__PURE__ */ later(windows, 'lpPool3d');
export const maxPool1d: Operation = /* @__PURE__ */ later(windows, 'maxPool1d');
export const maxPool1dWithIndices: Operation = /* @__PURE__ */ later(windows, 'maxPool1dWithIndices', {
  gives: 2,
});
export const maxPool2d: Operation = /* @__PURE__ */ later(windows, 'maxPool2d');
export const maxPool2dWithIndices: Operation = /* @__PURE__ */ later(windows, 'maxPool2dWithIndices', {
  gives: 2,
});
export const maxPool3d: Operation = /* @__PURE__ */ later(windows, 'maxPool3d');
export const maxPool3dWithIndices: Operation = /* @__PURE__ */ later(windows, 'maxPool3dWithIndices', {
  gives: 2,
});
export const adaptiveAvgPool1d: Operation = /* @__PURE__ */ later(windows, 'adaptiveAvgPool1d');
export const adaptiveAvgPool2d: Operation = /* @__PURE__ */ later(windows, 'adaptiveAvgPool2d');
export const adaptiveAvgPool3d: Operation = /* @__PURE__ */ later(windows, 'adaptiveAvgPool3d');
export const adaptiveMaxPool1d: Operation = /* @__PURE__ */ later(windows, 'adaptiveMaxPool1d');
export const adaptiveMaxPool1dWithIndices: Operation = /* @__PURE__ */ later(
  windows,
  'adaptiveMaxPool1dWithIndices',
  { gives: 2 },
);
export const adaptiveMaxPool2d: Operation = /* @__PURE__ */ later(windows, 'adaptiveMaxPool2d');
export const adaptiveMaxPool2dWithIndices: Operation = /* @__PURE__ */ later(
  windows,
  'adaptiveMaxPool2dWithIndices',
  { gives: 2 },
);
export const adaptiveMaxPool3d: Operation = /* @__PURE__ */ later(windows, 'adaptiveMaxPool3d');
export const adaptiveMaxPool3dWithIndices: Operation = /* @__PURE__ */ later(
  windows,
  'adaptiveMaxPool3dWithIndices',
  { gives: 2 },
);
export const fractionalMaxPool2d: Operation = /* @__PURE__ */ later(windows, 'fractionalMaxPool2d', {
  draws: true,
});
export const fractionalMaxPool2dWithIndices: Operation = /* @__PURE__ */ later(
  windows,
  'fractionalMaxPool2dWithIndices',
  { gives: 2, draws: true },
);
export const fractionalMaxPool3d: Operation = /* @__PURE__ */ later(windows, 'fractionalMaxPool3d', {
  draws: true,
});
export const fractionalMaxPool3dWithIndices: Operation = /* @__PURE__ */ later(
  windows,
  'fractionalMaxPool3dWithIndices',
  { gives: 2, draws: true },
);
export const maxUnpool1d: Operation = /* @__PURE__ */ later(windows, 'maxUnpool1d');
export const maxUnpool2d: Operation = /* @__PURE__ */ later(windows, 'maxUnpool2d');
export const maxUnpool3d: Operation = /* @__PURE__ */ later(windows, 'maxUnpool3d');
export const col2im: Operation = /* @__PURE__ */ later(windows, 'col2im');
export const im2col: Operation = /* @__PURE__ */ later(windows, 'im2col');

// Convolutions
export const conv1d: Operation = /* @__PURE__ */ later(convolutions, 'conv1d');
export const conv2d: Operation = /* @__PURE__ */ later(convolutions, 'conv2d');
export const conv3d: Operation = /* @__PURE__ */ later(convolutions, 'conv3d');
export const convTranspose1d: Operation = /* @__PURE__ */ later(convolutions, 'convTranspose1d');
export const convTranspose2d: Operation = /* @__PURE__ */ later(convolutions, 'convTranspose2d');
export const convTranspose3d: Operation = /* @__PURE__ */ later(convolutions, 'convTranspose3d');

// Rare products
export const einsum: Operation = /* @__PURE__ */ later(products, 'einsum');
export const scaledDotProductAttention: Operation = /* @__PURE__ */ later(
  products,
  'scaledDotProductAttention',
  { draws: true },
);
export const bilinear: Operation = /* @__PURE__ */ later(products, 'bilinear');
export const rotaryEmbedding: Operation = /* @__PURE__ */ later(products, 'rotaryEmbedding');
export const cosineSimilarity: Operation = /* @__PURE__ */ later(products, 'cosineSimilarity');
export const addbmm: Operation = /* @__PURE__ */ later(products, 'addbmm');
export const addmm: Operation = /* @__PURE__ */ later(products, 'addmm');
export const addmv: Operation = /* @__PURE__ */ later(products, 'addmv');
export const addr: Operation = /* @__PURE__ */ later(products, 'addr');
export const baddbmm: Operation = /* @__PURE__ */ later(products, 'baddbmm');
export const inner: Operation = /* @__PURE__ */ later(products, 'inner');
export const kron: Operation = /* @__PURE__ */ later(products, 'kron');
export const tensordot: Operation = /* @__PURE__ */ later(products, 'tensordot');
export const vdot: Operation = /* @__PURE__ */ later(products, 'vdot');

// Gathering and scattering
export const embedding: Operation = /* @__PURE__ */ later(places, 'embedding');
export const gather: Operation = /* @__PURE__ */ later(places, 'gather');
export const indexSelect: Operation = /* @__PURE__ */ later(places, 'indexSelect');
export const oneHot: Operation = /* @__PURE__ */ later(places, 'oneHot');
export const take: Operation = /* @__PURE__ */ later(places, 'take');
export const takeAlongAxis: Operation = /* @__PURE__ */ later(places, 'takeAlongAxis');
export const takeAlongDim: Operation = /* @__PURE__ */ later(places, 'takeAlongDim');
export const indexAdd: Operation = /* @__PURE__ */ later(places, 'indexAdd');
export const indexCopy: Operation = /* @__PURE__ */ later(places, 'indexCopy');
export const scatter: Operation = /* @__PURE__ */ later(places, 'scatter');
export const scatterAdd: Operation = /* @__PURE__ */ later(places, 'scatterAdd');
export const scatterReduce: Operation = /* @__PURE__ */ later(places, 'scatterReduce');
export const segmentSum: Operation = /* @__PURE__ */ later(places, 'segmentSum');
export const embeddingBag: Operation = /* @__PURE__ */ later(places, 'embeddingBag');

// Rare views
export const diag: Operation = /* @__PURE__ */ later(arrangements, 'diag');
export const diagEmbed: Operation = /* @__PURE__ */ later(arrangements, 'diagEmbed');
export const diagonal: Operation = /* @__PURE__ */ later(arrangements, 'diagonal');
export const flip: Operation = /* @__PURE__ */ later(arrangements, 'flip');
export const pad: Operation = /* @__PURE__ */ later(arrangements, 'pad');
export const roll: Operation = /* @__PURE__ */ later(arrangements, 'roll');
export const tril: Operation = /* @__PURE__ */ later(arrangements, 'tril');
export const triu: Operation = /* @__PURE__ */ later(arrangements, 'triu');
export const diagflat: Operation = /* @__PURE__ */ later(arrangements, 'diagflat');
export const rearrange: Operation = /* @__PURE__ */ later(arrangements, 'rearrange');
export const reduce: Operation = /* @__PURE__ */ later(arrangements, 'reduce');
export const repeat: Operation = /* @__PURE__ */ later(arrangements, 'repeat');
export const tile: Operation = /* @__PURE__ */ later(arrangements, 'tile');
export const atleast1d: Operation = /* @__PURE__ */ later(arrangements, 'atleast1d');
export const atleast2d: Operation = /* @__PURE__ */ later(arrangements, 'atleast2d');
export const atleast3d: Operation = /* @__PURE__ */ later(arrangements, 'atleast3d');
export const blockDiag: Operation = /* @__PURE__ */ later(arrangements, 'blockDiag');
export const broadcastTensors: Operation = /* @__PURE__ */ later(arrangements, 'broadcastTensors', {
  gives: 'untold',
});
export const cartesianProd: Operation = /* @__PURE__ */ later(arrangements, 'cartesianProd');
export const columnStack: Operation = /* @__PURE__ */ later(arrangements, 'columnStack');
export const combinations: Operation = /* @__PURE__ */ later(arrangements, 'combinations');
export const dsplit: Operation = /* @__PURE__ */ later(arrangements, 'dsplit', { gives: 'untold' });
export const dstack: Operation = /* @__PURE__ */ later(arrangements, 'dstack');
export const hsplit: Operation = /* @__PURE__ */ later(arrangements, 'hsplit', { gives: 'untold' });
export const hstack: Operation = /* @__PURE__ */ later(arrangements, 'hstack');
export const tensorSplit: Operation = /* @__PURE__ */ later(arrangements, 'tensorSplit', { gives: 'untold' });
export const vsplit: Operation = /* @__PURE__ */ later(arrangements, 'vsplit', { gives: 'untold' });
export const vstack: Operation = /* @__PURE__ */ later(arrangements, 'vstack');
export const fliplr: Operation = /* @__PURE__ */ later(arrangements, 'fliplr');
export const flipud: Operation = /* @__PURE__ */ later(arrangements, 'flipud');
export const movedim: Operation = /* @__PURE__ */ later(arrangements, 'movedim');
export const ravel: Operation = /* @__PURE__ */ later(arrangements, 'ravel');
export const reshapeAs: Operation = /* @__PURE__ */ later(arrangements, 'reshapeAs');
export const rot90: Operation = /* @__PURE__ */ later(arrangements, 'rot90');
export const swapaxes: Operation = /* @__PURE__ */ later(arrangements, 'swapaxes');

// Norms
export const batchNorm: Operation = /* @__PURE__ */ later(norms, 'batchNorm', { gives: 3 });
export const batchNormUpdate: Operation = /* @__PURE__ */ later(norms, 'batchNormUpdate', { gives: 2 });
export const groupNorm: Operation = /* @__PURE__ */ later(norms, 'groupNorm');
export const instanceNorm: Operation = /* @__PURE__ */ later(norms, 'instanceNorm');
export const layerNorm: Operation = /* @__PURE__ */ later(norms, 'layerNorm');
export const localResponseNorm: Operation = /* @__PURE__ */ later(norms, 'localResponseNorm');
export const normalize: Operation = /* @__PURE__ */ later(norms, 'normalize');
export const rmsNorm: Operation = /* @__PURE__ */ later(norms, 'rmsNorm');

// Scans and sorts
export const cummax: Operation = /* @__PURE__ */ later(orders, 'cummax', { gives: 2 });
export const cummin: Operation = /* @__PURE__ */ later(orders, 'cummin', { gives: 2 });
export const cumprod: Operation = /* @__PURE__ */ later(orders, 'cumprod');
export const cumsum: Operation = /* @__PURE__ */ later(orders, 'cumsum');
export const logcumsumexp: Operation = /* @__PURE__ */ later(orders, 'logcumsumexp');
export const argsort: Operation = /* @__PURE__ */ later(orders, 'argsort');
export const bucketize: Operation = /* @__PURE__ */ later(orders, 'bucketize');
export const msort: Operation = /* @__PURE__ */ later(orders, 'msort');
export const searchsorted: Operation = /* @__PURE__ */ later(orders, 'searchsorted');
export const sort: Operation = /* @__PURE__ */ later(orders, 'sort', { gives: 2 });
export const topk: Operation = /* @__PURE__ */ later(orders, 'topk', { gives: 2 });
export const cumulativeTrapezoid: Operation = /* @__PURE__ */ later(orders, 'cumulativeTrapezoid');
export const diff: Operation = /* @__PURE__ */ later(orders, 'diff');
export const gradient: Operation = /* @__PURE__ */ later(orders, 'gradient', { gives: 'untold' });
export const trapezoid: Operation = /* @__PURE__ */ later(orders, 'trapezoid');
export const allclose: Operation = /* @__PURE__ */ later(orders, 'allclose');
export const equal: Operation = /* @__PURE__ */ later(orders, 'equal');
export const renorm: Operation = /* @__PURE__ */ later(orders, 'renorm');
export const stdMean: Operation = /* @__PURE__ */ later(orders, 'stdMean', { gives: 2 });
export const sumToSize: Operation = /* @__PURE__ */ later(orders, 'sumToSize');

// Rare arithmetic
export const adjoint: Operation = /* @__PURE__ */ later(numbers, 'adjoint');
export const angle: Operation = /* @__PURE__ */ later(numbers, 'angle');
export const complex: Operation = /* @__PURE__ */ later(numbers, 'complex');
export const conj: Operation = /* @__PURE__ */ later(numbers, 'conj');
export const conjPhysical: Operation = /* @__PURE__ */ later(numbers, 'conjPhysical');
export const imag: Operation = /* @__PURE__ */ later(numbers, 'imag');
export const isComplex: Operation = /* @__PURE__ */ later(numbers, 'isComplex', { gives: 'untold' });
export const isReal: Operation = /* @__PURE__ */ later(numbers, 'isReal');
export const polar: Operation = /* @__PURE__ */ later(numbers, 'polar');
export const real: Operation = /* @__PURE__ */ later(numbers, 'real');
export const resolveConj: Operation = /* @__PURE__ */ later(numbers, 'resolveConj');
export const resolveNeg: Operation = /* @__PURE__ */ later(numbers, 'resolveNeg');
export const sgn: Operation = /* @__PURE__ */ later(numbers, 'sgn');
export const viewAsComplex: Operation = /* @__PURE__ */ later(numbers, 'viewAsComplex');
export const viewAsReal: Operation = /* @__PURE__ */ later(numbers, 'viewAsReal');
export const gumbelSoftmax: Operation = /* @__PURE__ */ later(numbers, 'gumbelSoftmax', { draws: true });
export const hardshrink: Operation = /* @__PURE__ */ later(numbers, 'hardshrink');
export const rrelu: Operation = /* @__PURE__ */ later(numbers, 'rrelu', { draws: true });
export const softshrink: Operation = /* @__PURE__ */ later(numbers, 'softshrink');
export const threshold: Operation = /* @__PURE__ */ later(numbers, 'threshold');
export const empty: Operation = /* @__PURE__ */ later(numbers, 'empty');
export const emptyLike: Operation = /* @__PURE__ */ later(numbers, 'emptyLike');
export const fill: Operation = /* @__PURE__ */ later(numbers, 'fill');
export const logspace: Operation = /* @__PURE__ */ later(numbers, 'logspace');
export const newFull: Operation = /* @__PURE__ */ later(numbers, 'newFull');
export const newOnes: Operation = /* @__PURE__ */ later(numbers, 'newOnes');
export const newZeros: Operation = /* @__PURE__ */ later(numbers, 'newZeros');
export const trilIndices: Operation = /* @__PURE__ */ later(numbers, 'trilIndices');
export const triuIndices: Operation = /* @__PURE__ */ later(numbers, 'triuIndices');
export const addcdiv: Operation = /* @__PURE__ */ later(numbers, 'addcdiv');
export const addcmul: Operation = /* @__PURE__ */ later(numbers, 'addcmul');
export const clampMax: Operation = /* @__PURE__ */ later(numbers, 'clampMax');
export const clampMin: Operation = /* @__PURE__ */ later(numbers, 'clampMin');
export const floatPower: Operation = /* @__PURE__ */ later(numbers, 'floatPower');
export const fmax: Operation = /* @__PURE__ */ later(numbers, 'fmax');
export const fmin: Operation = /* @__PURE__ */ later(numbers, 'fmin');
export const gcd: Operation = /* @__PURE__ */ later(numbers, 'gcd');
export const heaviside: Operation = /* @__PURE__ */ later(numbers, 'heaviside');
export const hypot: Operation = /* @__PURE__ */ later(numbers, 'hypot');
export const isclose: Operation = /* @__PURE__ */ later(numbers, 'isclose');
export const lcm: Operation = /* @__PURE__ */ later(numbers, 'lcm');
export const logaddexp: Operation = /* @__PURE__ */ later(numbers, 'logaddexp');
export const logaddexp2: Operation = /* @__PURE__ */ later(numbers, 'logaddexp2');
export const rsub: Operation = /* @__PURE__ */ later(numbers, 'rsub');
export const trueDivide: Operation = /* @__PURE__ */ later(numbers, 'trueDivide');
export const copysign: Operation = /* @__PURE__ */ later(numbers, 'copysign');
export const frac: Operation = /* @__PURE__ */ later(numbers, 'frac');
export const frexp: Operation = /* @__PURE__ */ later(numbers, 'frexp', { gives: 2 });
export const isneginf: Operation = /* @__PURE__ */ later(numbers, 'isneginf');
export const isposinf: Operation = /* @__PURE__ */ later(numbers, 'isposinf');
export const ldexp: Operation = /* @__PURE__ */ later(numbers, 'ldexp');
export const nextafter: Operation = /* @__PURE__ */ later(numbers, 'nextafter');
export const signbit: Operation = /* @__PURE__ */ later(numbers, 'signbit');
export const deg2rad: Operation = /* @__PURE__ */ later(numbers, 'deg2rad');
export const positive: Operation = /* @__PURE__ */ later(numbers, 'positive');
export const rad2deg: Operation = /* @__PURE__ */ later(numbers, 'rad2deg');

// Functions of layers
export const affineGrid: Operation = /* @__PURE__ */ later(layers, 'affineGrid');
export const gridSample: Operation = /* @__PURE__ */ later(layers, 'gridSample');
export const interpolate: Operation = /* @__PURE__ */ later(layers, 'interpolate');
export const channelShuffle: Operation = /* @__PURE__ */ later(layers, 'channelShuffle');
export const pixelShuffle: Operation = /* @__PURE__ */ later(layers, 'pixelShuffle');
export const pixelUnshuffle: Operation = /* @__PURE__ */ later(layers, 'pixelUnshuffle');
export const alphaDropout: Operation = /* @__PURE__ */ later(layers, 'alphaDropout', { draws: true });
export const dropout1d: Operation = /* @__PURE__ */ later(layers, 'dropout1d', { draws: true });
export const dropout2d: Operation = /* @__PURE__ */ later(layers, 'dropout2d', { draws: true });
export const dropout3d: Operation = /* @__PURE__ */ later(layers, 'dropout3d', { draws: true });
export const featureAlphaDropout: Operation = /* @__PURE__ */ later(layers, 'featureAlphaDropout', {
  draws: true,
});
export const gruCell: Operation = /* @__PURE__ */ later(layers, 'gruCell');
export const gruCellFused: Operation = /* @__PURE__ */ later(layers, 'gruCellFused', { gives: 2 });
export const lstmCell: Operation = /* @__PURE__ */ later(layers, 'lstmCell', { gives: 2 });
export const rnnCell: Operation = /* @__PURE__ */ later(layers, 'rnnCell');
