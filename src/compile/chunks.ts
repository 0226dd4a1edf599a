// The chunks in which a page downloads the compiler. Recording needs none of them. When you first read a
// value or compile a function, the page loads the compiler, the emitter of its device's language, and what
// the operations of the graph need. It loads them at the same time, because the graph alone says which they
// are. In Node all chunks are loaded from the start (all.ts).

import type { RareMathOp } from '../codegen/emit/shared/math/functions.ts';
import { notLoading, SinterError } from '../errors.ts';
import { dtypeBytes, isComplex, isFloat, isSmallInteger } from '../ir/dtype.ts';
import { topological, type Graph, type Node, type NodeOf } from '../ir/graph.ts';
import type { ElementwiseOp, Op } from '../ir/ops.ts';
import type { TargetId } from '../runtime/program.ts';
import { mayWeighScores } from '../schedule/fusion/scores.ts';
import type { Target } from '../schedule/target.ts';

/** The compiler's functions. */
export type Compiler = Pick<typeof import('./compile.ts'), 'castDoubleInputs' | 'compileGraph'>;

/** The chunks; the emitter of each target is one, and the interpreter. */
export type Chunk =
  | 'compiler'
  | 'products'
  | 'products-cpu'
  | 'products-gpu'
  | 'column-folds'
  | 'matrix-units'
  | 'attention'
  | 'convolutions'
  | 'rare'
  | 'selections'
  | 'verifiers'
  | 'wasm-functions'
  | TargetId;

const imports: Readonly<Record<Chunk, () => Promise<object>>> = {
  compiler: () => import('./chunks/compiler.ts'),
  products: () => import('./chunks/products.ts'),
  'products-cpu': () => import('./chunks/products-cpu.ts'),
  'products-gpu': () => import('./chunks/products-gpu.ts'),
  'column-folds': () => import('./chunks/column-folds.ts'),
  'matrix-units': () => import('./chunks/matrix-units.ts'),
  attention: () => import('./chunks/attention.ts'),
  convolutions: () => import('./chunks/convolutions.ts'),
  rare: () => import('./chunks/rare.ts'),
  selections: () => import('./chunks/selections.ts'),
  wgsl: () => import('./chunks/wgsl.ts'),
  cuda: () => import('./chunks/cuda.ts'),
  wasm: () => import('./chunks/wasm.ts'),
  c: () => import('./chunks/c.ts'),
  interpreter: () => import('./chunks/interpreter.ts'),
  verifiers: () => import('./chunks/verifiers.ts'),
  'wasm-functions': () => import('./chunks/wasm-functions.ts'),
};

/**
 * What kernels need beside the compiler itself, by the operation that they compute. `machine` is how products and reductions are
 * computed on the target's machine, and `functions` what WebAssembly has no instruction for.
 */
type Need = 'machine' | 'columns' | 'functions' | 'selections' | 'convolutions' | 'rare';

/** The needs of elementwise operations; the others need nothing. */
const neededByElements: Readonly<Record<RareMathOp | 'mod' | 'where', Need>> = {
  log: 'functions',
  log2: 'functions',
  log1p: 'functions',
  sin: 'functions',
  cos: 'functions',
  tan: 'functions',
  asin: 'functions',
  acos: 'functions',
  atan: 'functions',
  atan2: 'functions',
  pow: 'functions',
  mod: 'functions',
  where: 'selections',
};

/** The needs of all operations. */
const neededBy: Readonly<
  Partial<Record<ElementwiseOp, Need>> & Record<Exclude<Op, ElementwiseOp>, Need | undefined>
> = {
  ...neededByElements,
  reshape: undefined,
  permute: undefined,
  broadcast: undefined,
  slice: 'selections',
  pad: 'selections',
  concat: 'selections',
  window: 'selections',
  parameter: undefined,
  constant: undefined,
  iota: 'selections',
  randomBits: undefined,
  gather: 'selections',
  stopGradient: undefined,
  customVjp: undefined,
  barrier: undefined,
  shard: undefined,
  toPart: undefined,
  toWhole: undefined,
  reduce: 'machine',
  argReduce: 'machine',
  dot: 'machine',
  conv: 'convolutions',
  argSort: 'rare',
  radixRank: 'rare',
  scan: 'rare',
  fft: 'rare',
  fftPart: 'rare',
  dequantize: 'rare',
  scatter: 'rare',
  permuteScatter: 'rare',
  searchSorted: 'rare',
  segmentReduce: 'rare',
  scatterAddAtomic: 'rare',
  jacobiRows: 'rare',
  factor: 'rare',
  completeRows: 'rare',
  iterate: 'rare',
  bounded: 'rare',
  complex: 'rare',
  real: 'rare',
  imag: 'rare',
  conj: 'rare',
  rankIndex: 'rare',
  allReduce: 'rare',
  allGather: 'rare',
  reduceScatter: 'rare',
  allToAll: 'rare',
  permuteRanks: 'rare',
  broadcastRank: 'rare',
};

