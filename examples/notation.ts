// Kernels written by what each element is: attention, a convolution with a border of zeros, and a histogram, each beside the operation
// that Sinter has for it. Run with `npx tsx examples/notation.ts`.

import { fileURLToPath } from 'node:url';
import {
  conv2d,
  explain,
  histc,
  manualSeed,
  rand,
  randn,
  scaledDotProductAttention,
  type Tensor,
} from 'sinter';
import { kernel, type IndexKernel } from 'sinter/notation';

/** One head: softmax(q·kᵀ/√d)·v. */
export const attention: IndexKernel = kernel`
  s[i,j] = sum(d: q[i,d] * k[j,d]) * scale
  p[i,j] = exp(s[i,j] - max(m: s[i,m]))
  y[i,c] = sum(j: p[i,j] * v[j,c]) / sum(j: p[i,j])
`;

/** A 3 × 3 convolution whose result is as large as the image. */
export const convolution: IndexKernel = kernel`
  padded[n, c, i < ${34}, j < ${34}] = i >= 1 && i < 33 && j >= 1 && j < 33 ? image[n, c, i - 1, j - 1] : 0
  y[n,o,i,j] = sum(c, p, q: padded[n, c, i + p, j + q] * weight[o,c,p,q])
`;

/** How many of ten equal bins of [0, 1) hold how many elements. */
export const histogram: IndexKernel = kernel`h[b < 10] = sum(i: i32(floor(x[i] * 10)) == b ? 1 : 0)`;

/** The largest difference between each kernel and its operation. */
export async function notation(say: (text: string) => void): Promise<readonly number[]> {
  manualSeed(1);
  const [q, k, v] = [randn([16, 8]), randn([24, 8]), randn([24, 8])];
  const [image, weight] = [randn([1, 3, 32, 32]), randn([4, 3, 3, 3])];
  const x = rand([1000]);
  const pairs: readonly (readonly [name: string, own: Tensor, other: Tensor])[] = [
    ['attention', attention({ q, k, v, scale: 1 / Math.sqrt(8) }), scaledDotProductAttention(q, k, v)],
    ['convolution', convolution({ image, weight }), conv2d(image, weight, undefined, { padding: 1 })],
    ['histogram', histogram({ x }).cast('f32'), histc(x, { bins: 10, min: 0, max: 1 })],
  ];
  const differences: number[] = [];
  for (const [name, own, other] of pairs) {
    say(`${name}: ${explain(own).kernels.length} kernels`);
    differences.push(Number(await own.sub(other).abs().amax().item()));
  }
  return differences;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) console.log(await notation(console.log));
