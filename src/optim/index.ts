// `sinter/optim`: optimizers as objects (`new Adam(parameters(model))`) and as functions on trees
// (`adam()`), clipping, and schedules of the learning rate.

export { adam, Adam, adamW, AdamW, type AdamOptions } from './rules/adam.ts';
export {
  adamax,
  Adamax,
  lamb,
  Lamb,
  nadam,
  NAdam,
  radam,
  RAdam,
  type AdamaxOptions,
  type LambOptions,
  type NAdamOptions,
  type RAdamOptions,
} from './rules/adam-variants.ts';
export { adafactor, Adafactor, type AdafactorOptions } from './rules/adafactor.ts';
export { asgd, ASGD, type AsgdOptions } from './rules/asgd.ts';
export { lion, Lion, rprop, Rprop, type LionOptions, type RpropOptions } from './rules/signs.ts';
export { LBFGS, type LbfgsOptions, type LossClosure } from './lbfgs.ts';
export { muon, Muon, type MuonOptions } from './rules/muon.ts';
export type { ClassOptions, CommonSettings, FunctionalOptions } from './family.ts';
export {
  adadelta,
  Adadelta,
  adagrad,
  Adagrad,
  rmsprop,
  RMSprop,
  type AdadeltaOptions,
  type AdagradOptions,
  type RmspropOptions,
} from './rules/adaptive.ts';
export { clipByNorm, clipByValue, clipGradNorm, clipGradValue, type ClipOptions } from './clip.ts';
export {
  GradScaler,
  gradScaler,
  scaled,
  type GradScalerState,
  type LossScaling,
  type ScaledOptimizer,
  type ScaledState,
  type ScalerOptions,
  type ScalerState,
} from './scaler.ts';
export { ema, swa, type AverageOptions, type AverageState, type ParameterAverage } from './average.ts';
export {
  functional,
  partition,
  type FunctionalOptimizer,
  type OptimizerState,
  type PartitionEntry,
  type UpdateOptions,
} from './functional.ts';
export {
  Optimizer,
  type OptimizerStateDict,
  type ParameterGroup,
  type RateOptions,
  type Trainable,
} from './optimizer.ts';
export type { Clock, Rule, ShapedSlot, Slots, Step } from './rule.ts';
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
} from './schedule/closed-form.ts';
export { sgd, SGD, type SgdOptions } from './rules/sgd.ts';
export {
  chainedLr,
  cyclicLr,
  multiplicativeLr,
  type CyclicOptions,
  type MultiplicativeOptions,
} from './schedule/cycles.ts';
export {
  reduceLrOnPlateau,
  type Plateau,
  type PlateauOptions,
  type PlateauState,
} from './schedule/plateau.ts';
