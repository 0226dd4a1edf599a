// The primitive operations: names, attributes and facts that need no graph. One row an op. The row of
// an elementwise op says all that is known of it but for its meaning (interpret/scalar.ts), its
// derivative (autograd/rules-elementwise.ts), and what languages write in a way of their own
// (codegen/emit/<language>/spelling.ts, onnx/export/elementwise.ts); its name is the row's key.

import { attrNames, type AttrsOf, type Monoid } from './attrs.ts';

export { monoids, type Monoid, type ScatterMode } from './attrs.ts';

/** Element types that an elementwise op takes. `number`: all but bool. `bits`: integers and bool. */
export type TypeFamily = 'float' | 'integer' | 'number' | 'bits' | 'any';

/**
 * An op in terms of other ops, for languages that have no function for it: operands by name, and
 * numbers, which are constants of the operands' type.
 */
export type OpFormula = number | 'x' | 'y' | 'z' | readonly [op: ElementwiseOp, ...OpFormula[]];

/**
 * What is known of an elementwise op without its graph. Each language says how it writes the op:
 * `formula` (by the row's formula), `own` (by a row in the language's own table, which the type of
 * that table then demands), or by the name that the language has for it.
 */
export interface ElementwiseRow {
  /** All operands have one type of this family (but for the condition of `where`). */
  readonly takes: TypeFamily;
  /** The results' type, where it is not the operands'; `attribute`: an attribute names it. */
  readonly gives?: 'bool' | 'attribute';
  /** Arithmetic per element. */
  readonly flops: number;
  /** Length of the code in plain operations, by default 1: see schedule/expression/code-size.ts. */
  readonly codeSize?: number;
  readonly commutative?: true;
  readonly formula?: OpFormula;
  /** A builtin, or a function of the prelude (`exp_F`) where drivers get the builtin wrong. */
  readonly wgsl: string;
  /** The function of doubles; that of floats has an `f` behind it. */
  readonly cuda: string;
  /** The instruction on floats. `math`: functions in codegen/emit/shared/math/, for f32 and f64. */
  readonly wasm: 'floor' | 'ceil' | 'nearest' | 'trunc' | 'sqrt' | 'math' | 'own' | 'formula';
  /** The operator of the standard. */
  readonly onnx: string;
}

