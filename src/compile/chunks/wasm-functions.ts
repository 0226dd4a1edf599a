// The chunk of functions in WebAssembly that few programs call: those of angles, and all of doubles.

import './wasm.ts';
import * as angles from '../../codegen/emit/shared/math/angle.ts';
import { doubles } from '../../codegen/emit/shared/math/double.ts';
import { scale } from '../../codegen/emit/shared/math/double-exp.ts';
import { rareFunctions } from '../../codegen/emit/shared/math/rare.ts';
import { fill, type Slot } from '../../slot.ts';

const { acos, asin, atan, atan2, cos, reduceAngle, sin, tan } = angles;

export const slots: readonly Slot<unknown>[] = fill([
  rareFunctions,
  {
    angles: { unary: { asin, acos, atan }, binary: { atan2 }, ofAngle: { sin, cos, tan } },
    doubles,
    reduceAngle,
    scaleDouble: scale,
  },
]);
