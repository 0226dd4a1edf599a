// Random nodes of com.microsoft over bytes: quantised products, functions and windows, and weights in blocks of few bits.

import type { DType } from '../../../src/ir/dtype.ts';
import { sizeOf } from '../../../src/ir/shape.ts';
import type { HostArray } from '../../../src/ir/value.ts';
import type { Draft } from '../../support/onnx/file.ts';
import { attr, floats, type Draw, type Family, type NodeCase } from './draw.ts';

function contrib(
  op: string,
  inputs: readonly (HostArray | undefined)[],
  attributes: readonly Draft[] = [],
  rest: Partial<NodeCase> = {},
): NodeCase {
  return { op, opset: 17, domain: 'com.microsoft', inputs, attributes, ...rest };
}

/** Powers of two as scales, as in layers.ts. */
const scales = (draw: Draw, shape: readonly number[] = []): HostArray =>
  floats(
    Array.from({ length: sizeOf(shape) }, () => 2 ** -draw.int(2, 6)),
    shape,
  );

const wide = { least: -100, most: 100 };
const pickBytes = (draw: Draw): DType => draw.pick<DType>(['u8', 'i8']);

const scaledProducts: Family = (draw) => {
  const [m, k, n] = draw.ints(3, 1, 5) as [number, number, number];
  const [left, right] = [pickBytes(draw), pickBytes(draw)];
  // On some CPUs ONNX Runtime adds two products of bytes in 16 bits, which saturate.
  const b = draw.tensor([k, n], right, { least: -60, most: 60 });
  const columns = draw.coin() ? [n] : [];
  const bias = draw.coin() ? draw.tensor([n]) : undefined;
  const zero = draw.coin() ? draw.tensor(columns, right) : undefined;
  switch (draw.int(0, 2)) {
    case 0:
      return contrib(
        'DynamicQuantizeMatMul',
        [draw.tensor([m, k]), b, scales(draw, columns), zero, bias],
        [],
        {
          tolerance: 2e-3,
        },
      );
    case 1: {
      const a = draw.tensor([m, k], left, wide);
      const aZero = draw.coin() ? draw.tensor([], left) : undefined;
      return contrib('MatMulIntegerToFloat', [a, b, scales(draw), scales(draw, columns), aZero, zero, bias]);
    }
    default: {
      const [ta, tb] = [draw.int(0, 1), draw.int(0, 1)];
      const isNarrow = draw.coin();
      const c = draw.coin() ? draw.tensor(draw.pick([[n], [m, n], [1]]), 'i32', wide) : undefined;
      const inputs = [
        draw.tensor(ta === 1 ? [k, m] : [m, k], left, wide),
        scales(draw),
        draw.tensor([], left),
        draw.tensor(tb === 1 ? [n, k] : [k, n], right, wide),
        scales(draw, columns),
        draw.tensor(columns, right),
        c,
        ...(isNarrow ? [scales(draw), draw.tensor([], left)] : []),
      ];
      const attributes = [attr.int('transA', ta), attr.int('transB', tb), attr.float('alpha', 0.5)];
      return contrib('QGemm', inputs, attributes, isNarrow ? { tolerance: 1 } : {});
    }
  }
};

const byteFunctions: Family = (draw) => {
  const dtype = pickBytes(draw);
  const q = (shape: readonly number[]): readonly HostArray[] => [
    draw.tensor(shape, dtype, wide),
    scales(draw),
    draw.tensor([], dtype),
  ];
  const out = (): readonly HostArray[] => [scales(draw), draw.tensor([], dtype)];
  const shape = draw.ints(4, 1, 4);
  const rest = { tolerance: 1 };
  const axis = draw.int(1, 3);
  switch (draw.int(0, 8)) {
    case 0:
    case 1: {
      const inputs = [...q(shape), ...q(draw.broadcast(shape)), ...out()];
      return contrib(draw.pick(['QLinearAdd', 'QLinearMul']), inputs, [], rest);
    }
    case 2: {
      const parts = Array.from({ length: draw.int(1, 3) }, () =>
        q(shape.map((n, i) => (i === axis ? draw.int(1, 3) : n))),
      );
      return contrib('QLinearConcat', [...out(), ...parts.flat()], [attr.int('axis', axis)], rest);
    }
    case 3: {
      const attributes = [attr.ints('kernel_shape', [2, 2]), attr.int('count_include_pad', draw.int(0, 1))];
      if (draw.coin()) attributes.push(attr.ints('pads', [1, 0, 1, 1]));
      const x = q([1, draw.int(1, 3), draw.int(2, 5), draw.int(2, 5)]);
      return contrib('QLinearAveragePool', [...x, ...out()], attributes, rest);
    }
    case 4: {
      const last = attr.int('channels_last', draw.int(0, 1));
      return contrib('QLinearGlobalAveragePool', [...q(shape), ...out()], [last], rest);
    }
    case 5:
      return contrib('QLinearSigmoid', [...q(shape), ...out()], [], { ...rest, stored: [1, 2, 3, 4] });
    case 6:
      return contrib('QLinearLeakyRelu', [...q(shape), ...out()], [attr.float('alpha', 0.25)], rest);
    case 7: {
      const attributes = [attr.int('axis', axis), attr.int('opset', draw.pick([11, 13]))];
      return contrib('QLinearSoftmax', [...q(shape), ...out()], attributes, {
        ...rest,
        stored: [1, 2, 3, 4],
      });
    }
    default: {
      const inputs = [draw.tensor(shape, 'bool'), ...q(shape), ...q(draw.broadcast(shape)), ...out()];
      return contrib('QLinearWhere', inputs, [], { ...rest, stored: [2, 3, 5, 6, 7, 8] });
    }
  }
};