const unaryRows = {
  neg: { takes: 'number', flops: 1, wgsl: 'own', cuda: 'own', wasm: 'own', onnx: 'own' },
  abs: { takes: 'number', flops: 1, wgsl: 'own', cuda: 'own', wasm: 'own', onnx: 'Abs' },
  sign: { takes: 'number', flops: 1, wgsl: 'own', cuda: 'own', wasm: 'math', onnx: 'own' },
  floor: { takes: 'float', flops: 1, wgsl: 'floor', cuda: 'floor', wasm: 'floor', onnx: 'Floor' },
  ceil: { takes: 'float', flops: 1, wgsl: 'ceil', cuda: 'ceil', wasm: 'ceil', onnx: 'Ceil' },
  round: { takes: 'float', flops: 1, wgsl: 'round', cuda: 'rint', wasm: 'nearest', onnx: 'Round' },
  trunc: { takes: 'float', flops: 1, wgsl: 'trunc', cuda: 'trunc', wasm: 'trunc', onnx: 'own' },
  exp: { takes: 'float', flops: 8, wgsl: 'exp_F', cuda: 'exp', wasm: 'math', onnx: 'Exp' },
  exp2: {
    takes: 'float',
    flops: 8,
    formula: ['pow', 2, 'x'],
    wgsl: 'exp2_F',
    cuda: 'exp2',
    wasm: 'math',
    onnx: 'formula',
  },
  expm1: {
    takes: 'float',
    flops: 12,
    codeSize: 2,
    wgsl: 'expm1_F',
    cuda: 'expm1',
    wasm: 'math',
    onnx: 'own',
  },
  log: { takes: 'float', flops: 8, codeSize: 2, wgsl: 'log_F', cuda: 'log', wasm: 'math', onnx: 'Log' },
  log2: { takes: 'float', flops: 8, codeSize: 2, wgsl: 'log2_F', cuda: 'log2', wasm: 'math', onnx: 'own' },
  log1p: {
    takes: 'float',
    flops: 12,
    codeSize: 2,
    wgsl: 'log1p_F',
    cuda: 'log1p',
    wasm: 'math',
    onnx: 'own',
  },
  sin: { takes: 'float', flops: 12, codeSize: 8, wgsl: 'sin_F', cuda: 'sin', wasm: 'math', onnx: 'Sin' },
  cos: { takes: 'float', flops: 12, codeSize: 8, wgsl: 'cos_F', cuda: 'cos', wasm: 'math', onnx: 'Cos' },
  tan: { takes: 'float', flops: 16, codeSize: 8, wgsl: 'tan_F', cuda: 'tan', wasm: 'math', onnx: 'Tan' },
  asin: { takes: 'float', flops: 16, codeSize: 3, wgsl: 'asin_F', cuda: 'asin', wasm: 'math', onnx: 'Asin' },
  acos: { takes: 'float', flops: 16, codeSize: 3, wgsl: 'acos_F', cuda: 'acos', wasm: 'math', onnx: 'Acos' },
  atan: { takes: 'float', flops: 16, codeSize: 2, wgsl: 'atan_F', cuda: 'atan', wasm: 'math', onnx: 'Atan' },
  sinh: { takes: 'float', flops: 16, codeSize: 2, wgsl: 'sinh_F', cuda: 'sinh', wasm: 'math', onnx: 'Sinh' },
  cosh: { takes: 'float', flops: 16, codeSize: 2, wgsl: 'cosh_F', cuda: 'cosh', wasm: 'math', onnx: 'Cosh' },
  tanh: { takes: 'float', flops: 12, codeSize: 3, wgsl: 'tanh_F', cuda: 'tanh', wasm: 'math', onnx: 'Tanh' },
  erf: { takes: 'float', flops: 16, codeSize: 2, wgsl: 'erf_F', cuda: 'erf', wasm: 'math', onnx: 'Erf' },
  sqrt: { takes: 'float', flops: 4, wgsl: 'sqrt', cuda: 'sqrt', wasm: 'sqrt', onnx: 'Sqrt' },
  rsqrt: {
    takes: 'float',
    flops: 4,
    formula: ['recip', ['sqrt', 'x']],
    wgsl: 'inverseSqrt',
    cuda: 'rsqrt',
    wasm: 'formula',
    onnx: 'formula',
  },
  recip: {
    takes: 'float',
    flops: 4,
    formula: ['div', 1, 'x'],
    wgsl: 'formula',
    cuda: 'formula',
    wasm: 'formula',
    onnx: 'Reciprocal',
  },
  not: { takes: 'bits', flops: 1, wgsl: 'own', cuda: 'own', wasm: 'own', onnx: 'own' },
  isNan: {
    takes: 'float',
    gives: 'bool',
    flops: 1,
    formula: ['ne', 'x', 'x'],
    wgsl: 'is_nan_F',
    cuda: 'own',
    wasm: 'formula',
    onnx: 'IsNaN',
  },
  cast: { takes: 'any', gives: 'attribute', flops: 1, wgsl: 'own', cuda: 'own', wasm: 'own', onnx: 'own' },
  bitcast: { takes: 'any', gives: 'attribute', flops: 0, wgsl: 'own', cuda: 'own', wasm: 'own', onnx: 'own' },
} as const;

