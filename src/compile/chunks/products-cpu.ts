// The chunk of products and reductions on cores, which run the invocations of a workgroup in turn (WebAssembly).

import { blockRowsStrategy } from '../../codegen/template/contract/cpu/block-rows.ts';
import { direct } from '../../codegen/template/contract/cpu/direct.ts';
import { gemv } from '../../codegen/template/contract/cpu/gemv.ts';
import { image } from '../../codegen/template/contract/cpu/image.ts';
import { packed } from '../../codegen/template/contract/cpu/packed.ts';
import { winograd } from '../../codegen/template/contract/cpu/winograd.ts';
import { strategies } from '../../codegen/template/contract/strategies.ts';
import { serial } from '../../codegen/template/row-reduction/cpu/serial.ts';
import { short } from '../../codegen/template/row-reduction/cpu/written-out.ts';
import { rowStrategies } from '../../codegen/template/row-reduction/row-reduction.ts';
import { fill, type Slot } from '../../slot.ts';

export const slots: readonly Slot<unknown>[] = fill(
  [strategies['block-rows'], blockRowsStrategy],
  [strategies.direct, direct],
  [strategies.winograd, winograd],
  [strategies.image, image],
  [strategies.packed, packed],
  [strategies.gemv, gemv],
  [rowStrategies.short, short],
  [rowStrategies.serial, serial],
);
