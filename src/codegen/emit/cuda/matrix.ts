// The statements of matrix units in CUDA C. Fragments are short vectors; functions of the prelude
// split them into the registers that the PTX instructions take.

import type { MatrixStmt } from '../../loop/loop.ts';
import { call, choice, component, infix, primary, type Term } from '../shared/term.ts';
import type { CudaScribe } from './access.ts';

/** Writes the lines of a statement. */
export function spellMatrix(scribe: CudaScribe, stmt: MatrixStmt): void {
  const { prelude, names } = scribe;
  const pointer = (buffer: string, index: Term): Term => infix('+', primary(names.buffer(buffer)), index);
  const define = (name: string, type: string, value: Term): void =>
    scribe.line(`const ${type} ${names.variable(name)} = ${value.text};`);
  switch (stmt.kind) {
    case 'loadMatrix': {
      const load = prelude.use(stmt.transposed ? 'load_matrix_trans' : 'load_matrix');
      define(stmt.name, 'uint4', call(load, [pointer(stmt.buffer, scribe.value(stmt.index))]));
      return;
    }
    case 'mma': {
      const sum = primary(names.variable(stmt.name));
      const multiply = prelude.use(`multiply_${stmt.operand}`);
      scribe.line(`${call(multiply, [sum, scribe.value(stmt.lhs), scribe.value(stmt.rhs)]).text};`);
      return;
    }
    case 'shuffle': {
      const { type, width } = stmt.value;
      const own = width === 1 ? scribe.value(stmt.value) : scribe.atom(stmt.value, 'own');
      const exchanged = (part: Term): Term => {
        // What a warp exchanges has 32 bits at least.
        const given = type === 'bool' ? call('int', [part]) : part;
        const taken = call('__shfl_xor_sync', [primary('0xffffffffu'), given, primary(String(stmt.mask))]);
        return type === 'bool' ? infix('!=', taken, primary('0')) : taken;
      };
      const parts = Array.from({ length: width }, (_, lane) => exchanged(component(own, lane)).text);
      const spelled = prelude.type(type, width);
      define(stmt.name, spelled, width === 1 ? exchanged(own) : primary(`${spelled}{${parts.join(', ')}}`));
      return;
    }
    case 'asyncCopy': {
      const to = pointer(stmt.buffer, scribe.value(stmt.index));
      const from = pointer(stmt.from, scribe.value(stmt.at));
      const inside = stmt.inside.kind === 'constant' && stmt.inside.value !== 0;
      const valid = inside ? primary('16') : choice(scribe.value(stmt.inside), primary('16'), primary('0'));
      scribe.line(`${call(prelude.use('cp_async16'), [to, from, valid]).text};`);
      return;
    }
    case 'asyncCommit':
      scribe.line(`${prelude.use('cp_async_commit')}();`);
      return;
    case 'asyncWait':
      scribe.line(`${prelude.use('cp_async_wait')}<${stmt.pending}>();`);
      return;
    default:
      stmt satisfies never;
  }
}