const binaryRows = {
  add: { takes: 'number', flops: 1, commutative: true, wgsl: 'own', cuda: 'own', wasm: 'own', onnx: 'Add' },
  sub: { takes: 'number', flops: 1, wgsl: 'own', cuda: 'own', wasm: 'own', onnx: 'Sub' },
  mul: { takes: 'number', flops: 1, commutative: true, wgsl: 'own', cuda: 'own', wasm: 'own', onnx: 'Mul' },
  div: { takes: 'number', flops: 4, wgsl: 'own', cuda: 'own', wasm: 'own', onnx: 'own' },
  mod: { takes: 'number', flops: 6, codeSize: 4, wgsl: 'own', cuda: 'own', wasm: 'own', onnx: 'own' },
  pow: { takes: 'float', flops: 24, codeSize: 6, wgsl: 'own', cuda: 'own', wasm: 'math', onnx: 'Pow' },
  min: { takes: 'any', flops: 1, commutative: true, wgsl: 'own', cuda: 'own', wasm: 'own', onnx: 'own' },
  max: { takes: 'any', flops: 1, commutative: true, wgsl: 'own', cuda: 'own', wasm: 'own', onnx: 'own' },
  atan2: {
    takes: 'float',
    flops: 24,
    codeSize: 2,
    wgsl: 'atan2_F',
    cuda: 'atan2',
    wasm: 'math',
    onnx: 'own',
  },
  and: { takes: 'bits', flops: 1, commutative: true, wgsl: 'own', cuda: 'own', wasm: 'own', onnx: 'own' },
  or: { takes: 'bits', flops: 1, commutative: true, wgsl: 'own', cuda: 'own', wasm: 'own', onnx: 'own' },
  xor: { takes: 'bits', flops: 1, commutative: true, wgsl: 'own', cuda: 'own', wasm: 'own', onnx: 'own' },
  shl: { takes: 'integer', flops: 1, wgsl: 'own', cuda: 'own', wasm: 'own', onnx: 'own' },
  shr: { takes: 'integer', flops: 1, wgsl: 'own', cuda: 'own', wasm: 'own', onnx: 'own' },
  mulhi: {
    takes: 'integer',
    flops: 4,
    commutative: true,
    wgsl: 'own',
    cuda: 'own',
    wasm: 'own',
    onnx: 'own',
  },
  lt: { takes: 'any', gives: 'bool', flops: 1, wgsl: 'own', cuda: 'own', wasm: 'own', onnx: 'Less' },
  le: { takes: 'any', gives: 'bool', flops: 1, wgsl: 'own', cuda: 'own', wasm: 'own', onnx: 'LessOrEqual' },
  eq: {
    takes: 'any',
    gives: 'bool',
    flops: 1,
    commutative: true,
    wgsl: 'own',
    cuda: 'own',
    wasm: 'own',
    onnx: 'Equal',
  },
  ne: {
    takes: 'any',
    gives: 'bool',
    flops: 1,
    commutative: true,
    wgsl: 'own',
    cuda: 'own',
    wasm: 'own',
    onnx: 'own',
  },
} as const;

const ternaryRows = {
  where: { takes: 'any', flops: 1, wgsl: 'own', cuda: 'own', wasm: 'own', onnx: 'own' },
  fma: { takes: 'float', flops: 2, wgsl: 'own', cuda: 'fma', wasm: 'own', onnx: 'own' },
} as const;

type UnaryRows = typeof unaryRows;
type BinaryRows = typeof binaryRows;
type TernaryRows = typeof ternaryRows;
type ElementwiseRows = UnaryRows & BinaryRows & TernaryRows;
export type UnaryOp = keyof UnaryRows;
export type BinaryOp = keyof BinaryRows;
export type TernaryOp = keyof TernaryRows;
export type ElementwiseOp = UnaryOp | BinaryOp | TernaryOp;

/** The op that combines two values of a monoid. */
export const combining: Readonly<Record<Monoid, 'add' | 'mul' | 'min' | 'max' | 'and' | 'or'>> = {
  sum: 'add',
  prod: 'mul',
  min: 'min',
  max: 'max',
  and: 'and',
  or: 'or',
};
/** Languages that rows say how to write ops in. */
export type Language = 'wgsl' | 'cuda' | 'wasm' | 'onnx';
/** The elementwise ops of which a language's column says `How`: `own` ones need a row in its own table. */
export type WrittenAs<L extends Language, How extends 'own' | 'math' = 'own'> = {
  [K in ElementwiseOp]: ElementwiseRows[K][L] extends How ? K : never;
}[ElementwiseOp];
/** The elementwise ops on floats alone. */
export type FloatOp = {
  [K in ElementwiseOp]: ElementwiseRows[K]['takes'] extends 'float' ? K : never;
}[ElementwiseOp];

/** Rows of the elementwise ops. */
export const elementwiseRows: { readonly [K in ElementwiseOp]: ElementwiseRow } = {
  ...unaryRows,
  ...binaryRows,
  ...ternaryRows,
};

