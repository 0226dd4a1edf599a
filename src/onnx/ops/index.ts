// Every operator that is imported, by domain and name.

import type { Rows } from '../call.ts';
import { activation } from './activation.ts';
import { attentions } from './attention.ts';
import { boxes } from './image/boxes.ts';
import { conv } from './conv.ts';
import { convert } from './convert.ts';
import { elementwise } from './elementwise.ts';
import { gathering } from './gather.ts';
import { loss } from './loss.ts';
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
import { sort } from './sort.ts';

/** Rows by domain; the standard domain is ''. */
export const domains: Readonly<Record<string, Rows>> = {
  '': {
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
    ...sort,
  },
};
