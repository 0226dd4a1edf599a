// Calls of PyTorch's operators as ours: pools, unpooling, patches, padding and other sizes.

import * as sn from '../../../../src/index.ts';
import type { Tensor } from '../../../../src/index.ts';
import { signature, type Args, type Call, type Calls, type Result } from '../args.ts';

type Sizes = number | (number | null)[];

/** Sizes in which None keeps an axis. */
function outputSize(a: Args): Sizes {
  const value = a.raw('output_size');
  if (!Array.isArray(value)) return a.number('output_size');
  return value.map((at) => (at === undefined ? null : Number(at)));
}

/** One number, or a list; an empty list is none. */
function sizes(a: Args, name: string): number | number[] | undefined {
  const value = a.numbers(name);
  return Array.isArray(value) && value.length === 0 ? undefined : value;
}

/** A list of one is for every axis, as in PyTorch. */
function spread(value: number | number[] | undefined): number | number[] | undefined {
  return Array.isArray(value) && value.length === 1 ? value[0] : value;
}

function adaptiveAvg(f: (x: Tensor, size: Sizes) => Tensor): Call {
  return signature('input, output_size')((a) => f(a.tensor('input'), outputSize(a)));
}

function adaptiveMax(
  f: (x: Tensor, size: Sizes) => Tensor,
  both: (x: Tensor, size: Sizes) => readonly Tensor[],
): Call {
  return signature('input, output_size, return_indices=False')((a) =>
    (a.flag('return_indices') ? both : f)(a.tensor('input'), outputSize(a)),
  );
}

/** The options of windows that a call gives. */
function windows(a: Args): Record<string, never> {
  const given = {
    stride: spread(sizes(a, 'stride')),
    padding: spread(sizes(a, 'padding')),
    ceilMode: a.flag('ceil_mode'),
  };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as Record<
    string,
    never
  >;
}

type Pool = (x: Tensor, kernelSize: number | number[], options: Record<string, never>) => Result;

function avgPool(f: Pool): Call {
  return signature(
    'input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None',
  )((a) =>
    f(a.tensor('input'), spread(a.numbers('kernel_size'))!, {
      ...windows(a),
      ...a.options('count_include_pad', 'divisor_override'),
    }),
  );
}

function maxPool(f: Pool, both: Pool): Call {
  return signature(
    'input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False',
  )((a) => {
    const options = { ...windows(a), dilation: spread(a.numbers('dilation')) } as never;
    return (a.flag('return_indices') ? both : f)(
      a.tensor('input'),
      spread(a.numbers('kernel_size'))!,
      options,
    );
  });
}

type Unpool = (
  x: Tensor,
  indices: Tensor,
  kernelSize: number | number[],
  options: Record<string, never>,
) => Result;

function unpool(axes: number, f: Unpool): Call {
  return signature('input, indices, kernel_size, stride=None, padding=0, output_size=None')((a) => {
    const size = a.has('output_size') ? { outputSize: a.list('output_size').slice(-axes) } : {};
    const options = { ...windowsOfUnpool(a), ...size } as Record<string, never>;
    return f(a.tensor('input'), a.tensor('indices'), spread(a.numbers('kernel_size'))!, options);
  });
}

function windowsOfUnpool(a: Args): object {
  const stride = spread(sizes(a, 'stride'));
  return { ...(stride === undefined ? {} : { stride }), padding: spread(a.numbers('padding')) };
}

const interpolate = signature(
  'input, size=None, scale_factor=None, mode=nearest, align_corners=None, recompute_scale_factor=None, antialias=False',
)((a) => {
  const size = spread(a.numbers('size'));
  const factor = spread(a.numbers('scale_factor'));
  return sn.interpolate(a.tensor('input'), {
    ...(size === undefined ? {} : { size }),
    ...(factor === undefined ? {} : { scaleFactor: factor }),
    ...a.options('mode', 'align_corners', 'recompute_scale_factor', 'antialias'),
  });
});

function upsample(mode: 'nearest' | 'bilinear', alignCorners: boolean): Call {
  return signature('input, size=None, scale_factor=None')((a) => {
    const size = spread(a.numbers('size'));
    const factor = spread(a.numbers('scale_factor'));
    return sn.interpolate(a.tensor('input'), {
      ...(size === undefined ? {} : { size }),
      ...(factor === undefined ? {} : { scaleFactor: factor }),
      mode,
      alignCorners,
    });
  });
}