/** A value for each elementwise op, by name. */
export function mapRows<T>(make: (op: ElementwiseOp) => T): Readonly<Record<ElementwiseOp, T>> {
  const names = Object.keys(elementwiseRows) as ElementwiseOp[];
  return Object.fromEntries(names.map((op) => [op, make(op)])) as Record<ElementwiseOp, T>;
}

/** The names by which rows call functions of a language. */
export function functionNames(language: Language): readonly string[] {
  const written = Object.values(elementwiseRows).map((row) => row[language]);
  return written.filter((name) => name !== 'own' && name !== 'formula');
}

/** Pure index maps: no arithmetic on values, never a kernel of their own unless an output asks for one. */
export type ViewOp = 'reshape' | 'permute' | 'broadcast' | 'slice' | 'pad' | 'concat' | 'window';
/** `rankIndex` is what a process knows of itself: its place in a mesh (mesh.ts). */
export type SourceOp = 'parameter' | 'constant' | 'iota' | 'randomBits' | 'rankIndex';
export type FusionRootOp =
  | 'reduce'
  | 'argReduce'
  | 'argSort'
  | 'radixRank'
  | 'scan'
  | 'fft'
  | 'fftPart'
  | 'dot'
  | 'conv'
  | 'gather'
  | 'dequantize'
  | 'scatter'
  | 'permuteScatter'
  | 'searchSorted'
  | 'segmentReduce'
  | 'scatterAddAtomic'
  | 'jacobiRows'
  | 'factor'
  | 'completeRows'
  | 'iterate';
/**
 * Markers that are the identity on values: `stopGradient` and `customVjp` mean something to autograd
 * only, and `bounded` says what of a value is used; a `barrier` is its first input, and what is
 * computed from it is neither shared with what is computed from that input itself nor computed
 * before the second input is; `shard` says how the processes of a mesh are to hold the value. `toPart` and
 * `toWhole` are the edges of what is written for one process: behind the first stands its part of a value, as a
 * value of its own, and behind the second the value of which the processes have these parts.
 */
export type MarkerOp = 'stopGradient' | 'customVjp' | 'barrier' | 'bounded' | 'shard' | 'toPart' | 'toWhole';
/** A complex number from its parts, its parts, its conjugate. Gone once a graph is lowered to pairs. */
export type ComplexOp = 'complex' | 'real' | 'imag' | 'conj';
/**
 * What the processes of a mesh (mesh.ts) do together: each brings one value and takes one. All processes run
 * the same graph, and meet in its collectives in one order. A second input, which the compiler adds, is a value that is
 * computed before; it is not read.
 */
export type CollectiveOp =
  | 'allReduce'
  | 'allGather'
  | 'reduceScatter'
  | 'allToAll'
  | 'permuteRanks'
  | 'broadcastRank';
/** Every primitive. */
export type Op = ElementwiseOp | ViewOp | SourceOp | FusionRootOp | MarkerOp | ComplexOp | CollectiveOp;

/** The attributes of an op. */
export type Attrs<K extends Op = Op> = AttrsOf<K>;
export type OpClass =
  | 'unary'
  | 'binary'
  | 'ternary'
  | 'view'
  | 'source'
  | 'fusionRoot'
  | 'marker'
  | 'complex'
  | 'collective';

/** What is known of an op without its graph. */
export interface OpFacts {
  readonly class: OpClass;
  /** Number of inputs, or `variadic` (at least one). */
  readonly arity: number | 'variadic';
  /** Attribute names, in printing order. */
  readonly attrs: readonly string[];
  /** Arithmetic per output element (elementwise ops only; fusion roots are counted from their shapes). */
  readonly flops: number;
  /** Length of its code in plain operations, where that is more than 1. */
  readonly codeSize?: number | undefined;
  readonly commutative?: true | undefined;
}

type Row = Omit<OpFacts, 'attrs'>;
const row =
  (kind: OpClass) =>
  (arity: OpFacts['arity'], flops: number = 0, codeSize?: number): Row => ({
    class: kind,
    arity,
    flops,
    codeSize,
  });
const [view, source, fusionRoot, marker] = [row('view'), row('source'), row('fusionRoot'), row('marker')];
const [complex, collective] = [row('complex'), row('collective')];

