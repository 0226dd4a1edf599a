// Operations that are there from the start, for pages: what they give waits where what they are given does.

import * as ofCreation from '../tensor/ops/creation/creation.ts';
import { adopting } from '../tensor/buffer/part.ts';
import * as ofRandom from '../tensor/ops/creation/random.ts';
import * as ofElementwise from '../tensor/ops/elementwise/elementwise.ts';
import * as ofArithmetic from '../tensor/ops/elementwise/arithmetic.ts';
import * as ofCompare from '../tensor/ops/elementwise/compare.ts';
import * as ofCast from '../tensor/ops/elementwise/cast.ts';
import * as ofActivation from '../tensor/ops/elementwise/activation.ts';
import * as ofReduce from '../tensor/ops/reduce/reduce.ts';
import * as ofExtremum from '../tensor/ops/reduce/extremum.ts';
import * as ofSoftmax from '../tensor/ops/reduce/softmax.ts';
import * as ofMatmul from '../tensor/ops/product/matmul.ts';
import * as ofView from '../tensor/ops/shape/view.ts';
import * as ofJoin from '../tensor/ops/shape/join.ts';
import * as ofIndexing from '../tensor/ops/shape/indexing.ts';
import * as ofLoss from '../tensor/ops/loss.ts';
import * as ofClassificationLoss from '../tensor/ops/classification-loss.ts';
import { patient, type Operation } from '../tensor/waiting.ts';

// creation/creation
export const arange: Operation = /* @__PURE__ */ patient(ofCreation.arange);
export const eye: Operation = /* @__PURE__ */ patient(ofCreation.eye);
export const full: Operation = /* @__PURE__ */ patient(ofCreation.full);
export const fullLike: Operation = /* @__PURE__ */ patient(ofCreation.fullLike);
export const linspace: Operation = /* @__PURE__ */ patient(ofCreation.linspace);
export const ones: Operation = /* @__PURE__ */ patient(ofCreation.ones);
export const onesLike: Operation = /* @__PURE__ */ patient(ofCreation.onesLike);
export const tensor: Operation = /* @__PURE__ */ patient(ofCreation.tensor);
export const zeros: Operation = /* @__PURE__ */ patient(ofCreation.zeros);
export const zerosLike: Operation = /* @__PURE__ */ patient(ofCreation.zerosLike);

// Buffers
export const fromBuffer: Operation = /* @__PURE__ */ patient(
  (...args: Parameters<typeof adopting.value>) => adopting.value(...args),
  { gives: 'untold' },
);

// creation/random
export const bernoulli: Operation = /* @__PURE__ */ patient(ofRandom.bernoulli, { draws: true });
export const dropout: Operation = /* @__PURE__ */ patient(ofRandom.dropout, { draws: true });
export const multinomial: Operation = /* @__PURE__ */ patient(ofRandom.multinomial, { draws: true });
export const normal: Operation = /* @__PURE__ */ patient(ofRandom.normal, { draws: true });
export const rand: Operation = /* @__PURE__ */ patient(ofRandom.rand, { draws: true });
export const randint: Operation = /* @__PURE__ */ patient(ofRandom.randint, { draws: true });
export const randLike: Operation = /* @__PURE__ */ patient(ofRandom.randLike, { draws: true });
export const randn: Operation = /* @__PURE__ */ patient(ofRandom.randn, { draws: true });
export const randnLike: Operation = /* @__PURE__ */ patient(ofRandom.randnLike, { draws: true });
export const randperm: Operation = /* @__PURE__ */ patient(ofRandom.randperm, { draws: true });
export const uniform: Operation = /* @__PURE__ */ patient(ofRandom.uniform, { draws: true });

