// Random nodes of operators on images: other sizes, places between elements, regions.

import { attr, floats, ints, type Family } from './draw.ts';

const resize: Family = (draw) => {
  const axes = draw.int(1, 2);
  const mode = draw.pick(['nearest', 'linear', 'cubic', 'linear', 'nearest']);
  const lead = mode === 'nearest' ? draw.ints(draw.int(0, 2), 1, 2) : [draw.int(1, 2), draw.int(1, 2)];
  const spatial = draw.ints(mode === 'cubic' ? 2 : axes, 2, 6);
  const x = draw.tensor(
    [...lead, ...spatial],
    mode === 'nearest'
      ? draw.pick(['f32', 'i32', 'u8'])
      : mode === 'linear'
        ? draw.pick(['f32', 'f32', 'u8', 'i32'])
        : 'f32',
  );
  const rest = mode !== 'nearest' && x.dtype !== 'f32' ? { tolerance: 1 } : {};
  const opset = draw.pick([10, 11, 13, 18, 19]);
  const rank = x.shape.length;
  const scale = (): number => draw.pick([0.5, 2, 1.5, 3, 0.75, 2.5, 0.6]);
  if (opset === 10) {
    const plain = mode === 'cubic' ? 'linear' : mode;
    return {
      op: 'Resize',
      opset,
      attributes: [attr.text('mode', plain)],
      inputs: [x, floats([...lead.map(() => 1), ...spatial.map(scale)])],
      stored: [1],
      ...rest,
    };
  }
  const coordinates = draw.pick([
    'half_pixel',
    'pytorch_half_pixel',
    'align_corners',
    'asymmetric',
    'tf_crop_and_resize',
    // In which order its floats are computed decides between neighbours: the definition does not say.
    ...(opset >= 19 && mode !== 'nearest' ? ['half_pixel_symmetric'] : []),
    ...(opset === 11 && mode === 'nearest' ? ['tf_half_pixel_for_nn'] : []),
  ]);
  const attributes = [attr.text('mode', mode), attr.text('coordinate_transformation_mode', coordinates)];
  // Between corners the definition of opset 19 counts with the size before it is cut off, ONNX Runtime with the one after.
  const areCorners = coordinates === 'align_corners';
  const isWhole = areCorners && opset >= 19;
  if (mode === 'nearest' && draw.coin())
    attributes.push(
      attr.text('nearest_mode', draw.pick(['floor', 'ceil', 'round_prefer_floor', 'round_prefer_ceil'])),
    );
  if (mode === 'cubic' && draw.coin()) attributes.push(attr.float('cubic_coeff_a', -0.5));
  if (mode === 'cubic' && draw.rarely()) attributes.push(attr.int('exclude_outside', 1));
  const isCrop = coordinates === 'tf_crop_and_resize';
  if (isCrop) attributes.push(attr.float('extrapolation_value', 10));
  const antialias = opset >= 18 && !isCrop && mode !== 'nearest' && draw.coin();
  if (antialias) attributes.push(attr.int('antialias', 1));
  const isNamed = opset >= 18 && draw.coin();
  if (isNamed)
    attributes.push(
      attr.ints(
        'axes',
        spatial.map((_, i) => lead.length + i),
      ),
    );
  const roi = isCrop
    ? floats(
        [
          ...lead.map(() => 0),
          ...spatial.map(() => draw.pick([0, 0.25, -0.25])),
          ...lead.map(() => 1),
          ...spatial.map(() => draw.pick([1, 0.75, 1.25])),
        ].slice(0, 2 * rank),
      )
    : undefined;
  const own = isNamed
    ? roi && floats([...roi.data.slice(lead.length, rank), ...roi.data.slice(rank + lead.length)].map(Number))
    : roi;
  const isSized = draw.coin();
  const full = (list: readonly number[], one: readonly number[]): number[] =>
    isNamed ? [...list] : [...one, ...list];
  if (isSized) {
    // ONNX Runtime gives back an image whose size stays, whatever part of it is asked for.
    const wanted = isCrop ? spatial.map((size) => size + draw.int(1, 3)) : draw.ints(spatial.length, 1, 9);
    const sizes = full(wanted, lead);
    if (opset >= 18 && isNamed && !areCorners && draw.coin())
      attributes.push(
        attr.text('keep_aspect_ratio_policy', draw.pick(['not_larger', 'not_smaller', 'stretch'])),
      );
    return {
      op: 'Resize',
      opset,
      attributes,
      inputs: [x, own, undefined, ints(sizes)],
      stored: [1, 2, 3],
      ...rest,
    };
  }
  const scales = full(
    spatial.map(() => (isWhole ? draw.int(2, 3) : scale())),
    lead.map(() => 1),
  );
  return { op: 'Resize', opset, attributes, inputs: [x, own, floats(scales)], stored: [1, 2], ...rest };
};

