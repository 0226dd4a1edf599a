// A thread's position in its warp of 32, and reductions over a warp by shuffles. In a whole warp both
// partners of a shuffle combine the same two values. In a part of a warp all lanes get the result of the
// first. So all lanes end with the same bits.

import type { Monoid } from '../../../ir/ops.ts';
import type { Loop, LoopOp, Stmt } from '../../loop/loop.ts';
import { call, component, infix, primary, type Term } from '../shared/term.ts';
import type { CudaPrelude } from './prelude.ts';
import { spell } from './spelling.ts';

const operations = {
  sum: 'add',
  prod: 'mul',
  min: 'min',
  max: 'max',
  and: 'and',
  or: 'or',
} as const satisfies Record<Monoid, LoopOp>;

/** The thread's number in its block, an unsigned. */
export function flatThread({ workgroup: [x, y, z] }: Loop): Term {
  const at = (axis: 'x' | 'y' | 'z'): Term => primary(`threadIdx.${axis}`);
  const behind = (outer: Term, extent: number, inner: Term): Term =>
    infix('+', infix('*', outer, primary(`${extent}u`)), inner);
  if (z > 1) return behind(behind(at('z'), y, at('y')), x, at('x'));
  return y > 1 ? behind(at('y'), x, at('x')) : at('x');
}

/** The combination of `value` (a text that may be written several times) over the warp. */
export function spellWarp(
  { monoid, value: { type, width } }: Extract<Stmt, { kind: 'subgroupReduce' }>,
  value: Term,
  loop: Loop,
  prelude: CudaPrelude,
): Term {
  const [x, y, z] = loop.workgroup;
  const threads = x * y * z;
  const combined = spell(operations[monoid], {
    type,
    width: 1,
    args: [primary('x'), primary('other')],
    types: [type, type],
    last: undefined,
    bounded: false,
    prelude,
  });
  // The last warp may have fewer lanes.
  const whole = threads % 32 === 0;
  const name = prelude.warp(monoid, type, combined.text, whole);
  const place = whole ? [] : [flatThread(loop), primary(`${threads}u`)];
  if (width === 1) return call(name, [value, ...place]);
  const parts = Array.from(
    { length: width },
    (_, lane) => call(name, [component(value, lane), ...place]).text,
  );
  return primary(`${prelude.type(type, width)}{${parts.join(', ')}}`);
}
