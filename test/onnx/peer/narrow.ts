// Random trips through element types of 8 and 4 bits and back: by a cast, or by quantising with one scale, one a slice, or one a block.

import { sizeOf } from '../../../src/ir/shape.ts';
import { packBytes, type HostArray } from '../../../src/ir/value.ts';
import { modelOf, node, port, type Draft } from '../../support/onnx/file.ts';
import { attr, floats, type Draw } from './draw.ts';
import type { Network } from './models.ts';

/** Numbers of element types in files, how many elements a byte has, and whether they are floats. */
const types = [
  { name: 'uint8', code: 2, perByte: 1, isFloat: false },
  { name: 'int8', code: 3, perByte: 1, isFloat: false },
  { name: 'float8e4m3fn', code: 17, perByte: 1, isFloat: true },
  { name: 'float8e4m3fnuz', code: 18, perByte: 1, isFloat: true },
  { name: 'float8e5m2', code: 19, perByte: 1, isFloat: true },
  { name: 'float8e5m2fnuz', code: 20, perByte: 1, isFloat: true },
  { name: 'uint4', code: 21, perByte: 2, isFloat: false },
  { name: 'int4', code: 22, perByte: 2, isFloat: false },
] as const;

/** The shape of scales along axis 1, and the attributes that say so. */
function granularity(
  draw: Draw,
  [rows, columns]: readonly [number, number],
): [shape: number[], attributes: Draft[]] {
  const axis = attr.int('axis', 1);
  const block = draw.int(2, 3);
  return draw.pick<[number[], Draft[]]>([
    [[], []],
    [[columns], [axis]],
    [
      [rows, Math.ceil(columns / block)],
      [axis, attr.int('block_size', block)],
    ],
  ]);
}

export function narrowTrip(draw: Draw): Network {
  const { name, code, perByte, isFloat } = draw.pick(types);
  const shape = [draw.int(1, 3), draw.int(1, 6)] as const;
  const x = draw.tensor(shape);
  const reach = draw.pick([1, 8, 100, 1000]);
  x.data.forEach((v, i) => (x.data[i] = Math.fround(Number(v) * reach)));
  const isCast = isFloat && draw.coin();
  const nodes: Draft[] = [];
  const initializers: Draft[] = [];
  if (isCast) {
    nodes.push(
      node('Cast', ['x'], ['q'], [attr.int('to', code)]),
      node('Cast', ['q'], ['y'], [attr.int('to', 1)]),
    );
  } else {
    const [own, attributes] = granularity(draw, shape);
    const count = sizeOf(own);
    // Powers of two divide without rounding, so that halves are halves everywhere.
    const scales: HostArray = floats(
      Array.from({ length: count }, () => 2 ** draw.int(-3, 3)),
      own,
    );
    const dims = own.map(BigInt);
    const bytes = Uint8Array.from({ length: Math.ceil(count / perByte) }, () =>
      isFloat ? 0 : draw.int(0, 100),
    );
    initializers.push({ name: 's', dataType: 1, dims, rawData: packBytes(scales) });
    initializers.push({ name: 'z', dataType: code, dims, rawData: bytes });
    nodes.push(node('QuantizeLinear', ['x', 's', 'z'], ['q'], attributes));
    nodes.push(node('DequantizeLinear', ['q', 's', 'z'], ['y'], attributes));
  }
  const outputs = [port('y', 1, shape)];
  const file = modelOf({ inputs: [port('x', 1, shape)], outputs, initializers, nodes }, 21);
  return { file, runs: [{ x }], made: [name, isCast ? 'cast' : 'quantised'] };
}
