// The reference interpreter: what a graph means, without any device. It is the oracle for passes
// (interpret before and after) and for kernels, so it is written for precision first:
// floating-point sums and products accumulate in double and are rounded once. Takes a graph and
// host arrays in parameter order, gives one host array per output.

import { CompilerBug, TensorError } from '../../errors.ts';
import { isWide } from '../dtype.ts';
import { siblingKey } from '../control/iterate.ts';
import { checkEdge } from '../edge.ts';
import { graphOf } from '../text/region.ts';
import { dims, topological, type CollectiveNode, type Graph, type Node, type NodeOf } from '../graph.ts';
import { evaluateComplex, touchesComplex } from './complex.ts';
import { convolve, dotGeneral } from './contract.ts';
import { factor } from './factor/factor.ts';
import { argReduce, reduce, scan, linesAlong } from './fold.ts';
import { dequantize, firstAlong, gather, permuteScatter, scatter, segmentReduce } from './index.ts';
import { completeRows, jacobiRows } from './jacobi.ts';
import { broadcast, concat, pad, permute, slice, window } from './view.ts';
import { isCollective, isElementwise, type Attrs, type ElementwiseOp, type Op } from '../ops.ts';
import { randomWords } from './random.ts';
import { compileScalar, type ScalarFunction } from './scalar.ts';
import { sameShape, showShape, sizeOf, stridesOf, type FixedShape } from '../shape.ts';
import {
  emptyData,
  fromInteger,
  hostArray,
  packBytes,
  partCount,
  unpackBytes,
  type HostArray,
  type Scalar,
} from '../value.ts';
import { transformOf } from '../fft/transform.ts';

/**
 * What this process takes from a collective to which it brings these values: none for `rankIndex`, one for others. Returns
 * when it has it.
 */
export type Meet = (node: CollectiveNode | NodeOf<'rankIndex'>, inputs: readonly HostArray[]) => HostArray;

/**
 * Runs a graph on host arrays given in parameter order. Throws E_VALUE, E_DTYPE or E_SHAPE when
 * they do not fit the parameters, and E_STATE at a collective where nothing says how processes `meet`. Results may share
 * memory with inputs and with each other.
 */
export function interpret(graph: Graph, inputs: readonly HostArray[], meet?: Meet): HostArray[] {
  checkInputs(graph, inputs);
  const known = new Map<Node, HostArray>();
  graph.parameters.forEach((parameter, i) => known.set(parameter as Node, inputs[i]!));
  return valuesFrom(graph.outputs, known, meet);
}

/**
 * The values of some nodes, from values of nodes that they are computed from; `change` is applied to each value on the
 * way. Results may share memory with what is known.
 */
export function valuesFrom(
  nodes: readonly Node[],
  known: ReadonlyMap<Node, HostArray>,
  meet?: Meet,
  change: (value: HostArray, node: Node) => HostArray = (value) => value,
): HostArray[] {
  const values = new Map(known);
  // Arrays go as soon as their last reader has run: a long graph needs only what is live at one
  // time.
  const isKnown = (node: Node): boolean => known.has(node);
  // What a barrier waits for may be out of reach of what is known, and is no part of its value.
  const inputsOf = ({ op, inputs }: Node): readonly Node[] =>
    op === 'barrier' ? inputs.slice(0, 1) : inputs;
  const order = topological(nodes, isKnown, inputsOf).filter((node) => !isKnown(node));
  const readers = new Map<Node, number>();
  const use = (node: Node): void => void readers.set(node, (readers.get(node) ?? 0) + 1);
  for (const node of order) inputsOf(node).forEach(use);
  nodes.forEach(use);
  const loops = new Map<string, readonly HostArray[]>();
  for (const node of order) {
    const read = inputsOf(node).map((input) => values.get(input)!);
    values.set(node, change(valueOf(node, read, loops, meet), node));
    for (const input of inputsOf(node)) {
      const left = readers.get(input)! - 1;
      readers.set(input, left);
      if (left === 0) values.delete(input);
    }
  }
  return nodes.map((node) => values.get(node)!);
}