const pad = signature('input, pad, mode=constant, value=0')((a) => {
  const flat = a.list('pad');
  // PyTorch's pairs begin with the last axis.
  const pairs = Array.from({ length: flat.length / 2 }, (_, i): [number, number] => [
    flat[2 * i]!,
    flat[2 * i + 1]!,
  ]).toReversed();
  return sn.pad(a.tensor('input'), pairs, {
    mode: a.text('mode'),
    ...(a.has('value') ? { value: a.number('value') } : {}),
  });
});

const sampleModes: Readonly<Record<string, 'linear' | 'nearest' | 'cubic'>> = {
  bilinear: 'linear',
  nearest: 'nearest',
  bicubic: 'cubic',
};

/** One row for all variants of an operator. */
function variants(name: string, endings: readonly string[], call: Call): Calls {
  return Object.fromEntries(endings.map((ending) => [name + ending, call]));
}

export const pool: Calls = {
  'nn.functional.adaptive_avg_pool1d': adaptiveAvg(sn.adaptiveAvgPool1d),
  'nn.functional.adaptive_avg_pool2d': adaptiveAvg(sn.adaptiveAvgPool2d),
  'nn.functional.adaptive_avg_pool3d': adaptiveAvg(sn.adaptiveAvgPool3d),
  'nn.functional.adaptive_max_pool1d': adaptiveMax(sn.adaptiveMaxPool1d, sn.adaptiveMaxPool1dWithIndices),
  'nn.functional.adaptive_max_pool2d': adaptiveMax(sn.adaptiveMaxPool2d, sn.adaptiveMaxPool2dWithIndices),
  'nn.functional.adaptive_max_pool3d': adaptiveMax(sn.adaptiveMaxPool3d, sn.adaptiveMaxPool3dWithIndices),
  'nn.functional.avg_pool1d': avgPool(sn.avgPool1d),
  'nn.functional.avg_pool2d': avgPool(sn.avgPool2d),
  'nn.functional.avg_pool3d': avgPool(sn.avgPool3d),
  'nn.functional.max_pool1d': maxPool(sn.maxPool1d, sn.maxPool1dWithIndices),
  'nn.functional.max_pool2d': maxPool(sn.maxPool2d, sn.maxPool2dWithIndices),
  'nn.functional.max_pool3d': maxPool(sn.maxPool3d, sn.maxPool3dWithIndices),
  ...variants('nn.functional.max_unpool1d', ['', '.grad'], unpool(1, sn.maxUnpool1d)),
  ...variants('nn.functional.max_unpool2d', ['', '.grad'], unpool(2, sn.maxUnpool2d)),
  ...variants('nn.functional.max_unpool3d', ['', '.grad'], unpool(3, sn.maxUnpool3d)),
  ...variants(
    'nn.functional.interpolate',
    ['.nearest', '.linear', '.bilinear', '.trilinear', '.bicubic', '.area'],
    interpolate,
  ),
  'nn.functional.upsample_nearest': upsample('nearest', false),
  'nn.functional.upsample_bilinear': upsample('bilinear', true),
  'nn.functional.grid_sample': signature(
    'input, grid, mode=bilinear, padding_mode=zeros, align_corners=False',
  )((a) =>
    sn.gridSample(a.tensor('input'), a.tensor('grid'), {
      mode: sampleModes[a.text('mode')]!,
      paddingMode: a.text('padding_mode'),
      alignCorners: a.flag('align_corners'),
    }),
  ),
  ...variants('nn.functional.pad', ['.constant', '.reflect', '.replicate', '.circular'], pad),
  'nn.functional.pixel_shuffle': signature('input, upscale_factor')((a) =>
    sn.pixelShuffle(a.tensor('input'), a.number('upscale_factor')),
  ),
  'nn.functional.pixel_unshuffle': signature('input, downscale_factor')((a) =>
    sn.pixelUnshuffle(a.tensor('input'), a.number('downscale_factor')),
  ),
  'nn.functional.unfold': signature('input, kernel_size, dilation=1, padding=0, stride=1')((a) =>
    sn.im2col(a.tensor('input'), spread(a.numbers('kernel_size'))!, {
      dilation: spread(a.numbers('dilation'))!,
      padding: spread(a.numbers('padding'))!,
      stride: spread(a.numbers('stride'))!,
    }),
  ),
};
