// The operators of com.microsoft: what ONNX Runtime's optimisers, quantisers and exporters write beside
// the standard's.

import type { Rows } from '../../call.ts';
import { activations } from './activation.ts';
import { attentionRows } from './attention.ts';
import { blocks } from './blocks.ts';
import { expertRows } from './experts.ts';
import { fused } from './fused.ts';
import { grouped } from './grouped.ts';
import { integers } from './integers.ts';
import { norms } from './norm.ts';
import { quantisedRows } from './quantised.ts';
import { various } from './various.ts';

export { simplifiedNorm } from './norm.ts';

export const microsoft: Rows = {
  ...activations,
  ...attentionRows,
  ...blocks,
  ...expertRows,
  ...fused,
  ...grouped,
  ...integers,
  ...norms,
  ...quantisedRows,
  ...various,
};
