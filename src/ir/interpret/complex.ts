// Complex nodes in the reference interpreter: what they mean by themselves, without
// passes/lower-complex.ts, which is checked against it. Ops that treat the parts alike run once for
// each; elementwise ops and products are of complex numbers in double precision.

import { CompilerBug } from '../../errors.ts';
import { isComplex, partType } from '../dtype.ts';
import { dims, type Node, type NodeOf } from '../graph.ts';
import { checkEdge } from '../edge.ts';
import { takesComplex, type ComplexElementwise } from '../typing/complex-ops.ts';
import { isElementwise, type Attrs } from '../ops.ts';
import { sizeOf, type FixedShape } from '../shape.ts';
import { castArray, emptyData, fromReal, type HostArray, type HostData } from '../value.ts';
import { complexScalar, times, type Complex } from './complex-scalar.ts';
import { convolve, dotGeneral } from './contract.ts';
import { factor } from './factor/factor.ts';
import { linesAlong } from './fold.ts';
import { firstAlong } from './index.ts';

type Evaluate = (node: Node, inputs: readonly HostArray[]) => HostArray;

/** Whether a node takes or gives complex numbers. */
export function touchesComplex(node: Node, inputs: readonly HostArray[]): boolean {
  return isComplex(node.dtype) || inputs.some((input) => isComplex(input.dtype));
}

function part({ dtype, shape, data }: HostArray, offset: 0 | 1): HostArray {
  const own = partType(dtype);
  const out = emptyData(own, sizeOf(shape));
  for (let i = 0; i < out.length; i++) out[i] = data[2 * i + offset]!;
  return { dtype: own, shape, data: out };
}

function joined(dtype: HostArray['dtype'], re: HostArray, im: HostArray): HostArray {
  const data = emptyData(dtype, re.data.length);
  for (let i = 0; i < re.data.length; i++) {
    data[2 * i] = re.data[i]!;
    data[2 * i + 1] = im.data[i]!;
  }
  return { dtype, shape: re.shape, data };
}

/** The value of such a node; `evaluate` gives that of real ones. */
export function evaluateComplex(node: Node, inputs: readonly HostArray[], evaluate: Evaluate): HostArray {
  const first = inputs[0]!;
  const { op } = node;
  switch (op) {
    case 'complex':
      return joined(node.dtype, first, inputs[1]!);
    case 'real':
      return part(first, 0);
    case 'imag':
      return part(first, 1);
    case 'conj': {
      const data = first.data.slice();
      for (let i = 1; i < data.length; i += 2) data[i] = -Number(data[i]);
      return { ...first, data };
    }
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
    case 'cast':
      return castArray(first, node.dtype);
    case 'dot':
      return dot(node, first, inputs[1]!);
    case 'conv':
      return conv(node, first, inputs[1]!);
    case 'factor':
      return factor(inputs, node.attrs.kind);
    case 'reduce':
      if (node.attrs.monoid === 'prod') return product(node, first);
      return partwise(node, inputs, evaluate);
    case 'scan':
      if (node.attrs.monoid === 'prod') return products(first, node.attrs);
      return partwise(node, inputs, evaluate);
    default:
      if (isElementwise(op)) {
        if (!takesComplex(op)) throw new CompilerBug('interpret', `${op} has no meaning on complex numbers`);
        return mapped(op, node, inputs);
      }
      return partwise(node, inputs, evaluate);
  }
}

/** Views, sums, indexed reads and writes: the same for either part. */
function partwise(node: Node, inputs: readonly HostArray[], evaluate: Evaluate): HostArray {
  const of = (offset: 0 | 1): HostArray => {
    const parts = inputs.map((input) => (isComplex(input.dtype) ? part(input, offset) : input));
    const attrs = node.op === 'pad' && offset === 1 ? { ...node.attrs, value: 0 } : node.attrs;
    return evaluate({ ...node, attrs, dtype: partType(node.dtype) } as Node, parts);
  };
  return joined(node.dtype, of(0), of(1));
}

function at({ dtype, data }: HostArray, i: number): Complex {
  return isComplex(dtype) ? [Number(data[2 * i]), Number(data[2 * i + 1])] : [Number(data[i]), 0];
}

