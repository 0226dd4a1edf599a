// Patches of images as columns, and columns added back to images: the two halves of a convolution
// written as a product. Patches are views; their adjoint is an overlap-add.

import { TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import { overlapAdd } from '../../../autograd/rules-view.ts';
import { permute, reshape, slice } from '../../../ir/build.ts';
import { aTensor } from '../../expect.ts';
import type { Tensor } from '../../tensor.ts';
import { apply, perAxis, show, type PerAxis } from '../operand.ts';
import { unfolded, type Windows } from '../shape/window.ts';

export interface PatchOptions {
  /** 1 by default. */
  readonly stride?: PerAxis;
  /** Zeros at both ends of each axis; 0 by default. */
  readonly padding?: PerAxis;
  /** Distance of a patch's elements, 1 by default. */
  readonly dilation?: PerAxis;
}

/** @internal */
export const patchOptions: arg.Table<PatchOptions> = {
  stride: arg.sizes(1),
  padding: arg.sizes(0),
  dilation: arg.sizes(1),
};

/** The patches of a plane of this size. */
function patches(
  op: string,
  rank: number,
  plane: readonly number[],
  kernelSize: PerAxis,
  options: PatchOptions,
): Windows {
  const kernel = perAxis(op, 'kernelSize', kernelSize, 2, 1);
  const stride = perAxis(op, 'stride', options.stride ?? 1, 2, 1);
  const low = perAxis(op, 'padding', options.padding ?? 0, 2, 0);
  const dilation = perAxis(op, 'dilation', options.dilation ?? 1, 2, 1);
  const counts = plane.map(
    (size, i) => Math.floor((size + 2 * low[i]! - dilation[i]! * (kernel[i]! - 1) - 1) / stride[i]!) + 1,
  );
  if (counts.some((count) => count < 1)) {
    throw new TensorError(
      'E_SHAPE',
      op,
      `patches of [${kernel.join(',')}] do not fit [${plane.join(',')}] with padding [${low.join(',')}]`,
    );
  }
  return { axes: [rank - 2, rank - 1], kernel, stride, low, high: low, dilation, counts };
}

const takesIm2col = arg.takes<typeof im2col>(
  ['x', aTensor],
  ['kernelSize', arg.sizes(1)],
  ['options', arg.options<PatchOptions>(patchOptions)],
);

/**
 * Patches of [N, C, H, W] (or [C, H, W]) as columns [N, C·kh·kw, L], L places in C-order. PyTorch
 * calls it `nn.functional.unfold`; here `unfold` is the one of tensors.
 *
 * @torch torch.nn.functional.unfold
 * @example
 * const image = sn.linspace(0, 15, 16).reshape([1, 1, 4, 4]);
 * sn.im2col(image, 2, { stride: 2 });
 */
export function im2col(x: Tensor, kernelSize: PerAxis, options: PatchOptions = {}): Tensor {
  takesIm2col('im2col', x, kernelSize, options);
  if (x.rank !== 3 && x.rank !== 4)
    throw new TensorError('E_SHAPE', 'im2col', `expects [N,C,H,W] or [C,H,W]: ${show(x)}`);
  const windows = patches('im2col', x.rank, x.shape.slice(-2), kernelSize, options);
  const lead = x.shape.slice(0, -2);
  const [kh, kw] = windows.kernel as [number, number];
  const [oh, ow] = windows.counts as [number, number];
  return apply([x], (b, node) => {
    const open = unfolded(b, node, windows, 0);
    const n = lead.length;
    const turned = permute(b, open, [...lead.keys(), n + 2, n + 3, n, n + 1]);
    return reshape(b, turned, [...lead.slice(0, -1), lead.at(-1)! * kh * kw, oh * ow]);
  });
}

const takesCol2im = arg.takes<typeof col2im>(
  ['x', aTensor],
  ['outputSize', arg.sizes(1)],
  ['kernelSize', arg.sizes(1)],
  ['options', arg.options<PatchOptions>(patchOptions)],
);

/**
 * Columns [N, C·kh·kw, L] (or without N) added at the places that `im2col` took them from: an image
 * [N, C, H, W]. PyTorch calls it `nn.functional.fold`.
 *
 * @torch torch.nn.functional.fold
 * @example
 * const columns = sn.linspace(0, 15, 16).reshape([1, 4, 4]);
 * sn.col2im(columns, 4, 2, { stride: 2 });
 */
export function col2im(
  x: Tensor,
  outputSize: PerAxis,
  kernelSize: PerAxis,
  options: PatchOptions = {},
): Tensor {
  takesCol2im('col2im', x, outputSize, kernelSize, options);
  if (x.rank !== 2 && x.rank !== 3)
    throw new TensorError('E_SHAPE', 'col2im', `expects [N,C·kh·kw,L] or [C·kh·kw,L]: ${show(x)}`);
  const plane = perAxis('col2im', 'outputSize', outputSize, 2, 1);
  const windows = patches('col2im', x.rank + 1, plane, kernelSize, options);
  const [kh, kw] = windows.kernel as [number, number];
  const [oh, ow] = windows.counts as [number, number];
  const batch = x.shape.slice(0, -2);
  const [rows, places] = x.shape.slice(-2) as [number, number];
  if (rows % (kh * kw) !== 0 || places !== oh * ow) {
    throw new TensorError(
      'E_SHAPE',
      'col2im',
      `[${plane.join(',')}] with patches of [${kh},${kw}] has [C·${kh * kw},${oh * ow}] columns: ${show(x)}`,
    );
  }
  const lead = [...batch, rows / (kh * kw)];
  const padded = plane.map((size, i) => size + 2 * windows.low[i]!) as [number, number];
  return apply([x], (b, node) => {
    const n = lead.length;
    const open = reshape(b, node, [...lead, kh, kw, oh, ow]);
    const turned = permute(b, open, [...lead.keys(), n + 2, n + 3, n, n + 1]);
    const along = (i: 0 | 1): { axis: number; size: number; stride: number; dilation: number } => ({
      axis: n + i,
      size: windows.kernel[i]!,
      stride: windows.stride[i]!,
      dilation: windows.dilation[i]!,
    });
    const wide = overlapAdd(b, turned, along(1), [...lead, oh, padded[1], kh]);
    const whole = overlapAdd(b, wide, along(0), [...lead, ...padded]);
    return slice(b, whole, [...lead.map(() => 0), ...windows.low], [...lead, ...plane]);
  });
}
