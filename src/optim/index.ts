// `sinter/optim`: optimizers as objects (`new Adam(parameters(model))`) and as functions on trees
// (`adam()`), clipping, and schedules of the learning rate.

export { adam, Adam, adamW, AdamW, type AdamOptions } from './adam.ts';
export { adagrad, Adagrad, rmsprop, RMSprop, type AdagradOptions, type RmspropOptions } from './adaptive.ts';
export { clipByNorm, clipByValue, clipGradNorm, clipGradValue, type ClipOptions } from './clip.ts';
export {
  functional,
  type FunctionalOptimizer,
  type OptimizerState,
  type UpdateOptions,
} from './functional.ts';
export {
  Optimizer,
  type OptimizerStateDict,
  type ParameterGroup,
  type RateOptions,
  type Trainable,
} from './optimizer.ts';
export type { Clock, Rule, Slots, Step } from './rule.ts';
export {
  constantLr,
  cosineAnnealingLr,
  cosineAnnealingWarmRestarts,
  exponentialLr,
  lambdaLr,
  linearLr,
  multiStepLr,
  oneCycleLr,
  polynomialLr,
  sequentialLr,
  stepLr,
  warmupCosine,
  type ConstantOptions,
  type CosineOptions,
  type ExponentialOptions,
  type LambdaOptions,
  type LinearOptions,
  type MultiStepOptions,
  type OneCycleOptions,
  type PolynomialOptions,
  type RateBase,
  type RestartOptions,
  type Schedule,
  type StepOptions,
  type WarmupOptions,
} from './schedule.ts';
export { sgd, SGD, type SgdOptions } from './sgd.ts';
