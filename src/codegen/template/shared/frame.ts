// What every template needs around its body: buffers in binding order, a grid that fits the device,
// and the header comment.

import { DeviceError } from '../../../errors.ts';
import type { Node } from '../../../ir/graph.ts';
import { showType } from '../../../ir/infer.ts';
import type { Kernel, Body } from '../../../schedule/kernel.ts';
import { invocationsToFill } from '../../../schedule/machine.ts';
import type { Target } from '../../../schedule/target.ts';
import { addInts, builtin, constant, less, LoopBuilder, mulInts, operation } from '../../loop/builder.ts';
import { Lowering, paddedSize } from '../../expression/lowering.ts';
import { type Expr, printExpr } from '../../../schedule/expression/expr.ts';
import type { Loop, LoopBuffer, Value } from '../../loop/loop.ts';
import { printIndex } from '../../../ir/index-algebra/expr.ts';

/**
 * A storage buffer as a kernel binds it. Nodes that share memory (in-place results) share a
 * binding.
 */
export interface BoundBuffer {
  readonly name: string;
  readonly access: 'read' | 'read_write';
  /** The nodes stored in it: one, or an input and the result that overwrites it. */
  readonly nodes: readonly Node[];
  /** Whether the kernel stores to it. */
  readonly written: boolean;
}

/** Everything that a template takes. */
export interface Frame {
  readonly kernel: Kernel;
  readonly target: Target;
  readonly bound: readonly BoundBuffer[];
}

/** A builder that knows which buffers change while the kernel runs. */
export function openBuilder(frame: Frame, shared: readonly string[] = []): LoopBuilder {
  const written = frame.bound.filter((buffer) => buffer.written).map((buffer) => buffer.name);
  return new LoopBuilder(new Set([...written, ...shared]));
}

export function bufferName(frame: Frame): (node: Node) => string {
  const names = new Map(
    frame.bound.flatMap((buffer) => buffer.nodes.map((node) => [node, buffer.name] as const)),
  );
  return (node) => names.get(node)!;
}

/** Whether nothing that a kernel writes lies in the memory of a node. */
export function isOnlyRead({ bound }: Frame, node: Node): boolean {
  return bound.some(({ nodes, access }) => access === 'read' && nodes.includes(node));
}

export type Grid = readonly [number, number, number];

/** Groups along x, folded into y when one dimension is not enough. */
export function foldGrid(groups: number, target: Target): Grid {
  const most = target.limits.workgroupsPerDimension;
  if (groups <= most) return [Math.max(1, groups), 1, 1];
  const rows = Math.ceil(groups / most);
  if (rows > most)
    throw new DeviceError('E_LIMIT', target.name, `a kernel needs ${groups} workgroups, more than ${most}²`);
  return [Math.ceil(groups / rows), rows, 1];
}

/** The flat workgroup number of a folded grid. */
export function groupNumber(grid: Grid): Value {
  const x = builtin('workgroup', 0);
  return grid[1] === 1 ? x : addInts(x, mulInts(builtin('workgroup', 1), constant(grid[0])));
}

/** The flat invocation number over a folded grid of workgroups of `size`. */
export function invocation(b: LoopBuilder, grid: Grid, size: number): Value {
  return b.let(addInts(mulInts(groupNumber(grid), constant(size)), builtin('local', 0)), 'id');
}

/**
 * Runs `visit` once for every unit of work, a few an invocation where the target wants that. A
 * workgroup owns a contiguous block of units, which its invocations walk side by side: neighbours
 * read neighbouring memory, and no step leaves the pages of the block (steps a whole grid apart
 * took three times as long on the software adapter).
 */
