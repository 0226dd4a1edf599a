// The chunk of the device `interpreter`, which runs graphs as they are.

import './compiler.ts';
import { culpritOf, faultOf } from '../../ir/interpret/culprit.ts';
import { evaluateNode, interpret, valuesFrom } from '../../ir/interpret/interpret.ts';
import { fill, type Slot } from '../../slot.ts';
import { meetOn } from '../meeting.ts';
import { interpreter } from '../slots.ts';

export const slots: readonly Slot<unknown>[] = fill([
  interpreter,
  { culpritOf, evaluateNode, faultOf, interpret, meetOn, valuesFrom },
]);