function valueOf(
  node: Node,
  inputs: readonly HostArray[],
  loops: Map<string, readonly HostArray[]>,
  meet: Meet | undefined,
): HostArray {
  if (node.op === 'iterate') return resultOf(node, inputs, loops, meet);
  if (meet !== undefined && meets(node)) return meet(node, inputs);
  return evaluateNode(node, inputs);
}

function meets(node: Node): node is CollectiveNode | NodeOf<'rankIndex'> {
  return isCollective(node.op) || node.op === 'rankIndex';
}

/** One result of a loop, all of which are computed at once. */
function resultOf(
  node: NodeOf<'iterate'>,
  inputs: readonly HostArray[],
  known: Map<string, readonly HostArray[]>,
  meet: Meet | undefined,
): HostArray {
  const key = siblingKey(node);
  const run = (body: Graph, values: readonly HostArray[]): HostArray[] => interpret(body, values, meet);
  const results = known.get(key) ?? runIteration(inputs, node.attrs, run);
  known.set(key, results);
  return results[node.attrs.result]!;
}

/** What is said where a graph over several processes is evaluated in one that no other is joined to. */
function alone(op: Op): TensorError {
  const problem = 'needs the other processes of its mesh, and none are joined to this one';
  return new TensorError('E_STATE', op, problem, 'interpret(graph, inputs, meet), or simulate(graph, mesh)');
}

/** The value of one node from its inputs' values, as constant folding needs it. */
export function evaluateNode(node: Node, inputs: readonly HostArray[]): HostArray {
  if (meets(node)) throw alone(node.op);
  if (touchesComplex(node, inputs)) return evaluateComplex(node, inputs, evaluateNode);
  if (isMapped(node)) return elementwise(node, inputs);
  const shape = dims(node);
  const first = inputs[0]!;
  switch (node.op) {
    case 'parameter':
      throw new CompilerBug('interpret', `parameter ${node.attrs.name} has no value of its own`);
    case 'constant':
      return hostArray(node.dtype, [], [node.attrs.value]);
    case 'iota':
      return iota(node.dtype, shape, node.attrs.axis);
    case 'randomBits': {
      const [keyLow, keyHigh, counterLow, counterHigh] = inputs.map((word) => Number(word.data[0]));
      const data = randomWords([keyLow!, keyHigh!], [counterLow!, counterHigh!], sizeOf(shape));
      return { dtype: 'u32', shape, data };
    }
    case 'reshape':
      return { dtype: first.dtype, shape, data: first.data };
    case 'permute':
      return permute(first, node.attrs.order);
    case 'broadcast':
      return broadcast(first, shape);
    case 'slice':
      return slice(first, node.attrs.start, node.attrs.size, node.attrs.step);
    case 'pad':
      return pad(first, shape, node.attrs);
    case 'concat':
      return concat(inputs, shape, node.attrs.axis);
    case 'window':
      return window(first, shape, node.attrs);
    case 'reduce':
      return reduce(first, node.attrs.monoid, node.attrs.axes);
    case 'argReduce':
      return argReduce(first, node.attrs.monoid, node.attrs.axis);
    case 'argSort':
      return argSort(first, node.attrs);
    case 'radixRank':
      return radixRank(first, node.attrs);
    case 'jacobiRows':
      return jacobiRows(first, node.attrs);
    case 'completeRows':
      return completeRows(first, inputs[1]!, node.attrs);
    case 'scan':
      return scan(first, node.attrs);
    case 'fft':
      return fft(first, node.attrs);
    case 'fftPart':
      return fftPart(first, inputs[1]!, node.attrs.part);
    case 'dot':
      return dotGeneral(first, inputs[1]!, shape, node.attrs);
    case 'conv':
      return convolve(first, inputs[1]!, shape, node.attrs);
    case 'gather':
      return gather(first, inputs[1]!, node.attrs.axis);
    case 'dequantize':
      return dequantize(first, shape, node.attrs);
    case 'scatter':
      return scatter(first, inputs[1]!, inputs[2]!, node.attrs.axis, node.attrs.mode);
    case 'permuteScatter':
      return permuteScatter(first, inputs[1]!, node.attrs.axis);
    case 'searchSorted':
      return searchSorted(first, inputs[1]!, node.attrs.right);
    case 'scatterAddAtomic': {
      const zeros = { dtype: node.dtype, shape, data: emptyData(node.dtype, sizeOf(shape)) };
      return scatter(zeros, first, inputs[1]!, node.attrs.axis, 'add');
    }
    case 'segmentReduce':
      return segmentReduce(first, inputs[1]!, inputs[2]!, inputs[3]!, node.attrs);
    case 'factor':
      return factor(inputs, node.attrs.kind);
    case 'iterate':
      return runIteration(inputs, node.attrs, interpret)[node.attrs.result]!;
    case 'stopGradient':
    case 'customVjp':
    case 'barrier':
    case 'shard':
      return first;
    case 'toPart':
    case 'toWhole':
      checkEdge(node);
      return first;
    case 'bounded':
      return firstAlong(first, Number(inputs[1]!.data[0]), node.attrs.axis);
    case 'complex':
    case 'real':
    case 'imag':
    case 'conj':
      throw new CompilerBug('interpret', `${node.op} of real numbers`);
    default:
      return node satisfies never;
  }
}

