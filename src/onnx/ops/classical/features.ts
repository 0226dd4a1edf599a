// What is done to features before a model sees them: scaled, normalised, filled in, joined, chosen.

import { SinterError } from '../../../errors.ts';
import { isFloat } from '../../../ir/dtype.ts';
import * as sn from '../../../operations/index.ts';
import type { Tensor } from '../../../tensor/tensor.ts';
import type { Call, Rows } from '../../call.ts';
import { row } from '../row.ts';

/** Numbers of an attribute, one for all features or one for each. */
function perFeature(name: string, list: readonly number[], x: Tensor): number | Tensor {
  const width = x.shape.at(-1) ?? 1;
  if (list.length === 1) return list[0] ?? 0;
  if (list.length === width) return sn.tensor([...list], { dtype: x.dtype });
  throw new SinterError('E_SHAPE', `${name} has ${list.length} numbers for ${width} features`);
}

function scaler(call: Call): Tensor {
  const x = sn.cast(call.tensor(0), 'f32');
  const [offset, scale] = ['offset', 'scale'].map((name) => call.attributes.floats(name));
  const moved = offset === undefined ? x : sn.sub(x, perFeature('offset', offset, x));
  return scale === undefined ? moved : sn.mul(moved, perFeature('scale', scale, x));
}

function normalizer(call: Call): Tensor {
  const x = sn.cast(call.tensor(0), 'f32');
  const name = call.attributes.string('norm', 'MAX');
  const keepdim = true;
  const size = ((): Tensor => {
    switch (name) {
      case 'MAX':
        return sn.amax(x, -1, { keepdim });
      case 'L1':
        return sn.sum(sn.abs(x), -1, { keepdim });
      case 'L2':
        return sn.sqrt(sn.sum(sn.mul(x, x), -1, { keepdim }));
      default:
        return call.fail(`no norm ${name}`);
    }
  })();
  return sn.where(sn.eq(size, 0), x, sn.div(x, sn.where(sn.eq(size, 0), 1, size)));
}

function binarizer(call: Call): Tensor {
  const x = call.tensor(0);
  return sn.cast(sn.gt(x, call.attributes.float('threshold', 0)), x.dtype);
}

function imputer(call: Call): Tensor {
  const x = call.tensor(0);
  const { attributes } = call;
  const floats = isFloat(x.dtype);
  const list = floats ? attributes.floats('imputed_value_floats') : attributes.ints('imputed_value_int64s');
  if (list === undefined || list.length === 0) call.fail('it has no imputed values for this type');
  const replaced = floats
    ? attributes.float('replaced_value_float', 0)
    : attributes.int('replaced_value_int64', 0);
  const isMissing = Number.isNaN(replaced) ? sn.isNan(x) : sn.eq(x, replaced);
  const fill = perFeature('imputed_value', list, x);
  return sn.where(isMissing, typeof fill === 'number' ? sn.full([], fill, { dtype: x.dtype }) : fill, x);
}

function featureVectorizer(call: Call): Tensor {
  const sizes = call.attributes.ints('inputdimensions');
  const parts = call.tensors().map((x, i) => {
    const rows = x.rank < 2 ? 1 : (x.shape[0] ?? 0);
    const flat = sn.reshape(sn.cast(x, 'f32'), [rows, x.size / Math.max(1, rows)]);
    const size = sizes?.[i] ?? flat.shape[1];
    if (size !== flat.shape[1])
      throw new SinterError('E_SHAPE', `input ${i} has ${flat.shape[1]} features, not ${size}`);
    return flat;
  });
  return sn.cat(parts, 1);
}

function extractor(call: Call): Tensor {
  const x = call.tensor(0);
  const places = call.tensor(1);
  const flat = sn.cast(sn.reshape(places, [places.size]), 'i32');
  const chosen = sn.indexSelect(x, x.rank - 1, flat);
  return x.rank === 1 ? sn.reshape(chosen, [1, places.size]) : chosen;
}

export const features: Rows = {
  ArrayFeatureExtractor: row([1], extractor, { text: true }),
  Binarizer: row([1], binarizer),
  FeatureVectorizer: row([1], featureVectorizer),
  Imputer: row([1], imputer),
  Normalizer: row([1], normalizer),
  Scaler: row([1], scaler),
};
