// The namespace, as a page loads it.

import '../methods.ts';

export * from '../../tensor/ops/sparse/sparse.ts';
