// Several Loops in one dispatch: each has a range of the workgroups to itself, and finds its own
// coordinates there.

import type { Kernel } from '../../schedule/kernel.ts';
import type { GroupShape } from '../../schedule/merge/batched-dispatch.ts';
import type { Target } from '../../schedule/target.ts';
import { CompilerBug } from '../../errors.ts';
import { dtypeBytes } from '../../ir/dtype.ts';
import { addInts, builtin, constant, less, LoopBuilder, operation } from '../loop/builder.ts';
import type { Loop, LoopBuffer, Stmt, Value } from '../loop/loop.ts';
import { divideInts } from '../template/contract/tile.ts';
import { foldGrid, groupNumber } from '../template/shared/frame.ts';
import { someStatement } from '../loop/walk.ts';

/** A Loop as a part of a larger one: what its buffers are called there. */
export interface Part {
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

function isBarrier(stmt: Stmt): boolean {
  switch (stmt.kind) {
    case 'barrier':
    case 'subgroupReduce':
    case 'loadMatrix':
    case 'mma':
    case 'shuffle':
    case 'asyncCommit':
    case 'asyncWait':
    case 'initBarrier':
    case 'arrive':
    case 'awaitBarrier':
    case 'copyTile':
    case 'wgmma':
    case 'wgmmaFence':
    case 'wgmmaCommit':
    case 'wgmmaWait':
    case 'setRegisters':
      return true;
    default:
      return false;
  }
}

/** The Loop that runs all parts; `global` are its buffers in binding order. */
export function batchedDispatchLoop(
  kernel: Kernel,
  target: Target,
  parts: readonly Part[],
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
function place(b: LoopBuilder, { loop, names }: Part, prefix: string, at: Value, size: number): void {
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
  const value = (of: Value): Value => renamedValue(of, by);
  const all = (body: readonly Stmt[]): Stmt[] => body.map((inner) => renamed(inner, by));
  switch (stmt.kind) {
    case 'let':
    case 'var':
    case 'assign':
    case 'subgroupReduce':
      return { ...stmt, name: by.variable(stmt.name), value: value(stmt.value) };
    case 'store':
      return { ...stmt, buffer: by.buffer(stmt.buffer), index: value(stmt.index), value: value(stmt.value) };
    case 'for':
      return {
        ...stmt,
        name: by.variable(stmt.name),
        start: value(stmt.start),
        end: value(stmt.end),
        body: all(stmt.body),
      };
    case 'if':
      return {
        ...stmt,
        condition: value(stmt.condition),
        then: all(stmt.then),
        ...(stmt.else !== undefined && { else: all(stmt.else) }),
      };
    case 'atomic':
      return { ...stmt, buffer: by.buffer(stmt.buffer), index: value(stmt.index), value: value(stmt.value) };
    case 'loadMatrix':
      return {
        ...stmt,
        name: by.variable(stmt.name),
        buffer: by.buffer(stmt.buffer),
        index: value(stmt.index),
      };
    case 'mma':
      return { ...stmt, name: by.variable(stmt.name), lhs: value(stmt.lhs), rhs: value(stmt.rhs) };
    case 'shuffle':
      return { ...stmt, name: by.variable(stmt.name), value: value(stmt.value) };
    case 'asyncCopy': {
      const [buffer, from] = [by.buffer(stmt.buffer), by.buffer(stmt.from)];
      const { index, at, inside } = stmt;
      return { ...stmt, buffer, from, index: value(index), at: value(at), inside: value(inside) };
    }
    case 'asyncCommit':
    case 'asyncWait':
    case 'barrier':
    case 'comment':
      return stmt;
    case 'initBarrier':
    case 'arrive':
    case 'awaitBarrier':
    case 'copyTile':
    case 'wgmma':
    case 'wgmmaFence':
    case 'wgmmaCommit':
    case 'wgmmaWait':
    case 'setRegisters':
      throw new CompilerBug(
        'batched-dispatch',
        `a kernel of warp groups has its dispatch to itself: ${stmt.kind}`,
      );
    default:
      return stmt satisfies never;
  }
}

function renamedValue(value: Value, by: Renaming): Value {
  const inner = (of: Value): Value => renamedValue(of, by);
  switch (value.kind) {
    case 'constant':
    case 'scalar':
    case 'subgroup':
      return value;
    case 'variable':
      return { ...value, name: by.variable(value.name) };
    case 'builtin':
      return by.builtin(value.of, value.axis);
    case 'op':
    case 'vector':
      return { ...value, args: value.args.map(inner) };
    case 'load':
      return { ...value, buffer: by.buffer(value.buffer), index: inner(value.index) };
    case 'splat':
    case 'lane':
      return { ...value, arg: inner(value.arg) };
    default:
      return value satisfies never;
  }
}