/** Columns of the narrowest rows of products that are folded as they are made; a size that varies may be as many. */
const fewestFolded = 256;

/** Elements of the longest rows that passes/split.ts leaves whole on every target; longer ones may be padded, and cut. */
export const longestWhole = 2048;

/** Elements of a reduction's rows; NaN where a size varies. */
function rowOf({ inputs: [input], attrs }: NodeOf<'reduce'>): number {
  return attrs.axes.reduce((size, axis) => size * Number(input!.shape[axis]), 1);
}

/**
 * What compiling a graph needs beside its target's language, with these of its options; where no target is known yet, what it
 * needs on each.
 */
export function chunksOf(
  graph: Graph,
  target: Pick<Target, 'dtypes' | 'machine' | 'matrixUnits'> | undefined,
  { check, memory }: { readonly check?: boolean; readonly memory?: number } = {},
): Set<Chunk> {
  const needed = new Set<Chunk>(['compiler']);
  if (check === true) needed.add('verifiers');
  if (memory !== undefined) needed.add('rare');
  const needs = new Set<Need | undefined>();
  const nodes = [...graph.parameters, ...topological(graph.outputs)] as readonly Node[];
  for (const node of nodes) {
    const { op, dtype, inputs } = node;
    needs.add(neededBy[op]);
    if (isComplex(dtype)) needs.add('rare');
    if ((isSmallInteger(dtype) || dtype === 'f64') && target?.dtypes.includes(dtype) === false)
      needs.add('rare');
    if (dtypeBytes(dtype) === 8 || (isFloat(dtype) && dtype !== 'f32')) needs.add('functions');
    if (op === 'reduce') {
      if (!(Number(inputs[0]!.shape.at(-1)) < fewestFolded)) needs.add('columns');
      if (!(rowOf(node as NodeOf<'reduce'>) <= longestWhole)) needs.add('selections');
    }
  }
  if (needs.has('rare')) needed.add('rare');
  // Rare operations are computed by all others, and loops and transforms by any number of products.
  const isRare = needed.has('rare');
  const isNeeded = (need: Need): boolean => isRare || needs.has(need);
  const hasAttention = isRare || mayWeighScores(nodes);
  if (hasAttention) needed.add('attention');
  if (isNeeded('convolutions')) needed.add('convolutions');
  if (isNeeded('selections') || hasAttention || needs.has('convolutions')) needed.add('selections');
  if (target?.machine === 'cpu' && isNeeded('functions')) needed.add('wasm-functions');
  if (!isNeeded('machine') && !isNeeded('convolutions')) return needed;
  needed.add('products');
  if (target === undefined) return needed;
  needed.add(target.machine === 'cpu' ? 'products-cpu' : 'products-gpu');
  if (target.machine === 'gpu' && isNeeded('columns')) needed.add('column-folds').add('selections');
  if (target.matrixUnits !== undefined) needed.add('matrix-units');
  return needed;
}

let compiler: Compiler | undefined;
const loaded = new Set<Chunk>();
const coming = new Map<Chunk, Promise<void>>();

/** Every chunk is there. */
export function supplyAll(made: Compiler): void {
  compiler = made;
  for (const chunk of Object.keys(imports) as readonly Chunk[]) loaded.add(chunk);
}

/** Whether every chunk is there. */
export function isWhole(): boolean {
  return loaded.size === Object.keys(imports).length;
}

/** Whether these chunks are there. */
export function areLoaded(chunks: Iterable<Chunk>): boolean {
  for (const chunk of chunks) if (!loaded.has(chunk)) return false;
  return true;
}

/** The compiler; its chunk has been loaded. */
export function loadedCompiler(): Compiler {
  if (compiler === undefined) throw new SinterError('E_STATE', notLoaded('the compiler'));
  return compiler;
}

/** What is said where something is asked for that a page has not loaded. */
export function notLoaded(what: string): string {
  return `sinter: ${what} is not loaded in this page yet\n  try: await loadCompiler() first`;
}

/** Loads chunks. Rejects with E_IO where one does not come; the next call tries again. */
export async function load(chunks: Iterable<Chunk>): Promise<void> {
  await Promise.all(Array.from(chunks, loadOne));
}

function loadOne(chunk: Chunk): Promise<void> {
  if (loaded.has(chunk)) return Promise.resolve();
  const known = coming.get(chunk);
  if (known !== undefined) return known;
  const loading = imports[chunk]().then(
    (module) => {
      if (chunk === 'compiler') compiler = module as Compiler;
      loaded.add(chunk);
    },
    (cause: unknown) => {
      coming.delete(chunk);
      throw notLoading(`its chunk '${chunk}'`, cause);
    },
  );
  coming.set(chunk, loading);
  return loading;
}

/** Loads every chunk. */
export function loadAll(): Promise<void> {
  return load(Object.keys(imports) as readonly Chunk[]);
}
