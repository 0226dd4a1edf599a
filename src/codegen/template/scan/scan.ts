// scan: a running combination along one axis. Where elements of a line are neighbours in memory and
// barriers are cheap, a workgroup takes a line (scan/shared.ts); else an invocation walks one, four
// elements at a time, or four neighbouring lines at once where lines are neighbours. Long lines of
// few were split before (passes/split.ts).

import { CompilerBug } from '../../../errors.ts';
import type { Node } from '../../../ir/graph.ts';
import {
  addIndex,
  axisIndex,
  offsetIndex,
  scaleIndex,
  type IndexExpr,
} from '../../../ir/index-algebra/expr.ts';
import type { Axis, Kernel } from '../../../schedule/kernel.ts';
import { invocationsToFill, sharesWork } from '../../../schedule/machine.ts';
import type { Target } from '../../../schedule/target.ts';
import { constant, operation, splat } from '../../loop/builder.ts';
import { rounded } from '../../expression/convert.ts';
import { laneAtom, Lowering, quadIndex, registerOf } from '../../expression/lowering.ts';
import type { Loop, Value } from '../../loop/loop.ts';
import { bufferName, finish, forUnits, openBuilder, type Frame } from '../shared/frame.ts';
import { combine, identity } from '../shared/monoid.ts';
import { countContiguous, isContiguous, powerFor } from '../row-reduction/tiling.ts';
import { sharedScanLoop } from './shared.ts';
import { storeAt } from '../shared/store-value.ts';

export interface ScanSchedule {
  /** The axis that vector lanes run along. */
  readonly lanes: 'position' | 'line' | 'none';
  /** Invocations that share a line: a power of two, or 1. */
  readonly parts: number;
}

/** Lines that are enough for an invocation to take four of them. */
const manyLines = 64;

/** Chooses how lines are spread over invocations, by heuristics. */
export function scanSchedule(kernel: Kernel, line: Axis, position: Axis, target: Target): ScanSchedule {
  const { body, writes } = kernel;
  const values = [...(body.kind === 'scan' ? [body.value] : []), ...writes.map(({ value }) => value)];
  const along = (axis: Axis): number =>
    countContiguous(values, axis) + writes.filter(({ index }) => isContiguous(index, axis)).length;
  const neighbours = along(line) > along(position) ? 'line' : 'position';
  if (neighbours === 'line') {
    // An invocation of a GPU takes one line: neighbours still read neighbouring memory.
    const enough = line.extent >= (sharesWork(target) ? 4 * invocationsToFill(target) : manyLines);
    return { lanes: enough ? 'line' : 'none', parts: 1 };
  }
  const quads = Math.ceil(position.extent / 4);
  if (sharesWork(target) && quads > 1)
    return { lanes: 'position', parts: Math.min(powerFor(quads), 256, target.limits.workgroupInvocations) };
  return { lanes: position.extent % 4 === 0 ? 'position' : 'none', parts: 1 };
}

/** Groups of four lines that one invocation takes: on a core as many as fill lines of a cache. */
function together(line: Axis, { serial }: Target): number {
  return (serial === undefined ? [] : [8, 4, 2]).find((groups) => line.extent % (4 * groups) === 0) ?? 1;
}

/** The Loop of a scan kernel. */
export function scanLoop(frame: Frame): Loop {
  const { kernel, target } = frame;
  const { body } = kernel;
  if (body.kind !== 'scan') throw new CompilerBug('scan template', `got a ${body.kind} kernel`);
  const { line, position, monoid, reverse, exclusive } = body;
  const { lanes, parts } = scanSchedule(kernel, line, position, target);
  if (parts > 1) return sharedScanLoop(frame, parts);
  const b = openBuilder(frame);
  const type = registerOf(body.node.dtype);
  const seats = lanes === 'line' ? together(line, target) : 1;
  const units = lanes === 'line' ? Math.ceil(line.extent / (4 * seats)) : line.extent;
  const steps = lanes === 'position' ? position.extent / 4 : position.extent;
  const spread = (name: string, axis: Axis, wide: boolean): readonly [atom: IndexExpr, place: IndexExpr] => {
    const atom = wide ? quadIndex(name, axis.extent) : axisIndex(name, axis.extent);
    return [atom, wide ? addIndex(scaleIndex(atom, 4), laneAtom) : atom];
  };
  const [quadAtom, quadPlace] = spread('unit', line, lanes === 'line');
  const unitAtom = seats === 1 ? quadAtom : axisIndex('unit', units);
  const first = addIndex(scaleIndex(unitAtom, 4 * seats), laneAtom);
  const linePlaces =
    seats === 1 ? [quadPlace] : Array.from({ length: seats }, (_, seat) => offsetIndex(first, 4 * seat));
  const [stepAtom, positionPlace] = spread('step', position, lanes === 'position');
  const substitutionAt = (linePlace: IndexExpr): ReadonlyMap<IndexExpr, IndexExpr> =>
    new Map([
      ...(line.extent > 1 ? [[line.atom, linePlace] as const] : []),
      ...(position.extent > 1 ? [[position.atom, positionPlace] as const] : []),
    ]);
  const round = (value: Value): Value => rounded(value, body.node.dtype);

  const visit = (linePlace: IndexExpr, running: Value, atoms: ReadonlyMap<IndexExpr, Value>): void => {
    const binding = { substitution: substitutionAt(linePlace), atoms };
    const lowering = new Lowering(b, kernel.pool, binding, bufferName(frame));
    const value = lowering.value(body.value);
    if (lanes === 'position') {
      // Lane by lane, in the order of the scan: the same sums as one element at a time.
      const found = b.let(splat(value, 4), 'quad');
      const results: Value[] = [];
      for (const lane of reverse ? [3, 2, 1, 0] : [0, 1, 2, 3]) {
        if (exclusive) results[lane] = b.let(running, 'before');
        b.assign(running, combine(monoid, running, { kind: 'lane', arg: found, lane, type, width: 1 }));
        if (!exclusive) results[lane] = b.let(running, 'after');
      }
      const quad: Value = { kind: 'vector', args: results, type, width: 4 };
      lowering.results.set(body.node as Node, b.let(round(quad), 'result'));
    } else {
      if (exclusive) lowering.results.set(body.node as Node, b.let(round(running), 'before'));
      b.assign(running, splat(combine(monoid, running, value), running.width));
      if (!exclusive) lowering.results.set(body.node as Node, b.let(round(running), 'after'));
    }
    const axis = lanes === 'none' ? undefined : lanes === 'line' ? line : position;
    const values = kernel.writes.map((write) => lowering.value(write.value));
    kernel.writes.forEach((write, i) =>
      storeAt(b, lowering, bufferName(frame)(write.node), write, values[i]!, axis),
    );
  };
  const { grid } = forUnits(
    b,
    target,
    units,
    'unit',
    (unit) => {
      const running = linePlaces.map(() =>
        b.var('running', identity(monoid, type, lanes === 'line' ? 4 : 1)),
      );
      b.for('step', constant(0), constant(steps), 1, (step) => {
        const at = reverse ? b.let(operation('sub', [constant(steps - 1), step], 'i32'), 'pos') : step;
        const atoms = new Map<IndexExpr, Value>([
          [unitAtom, unit],
          [stepAtom, at],
        ]);
        linePlaces.forEach((linePlace, seat) => visit(linePlace, running[seat]!, atoms));
      });
    },
    target.serial === undefined ? 1 : seats * steps,
  );
  const note = `${line.extent} lines of ${position.extent}, lanes along ${lanes}`;
  return finish(frame, b, grid, [target.workgroupSize, 1, 1], note);
}