/** Bytes of every value. */
function raw(draw: Draw, shape: readonly number[]): HostArray {
  return draw.tensor(shape, 'u8', { least: 0, most: 255 });
}

const blockWeights: Family = (draw) => {
  const block = draw.pick([16, 32, 64]);
  const [k, n, bits] = [draw.pick([16, 32, 40, 64, 96]), draw.int(1, 5), draw.pick([2, 4, 8])];
  const blocks = Math.ceil(k / block);
  const scale = draw.tensor([n, blocks]);
  const packed = Math.ceil((blocks * bits) / 8);
  if (draw.coin()) {
    const attributes = [
      attr.int('K', k),
      attr.int('N', n),
      attr.int('bits', bits),
      attr.int('block_size', block),
      attr.int('accuracy_level', 1),
    ];
    const zeros = draw.pick([undefined, raw(draw, [n, packed]), draw.tensor([n, blocks])]);
    const inputs = [
      draw.tensor([...draw.ints(draw.int(1, 2), 1, 3), k]),
      raw(draw, [n, blocks, (block * bits) / 8]),
      scale,
      bits === 4 ? zeros : zeros?.dtype === 'f32' ? undefined : zeros,
      undefined,
      draw.coin() ? draw.tensor([n]) : undefined,
    ];
    // Where ONNX Runtime has no kernel in floats, it quantises what comes in to bytes.
    return contrib('MatMulNBits', inputs, attributes, {
      stored: [1, 2, 3, 5],
      tolerance: bits === 4 ? 1e-3 : 0.5,
    });
  }
  const whole = blocks * block;
  const size = draw.pick([4, 8]);
  const inputs = [
    raw(draw, [n, (whole * size) / 8]),
    { dtype: 'i64' as const, shape: [2, 2], data: BigInt64Array.from(draw.ints(4, -n, n - 1), BigInt) },
    draw.tensor([n, blocks]),
    draw.coin() ? raw(draw, [n, Math.ceil((blocks * size) / 8)]) : undefined,
  ];
  const attributes = [attr.int('bits', size), attr.int('block_size', block), attr.int('quantize_axis', 1)];
  return contrib('GatherBlockQuantized', inputs, attributes, { stored: [0, 2, 3] });
};

const byteAttention: Family = (draw) => {
  const [batch, length, heads, size, input] = [
    draw.int(1, 2),
    draw.int(1, 3),
    draw.int(1, 2),
    draw.int(1, 3),
    4,
  ];
  const width = heads * size;
  const [left, right] = ['u8' as const, pickBytes(draw)];
  const mask = draw.coin()
    ? { dtype: 'i32' as const, shape: [batch], data: Int32Array.from(draw.ints(batch, 1, length)) }
    : undefined;
  const inputs = [
    draw.tensor([batch, length, input], left, wide),
    draw.tensor([input, 3 * width], right, { least: -60, most: 60 }),
    draw.tensor([3 * width]),
    floats([2 ** -7], []),
    floats([2 ** -7], []),
    mask,
    draw.tensor([], left),
    draw.tensor([], right),
  ];
  const attributes = [attr.int('num_heads', heads), attr.int('unidirectional', draw.int(0, 1))];
  return contrib('QAttention', inputs, attributes, { tolerance: 1e-3 });
};

