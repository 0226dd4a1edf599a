// Rare products, as a page loads them.

import '../methods.ts';

export { einsum } from '../../tensor/ops/product/einsum.ts';
export { scaledDotProductAttention } from '../../tensor/ops/product/attention.ts';
export { bilinear, rotaryEmbedding } from '../../tensor/ops/product/bilinear.ts';
export { cosineSimilarity } from '../../tensor/ops/product/similarity.ts';
export { addbmm, addmm, addmv, addr, baddbmm } from '../../tensor/ops/product/affine.ts';
export { inner, kron, tensordot, vdot } from '../../tensor/ops/product/tensordot.ts';
