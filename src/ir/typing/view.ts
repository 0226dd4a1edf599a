// Type rules of the views.

import type { ViewOp } from '../ops.ts';
import { checkShape, fixedShape, sameDim, showShape, sizeOf } from '../shape.ts';
import { type TypeRulesOf, fail, checkAxis, checkLengths, windowCount } from './check.ts';

export const views: TypeRulesOf<ViewOp> = {
  reshape: (inputs, { shape }, op) => {
    const { dtype, shape: from } = inputs[0]!;
    checkShape(op, fixedShape(shape, op));
    if (sizeOf(fixedShape(from, op)) !== sizeOf(fixedShape(shape, op))) {
      fail(op, 'E_SHAPE', `cannot reshape to ${showShape(shape)}: element counts differ`, inputs);
    }
    return { dtype, shape };
  },
  permute: (inputs, { order }, op) => {
    const { dtype, shape } = inputs[0]!;
    if (
      order.length !== shape.length ||
      new Set(order).size !== order.length ||
      !order.every((axis) => shape[axis] !== undefined)
    ) {
      fail(op, 'E_AXIS', `[${order.join(',')}] is no permutation of the axes`, inputs);
    }
    return { dtype, shape: order.map((axis) => shape[axis]!) };
  },
  broadcast: (inputs, { shape }, op) => {
    const { dtype, shape: from } = inputs[0]!;
    const offset = shape.length - from.length;
    if (offset < 0 || !from.every((dim, axis) => dim === 1 || sameDim(dim, shape[axis + offset]!))) {
      fail(op, 'E_SHAPE', `cannot broadcast to ${showShape(shape)}`, inputs);
    }
    return { dtype, shape };
  },
  slice: (inputs, { start, size, step }, op) => {
    const { dtype } = inputs[0]!;
    const from = fixedShape(inputs[0]!.shape, op);
    checkLengths(op, from.length, [start, size, step], inputs);
    checkShape(op, size);
    from.forEach((dim, axis) => {
      const first = start[axis]!;
      const last = first + (size[axis]! - 1) * step[axis]!;
      const inside = first >= 0 && first < dim && last >= 0 && last < dim;
      if (step[axis] === 0 || (size[axis]! > 0 && !inside)) {
        fail(
          op,
          'E_INDEX',
          `axis ${axis}: start ${first}, size ${size[axis]}, step ${step[axis]} leaves [0,${dim})`,
          inputs,
        );
      }
    });
    return { dtype, shape: size };
  },
  pad: (inputs, { low, high, interior }, op) => {
    const { dtype } = inputs[0]!;
    const from = fixedShape(inputs[0]!.shape, op);
    checkLengths(op, from.length, [low, high, interior], inputs);
    if (![...low, ...high, ...interior].every((n) => n >= 0))
      fail(op, 'E_SHAPE', 'paddings must not be negative', inputs);
    const shape = from.map(
      (dim, axis) => low[axis]! + high[axis]! + dim + Math.max(0, dim - 1) * interior[axis]!,
    );
    checkShape(op, shape);
    return { dtype, shape };
  },
  concat: (inputs, { axis }, op) => {
    const { dtype, shape } = inputs[0]!;
    checkAxis(op, axis, shape.length, inputs);
    const shapes = inputs.map((input) => fixedShape(input.shape, op));
    const fits = shapes.every(
      (s) => s.length === shape.length && s.every((dim, i) => i === axis || dim === shape[i]),
    );
    if (!fits) fail(op, 'E_SHAPE', `shapes must agree but for axis ${axis}`, inputs);
    if (!inputs.every((input) => input.dtype === dtype))
      fail(op, 'E_DTYPE', 'parts must have one dtype', inputs);
    return {
      dtype,
      shape: shape.map((dim, i) => (i === axis ? shapes.reduce((sum, s) => sum + s[axis]!, 0) : dim)),
    };
  },
  window: (inputs, { axis, size, stride, dilation }, op) => {
    const { dtype } = inputs[0]!;
    const from = fixedShape(inputs[0]!.shape, op);
    checkAxis(op, axis, from.length, inputs);
    if (![size, stride, dilation].every((n) => Number.isSafeInteger(n) && n >= 1)) {
      fail(
        op,
        'E_VALUE',
        `size ${size}, stride ${stride} and dilation ${dilation} must be positive integers`,
        inputs,
      );
    }
    const count = windowCount(from[axis]!, size, stride, dilation);
    return { dtype, shape: [...from.map((dim, i) => (i === axis ? count : dim)), size] };
  },
};
