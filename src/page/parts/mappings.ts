// Functions of functions, as a page loads them: tangents, Jacobians, batches, loops.

import '../methods.ts';

export { checkpoint, checkpointName } from '../../tensor/derivative/checkpoint.ts';
export { customJvp, customVjp } from '../../tensor/derivative/custom.ts';
export { hvp, jvp, linearize } from '../../tensor/derivative/forward.ts';
export { hessian, jacfwd, jacrev } from '../../tensor/derivative/jacobian.ts';
export { vmap } from '../../tensor/derivative/vmap.ts';
export { associativeScan } from '../../tensor/ops/control/associative.ts';
export { cond, switchCase, whileLoop } from '../../tensor/ops/control/branch.ts';
export { foriLoop, map, scan } from '../../tensor/ops/control/scan.ts';