function checkInputs(graph: Graph, inputs: readonly HostArray[]): void {
  if (inputs.length !== graph.parameters.length) {
    throw new TensorError(
      'E_VALUE',
      'interpret',
      `expects ${graph.parameters.length} input(s), got ${inputs.length}`,
    );
  }
  graph.parameters.forEach((parameter, i) => {
    const { dtype, shape, data } = inputs[i]!;
    const fits = sameShape(shape, parameter.shape) && data.length === sizeOf(shape) * partCount(dtype);
    if (dtype === parameter.dtype && fits) return;
    throw new TensorError(
      fits ? 'E_DTYPE' : 'E_SHAPE',
      'interpret',
      `parameter ${parameter.attrs.name} is ${showShape(parameter.shape, parameter.dtype)}, ` +
        `got ${showShape(shape, dtype)} with ${data.length} element(s)`,
    );
  });
}

type MappedNode = Extract<Node, { readonly op: ElementwiseOp }>;

function isMapped(node: Node): node is MappedNode {
  return isElementwise(node.op);
}

function elementwise(node: MappedNode, inputs: readonly HostArray[]): HostArray {
  const shape = dims(node);
  const { op, dtype } = node;
  // Whole bit patterns: element by element, NaN payloads would not survive passing through a
  // JavaScript number.
  if (op === 'bitcast') return unpackBytes(packBytes(inputs[0]!), dtype, shape);
  const f = compileScalar(op, inputs.at(-1)!.dtype, dtype);
  const out = { dtype, shape, data: emptyData(dtype, sizeOf(shape)) };
  const floats = [out, ...inputs].every((array) => array.data instanceof Float32Array);
  // Two copies of one loop: the engine compiles accesses well only where it always sees one array
  // class.
  if (floats) mapFloats(out.data as Float32Array, f, inputs);
  else mapAny(out.data as Float32Array, f, inputs);
  return out;
}

function mapFloats(out: Float32Array, f: ScalarFunction, inputs: readonly HostArray[]): void {
  const [a, b, c] = inputs.map((input) => input.data as Float32Array);
  if (c !== undefined) for (let i = 0; i < out.length; i++) out[i] = f(a![i]!, b![i]!, c[i]!) as number;
  else if (b !== undefined) for (let i = 0; i < out.length; i++) out[i] = f(a![i]!, b[i]!) as number;
  else for (let i = 0; i < out.length; i++) out[i] = f(a![i]!) as number;
}

