// Several Loops in one dispatch: each has a range of the workgroups to itself, and finds its own
// coordinates there.

import type { Kernel } from '../../schedule/kernel.ts';
import type { GroupShape } from '../../schedule/merge/batched-dispatch.ts';
import type { Target } from '../../schedule/target.ts';
import { CompilerBug } from '../../errors.ts';
import { dtypeBytes } from '../../ir/dtype.ts';
import {
  addInts,
  builtin,
  constant,
  less,
  LoopBuilder,
  operandsOf,
  operation,
  withOperands,
} from '../loop/builder.ts';
import type { Loop, LoopBuffer, Stmt, Value } from '../loop/loop.ts';
import { divideInts } from '../loop/integers.ts';
import { foldGrid, groupNumber } from '../template/shared/frame.ts';
import { factsOf, isWarpgroupStmt, rewritten, someStatement } from '../loop/walk.ts';

/** A Loop as a part of a larger one: what its buffers are called there. */
export interface DispatchPart {
  readonly loop: Loop;
  readonly names: ReadonlyMap<string, string>;
}

export function groupShape({ workgroup, buffers, body }: Loop): GroupShape {
  const shared = buffers.filter(({ space }) => space === 'workgroup');
  return {
    invocations: workgroup[0] * workgroup[1] * workgroup[2],
    workgroupBytes: shared.reduce((sum, { dtype, size }) => sum + dtypeBytes(dtype) * size, 0),
    barriers: someStatement(body, isBarrier),
  };
}

/** Whether it waits for other invocations, or lets them wait. */
function isBarrier(stmt: Stmt): boolean {
  const { together, signals } = factsOf(stmt);
  return together !== undefined || signals === true;
}

/** The Loop that runs all parts; `global` are its buffers in binding order. */
export function batchedDispatchLoop(
  kernel: Kernel,
  target: Target,
  parts: readonly DispatchPart[],
  global: readonly LoopBuffer[],
): Loop {
  const size = Math.max(...parts.map(({ loop }) => groupShape(loop).invocations));
  const counts = parts.map(({ loop }) => loop.grid[0] * loop.grid[1] * loop.grid[2]);
  const grid = foldGrid(
    counts.reduce((sum, count) => sum + count, 0),
    target,
  );
  const b = new LoopBuilder(new Set(global.map(({ name }) => name)));
  const group = b.let(groupNumber(grid), 'group');
  let start = 0;
  for (const [i, part] of parts.entries()) {
    const end = start + counts[i]!;
    const from = operation('le', [constant(start), group], 'bool');
    const inside =
      start === 0 ? less(group, constant(end)) : operation('and', [from, less(group, constant(end))], 'bool');
    const first = start;
    b.comment(part.loop.header[0] ?? part.loop.kind);
    b.if(inside, () => place(b, part, `p${i}_`, addInts(group, constant(-first)), size));
    start = end;
  }
  const shared = parts.flatMap(({ loop }, i) =>
    loop.buffers
      .filter(({ space }) => space === 'workgroup')
      .map((buffer) => ({ ...buffer, name: `p${i}_${buffer.name}` })),
  );
  return {
    name: kernel.name,
    kind: kernel.kind,
    header: [
      `${parts.length} kernels together: ${parts.map(({ loop }) => loop.kind).join(', ')}`,
      ...parts.map(({ loop }) => loop.header.slice(0, 2).join('; ')),
      `${kernel.flops} flops, ${kernel.bytes} bytes`,
    ],
    buffers: [...global, ...shared],
    usesScalars: parts.some(({ loop }) => loop.usesScalars),
    grid,
    workgroup: [size, 1, 1],
    body: b.body,
  };
}

/**
 * Puts a part's statements here, with its coordinates made from its place among its own workgroups.
 */
function place(b: LoopBuilder, { loop, names }: DispatchPart, prefix: string, at: Value, size: number): void {
  const [gx, gy] = loop.grid;
  const [lx, ly, lz] = loop.workgroup;
  const own = b.let(at, `${prefix}group`);
  const local = builtin('local', 0);
  const three = (value: Value, x: number, y: number, hint: string, all: number): readonly Value[] => {
    if (x === all) return [value, constant(0), constant(0)];
    const [rest, first] = divideInts(b, value, x, [`${prefix}${hint}`, `${prefix}${hint}_x`]);
    if (x * y === all) return [first, rest, constant(0)];
    const [third, second] = divideInts(b, rest, y, [`${prefix}${hint}_z`, `${prefix}${hint}_y`]);
    return [first, second, third];
  };
  const groups = three(own, gx, gy, 'group', loop.grid[0] * loop.grid[1] * loop.grid[2]);
  const locals = three(local, lx, ly, 'local', lx * ly * lz);
  const shared = new Set(loop.buffers.filter(({ space }) => space === 'workgroup').map(({ name }) => name));
  const renaming: Renaming = {
    buffer: (name) => (shared.has(name) ? `${prefix}${name}` : names.get(name)!),
    variable: (name) => `${prefix}${name}`,
    builtin: (of, axis) => (of === 'workgroup' ? groups[axis]! : locals[axis]!),
  };
  const statements = loop.body.map((stmt) => renamed(stmt, renaming));
  const inside = lx * ly * lz === size ? constant(1, 'bool') : less(local, constant(lx * ly * lz));
  b.if(inside, () => b.append(statements));
}

interface Renaming {
  readonly buffer: (name: string) => string;
  readonly variable: (name: string) => string;
  readonly builtin: (of: 'workgroup' | 'local', axis: 0 | 1 | 2) => Value;
}

function renamed(stmt: Stmt, by: Renaming): Stmt {
  if (isWarpgroupStmt(stmt)) {
    const problem = `a kernel of warp groups has its dispatch to itself: ${stmt.kind}`;
    throw new CompilerBug('batched-dispatch', problem);
  }
  return rewritten(stmt, {
    value: (value) => renamedValue(value, by),
    body: (body) => body.map((inner) => renamed(inner, by)),
    register: by.variable,
    buffer: by.buffer,
  });
}

function renamedValue(value: Value, by: Renaming): Value {
  switch (value.kind) {
    case 'variable':
      return { ...value, name: by.variable(value.name) };
    case 'builtin':
      return by.builtin(value.of, value.axis);
    default: {
      const operands = operandsOf(value).map((operand) => renamedValue(operand, by));
      const made = withOperands(value, operands);
      return made.kind === 'load' ? { ...made, buffer: by.buffer(made.buffer) } : made;
    }
  }
}
