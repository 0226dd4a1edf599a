// Defects as small changes of the sources, and for each the test file of the quick tier that finds it. They are modelled on what users
// met, on what reviews of the code feared and on what commits mended; most give wrong values and say nothing.

/** One defect. */
export interface Mutant {
  readonly name: string;
  /** What a user would meet. */
  readonly defect: string;
  /** The source that it was in. */
  readonly file: string;
  /** A text that occurs once in the file, and what takes its place. */
  readonly find: string;
  readonly replace: string;
  /** The test file whose part in the quick tier fails with it. */
  readonly caughtBy: string;
}

export const mutants: readonly Mutant[] = [
  {
    name: 'max loses NaN',
    defect: 'The larger of NaN and a number was the number when NaN came second.',
    file: 'src/ir/interpret/scalar.ts',
    find: 'max: { float: Math.max,',
    replace: 'max: { float: (a, b) => (b > a ? b : a),',
    caughtBy: 'test/ir/scalar.test.ts',
  },
  {
    name: 'ties round up in 16-bit floats',
    defect: 'Numbers halfway between two of bf16 or f16 went up instead of to the even one.',
    file: 'src/ir/value.ts',
    find: 'return roundHalfEven(x / quantum) * quantum;',
    replace: 'return Math.round(x / quantum) * quantum;',
    caughtBy: 'test/ir/value.test.ts',
  },
  {
    name: 'adding zero keeps minus zero',
    defect: 'x + 0 was folded to x, so that −0 + 0 stayed −0 in compiled functions.',
    file: 'src/ir/passes/simplify.ts',
    find: '(isConstant(c, 0) && isNeverMinusZero(x))',
    replace: 'isConstant(c, 0)',
    caughtBy: 'test/ir/passes/rules.test.ts',
  },
  {
    name: 'constant sums are folded as if exact',
    defect:
      'The sum of many equal constants was computed in double precision, where a device rounds at every step.',
    file: 'src/ir/passes/fold.ts',
    find: 'Math.abs(value) * count <= (exactUpTo[dtype] ?? 0)',
    replace: 'Math.abs(value) <= (exactUpTo[dtype] ?? 0)',
    caughtBy: 'test/ir/passes/rules.test.ts',
  },
  {
    name: 'products with zero are folded',
    defect: 'x · 0 was folded to 0 for floats, so that NaN and infinities vanished in compiled functions.',
    file: 'src/ir/passes/simplify.ts',
    find: 'return isInt(node) && isConstant(c, 0) ? c : undefined;',
    replace: 'return isConstant(c, 0) ? c : undefined;',
    caughtBy: 'test/ir/passes/rules.test.ts',
  },
  {
    name: 'derivatives look through variables',
    defect: 'The Hessian of x² at zeros was 0: a variable of equal elements counted as a constant.',
    file: 'src/autograd/cotangent.ts',
    find: "source.op !== 'slice') || isDistinct(source)) return",
    replace: "source.op !== 'slice')) return",
    caughtBy: 'test/autograd/uniform.test.ts',
  },
  {
    name: 'both of two equal elements get the whole gradient',
    defect: 'The gradient of max(x, y) at x = y was counted twice.',
    file: 'src/autograd/rules-elementwise.ts',
    find: 'times(b, g, 0.5), g)',
    replace: 'times(b, g, 1), g)',
    caughtBy: 'test/autograd/edges.test.ts',
  },
  {
    name: 'gradients of broadcasts leave out an axis',
    defect:
      'The gradient of an operand that was spread along leading axes was not summed along the last of them.',
    file: 'src/ir/build.ts',
    find: 'axis < offset || (shape[axis - offset] === 1 && dim !== 1) ? [axis] : [],',
    replace: 'axis < offset || (shape[axis - offset] === 1 && dim > 2) ? [axis] : [],',
    caughtBy: 'test/autograd/edges.test.ts',
  },
  {
    name: 'chained views overflow 32 bits',
    defect: 'Indices of long chains of reshape and permute left 32 bits, and most elements were wrong.',
    file: 'src/ir/index-algebra/simplify.ts',
    find: 'return after.fits || !before.fits;',
    replace: 'return true || after.fits || !before.fits;',
    caughtBy: 'test/ir/index/width.test.ts',
  },
  {
    name: 'tied weights come apart',
    defect:
      'A weight that two layers share became two after one functional step, each with half of the gradient.',
    file: 'src/tensor/tree.ts',
    find: 'const known = owned ? places.get(value as Tensor) : undefined;',
    replace: 'const known = owned ? places.get(undefined as unknown as Tensor) : undefined;',
    caughtBy: 'test/nn/trees/tied.test.ts',
  },
  {
    name: 'inputs of one name',
    defect: 'Two inputs of a model had one name in what was exported, and y = a − b gave 0.',
    file: 'src/aot/names.ts',
    find: 'for (let i = 1; taken.has(name); i++)',
    replace: 'for (let i = 1; taken.size < 0; i++)',
    caughtBy: 'test/onnx/export.test.ts',
  },
  {
    name: 'names in kernels collide',
    defect: 'A variable with the name of a buffer hid that buffer in the source of a kernel.',
    file: 'src/codegen/emit/shared/names.ts',
    find: 'while (isTaken(safe) || used.has(safe))',
    replace: 'while (isTaken(safe))',
    caughtBy: 'test/codegen/emit/wgsl-emit.test.ts',
  },
  {
    name: 'drivers fold a sum with zero',
    defect: 'On software WebGPU −0 + 0 was −0: the driver takes x + 0.0 for x.',
    file: 'src/codegen/emit/wgsl/spelling.ts',
    find: "if (site.from !== 'f32' || first === last) return operator('+')(site);",
    replace: "if (site.from !== 'none') return operator('+')(site);",
    caughtBy: 'test/numerics/edges.test.ts',
  },
  {
    name: 'WGSL loses NaN in max',
    defect: 'WGSL may give either operand where one is NaN, and NaN vanished from maxima on WebGPU.',
    file: 'src/codegen/emit/wgsl/prelude-math.ts',
    find: 'return select(select(b, a, b < a), a + b, any_nan_F(a, b));',
    replace: 'return select(b, a, b < a);',
    caughtBy: 'test/codegen/emit/wgsl-spelling.test.ts',
  },
  {
    name: 'CUDA loses NaN in max',
    defect: "C's fmax gives the number where one operand is NaN, and NaN vanished from maxima on CUDA.",
    file: 'src/codegen/emit/cuda/prelude-arithmetic.ts',
    find: 'return a != a || b != b ? a + b : f${name}${suffix}(a, b);',
    replace: 'return f${name}${suffix}(a, b);',
    caughtBy: 'test/cuda/spelling.test.ts',
  },
  {
    name: 'two live values in one place',
    defect: 'A value was put where one lay that the same kernel still read.',
    file: 'src/schedule/memory/arena.ts',
    find: 'other.to < extent.from ||',
    replace: 'other.to <= extent.from ||',
    caughtBy: 'test/schedule/memory.test.ts',
  },
  {
    name: 'donated weights are overwritten too early',
    defect: 'A result was written over a donated input that a later kernel still read.',
    file: 'src/schedule/memory/memory.ts',
    find: 'if (last > i || (last === i',
    replace: 'if ((last === i',
    caughtBy: 'test/schedule/donate.test.ts',
  },
  {
    name: 'repeated indices of a scatter are lost',
    defect: 'Of several updates of one slot only the last was added.',
    file: 'src/codegen/template/scatter/segment-reduce.ts',
    find: "const next = mode === 'set' ? value :",
    replace: "const next = mode === 'set' || mode === 'add' ? value :",
    caughtBy: 'test/schedule/scatter.test.ts',
  },
  {
    name: 'argmax gives the last of equal elements',
    defect: 'Where several elements are the largest, argmax gave the last of them.',
    file: 'src/ir/interpret/fold.ts',
    find: "monoid === 'max' ? value > best",
    replace: "monoid === 'max' ? value >= best",
    caughtBy: 'test/ir/interpret-fold.test.ts',
  },
  {
    name: 'argmax ties between lanes',
    defect:
      'Invocations that share a row compared equal elements without their positions, and a later one won.',
    file: 'src/codegen/template/shared/monoid.ts',
    find: "operation('lt', [candidate.at, best.at], 'bool')",
    replace: "operation('lt', [best.at, candidate.at], 'bool')",
    caughtBy: 'test/codegen/template/row-reduction.test.ts',
  },
  {
    name: 'descending sorts turn equal elements round',
    defect: 'A descending sort was the ascending one backwards, so that equal elements changed their order.',
    file: 'src/ir/interpret/interpret.ts',
    find: '|| i - j,',
    replace: '|| sign * (i - j),',
    caughtBy: 'test/ir/interpret-sort.test.ts',
  },
  {
    name: 'NaN is sorted first',
    defect: 'NaN came first in the order of numbers instead of behind them all.',
    file: 'src/ir/interpret/interpret.ts',
    find: 'Number(Number.isNaN(a)) - Number(Number.isNaN(b))',
    replace: 'Number(Number.isNaN(b)) - Number(Number.isNaN(a))',
    caughtBy: 'test/ir/interpret-sort.test.ts',
  },
  {
    name: 'cumulative folds forget what came before',
    defect: 'Long running sums began anew in each round of a workgroup.',
    file: 'src/codegen/template/scan/shared.ts',
    find: 'b.assign(carry, combine(monoid, carry, totalAt(last)));',
    replace: 'b.assign(carry, totalAt(last));',
    caughtBy: 'test/codegen/template/row-reduction.test.ts',
  },
  {
    name: 'rows leave out what four does not divide',
    defect: 'The elements behind the last group of four of a row were missing from its sum on WebAssembly.',
    file: 'src/codegen/template/row-reduction/cpu/along.ts',
    find: 'const behind = wide && from === undefined ? extent - 4 * steps : 0;',
    replace: 'const behind = wide && from === undefined ? Math.min(2, extent - 4 * steps) : 0;',
    caughtBy: 'test/codegen/template/core.test.ts',
  },
  {
    name: 'random numbers are drawn twice',
    defect:
      'Draws whose size four does not divide advanced the generator too little, and the next one began with numbers of theirs.',
    file: 'src/tensor/generator.ts',
    find: 'BigInt(Math.ceil(n / 4))',
    replace: 'BigInt(Math.floor(n / 4))',
    caughtBy: 'test/tensor/recording/generator.test.ts',
  },
  {
    name: 'Fortran order is read as C order',
    defect: 'Arrays that NumPy had saved in Fortran order came back with their elements mixed up.',
    file: 'src/io/npy.ts',
    find: 'if (fortran && shape.length > 1)',
    replace: 'if (fortran && shape.length > 3)',
    caughtBy: 'test/io/npy.test.ts',
  },
  {
    name: 'safetensors that overlap',
    defect: 'Files in which one tensor lies over another were read as if they were sound.',
    file: 'src/io/safetensors.ts',
    find: 'if (begin !== reached) {',
    replace: 'if (begin > reached) {',
    caughtBy: 'test/io/safetensors.test.ts',
  },
  {
    name: 'ONNX pads the wrong sides',
    defect: 'The paddings of a convolution were read as pairs, where ONNX lists all fronts before all ends.',
    file: 'src/onnx/ops/conv.ts',
    find: "if (rule === 'NOTSET') return [pads[i]!, pads[i + spatial.length]!];",
    replace: "if (rule === 'NOTSET') return [pads[2 * i]!, pads[2 * i + 1]!];",
    caughtBy: 'test/onnx/operators.test.ts',
  },
  {
    name: 'exported remainders have the wrong sign',
    defect:
      "Remainders of negative integers had the divisor's sign in exported models, as ONNX defines them.",
    file: 'src/onnx/export/elementwise.ts',
    find: "return e.where(isCrossed, e.map('Sub', [rest, by]), rest);",
    replace: 'return rest;',
    caughtBy: 'test/onnx/export-ops.test.ts',
  },
  {
    name: 'parts of a state that trade places',
    defect: 'A bundle whose step swaps two parts of its state wrote one over the other and lost it.',
    file: 'src/bundle-runtime/places.ts',
    find: 'if (!copies.slice(0, i).some(({ to }) => isSame(to, from))) return copy;',
    replace: 'if (i >= 0) return copy;',
    caughtBy: 'test/aot/bundle.test.ts',
  },
];