/** Products with a real value made complex, and quotients by one, are by its real part alone. */
function byReal(op: ComplexElementwise, node: Node): ReturnType<typeof complexScalar> | undefined {
  const [first, second] = node.inputs.map(isMadeOfReal);
  if (op === 'div' && second === true) return ([a, b], [c]) => [a / c, b / c];
  if (op !== 'mul') return undefined;
  if (second === true) return ([a, b], [c]) => [a * c, b * c];
  return first === true ? ([c], [a, b]) => [a * c, b * c] : undefined;
}

/** Views of a real value made complex. */
function isMadeOfReal(node: Node): boolean {
  let at = node;
  while (at.op === 'broadcast' || at.op === 'reshape' || at.op === 'slice') at = at.inputs[0]!;
  return at.op === 'cast' && !isComplex(at.inputs[0]!.dtype);
}

function mapped(op: ComplexElementwise, node: Node, inputs: readonly HostArray[]): HostArray {
  const shape = dims(node);
  const f = byReal(op, node) ?? complexScalar(op);
  const data = emptyData(node.dtype, sizeOf(shape));
  const [x, y, z] = [inputs[0]!, inputs[1] ?? inputs[0]!, inputs[2] ?? inputs[0]!];
  const set = setter(node.dtype, data);
  for (let i = 0; i < sizeOf(shape); i++) set(i, f(at(x, i), at(y, i), at(z, i)));
  return { dtype: node.dtype, shape, data };
}

function setter(dtype: HostArray['dtype'], data: HostData): (i: number, value: Complex) => void {
  const round = fromReal(dtype);
  if (!isComplex(dtype)) return (i, [re]) => void (data[i] = round(re));
  return (i, [re, im]) => {
    data[2 * i] = round(re);
    data[2 * i + 1] = round(im);
  };
}

/** The four real products in double, joined and rounded once. */
function bilinear(
  dtype: HostArray['dtype'],
  x: HostArray,
  w: HostArray,
  multiply: (x: HostArray, w: HostArray) => HostArray,
): HostArray {
  const [a, b, c, d] = [part(x, 0), part(x, 1), part(w, 0), part(w, 1)].map((one) => castArray(one, 'f64'));
  const [ac, bd, ad, bc] = [multiply(a!, c!), multiply(b!, d!), multiply(a!, d!), multiply(b!, c!)];
  const data = emptyData(dtype, ac.data.length);
  const set = setter(dtype, data);
  const value = (from: HostArray, i: number): number => Number(from.data[i]);
  for (let i = 0; i < ac.data.length; i++) set(i, [value(ac, i) - value(bd, i), value(ad, i) + value(bc, i)]);
  return { dtype, shape: ac.shape, data };
}

function dot(node: NodeOf<'dot'>, x: HostArray, w: HostArray): HostArray {
  const attrs = { ...node.attrs, dtype: 'f64' } as const;
  return bilinear(node.dtype, x, w, (p, q) => dotGeneral(p, q, dims(node as Node), attrs));
}

function conv(node: NodeOf<'conv'>, x: HostArray, w: HostArray): HostArray {
  return bilinear(node.dtype, x, w, (p, q) => convolve(p, q, dims(node as Node), node.attrs));
}

function product(node: NodeOf<'reduce'>, x: HostArray): HostArray {
  const { shape, starts, steps } = linesAlong(x.shape, node.attrs.axes);
  return folded(node.dtype, shape, starts.length, (i) => {
    let all: Complex = [1, 0];
    for (const step of steps) all = times(all, at(x, starts[i]! + step));
    return all;
  });
}

function folded(
  dtype: HostArray['dtype'],
  shape: FixedShape,
  count: number,
  value: (i: number) => Complex,
): HostArray {
  const data = emptyData(dtype, count);
  const set = setter(dtype, data);
  for (let i = 0; i < count; i++) set(i, value(i));
  return { dtype, shape, data };
}

function products(x: HostArray, { axis, reverse, exclusive }: Attrs<'scan'>): HostArray {
  const { starts, steps } = linesAlong(x.shape, [axis]);
  const data = emptyData(x.dtype, sizeOf(x.shape));
  const set = setter(x.dtype, data);
  const order = reverse ? steps.slice().reverse() : steps;
  for (const start of starts) {
    let all: Complex = [1, 0];
    for (const step of order) {
      const next = times(all, at(x, start + step));
      set(start + step, exclusive ? all : next);
      all = next;
    }
  }
  return { dtype: x.dtype, shape: x.shape, data };
}