// elementwise/elementwise
export const abs: Operation = /* @__PURE__ */ patient(ofElementwise.abs);
export const acos: Operation = /* @__PURE__ */ patient(ofElementwise.acos);
export const acosh: Operation = /* @__PURE__ */ patient(ofElementwise.acosh);
export const asin: Operation = /* @__PURE__ */ patient(ofElementwise.asin);
export const asinh: Operation = /* @__PURE__ */ patient(ofElementwise.asinh);
export const atan: Operation = /* @__PURE__ */ patient(ofElementwise.atan);
export const atanh: Operation = /* @__PURE__ */ patient(ofElementwise.atanh);
export const ceil: Operation = /* @__PURE__ */ patient(ofElementwise.ceil);
export const clamp: Operation = /* @__PURE__ */ patient(ofElementwise.clamp);
export const cos: Operation = /* @__PURE__ */ patient(ofElementwise.cos);
export const cosh: Operation = /* @__PURE__ */ patient(ofElementwise.cosh);
export const erf: Operation = /* @__PURE__ */ patient(ofElementwise.erf);
export const exp: Operation = /* @__PURE__ */ patient(ofElementwise.exp);
export const exp2: Operation = /* @__PURE__ */ patient(ofElementwise.exp2);
export const expm1: Operation = /* @__PURE__ */ patient(ofElementwise.expm1);
export const floor: Operation = /* @__PURE__ */ patient(ofElementwise.floor);
export const lerp: Operation = /* @__PURE__ */ patient(ofElementwise.lerp);
export const log: Operation = /* @__PURE__ */ patient(ofElementwise.log);
export const log10: Operation = /* @__PURE__ */ patient(ofElementwise.log10);
export const log1p: Operation = /* @__PURE__ */ patient(ofElementwise.log1p);
export const log2: Operation = /* @__PURE__ */ patient(ofElementwise.log2);
export const nanToNum: Operation = /* @__PURE__ */ patient(ofElementwise.nanToNum);
export const neg: Operation = /* @__PURE__ */ patient(ofElementwise.neg);
export const reciprocal: Operation = /* @__PURE__ */ patient(ofElementwise.reciprocal);
export const round: Operation = /* @__PURE__ */ patient(ofElementwise.round);
export const rsqrt: Operation = /* @__PURE__ */ patient(ofElementwise.rsqrt);
export const sign: Operation = /* @__PURE__ */ patient(ofElementwise.sign);
export const sin: Operation = /* @__PURE__ */ patient(ofElementwise.sin);
export const sinh: Operation = /* @__PURE__ */ patient(ofElementwise.sinh);
export const sqrt: Operation = /* @__PURE__ */ patient(ofElementwise.sqrt);
export const square: Operation = /* @__PURE__ */ patient(ofElementwise.square);
export const tan: Operation = /* @__PURE__ */ patient(ofElementwise.tan);
export const tanh: Operation = /* @__PURE__ */ patient(ofElementwise.tanh);
export const trunc: Operation = /* @__PURE__ */ patient(ofElementwise.trunc);

// elementwise/arithmetic
export const add: Operation = /* @__PURE__ */ patient(ofArithmetic.add);
export const addScaled: Operation = /* @__PURE__ */ patient(ofArithmetic.addScaled);
export const atan2: Operation = /* @__PURE__ */ patient(ofArithmetic.atan2);
export const div: Operation = /* @__PURE__ */ patient(ofArithmetic.div);
export const floorDivide: Operation = /* @__PURE__ */ patient(ofArithmetic.floorDivide);
export const fmod: Operation = /* @__PURE__ */ patient(ofArithmetic.fmod);
export const maximum: Operation = /* @__PURE__ */ patient(ofArithmetic.maximum);
export const minimum: Operation = /* @__PURE__ */ patient(ofArithmetic.minimum);
export const mul: Operation = /* @__PURE__ */ patient(ofArithmetic.mul);
export const pow: Operation = /* @__PURE__ */ patient(ofArithmetic.pow);
export const remainder: Operation = /* @__PURE__ */ patient(ofArithmetic.remainder);
export const sub: Operation = /* @__PURE__ */ patient(ofArithmetic.sub);

// elementwise/compare
export const bitwiseAnd: Operation = /* @__PURE__ */ patient(ofCompare.bitwiseAnd);
export const bitwiseLeftShift: Operation = /* @__PURE__ */ patient(ofCompare.bitwiseLeftShift);
export const bitwiseNot: Operation = /* @__PURE__ */ patient(ofCompare.bitwiseNot);
export const bitwiseOr: Operation = /* @__PURE__ */ patient(ofCompare.bitwiseOr);
export const bitwiseRightShift: Operation = /* @__PURE__ */ patient(ofCompare.bitwiseRightShift);
export const bitwiseXor: Operation = /* @__PURE__ */ patient(ofCompare.bitwiseXor);
export const eq: Operation = /* @__PURE__ */ patient(ofCompare.eq);
export const ge: Operation = /* @__PURE__ */ patient(ofCompare.ge);
export const gt: Operation = /* @__PURE__ */ patient(ofCompare.gt);
export const isFinite: Operation = /* @__PURE__ */ patient(ofCompare.isFinite);
export const isInf: Operation = /* @__PURE__ */ patient(ofCompare.isInf);
export const isNan: Operation = /* @__PURE__ */ patient(ofCompare.isNan);
export const le: Operation = /* @__PURE__ */ patient(ofCompare.le);
export const logicalAnd: Operation = /* @__PURE__ */ patient(ofCompare.logicalAnd);
export const logicalNot: Operation = /* @__PURE__ */ patient(ofCompare.logicalNot);
export const logicalOr: Operation = /* @__PURE__ */ patient(ofCompare.logicalOr);
export const logicalXor: Operation = /* @__PURE__ */ patient(ofCompare.logicalXor);
export const lt: Operation = /* @__PURE__ */ patient(ofCompare.lt);
export const maskedFill: Operation = /* @__PURE__ */ patient(ofCompare.maskedFill);
export const ne: Operation = /* @__PURE__ */ patient(ofCompare.ne);
export const where: Operation = /* @__PURE__ */ patient(ofCompare.where);

