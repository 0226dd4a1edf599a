// What the recipes are tried on: an elementwise op, a rewrite rule, a pass and a target, each as the places where its recipe in
// CONTRIBUTING.md says that something must be written.

import type { Place } from './checkout.ts';

/** x / (1 + |x|), of which WGSL has a row of its own; CUDA C and WebAssembly take the formula, ONNX has an operator. */
export const op: readonly Place[] = [
  {
    what: 'row',
    file: 'src/ir/ops.ts',
    at: { before: '  tanh: {' },
    text: `  toySign: {
    takes: 'float',
    flops: 6,
    formula: ['div', 'x', ['add', 1, ['abs', 'x']]],
    wgsl: 'own',
    cuda: 'formula',
    wasm: 'formula',
    onnx: 'Softsign',
  },
`,
  },
  {
    what: 'meaning',
    file: 'src/ir/interpret/scalar.ts',
    at: { before: '  tanh: float(' },
    text: '  toySign: float((x) => x / (1 + Math.abs(x))),\n',
  },
  {
    what: 'derivative',
    file: 'src/autograd/rules-elementwise.ts',
    at: { before: '  // d tanh x' },
    text: `  // d x/(1 + |x|) = dx/(1 + |x|)²
  toySign: (b, g, x) => over(b, g, square(b, add(b, unary(b, 'abs', x), 1))),
`,
  },
  {
    what: 'spelling',
    file: 'src/codegen/emit/wgsl/spelling.ts',
    at: { before: '  not,\n' },
    text: "  toySign: ({ args: [x] }) => infix('/', x!, primary(`(1.0 + abs(${x!.text}))`)),\n",
  },
  {
    what: 'trial',
    file: 'test/autograd/trials.ts',
    at: { before: '  tanh: smooth(' },
    text: "  toySign: smooth('toySign', [0.5, 2]),\n",
  },
];

/** An operation: its declaration is all of it. */
export const operation: readonly Place[] = [
  {
    what: 'declaration',
    file: 'src/tensor/ops/reduce/scan.ts',
    at: { before: '/**\n * log of the running sum' },
    text: `/**
 * Running sums of squares.
 *
 * @method
 * @example
 * const x = sn.tensor([1, 2, 3]);
 * sn.toyEnergy(x, 0);
 */
export function toyEnergy<D extends DType>(x: Tensor<D>, axis: number): Tensor<NoInfer<Summed<D>>> {
  takesCummax('toyEnergy', x, axis);
  return cumulate('toyEnergy', 'sum', apply([x], (b, node) => binary(b, 'mul', node, node)), axis, {});
}

`,
  },
  {
    what: 'use',
    file: 'src/toy-use.ts',
    at: 'whole',
    text: `import { ones, toyEnergy, type Tensor } from './index.ts';
export const use: readonly Tensor<'f32'>[] = [toyEnergy(ones([2]), 0), ones([2]).toyEnergy(0)];
// @ts-expect-error: its type is known
export const wrong: Tensor<'i32'> = ones([2]).toyEnergy(0);
`,
  },
];

/** One rule on ops that there are, and its example. */
export const rule: readonly Place[] = [
  {
    what: 'rule',
    file: 'src/ir/passes/simplify.ts',
    at: { before: "  rule('abs-abs'," },
    text: `  rule('toy-sign-sign', 'sign(sign x) = sign x', 'sign', ({ inputs: [x] }, b) =>
    x!.op === 'sign' ? unary(b, 'sign', x!.inputs[0]!) : undefined,
  ),
`,
  },
  {
    what: 'example',
    file: 'test/ir/passes/rules.test.ts',
    at: { before: "    ['abs-abs', " },
    text: "    ['toy-sign-sign', 'F', ['sign(%0) : F', 'sign(%1) : F'], ['sign(%0) : F']],\n",
  },
];

/** x·x for a power of 2, as a pass. */
export const pass: readonly Place[] = [
  {
    what: 'function',
    file: 'src/ir/passes/toy.ts',
    at: 'whole',
    text: `// Doubles by adding: x·2 = x + x.

import { add } from '../build.ts';
import { rewrite, type Graph } from '../graph.ts';
import { constantOf } from './pattern.ts';

/** No product with 2. */
export function toyDouble(graph: Graph): Graph {
  return rewrite(graph, (node, [x, y], b) =>
    node.op === 'mul' && constantOf(y!) === 2 ? add(b, x!, x!) : undefined,
  );
}
`,
  },
  {
    what: 'import of the row',
    file: 'src/schedule/passes/pipeline.ts',
    at: { before: 'import { simplify } from' },
    text: "import { toyDouble } from '../../ir/passes/toy.ts';\n",
  },
  {
    what: 'row',
    file: 'src/schedule/passes/pipeline.ts',
    at: { before: "  { name: 'shareSubexpressions'," },
    text: "  { name: 'toyDouble', guarantees: 'no product with 2', run: toyDouble },\n",
  },
  {
    what: 'row of the document',
    file: 'docs/design/passes.md',
    at: { before: '| `shareSubexpressions` |' },
    text: '| `toyDouble` | `ir/passes/toy.ts` | no product with 2 |\n',
  },
];

/** A language that is the text of a Loop. */
export const target: readonly Place[] = [
  {
    what: 'folder',
    file: 'src/codegen/emit/toy/emit.ts',
    at: 'whole',
    text: `// A Loop as its own text.

import { printLoop } from '../../loop/print.ts';
import type { Loop } from '../../loop/loop.ts';

export function emitToy(loop: Loop): { readonly source: string } {
  return { source: \`toy \${printLoop(loop)}\` };
}
`,
  },
  {
    what: 'id',
    file: 'src/runtime/program.ts',
    at: { after: 'export type TargetId = ' },
    text: "'toy' | ",
  },
  {
    what: 'import of the row',
    file: 'src/codegen/emit/emit.ts',
    at: { before: 'import type { emitWgsl }' },
    text: "import { emitToy } from './toy/emit.ts';\n",
  },
  {
    what: 'row of the emitter',
    file: 'src/codegen/emit/emit.ts',
    at: { before: '  cuda: (loop) =>' },
    text: '  toy: emitToy,\n',
  },
  {
    what: 'chunk',
    file: 'src/compile/chunks/toy.ts',
    at: 'whole',
    text: `// The chunk of kernels as their own text, which the compiler has in any case.

import type { Slot } from '../../slot.ts';

export const slots: readonly Slot<unknown>[] = [];
`,
  },
  {
    what: 'row of the chunk',
    file: 'src/compile/chunks.ts',
    at: { before: '  cuda: () =>' },
    text: "  toy: () => import('./chunks/toy.ts'),\n",
  },
  {
    what: 'import of all chunks',
    file: 'src/compile/all.ts',
    at: { before: 'import { slots as verifiers }' },
    text: "import { slots as toy } from './chunks/toy.ts';\n",
  },
  {
    what: 'row of all chunks',
    file: 'src/compile/all.ts',
    at: { before: '  verifiers,' },
    text: '  toy,\n',
  },
  {
    what: 'row of the target',
    file: 'src/schedule/target.ts',
    at: { before: '  cuda: cudaOf,' },
    text: "  toy: (facts) => ({ ...wgslOf(facts), id: 'toy', name: 'toy' }),\n",
  },
];
