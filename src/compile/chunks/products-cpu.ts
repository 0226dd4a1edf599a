// The chunk of products and reductions on cores, which run the invocations of a workgroup in turn (WebAssembly).

import './products.ts';
import { gemv } from '../../codegen/template/contract/cpu/gemv.ts';
import { packed } from '../../codegen/template/contract/cpu/packed.ts';
import { strategies } from '../../codegen/template/contract/strategies.ts';
import { serial } from '../../codegen/template/row-reduction/cpu/serial.ts';
import { short } from '../../codegen/template/row-reduction/cpu/written-out.ts';
import { rowStrategies } from '../../codegen/template/row-reduction/row-reduction.ts';
import { fill, type Slot } from '../../slot.ts';

export const slots: readonly Slot<unknown>[] = fill(
  [strategies.packed, packed],
  [strategies.gemv, gemv],
  [rowStrategies.short, short],
  [rowStrategies.serial, serial],
);