// elementwise/cast
export const bitcast: Operation = /* @__PURE__ */ patient(ofCast.bitcast);
export const cast: Operation = /* @__PURE__ */ patient(ofCast.cast);
export const to: Operation = /* @__PURE__ */ patient(ofCast.to);
export const toBool: Operation = /* @__PURE__ */ patient(ofCast.toBool);
export const toFloat: Operation = /* @__PURE__ */ patient(ofCast.toFloat);
export const toHalf: Operation = /* @__PURE__ */ patient(ofCast.toHalf);
export const toInt: Operation = /* @__PURE__ */ patient(ofCast.toInt);

// elementwise/activation
export const celu: Operation = /* @__PURE__ */ patient(ofActivation.celu);
export const elu: Operation = /* @__PURE__ */ patient(ofActivation.elu);
export const gelu: Operation = /* @__PURE__ */ patient(ofActivation.gelu);
export const glu: Operation = /* @__PURE__ */ patient(ofActivation.glu);
export const hardsigmoid: Operation = /* @__PURE__ */ patient(ofActivation.hardsigmoid);
export const hardswish: Operation = /* @__PURE__ */ patient(ofActivation.hardswish);
export const hardtanh: Operation = /* @__PURE__ */ patient(ofActivation.hardtanh);
export const leakyRelu: Operation = /* @__PURE__ */ patient(ofActivation.leakyRelu);
export const logSigmoid: Operation = /* @__PURE__ */ patient(ofActivation.logSigmoid);
export const mish: Operation = /* @__PURE__ */ patient(ofActivation.mish);
export const prelu: Operation = /* @__PURE__ */ patient(ofActivation.prelu);
export const relu: Operation = /* @__PURE__ */ patient(ofActivation.relu);
export const relu6: Operation = /* @__PURE__ */ patient(ofActivation.relu6);
export const selu: Operation = /* @__PURE__ */ patient(ofActivation.selu);
export const sigmoid: Operation = /* @__PURE__ */ patient(ofActivation.sigmoid);
export const silu: Operation = /* @__PURE__ */ patient(ofActivation.silu);
export const softplus: Operation = /* @__PURE__ */ patient(ofActivation.softplus);
export const softsign: Operation = /* @__PURE__ */ patient(ofActivation.softsign);
export const tanhshrink: Operation = /* @__PURE__ */ patient(ofActivation.tanhshrink);

// reduce/reduce
export const all: Operation = /* @__PURE__ */ patient(ofReduce.all);
export const any: Operation = /* @__PURE__ */ patient(ofReduce.any);
export const countNonzero: Operation = /* @__PURE__ */ patient(ofReduce.countNonzero);
export const hasInfNan: Operation = /* @__PURE__ */ patient(ofReduce.hasInfNan, { gives: 'promise' });
export const logsumexp: Operation = /* @__PURE__ */ patient(ofReduce.logsumexp);
export const mean: Operation = /* @__PURE__ */ patient(ofReduce.mean);
export const prod: Operation = /* @__PURE__ */ patient(ofReduce.prod);
export const std: Operation = /* @__PURE__ */ patient(ofReduce.std);
export const sum: Operation = /* @__PURE__ */ patient(ofReduce.sum);
export const varMean: Operation = /* @__PURE__ */ patient(ofReduce.varMean, { gives: 2 });

// reduce/extremum
export const amax: Operation = /* @__PURE__ */ patient(ofExtremum.amax);
export const amin: Operation = /* @__PURE__ */ patient(ofExtremum.amin);
export const argmax: Operation = /* @__PURE__ */ patient(ofExtremum.argmax);
export const argmin: Operation = /* @__PURE__ */ patient(ofExtremum.argmin);
export const max: Operation = /* @__PURE__ */ patient(ofExtremum.max);
export const maxWithIndices: Operation = /* @__PURE__ */ patient(ofExtremum.maxWithIndices, { gives: 2 });
export const min: Operation = /* @__PURE__ */ patient(ofExtremum.min);
export const minWithIndices: Operation = /* @__PURE__ */ patient(ofExtremum.minWithIndices, { gives: 2 });

