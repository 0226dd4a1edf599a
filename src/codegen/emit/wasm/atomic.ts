// Atomic statements. Workgroups run on several threads, so integers in buffers are folded by
// instructions that nothing comes between (core specification, threads proposal). Sums of floats
// depend on their order: a kernel that folds them runs on one thread, in order, and atomics on
// workgroup memory, which belongs to one thread, are plain reads and writes in order.

import { dtypeBytes } from '../../../ir/dtype.ts';
import type { Stmt, Value } from '../../loop/loop.ts';
import { storeValue } from './access.ts';
import type { Emitter } from './emitter.ts';

type Atomic = Extract<Stmt, { kind: 'atomic' }>;

export function foldAtomically(to: Emitter, { op, buffer, index, value }: Atomic): void {
  const { f } = to;
  const { type } = value;
  const { dtype, space } = to.buffers.get(buffer)!;
  const folded = (old: Value): Value => ({ kind: 'op', op, args: [old, value], type, width: 1 });
  if (space !== 'global' || isFloat(value)) {
    const old: Value = { kind: 'load', buffer, index, aligned: true, type, width: 1 };
    storeValue(to, { kind: 'store', buffer, index, value: folded(old), owned: true });
    return;
  }
  f.get(to.pointer(buffer));
  to.value(index);
  f.int(Math.log2(dtypeBytes(dtype)));
  f.op('i32.shl');
  f.op('i32.add');
  const integer = type === 'i64' || type === 'u64' ? 'i64' : 'i32';
  if (op === 'add' || op === 'and' || op === 'or') {
    to.value(value);
    f.op(`${integer}.atomic.rmw.${op}`, 0);
    f.op('drop');
    return;
  }
  // A compare-and-swap loop, for operations without an atomic instruction.
  const [at, before] = [f.local('at', 'i32'), f.local('before', integer)];
  f.set(at);
  f.block('loop', () => {
    f.get(at);
    f.get(at);
    f.op(`${integer}.load`, 0);
    f.tee(before);
    to.value(folded(to.held(before, value)));
    f.op(`${integer}.atomic.rmw.cmpxchg`, 0);
    f.get(before);
    f.op(`${integer}.ne`);
    f.op('br_if', 0);
  });
}

function isFloat({ type }: Value): boolean {
  return type === 'f32' || type === 'f64';
}