const elementwise = (kind: OpClass, arity: number, rows: Readonly<Record<string, ElementwiseRow>>) =>
  Object.entries(rows).map(([op, { flops, codeSize, commutative }]): readonly [string, Row] => [
    op,
    { class: kind, arity, flops, codeSize, commutative },
  ]);

/** Arity, and arithmetic per output element, of the ops that are not elementwise. */
const otherRows: { readonly [K in Exclude<Op, ElementwiseOp>]: Row } = {
  reshape: view(1),
  permute: view(1),
  broadcast: view(1),
  slice: view(1),
  pad: view(1),
  concat: view('variadic'),
  window: view(1),
  parameter: source(0, 0),
  constant: source(0, 0),
  iota: source(0, 0),
  randomBits: source(4, 40, 10),
  rankIndex: source(0, 0),
  reduce: fusionRoot(1, 1),
  argReduce: fusionRoot(1, 2),
  argSort: fusionRoot(1, 64),
  radixRank: fusionRoot(1, 4),
  scan: fusionRoot(1, 1),
  fft: fusionRoot(2, 1),
  fftPart: fusionRoot(3, 1),
  dot: fusionRoot(2, 2),
  conv: fusionRoot(2, 2),
  gather: fusionRoot(2, 0),
  // Shifts, masks, a conversion and a multiplication.
  dequantize: fusionRoot(1, 8),
  scatter: fusionRoot(3, 1),
  permuteScatter: fusionRoot(2, 0),
  searchSorted: fusionRoot(2, 20),
  segmentReduce: fusionRoot(4, 1),
  scatterAddAtomic: fusionRoot(2, 1),
  // Some eight sweeps over all pairs of rows, of which each rotates half of the elements.
  jacobiRows: fusionRoot(1, 64),
  factor: fusionRoot('variadic', 1),
  completeRows: fusionRoot(2, 4),
  // Counted from the body.
  iterate: fusionRoot('variadic', 0),
  stopGradient: marker(1, 0),
  customVjp: marker('variadic', 0),
  barrier: marker(2, 0),
  bounded: marker(2, 0),
  shard: marker(1, 0),
  toPart: marker(1, 0),
  toWhole: marker(1, 0),
  complex: complex(2),
  real: complex(1),
  imag: complex(1),
  conj: complex(1, 1),
  allReduce: collective('variadic'),
  allGather: collective('variadic'),
  reduceScatter: collective('variadic'),
  allToAll: collective('variadic'),
  permuteRanks: collective('variadic'),
  broadcastRank: collective('variadic'),
};

const entries = [
  ...elementwise('unary', 1, unaryRows),
  ...elementwise('binary', 2, binaryRows),
  ...elementwise('ternary', 3, ternaryRows),
  ...Object.entries(otherRows),
].map(([op, facts]): readonly [string, OpFacts] => [op, { ...facts, attrs: attrNames(op) }]);

/** Facts of every op. */
export const ops: Readonly<Record<Op, OpFacts>> = Object.fromEntries(entries) as Record<Op, OpFacts>;

/** Every op, in the order of the table. */
export const opNames: readonly Op[] = Object.keys(ops) as Op[];

/** Whether the text names an op. */
export function isOp(text: string): text is Op {
  return typeof text === 'string' && Object.hasOwn(ops, text);
}

/** The row of an op. */
export function facts(op: Op): OpFacts {
  return ops[op];
}

export function isElementwise(op: Op): op is ElementwiseOp {
  const kind = facts(op).class;
  return kind === 'unary' || kind === 'binary' || kind === 'ternary';
}

export function isView(op: Op): op is ViewOp {
  return facts(op).class === 'view';
}

export function isCollective(op: Op): op is CollectiveOp {
  return facts(op).class === 'collective';
}

/** Whether an op needs loops of its own: other fusion roots are computed wherever they are read. */
export function hasLoops(op: Op): boolean {
  return facts(op).class === 'fusionRoot' && op !== 'gather' && op !== 'dequantize';
}

/** Comparisons, and the tests that give bool. */
export function givesBool(op: ElementwiseOp): boolean {
  return elementwiseRows[op].gives === 'bool';
}