const upsample: Family = (draw) => {
  const x = draw.tensor([1, draw.int(1, 2), draw.int(1, 4), draw.int(1, 4)]);
  const scales = [1, 1, draw.pick([1, 1.5, 2, 3]), draw.pick([1, 2, 2.5])];
  const mode = attr.text('mode', draw.pick(['nearest', 'linear']));
  if (draw.coin())
    return { op: 'Upsample', opset: 7, attributes: [mode, attr.floats('scales', scales)], inputs: [x] };
  return { op: 'Upsample', opset: 9, attributes: [mode], inputs: [x, floats(scales)], stored: [1] };
};

const sample: Family = (draw) => {
  const axes = draw.int(2, 3);
  const opset = axes === 3 ? draw.pick([20, 22]) : draw.pick([16, 20, 22]);
  const modes =
    opset === 16
      ? ['bilinear', 'nearest', 'bicubic']
      : axes === 3
        ? ['linear', 'nearest']
        : ['linear', 'nearest', 'cubic'];
  const attributes = [
    attr.text('mode', draw.pick(modes)),
    ...(draw.coin() ? [attr.text('padding_mode', draw.pick(['zeros', 'border', 'reflection']))] : []),
    ...(draw.coin() ? [attr.int('align_corners', draw.int(0, 1))] : []),
  ];
  const n = draw.int(1, 2);
  const x = draw.tensor([n, draw.int(1, 2), ...draw.ints(axes, 1, 5)]);
  const grid = draw.tensor([n, ...draw.ints(axes, 1, 4), axes]);
  grid.data.forEach((v, i) => (grid.data[i] = Math.fround(Number(v) / 2.2)));
  return { op: 'GridSample', opset, attributes, inputs: [x, grid], tolerance: 2e-3 };
};

const regions: Family = (draw) => {
  const count = draw.int(0, 3);
  const [n, c] = [draw.int(1, 2), draw.int(1, 2)];
  const x = draw.tensor([n, c, draw.int(3, 8), draw.int(3, 8)]);
  const opset = draw.pick([10, 16, 22]);
  const rois = Array.from({ length: count }, () => {
    const [left, top] = [draw.int(-2, 10) / 2, draw.int(-2, 10) / 2];
    return [left, top, left + draw.int(1, 12) / 2, top + draw.int(1, 12) / 2];
  });
  const attributes = [
    attr.int('output_height', draw.int(1, 3)),
    attr.int('output_width', draw.int(1, 3)),
    ...(draw.coin() ? [attr.int('sampling_ratio', draw.int(0, 3))] : []),
    ...(draw.coin() ? [attr.float('spatial_scale', 0.5)] : []),
    ...(draw.coin() ? [attr.text('mode', draw.pick(['avg', 'max']))] : []),
    ...(opset >= 16 && draw.coin()
      ? [attr.text('coordinate_transformation_mode', draw.pick(['half_pixel', 'output_half_pixel']))]
      : []),
  ];
  return {
    op: 'RoiAlign',
    opset,
    attributes,
    inputs: [x, floats(rois.flat(), [count, 4]), ints(draw.ints(count, 0, n - 1))],
  };
};

const maxRegions: Family = (draw) => {
  const count = draw.int(1, 3);
  const [n, c] = [draw.int(1, 2), draw.int(1, 2)];
  const x = draw.tensor([n, c, draw.int(3, 8), draw.int(3, 8)]);
  const rois = Array.from({ length: count }, () => {
    const [left, top] = [draw.int(0, 6), draw.int(0, 6)];
    return [draw.int(0, n - 1), left, top, left + draw.int(0, 6), top + draw.int(0, 6)];
  });
  const attributes = [
    attr.ints('pooled_shape', draw.ints(2, 1, 3)),
    ...(draw.coin() ? [attr.float('spatial_scale', 0.5)] : []),
  ];
  return {
    op: 'MaxRoiPool',
    opset: draw.pick([1, 22]),
    attributes,
    inputs: [x, floats(rois.flat(), [count, 5])],
  };
};

const affine: Family = (draw) => {
  const axes = draw.int(2, 3);
  const n = draw.int(1, 2);
  const theta = draw.tensor([n, axes, axes + 1]);
  // Where one element lies between −1 and 1 is not told.
  const size = [n, draw.int(1, 2), ...draw.ints(axes, 2, 4)];
  return {
    op: 'AffineGrid',
    opset: 20,
    attributes: draw.coin() ? [attr.int('align_corners', draw.int(0, 1))] : [],
    inputs: [theta, ints(size)],
    stored: [1],
  };
};

export const images: Readonly<Record<string, Family>> = {
  resize,
  upsample,
  sample,
  regions,
  maxRegions,
  affine,
};