function mapAny(out: Float32Array, f: ScalarFunction, inputs: readonly HostArray[]): void {
  const [a, b, c] = inputs.map((input) => input.data as Float32Array);
  if (c !== undefined) for (let i = 0; i < out.length; i++) out[i] = f(a![i]!, b![i]!, c[i]!) as number;
  else if (b !== undefined) for (let i = 0; i < out.length; i++) out[i] = f(a![i]!, b[i]!) as number;
  else for (let i = 0; i < out.length; i++) out[i] = f(a![i]!) as number;
}

/** Counts wrap in integers and round in floats, as a cast from i32 would. */
function iota(dtype: HostArray['dtype'], shape: FixedShape, axis: number): HostArray {
  const data = emptyData(dtype, sizeOf(shape));
  const element = fromInteger(dtype);
  const stride = stridesOf(shape)[axis]!;
  for (let i = 0; i < data.length; i++) {
    const count = Math.floor(i / stride) % shape[axis]!;
    data[i] = element(isWide(dtype) ? BigInt(count) : count);
  }
  return { dtype, shape, data };
}

// What a loop means: its region is interpreted once an iteration, as long as the guard is not 0.

/** All results of a loop: the last carries, then the stacked slices. */
function runIteration(
  inputs: readonly HostArray[],
  { body, carries, stacked, trips, guard, reverse }: Attrs<'iterate'>,
  run: (graph: Graph, inputs: readonly HostArray[]) => HostArray[],
): HostArray[] {
  let held = inputs.slice(0, carries);
  const stacks = inputs.slice(carries, carries + stacked);
  const invariants = inputs.slice(carries + stacked);
  const given = body.graph.outputs.slice(carries).map(({ dtype, shape }): HostArray => {
    const whole = [trips, ...(shape as FixedShape)];
    return { dtype, shape: whole, data: emptyData(dtype, sizeOf(whole)) };
  });
  for (let turn = 0; turn < trips && held[guard]?.data[0] !== 0; turn++) {
    const at = reverse ? trips - 1 - turn : turn;
    const slices = stacks.map(({ dtype, shape, data }): HostArray => {
      const size = sizeOf(shape.slice(1));
      return { dtype, shape: shape.slice(1), data: data.slice(at * size, (at + 1) * size) };
    });
    const results = run(graphOf(body), [hostArray('i32', [], [at]), ...held, ...slices, ...invariants]);
    held = results.slice(0, carries);
    given.forEach(({ data }, i) => {
      const { data: slice } = results[carries + i]!;
      data.set(slice as Float32Array & BigInt64Array & BigUint64Array, at * slice.length);
    });
  }
  return [...held, ...given];
}

// Discrete Fourier transforms of host arrays: every line in double precision, rounded once. The
// table that kernels are given is not looked at.

/** `fft`: pairs along the last axis. */
export function fft(x: HostArray, { axis, inverse }: Attrs<'fft'>): HostArray {
  const n = x.shape[axis]!;
  const data = emptyData(x.dtype, x.data.length);
  if (data.length === 0) return { dtype: x.dtype, shape: x.shape, data };
  const transform = transformOf(n);
  const line = { re: new Float64Array(n), im: new Float64Array(n) };
  // Pairs lie `stride` apart along the axis.
  const stride = stridesOf(x.shape)[axis]!;
  for (let outer = 0; outer < data.length; outer += n * stride)
    for (let first = outer; first < outer + stride; first += 2) {
      for (let i = 0; i < n; i++) {
        line.re[i] = Number(x.data[first + i * stride]);
        line.im[i] = Number(x.data[first + i * stride + 1]);
      }
      const { re, im } = transform(line, inverse);
      for (let i = 0; i < n; i++) {
        data[first + i * stride] = re[i]!;
        data[first + i * stride + 1] = im[i]!;
      }
    }
  return { dtype: x.dtype, shape: x.shape, data };
}

