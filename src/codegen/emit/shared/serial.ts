// Which kernels must run on one thread: sums of floats depend on their order.

import type { Loop } from '../../loop/loop.ts';
import { someStatement } from '../../loop/walk.ts';

/**
 * Whether workgroups fold floats into elements that others fold into, so that the result depends on
 * their order.
 */
export function isSerial(loop: Loop): boolean {
  const places = new Set(loop.buffers.flatMap(({ name, space }) => (space === 'global' ? [name] : [])));
  return someStatement(
    loop.body,
    (stmt) =>
      stmt.kind === 'atomic' &&
      places.has(stmt.buffer) &&
      (stmt.value.type === 'f32' || stmt.value.type === 'f64'),
  );
}
