// Every operator that is imported, by domain and name.

import type { Rows } from '../call.ts';
import { activation } from './activation.ts';
import { attentions } from './attention.ts';
import { attributesOf } from './attributes.ts';
import { boxes } from './image/boxes.ts';
import { encode } from './classical/encode.ts';
import { features } from './classical/features.ts';
import { linear } from './classical/linear.ts';
import { svm } from './classical/svm.ts';
import { trees } from './classical/trees.ts';
import { conv } from './conv.ts';
import { convert } from './convert.ts';
import { elementwise } from './elementwise.ts';
import { gathering } from './gather.ts';
import { loss, training } from './training.ts';
import { microsoft, simplifiedNorm } from './microsoft/index.ts';
import { nchwc } from './microsoft/nchwc.ts';
import { norm } from './norm.ts';
import { product } from './product.ts';
import { quantise } from './quantise.ts';
import { recurrent } from './recurrent.ts';
import { reduce } from './reduce.ts';
import { regions } from './image/regions.ts';
import { resample } from './image/resample.ts';
import { sequence } from './sequence.ts';
import { shape } from './shape.ts';
import { signal } from './signal.ts';
import { optional } from './text/optional.ts';
import { sort } from './sort.ts';
import { text } from './text/text.ts';

/** Operators that move or compare elements of any type, strings too. */
const moving: ReadonlySet<string> = new Set([
  'Compress',
  'Concat',
  'DepthToSpace',
  'Equal',
  'Expand',
  'Flatten',
  'Gather',
  'GatherElements',
  'GatherND',
  'OneHot',
  'Reshape',
  'ReverseSequence',
  'ScatterElements',
  'ScatterND',
  'Shape',
  'Size',
  'Slice',
  'SpaceToDepth',
  'Split',
  'Squeeze',
  'Tile',
  'Transpose',
  'Unique',
  'Unsqueeze',
  'Where',
]);

/** Operators whose inputs have one type, from which input on. */
const alike: Readonly<Record<string, number>> = {
  Add: 0,
  And: 0,
  BitwiseAnd: 0,
  BitwiseOr: 0,
  BitwiseXor: 0,
  Concat: 0,
  Conv: 0,
  ConvTranspose: 0,
  Div: 0,
  Einsum: 0,
  Equal: 0,
  Gemm: 0,
  Greater: 0,
  GreaterOrEqual: 0,
  Less: 0,
  LessOrEqual: 0,
  MatMul: 0,
  Max: 0,
  Mean: 0,
  Min: 0,
  Mod: 0,
  Mul: 0,
  Or: 0,
  PRelu: 0,
  Sub: 0,
  Sum: 0,
  Where: 1,
  Xor: 0,
};

function withTypes(rows: Rows): Rows {
  return Object.fromEntries(
    Object.entries(rows).map(([name, row]) => {
      const from = alike[name];
      return [name, from === undefined ? row : { ...row, alike: from }];
    }),
  );
}

function withAttributes(domain: string, rows: Rows): Rows {
  const attributesFor = attributesOf(domain);
  return Object.fromEntries(
    Object.entries(rows).map(([name, row]) => {
      const attributes = attributesFor(name);
      return [name, attributes === undefined ? row : { ...row, attributes }];
    }),
  );
}

function withText(rows: Rows): Rows {
  return Object.fromEntries(
    Object.entries(rows).map(([name, row]) => [name, moving.has(name) ? { ...row, text: true } : row]),
  );
}

const rowsOf: Readonly<Record<string, Rows>> = {
  '': withTypes(
    withText({
      ...activation,
      ...attentions,
      ...boxes,
      ...conv,
      ...convert,
      ...elementwise,
      ...gathering,
      ...loss,
      ...norm,
      ...product,
      ...quantise,
      ...recurrent,
      ...reduce,
      ...regions,
      ...resample,
      ...sequence,
      ...shape,
      ...signal,
      ...simplifiedNorm,
      ...sort,
      ...text,
      ...optional,
    }),
  ),
  'ai.onnx.ml': { ...encode, ...features, ...linear, ...svm, ...trees },
  'ai.onnx.preview.training': training,
  'com.microsoft': microsoft,
  'com.microsoft.nchwc': nchwc,
};

/** Rows by domain; the standard domain is ''. */
export const domains: Readonly<Record<string, Rows>> = Object.fromEntries(
  Object.entries(rowsOf).map(([domain, rows]) => [domain, withAttributes(domain, rows)]),
);