export function forUnits(
  b: LoopBuilder,
  target: Target,
  units: number,
  hint: string,
  visit: (unit: Value) => void,
  /** Groups of four elements in a unit. */
  groups = 1,
  /** Comes before a loop over units, if there is one, whose last is before `end`. */
  open: (first: Value, end: Value) => void = () => {},
  /** Units that are needed, where a run says how many: the first ones. */
  needed?: Value,
): { readonly grid: Grid; readonly perInvocation: number } {
  const most = Math.floor(target.elementsPerInvocation / (4 * groups));
  const perInvocation = Math.max(1, Math.min(most, Math.floor(units / invocationsToFill(target))));
  const size = target.workgroupSize;
  const block = size * perInvocation;
  const grid = foldGrid(Math.ceil(units / block), target);
  const first = b.let(addInts(mulInts(groupNumber(grid), constant(block)), builtin('local', 0)), hint);
  const whole = units === grid[0] * grid[1] * block;
  if (perInvocation === 1) {
    if (whole && needed === undefined) visit(first);
    else b.if(less(first, needed ?? constant(units)), () => visit(first));
  } else {
    const next = b.let(mulInts(addInts(groupNumber(grid), constant(1)), constant(block)), 'next');
    const last = needed ?? (whole ? undefined : constant(units));
    const end = last === undefined ? next : b.let(operation('min', [next, last], 'i32'), 'end');
    open(first, end);
    b.for(hint, first, end, size, visit);
  }
  return { grid, perInvocation };
}

/** Where a loop over an axis ends: behind its last element, or where a run says that nothing counts any more. */
export function endOf(b: LoopBuilder, frame: Frame, extent: number, bound: Expr | undefined): Value {
  if (bound === undefined) return constant(extent);
  const lowering = new Lowering(
    b,
    frame.kernel.pool,
    { substitution: new Map(), atoms: new Map() },
    bufferName(frame),
  );
  return b.let(lowering.value(bound), 'bound');
}

/** A count rounded up to whole groups, but for what is beyond the last. */
export function inGroups(b: LoopBuilder, count: Value, size: number, most: number, hint: string): Value {
  const groups = operation('div', [addInts(count, constant(size - 1)), constant(size)], 'i32');
  return b.let(operation('min', [groups, constant(most)], 'i32'), hint);
}

/** A binding as a buffer of the Loop. */
export function globalBuffer({ name, access, nodes }: BoundBuffer): LoopBuffer {
  const size = Math.max(...nodes.map(paddedSize));
  return { name, space: 'global', dtype: nodes[0]!.dtype, size, access };
}

/** The finished Loop around a body. */
export function finish(
  frame: Frame,
  b: LoopBuilder,
  grid: Grid,
  workgroup: readonly [number, number, number],
  schedule: string,
  shared: readonly LoopBuffer[] = [],
): Loop {
  const { kernel, bound } = frame;
  const global = bound.map(globalBuffer);
  const shapes = bound.map(({ name, nodes }) => `${name}: ${showType(nodes[0]!)}`).join(', ');
  return {
    name: kernel.name,
    kind: kernel.kind,
    header: [
      `${kernel.kind} kernel; ${schedule}${boundNote(kernel.body)}`,
      shapes,
      `${kernel.flops} flops, ${kernel.bytes} bytes`,
    ],
    buffers: [...global, ...shared],
    usesScalars: kernel.pool.usesScalars,
    grid,
    workgroup,
    body: b.body,
  };
}

// What a kernel's header says of its run-time bounds: `k < scalars[0]`.

/** The bounds of a body's loops and points, as words behind what else is said of it. */
function boundNote(body: Body): string {
  const folded = foldedOf(body);
  const needed = ('needed' in body && body.needed) || [];
  const notes = [
    ...(folded === undefined ? [] : [`${folded.axis} < ${shown(folded.end)}`]),
    ...needed.map(({ at, end }) => `of ${printIndex(at)} < ${shown(end)} only`),
  ];
  return notes.map((note) => `, ${note}`).join('');
}

function foldedOf(body: Body): { readonly axis: string; readonly end: Expr } | undefined {
  if (body.kind === 'attention') return body.range.end && { axis: 'key', end: body.range.end };
  if (body.kind !== 'contract' && body.kind !== 'row-reduction') return undefined;
  return body.bound && { axis: body.kind === 'contract' ? 'k' : 'column', end: body.bound };
}

/** A bound without what keeps it inside the axis. */
function shown(end: Expr): string {
  const core = (expr: Expr): Expr => {
    if (expr.kind !== 'op' || (expr.op !== 'min' && expr.op !== 'max')) return expr;
    const [a, b] = expr.args;
    return b!.kind === 'constant' ? core(a!) : expr;
  };
  return printExpr(core(end), () => '').replaceAll(/scalar(\d+)/g, 'scalars[$1]');
}