// reduce/softmax
export const logSoftmax: Operation = /* @__PURE__ */ patient(ofSoftmax.logSoftmax);
export const softmax: Operation = /* @__PURE__ */ patient(ofSoftmax.softmax);
export const softmax2d: Operation = /* @__PURE__ */ patient(ofSoftmax.softmax2d);
export const softmin: Operation = /* @__PURE__ */ patient(ofSoftmax.softmin);

// product/matmul
export const bmm: Operation = /* @__PURE__ */ patient(ofMatmul.bmm);
export const dot: Operation = /* @__PURE__ */ patient(ofMatmul.dot);
export const linear: Operation = /* @__PURE__ */ patient(ofMatmul.linear);
export const matmul: Operation = /* @__PURE__ */ patient(ofMatmul.matmul);
export const mm: Operation = /* @__PURE__ */ patient(ofMatmul.mm);
export const mv: Operation = /* @__PURE__ */ patient(ofMatmul.mv);
export const outer: Operation = /* @__PURE__ */ patient(ofMatmul.outer);
export const trace: Operation = /* @__PURE__ */ patient(ofMatmul.trace);

// shape/view
export const broadcastTo: Operation = /* @__PURE__ */ patient(ofView.broadcastTo);
export const expand: Operation = /* @__PURE__ */ patient(ofView.expand);
export const expandAs: Operation = /* @__PURE__ */ patient(ofView.expandAs);
export const flatten: Operation = /* @__PURE__ */ patient(ofView.flatten);
export const moveaxis: Operation = /* @__PURE__ */ patient(ofView.moveaxis);
export const permute: Operation = /* @__PURE__ */ patient(ofView.permute);
export const reshape: Operation = /* @__PURE__ */ patient(ofView.reshape);
export const squeeze: Operation = /* @__PURE__ */ patient(ofView.squeeze);
export const t: Operation = /* @__PURE__ */ patient(ofView.t);
export const transpose: Operation = /* @__PURE__ */ patient(ofView.transpose);
export const unflatten: Operation = /* @__PURE__ */ patient(ofView.unflatten);
export const unfold: Operation = /* @__PURE__ */ patient(ofView.unfold);
export const unsqueeze: Operation = /* @__PURE__ */ patient(ofView.unsqueeze);
export const view: Operation = /* @__PURE__ */ patient(ofView.view);
export const viewAs: Operation = /* @__PURE__ */ patient(ofView.viewAs);

// shape/join
export const cat: Operation = /* @__PURE__ */ patient(ofJoin.cat);
export const chunk: Operation = /* @__PURE__ */ patient(ofJoin.chunk, { gives: 'untold' });
export const meshgrid: Operation = /* @__PURE__ */ patient(ofJoin.meshgrid, { gives: 'untold' });
export const repeatInterleave: Operation = /* @__PURE__ */ patient(ofJoin.repeatInterleave, {
  gives: 'untold',
});
export const split: Operation = /* @__PURE__ */ patient(ofJoin.split, { gives: 'untold' });
export const stack: Operation = /* @__PURE__ */ patient(ofJoin.stack);
export const unbind: Operation = /* @__PURE__ */ patient(ofJoin.unbind, { gives: 'untold' });

// shape/indexing
export const at: Operation = /* @__PURE__ */ patient(ofIndexing.at);
export const narrow: Operation = /* @__PURE__ */ patient(ofIndexing.narrow);
export const select: Operation = /* @__PURE__ */ patient(ofIndexing.select);
export const slice: Operation = /* @__PURE__ */ patient(ofIndexing.slice);

// loss
export const bceLoss: Operation = /* @__PURE__ */ patient(ofLoss.bceLoss);
export const bceWithLogits: Operation = /* @__PURE__ */ patient(ofLoss.bceWithLogits);
export const hingeEmbeddingLoss: Operation = /* @__PURE__ */ patient(ofLoss.hingeEmbeddingLoss);
export const huberLoss: Operation = /* @__PURE__ */ patient(ofLoss.huberLoss);
export const klDiv: Operation = /* @__PURE__ */ patient(ofLoss.klDiv);
export const l1Loss: Operation = /* @__PURE__ */ patient(ofLoss.l1Loss);
export const mseLoss: Operation = /* @__PURE__ */ patient(ofLoss.mseLoss);
export const smoothL1Loss: Operation = /* @__PURE__ */ patient(ofLoss.smoothL1Loss);

// classification-loss
export const crossEntropy: Operation = /* @__PURE__ */ patient(ofClassificationLoss.crossEntropy);
export const nllLoss: Operation = /* @__PURE__ */ patient(ofClassificationLoss.nllLoss);
