// search-sorted: finds the positions of values among ascending boundaries, a few values in each invocation.
// It is a binary search with a fixed number of steps: each step halves the stride, and moves by it if the
// boundary before its end is still below the value. All values take the same number of steps, so neighbouring
// invocations do not diverge. NaN is the greatest, as a boundary and as a value.

import { CompilerBug } from '../../../errors.ts';
import { isFloat } from '../../../ir/dtype.ts';
import type { Node } from '../../../ir/graph.ts';
import type { IndexExpr } from '../../../ir/index-algebra/expr.ts';
import { addInts, both, constant, operation } from '../../loop/builder.ts';
import { Lowering } from '../../expression/lowering.ts';
import type { Loop, Value } from '../../loop/loop.ts';
import { bufferName, finish, forUnits, openBuilder, type Frame } from '../shared/frame.ts';
import { storeAt } from '../shared/store-value.ts';

/** Whether a boundary lies below a value, or, from the right, not above it. */
function isPassed(boundary: Value, value: Value, right: boolean): Value {
  const not = (x: Value): Value => operation('not', [x], 'bool');
  const isBelow = not(operation(right ? 'lt' : 'le', [value, boundary], 'bool'));
  if (!isFloat(boundary.type)) return isBelow;
  const isNumber = not(operation('isNan', [boundary], 'bool'));
  const isLast = operation('isNan', [value], 'bool');
  return right
    ? operation('or', [isLast, both(isNumber, isBelow)], 'bool')
    : both(isNumber, operation('or', [isLast, isBelow], 'bool'));
}

/** The Loop of a search kernel. */
export function searchSortedLoop(frame: Frame): Loop {
  const { kernel, target } = frame;
  const { body } = kernel;
  if (body.kind !== 'search-sorted') throw new CompilerBug('search template', `got a ${body.kind} kernel`);
  const { axis, element, boundary, value, node } = body;
  const b = openBuilder(frame);
  const steps = Math.floor(Math.log2(element.extent)) + 1;
  const { grid, perInvocation } = forUnits(b, target, axis.extent, 'i', (i) => {
    const lowering = (entries: readonly (readonly [IndexExpr, Value])[]): Lowering => {
      const binding = { substitution: new Map(), atoms: new Map([[axis.atom, i], ...entries]) };
      return new Lowering(b, kernel.pool, binding, bufferName(frame));
    };
    const here = lowering([]);
    const wanted = here.value(value);
    const place = b.var('place', constant(0));
    const reach = b.var('reach', constant(2 ** steps));
    b.for('step', constant(0), constant(steps), 1, () => {
      b.assign(reach, operation('shr', [reach, constant(1)], 'i32'));
      const next = b.let(addInts(place, reach), 'next');
      const last = b.let(operation('min', [next, constant(element.extent)], 'i32'), 'last');
      const probe = b.let(operation('sub', [last, constant(1)], 'i32'), 'probe');
      const found = lowering([[element.atom, probe]]).value(boundary);
      const inside = operation('le', [next, constant(element.extent)], 'bool');
      b.if(both(inside, isPassed(found, wanted, node.attrs.right)), () => b.assign(place, next));
    });
    here.results.set(node as Node, b.let(place, 'result'));
    const values = kernel.writes.map((write) => here.value(write.value));
    kernel.writes.forEach((write, at) =>
      storeAt(b, here, bufferName(frame)(write.node), write, values[at]!, undefined),
    );
  });
  const note = `${axis.extent} values among ${element.extent} boundaries, ${perInvocation} an invocation`;
  return finish(frame, b, grid, [target.workgroupSize, 1, 1], note);
}
