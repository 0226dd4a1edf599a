// Every workload whose kernels and bytes are counted, in the order in which reports list them. Those
// that are timed are in timed/workloads.ts.

import * as decoding from './decoding.ts';
import * as language from './language.ts';
import * as models from './models.ts';
import * as networks from './networks.ts';
import * as operations from './operations.ts';
import * as recurrent from './recurrent.ts';
import type { Workload } from './workload.ts';

export const workloads: readonly Workload[] = [
  operations.gelu,
  operations.softmax,
  operations.logSoftmax,
  operations.layerNorm,
  operations.rmsNorm,
  operations.crossEntropyGrad,
  operations.lmHeadLoss,
  operations.matmulBiasGelu,
  operations.convBiasRelu,
  operations.normMatmul,
  operations.attention,
  operations.bigSum,
  operations.cumsum,
  operations.lstmStep,
  operations.fft1d,
  operations.choleskySolve,
  operations.topkRouting,
  models.adam100,
  models.mlpTrainAdam,
  models.vmapPerSampleGrad,
  models.gptBlockForward,
  models.gptBlockTrain,
  models.rnnScan,
  models.checkpointed,
  networks.convTrain,
  recurrent.lstmTrain,
  decoding.decodeAttention,
  ...decoding.gemvs,
  decoding.gemvQ8,
  decoding.gemvQ4K,
  language.llamaDecodeLayer,
  language.llamaPrefillLayer,
  language.moeDecodeLayer,
  language.llamaDecodeStep,
];
