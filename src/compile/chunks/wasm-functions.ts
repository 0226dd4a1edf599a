// The chunk of what few programs need in WebAssembly: logarithms, powers, remainders, functions of angles, all of doubles, roundings
// to 16 bits, lanes of 64 bits, and modules as text.

import './wasm.ts';
import * as angles from '../../codegen/emit/shared/math/angle.ts';
import { doubles } from '../../codegen/emit/shared/math/double.ts';
import { log, log1p, log2, pow } from '../../codegen/emit/shared/math/log.ts';
import { rareFunctions } from '../../codegen/emit/shared/math/rare.ts';
import { mod, roundBf16, roundF16 } from '../../codegen/emit/shared/math/round.ts';
import { printModule } from '../../codegen/emit/wasm/module/wat.ts';
import { moduleText, vectorHalving } from '../../codegen/emit/wasm/rare.ts';
import { halveVectors } from '../../codegen/emit/wasm/rewrite/halves.ts';
import { fill, type Slot } from '../../slot.ts';

const { acos, asin, atan, atan2, cos, reduceAngle, sin, tan } = angles;

export const slots: readonly Slot<unknown>[] = fill(
  [
    rareFunctions,
    {
      singles: {
        unary: { asin, acos, atan, log, log1p, log2, roundBf16, roundF16 },
        binary: { atan2, pow },
        ofAngle: { sin, cos, tan },
      },
      doubles,
      reduceAngle,
      mod,
    },
  ],
  [vectorHalving, halveVectors],
  [moduleText, printModule],
);
