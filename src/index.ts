// Sinter's public names. Subpaths have their own: `sinter/ir`, `sinter/nn`, `sinter/optim`, `sinter/io`.

import './preloaded.ts';
import './operations/methods.ts';

export * from './basics.ts';

// Functions of functions
export {
  checkpoint,
  checkpointName,
  type CheckpointOptions,
  type CheckpointPolicy,
} from './tensor/derivative/checkpoint.ts';
export { hvp, jvp, linearize } from './tensor/derivative/forward.ts';
export {
  hessian,
  jacfwd,
  jacrev,
  type JacobianOf,
  type JacobianOptions,
} from './tensor/derivative/jacobian.ts';
export { vmap, type MappedAxes, type VmapOptions } from './tensor/derivative/vmap.ts';

// Operations
export * from './operations/index.ts';
