// The chunk of what few programs need in WebAssembly: functions of angles, all of doubles, lanes of 64 bits, and modules as text.

import './wasm.ts';
import * as angles from '../../codegen/emit/shared/math/angle.ts';
import { doubles } from '../../codegen/emit/shared/math/double.ts';
import { scale } from '../../codegen/emit/shared/math/double-exp.ts';
import { rareFunctions } from '../../codegen/emit/shared/math/rare.ts';
import { printModule } from '../../codegen/emit/wasm/module/wat.ts';
import { moduleText, vectorHalving } from '../../codegen/emit/wasm/rare.ts';
import { halveVectors } from '../../codegen/emit/wasm/rewrite/halves.ts';
import { fill, type Slot } from '../../slot.ts';

const { acos, asin, atan, atan2, cos, reduceAngle, sin, tan } = angles;

export const slots: readonly Slot<unknown>[] = fill(
  [
    rareFunctions,
    {
      angles: { unary: { asin, acos, atan }, binary: { atan2 }, ofAngle: { sin, cos, tan } },
      doubles,
      reduceAngle,
      scaleDouble: scale,
    },
  ],
  [vectorHalving, halveVectors],
  [moduleText, printModule],
);
