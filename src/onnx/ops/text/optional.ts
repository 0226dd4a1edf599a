// Optional values: with an element they are that element, without one a value that says so. Whether
// there is one is known when a model is recorded.

import { SinterError } from '../../../errors.ts';
import type { Rows } from '../../call.ts';
import { elementType } from '../../element.ts';
import { knownData, Value } from '../../value.ts';

export const optional: Rows = {
  Optional: {
    since: [15, 28],
    sequence: true,
    text: true,
    run: (call) => {
      if (call.inputs[0] !== undefined) return call.inputs[0];
      const type = call.attributes.get('type')?.tp;
      const tensor = type?.tensor ?? type?.sequence?.elem?.tensor;
      return Value.absent(elementType(tensor?.elemType ?? 1));
    },
  },
  OptionalGetElement: {
    since: [15, 18, 28],
    sequence: true,
    text: true,
    run: (call) => {
      const value = call.value(0);
      if (value.isAbsent) throw new SinterError('E_VALUE', 'the optional value has no element');
      return value;
    },
  },
  OptionalHasElement: {
    since: [15, 18, 28],
    sequence: true,
    text: true,
    run: ({ inputs: [value] }) =>
      knownData('bool', [], Uint8Array.of(value === undefined || value.isAbsent ? 0 : 1)),
  },
};
