// The chunk of the device `interpreter`, which runs graphs as they are.

import './compiler.ts';
import { culpritOf, faultOf } from '../../ir/interpret/culprit.ts';
import { evaluateNode, valuesFrom } from '../../ir/interpret/interpret.ts';
import { fill, type Slot } from '../../slot.ts';
import { interpreted } from '../interpreted.ts';
import { interpreter } from '../slots.ts';

export const slots: readonly Slot<unknown>[] = fill([
  interpreter,
  { culpritOf, evaluateNode, faultOf, interpreted, valuesFrom },
]);
