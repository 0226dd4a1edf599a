// Small programs whose generated kernels are kept as files, test/golden/: on each target those that are told apart there.

import { add, below, binary, bounded, broadcast, div, mul, sub, unary } from '../../src/ir/build.ts';
import type { Node } from '../../src/ir/graph.ts';
import {
  cTarget,
  cudaTarget,
  gpuTarget,
  softwareTarget,
  wasmTarget,
  type Target,
} from '../../src/schedule/target.ts';
import { Sketch } from './cases.ts';

/** By the names of their files; each is one kernel. */
export const goldenPrograms: Readonly<Record<string, readonly [Target, (s: Sketch) => readonly Node[]]>> = {
  'swish-of-rows': [gpuTarget, (s) => [swishOfRows(s)]],
  'softmax-software': [softwareTarget, (s) => [s.softmax(s.input([64, 256]), 1)]],
  'softmax-gpu': [gpuTarget, (s) => [s.softmax(s.input([64, 256]), 1)]],
  'matmul-bias-relu-software': [softwareTarget, (s) => [biasRelu(s, 64, 64, 64)]],
  'matmul-bias-relu-gpu': [gpuTarget, (s) => [biasRelu(s, 512, 512, 512)]],
  'convolution-software': [
    softwareTarget,
    (s) => [s.conv(s.input([1, 16, 32, 32]), s.input([16, 16, 3, 3]))],
  ],
  'running-sum-software': [softwareTarget, (s) => [s.scan(s.input([16, 64]), 1, 'sum')]],
  'running-sum-gpu': [gpuTarget, (s) => [s.scan(s.input([16, 64]), 1, 'sum')]],
  // One kernel for three parameters of different sizes, and the step count with it.
  'adam-of-three': [gpuTarget, adamOfThree],
  'sort-gpu': [gpuTarget, (s) => [s.argSort(s.input([40, 100], 'u32'), 1)]],
  'sort-software': [softwareTarget, (s) => [s.argSort(s.input([40, 100], 'u32'), 1)]],
  'radix-rank-gpu': [gpuTarget, (s) => [radixRank(s)]],
  'radix-rank-software': [softwareTarget, (s) => [radixRank(s)]],
  'half-precision-sum': [gpuTarget, (s) => [halfSum(s)]],
  'softmax-cuda': [cudaTarget, (s) => [s.softmax(s.input([64, 256]), 1)]],
  'matmul-bias-relu-cuda': [cudaTarget, (s) => [biasRelu(s, 512, 512, 512)]],
  'running-sum-cuda': [cudaTarget, (s) => [s.scan(s.input([16, 64]), 1, 'sum')]],
  'adam-of-three-cuda': [cudaTarget, adamOfThree],
  'matmul-bf16-cuda': [
    cudaTarget,
    (s) => [s.matmul(s.input([512, 256], 'bf16'), s.input([256, 512], 'bf16'))],
  ],
  'half-precision-sum-cuda': [cudaTarget, (s) => [halfSum(s)]],
  'matmul-bias-relu-wasm': [wasmTarget, (s) => [biasRelu(s, 64, 64, 64)]],
  'swish-of-rows-wasm': [wasmTarget, (s) => [swishOfRows(s)]],
  'softmax-wasm': [wasmTarget, (s) => [s.softmax(s.input([64, 256]), 1)]],
  'running-sum-wasm': [wasmTarget, (s) => [s.scan(s.input([16, 64]), 1, 'sum')]],
  'half-precision-sum-wasm': [wasmTarget, (s) => [halfSum(s)]],
  'matmul-bias-relu-c': [cTarget, (s) => [biasRelu(s, 64, 64, 64)]],
  'swish-of-rows-c': [cTarget, (s) => [swishOfRows(s)]],
  'softmax-c': [cTarget, (s) => [s.softmax(s.input([64, 256]), 1)]],
  'running-sum-c': [cTarget, (s) => [s.scan(s.input([16, 64]), 1, 'sum')]],
  'half-precision-sum-c': [cTarget, (s) => [halfSum(s)]],
  // Programs of which a run says how much there is.
  'bounded-softmax-software': [softwareTarget, boundedSoftmax],
  'bounded-softmax-wasm': [wasmTarget, boundedSoftmax],
  'bounded-product-software': [softwareTarget, boundedProduct],
  'bounded-product-cuda': [cudaTarget, boundedProduct],
  'bounded-map-software': [softwareTarget, boundedMap],
};

function boundedSoftmax(s: Sketch): readonly Node[] {
  const [x, n] = [s.input([64, 256]), s.input([], 'i32')];
  return [s.softmax(below(s.b, x, 1, n, -Infinity), 1)];
}

function boundedProduct(s: Sketch): readonly Node[] {
  const [x, y, n] = [s.input([64, 64]), s.input([64, 64]), s.input([], 'i32')];
  return [bounded(s.b, s.matmul(below(s.b, x, 1, n), below(s.b, y, 0, n)), 0, n)];
}

function boundedMap(s: Sketch): readonly Node[] {
  const [x, n] = [s.input([4, 64, 16]), s.input([], 'i32')];
  return [bounded(s.b, unary(s.b, 'neg', x), 1, n)];
}

function swishOfRows(s: Sketch): Node {
  const x = add(s.b, s.input([64, 32]), broadcast(s.b, s.input([32]), [64, 32]));
  return mul(s.b, x, unary(s.b, 'recip', add(s.b, unary(s.b, 'exp', unary(s.b, 'neg', x)), 1)));
}

function halfSum(s: Sketch): Node {
  return add(s.b, s.input([64], 'f16'), s.input([64], 'f16'));
}

function radixRank(s: Sketch): Node {
  const keys = s.input([2, 8192], 'u32');
  return s.b.add('radixRank', [keys], { shift: 8, digits: 256, block: 4096 }) as Node;
}

function adamOfThree(s: Sketch): readonly Node[] {
  const { b } = s;
  const step = add(b, s.input([], 'i32'), 1);
  const count = b.add('cast', [step], { dtype: 'f32' }) as Node;
  const mix = (x: Node, y: Node, keep: number): Node => add(b, mul(b, x, keep), mul(b, y, 1 - keep));
  const updates = [[8, 3], [5], [64]].map((shape) => {
    const [p, g, m, v] = [1, 2, 3, 4].map(() => s.input(shape)) as [Node, Node, Node, Node];
    const [mean, square] = [mix(m, g, 0.9), mix(v, mul(b, g, g), 0.99)];
    const rate = broadcast(b, unary(b, 'recip', count), shape);
    const move = mul(b, div(b, mean, add(b, unary(b, 'sqrt', square), 1e-8)), rate);
    return [sub(b, p, move), mean, square];
  });
  return [step, ...updates.flat()];
}

function biasRelu(s: Sketch, m: number, k: number, n: number): Node {
  const y = s.matmul(s.input([m, k]), s.input([k, n]));
  return binary(s.b, 'max', add(s.b, y, broadcast(s.b, s.input([n]), [m, n])), 0);
}