/** `fftPart`: real and imaginary parts apart. */
export function fftPart(re: HostArray, im: HostArray, part: number): HostArray {
  const n = re.shape.at(-1)!;
  const data = emptyData(re.dtype, re.data.length);
  if (data.length === 0) return { dtype: re.dtype, shape: re.shape, data };
  const transform = transformOf(n);
  const partOf = (of: HostArray, first: number): Float64Array =>
    Float64Array.from({ length: n }, (_, i) => Number(of.data[first + i]));
  for (let first = 0; first < re.data.length; first += n) {
    const found = transform({ re: partOf(re, first), im: partOf(im, first) }, false);
    const wanted = part === 0 ? found.re : found.im;
    for (let i = 0; i < n; i++) data[first + i] = wanted[i]!;
  }
  return { dtype: re.dtype, shape: re.shape, data };
}

// Sorting and searching in the reference interpreter: exact comparisons, and one step of a radix
// sort as its definition says.

/** Negative where `a` comes before `b`; NaN after everything, −0 level with 0. */
function compare(a: Scalar, b: Scalar): number {
  if (a < b) return -1;
  if (a > b) return 1;
  return a === b ? 0 : Number(Number.isNaN(a)) - Number(Number.isNaN(b));
}

/** The i32 positions of each line in order; equal elements keep theirs in both directions. */
export function argSort(x: HostArray, { axis, descending }: Attrs<'argSort'>): HostArray {
  const { starts, steps } = linesAlong(x.shape, [axis]);
  const data = emptyData('i32', x.data.length);
  const sign = descending ? -1 : 1;
  for (const start of starts) {
    const line = Array.from(steps, (step) => x.data[start + step]!);
    const order = Int32Array.from(line, (_, i) => i).sort(
      (i, j) => sign * compare(line[i]!, line[j]!) || i - j,
    );
    for (let i = 0; i < steps.length; i++) data[start + steps[i]!] = order[i]!;
  }
  return { dtype: 'i32', shape: x.shape, data };
}

/**
 * Of each block of a line: how often each digit occurs, then each key's rank among the block's keys
 * of its digit.
 */
export function radixRank(keys: HostArray, { shift, digits, block }: Attrs<'radixRank'>): HostArray {
  const [lines, length] = keys.shape as [number, number];
  const blocks = Math.ceil(length / block);
  const width = digits + block;
  const data = emptyData('i32', lines * blocks * width);
  for (let line = 0; line < lines; line++) {
    for (let i = 0; i < length; i++) {
      const row = (line * blocks + Math.floor(i / block)) * width;
      const digit = ((keys.data[line * length + i] as number) >>> shift) & (digits - 1);
      data[row + digits + (i % block)] = data[row + digit]!;
      data[row + digit] = (data[row + digit] as number) + 1;
    }
  }
  return { dtype: 'i32', shape: [lines, blocks, width], data };
}

/** Whether an element comes before another in the order in which NaN is last. */
function isBefore(a: number | bigint, b: number | bigint): boolean {
  return a < b || (a === a && b !== b);
}

/**
 * How many boundaries lie below each value, or, from the right, not above it; NaN is above all. The probes are those of the kernels, so that boundaries
 * in no order give the same answers: halving reaches, each taken when the boundary before it is
 * still below.
 */
export function searchSorted(boundaries: HostArray, values: HostArray, right: boolean): HostArray {
  const [size, count] = [boundaries.shape.at(-1)!, values.shape.at(-1)!];
  const data = emptyData('i32', values.data.length);
  for (let i = 0; i < data.length; i++) {
    const line = Math.floor(i / count) * size;
    const value = values.data[i]!;
    let place = 0;
    for (let reach = 2 ** Math.floor(Math.log2(Math.max(1, size))); reach >= 1; reach /= 2) {
      if (place + reach > size) continue;
      const boundary = boundaries.data[line + place + reach - 1]!;
      const isPassed = right ? !isBefore(value, boundary) : isBefore(boundary, value);
      if (isPassed) place += reach;
    }
    data[i] = place;
  }
  return { dtype: 'i32', shape: values.shape, data };
}