/** Images whose channels come last, and layers of bytes. */
const byteLayers: Family = (draw) => {
  const dtype = pickBytes(draw);
  const spatial = draw.ints(2, 3, 5);
  switch (draw.int(0, 3)) {
    case 0: {
      const attributes = [attr.ints('kernel_shape', [2, 2]), attr.ints('pads', draw.ints(4, 0, 1))];
      return contrib('NhwcMaxPool', [draw.tensor([1, ...spatial, draw.int(1, 3)], dtype, wide)], attributes);
    }
    case 1: {
      const [channels, outs] = [draw.int(1, 3), draw.int(1, 3)];
      const isLast = draw.int(0, 1);
      const x = isLast === 1 ? [1, ...spatial, channels] : [1, channels, ...spatial];
      const inputs = [
        draw.tensor(x, 'u8', wide),
        scales(draw),
        draw.tensor([], 'u8'),
        draw.tensor([outs, channels, 2, 2], 'i8', { least: -60, most: 60 }),
        scales(draw, draw.coin() ? [outs] : []),
        { dtype: 'i8' as const, shape: [], data: Int8Array.of(0) },
        scales(draw),
        draw.tensor([], 'u8'),
        draw.coin() ? draw.tensor([outs], 'i32', wide) : undefined,
      ];
      return contrib('QLinearConv', inputs, [attr.int('channels_last', isLast)], { tolerance: 1 });
    }
    case 2: {
      const [length, batch, input, hidden] = draw.ints(4, 1, 3) as [number, number, number, number];
      const way = draw.pick(['forward', 'reverse', 'bidirectional']);
      const ways = way === 'bidirectional' ? 2 : 1;
      const right = pickBytes(draw);
      const per = draw.coin() ? [ways] : [ways, 4 * hidden];
      const zero = draw.tensor(per, right);
      // A zero for each column must be 0 there.
      if (per.length === 2) zero.data.fill(0 as never);
      const bytes = (rows: number): HostArray =>
        draw.tensor([ways, rows, 4 * hidden], right, { least: -60, most: 60 });
      const inputs = [
        draw.tensor([length, batch, input]),
        bytes(input),
        bytes(hidden),
        draw.coin() ? draw.tensor([ways, 8 * hidden]) : undefined,
        undefined,
        draw.coin() ? draw.tensor([ways, batch, hidden]) : undefined,
        undefined,
        undefined,
        scales(draw, per),
        zero,
        scales(draw, per),
        zero,
      ];
      const attributes = [attr.int('hidden_size', hidden), attr.text('direction', way)];
      return contrib('DynamicQuantizeLSTM', inputs, attributes, {
        outputs: 3,
        stored: [1, 2, 8, 9, 10, 11],
        tolerance: 2e-2,
      });
    }
    default: {
      const [tokens, hidden, inner, count] = [draw.int(1, 3), 32, 32, draw.int(2, 3)];
      const block = draw.pick([0, 16, 32]);
      const lines = block === 0 ? [] : [32 / block];
      const scale = (rows: number): HostArray =>
        floats(
          Array.from({ length: count * rows * (lines[0] ?? 1) }, () => draw.int(1, 8) / 64),
          [count, rows, ...lines],
        );
      const bits = draw.pick([4, 8]);
      const bytes = (rows: number, width: number): HostArray => raw(draw, [count, rows, (width * bits) / 8]);
      const bias = draw.coin() ? draw.tensor([count, hidden]) : undefined;
      const inputs = [
        draw.tensor([tokens, hidden]),
        draw.tensor([tokens, count]),
        bytes(inner, hidden),
        scale(inner),
        undefined,
        bytes(hidden, inner),
        scale(hidden),
        bias,
      ];
      const attributes = [
        attr.text('activation_type', draw.pick(['relu', 'silu', 'identity'])),
        attr.int('expert_weight_bits', bits),
        attr.int('k', draw.int(1, count)),
        attr.int('normalize_routing_weights', draw.int(0, 1)),
      ];
      if (block > 0) attributes.push(attr.int('block_size', block));
      // Blocks of 8 bits are multiplied with bytes there.
      return contrib('QMoE', inputs, attributes, { stored: [2, 3, 5, 6, 7], tolerance: 0.1 });
    }
  }
};

export const bytes: Readonly<Record<string, Family>> = {
  scaledProducts,
  byteFunctions,
  blockWeights,
  byteLayers,
  byteAttention,
};
