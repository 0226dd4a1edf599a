// The form of conv for windows of few elements (depthwise), on targets that pack: a channel's
// weights stay in registers, and as many neighbouring positions as a register has lanes are summed
// up tap by tap from the padded input in memory (cpu/image-window.ts). Where that are more than
// four, the sums of a channel wait until its lines are complete, and leave as one line.

import { groupsInRegister, packsOperands } from '../../../../schedule/machine.ts';
import { CompilerBug } from '../../../../errors.ts';
import { isWide } from '../../../../ir/dtype.ts';
import { addInts, builtin, constant, less, mulInts, operation, splat } from '../../../loop/builder.ts';
import { registerOf } from '../../../expression/lowering.ts';
import type { Loop, LoopBuffer, Value } from '../../../loop/loop.ts';
import type { Contract, ContractProblem, Plane, Window } from '../problem.ts';
import { hasRows, roundedUp } from '../size.ts';
import type { Strategy, Tile } from '../strategy.ts';
import { finish, openBuilder, type Frame } from '../../shared/frame.ts';
import { cpu, shared } from './costs.ts';
import { imageLines, quadsOf } from './image-lines.ts';
import { ImageWindow } from './image-window.ts';
import { eachOf, multiplyAdd, TileLowering } from '../tile.ts';
import { divideInts, place } from '../../../loop/integers.ts';

export interface DirectTiling extends Tile {
  /**
   * conv of few elements: a register of positions at a time from a part of the padded input, weights
   * in registers.
   */
  readonly kind: 'direct';
  readonly lines: number;
}

/** Weights that one position is summed up with. */
const mostWeights = 128;

export const direct: Strategy<DirectTiling> = {
  *candidates({ k, window }) {
    if (window?.plane === undefined || k > mostWeights) return;
    for (const parts of [1, 2, 4].filter((count) => count <= window.lines))
      yield { kind: 'direct', flip: false, rows: 1, columns: 4, lines: Math.ceil(window.lines / parts) };
  },
  isLegal(tiling, problem, target) {
    const { k, window, dtype } = problem;
    if (!hasRows(tiling, problem) || window?.plane === undefined) return false;
    if (tiling.flip || tiling.lines > window.lines) return false;
    const atOnce = groupsInRegister(target);
    const { image, sums } = roomOf(tiling, k, window, window.plane, atOnce);
    // Sums of a block begin with a whole group of four.
    if (atOnce > 1 && tiling.lines < window.lines && (tiling.lines * window.width) % 4 > 0) return false;
    const bytes = (dtype === 'f64' ? 8 : 4) * (image + sums);
    return (
      packsOperands(target) && !isWide(dtype) && k <= mostWeights && bytes <= target.limits.workgroupBytes
    );
  },
  time(tiling, problem, target) {
    const { batch, m, k, epilogue, window } = problem;
    if (window?.plane === undefined) return Infinity;
    const lines = Math.min(tiling.lines, window.lines);
    const atOnce = groupsInRegister(target);
    const groups = lines * Math.ceil(window.width / 4 / atOnce);
    const spilled = k > (target.vectors?.registers ?? cpu.registers) - 4 ? k * cpu.spill : 0;
    // Wide registers of neighbours lie across lines of a cache.
    const step = 0.03 + 0.12 * atOnce;
    const sums = m * groups * (cpu.turn + k * step + spilled + 0.2 * epilogue);
    const brought = cpu.filled * roomOf(tiling, k, window, window.plane, atOnce).image;
    const block = sums + brought + m * lines * 3 + cpu.workgroup / 8;
    return shared(batch * Math.ceil(window.lines / tiling.lines), problem, target) * block;
  },
  loop: directLoop,
};

/** Elements that a workgroup keeps: the padded input, and sums of a channel where several groups of four are computed at once. */
function roomOf(
  { lines }: DirectTiling,
  k: number,
  { taps, tapLines, width }: Window,
  plane: Plane,
  atOnce: number,
): { readonly image: number; readonly behind: number; readonly sums: number } {
  const channels = (k / (taps * tapLines)) * imageLines(lines, plane) * plane.line;
  // The last groups of a line look so far behind it.
  const quads = quadsOf({ width });
  const behind = 4 * (roundedUp(quads, atOnce) - quads);
  const sums = atOnce === 1 ? 0 : roundedUp(lines * width, 4) + 4 * atOnce;
  return { image: channels + behind, behind, sums };
}

function directLoop(frame: Frame, body: Contract, tiling: DirectTiling, problem: ContractProblem): Loop {
  const { batch, m, n, k } = body;
  const { window } = problem;
  if (window?.plane === undefined) throw new CompilerBug('direct template', 'there is no padded input');
  const type = registerOf(body.node.dtype);
  const atOnce = groupsInRegister(frame.target);
  const room = roomOf(tiling, k.extent, window, window.plane, atOnce);
  const shared = (name: string, size: number): LoopBuffer => {
    return { name, space: 'workgroup', dtype: type as LoopBuffer['dtype'], size, access: 'read_write' };
  };
  const kept = shared('image', room.image);
  const waiting = shared('sums', room.sums);
  const buffers = atOnce > 1 ? [kept, waiting] : [kept];
  const b = openBuilder(
    frame,
    buffers.map(({ name }) => name),
  );
  const blocks = Math.ceil(window.lines / tiling.lines);
  const [group, block] = divideInts(b, builtin('workgroup', 0), blocks, ['group', 'block']);
  const image = new ImageWindow(b, frame, body, tiling.lines, { group, block, image: kept.name });
  const { taps, tapLines } = image.window;
  const points = new TileLowering(b, frame, body, group);
  image.begin(constant(0), constant(k.extent / (taps * tapLines)), room.behind);
  b.for('m', constant(0), constant(m.extent), 1, (row) => {
    const weights = Array.from({ length: k.extent }, (_, step) =>
      b.let(splat(points.at({ row, step: constant(step) }).value(body.lhs), 4), 'weight'),
    );
    const sumAt = (y: Value, x: Value): Value => {
      const start = image.startOf(y, x);
      const sum = weights.reduce<Value>(
        (all, weight, step) => {
          const channel = Math.floor(step / (taps * tapLines));
          const tap = image.tapAt(constant(Math.floor(step / taps) % tapLines), step % taps);
          const from = addInts(tap, mulInts(constant(channel), constant(image.planeSize)));
          return multiplyAdd(weight, image.seen(addInts(start, from)), all);
        },
        constant(0, type, 4),
      );
      return b.let(sum, 'sum');
    };
    if (atOnce === 1) {
      b.for('y', constant(0), image.lines, 1, (y) =>
        b.for('x', constant(0), constant(image.quads), 1, (x) => image.write(row, y, x, sumAt(y, x))),
      );
      return;
    }
    const positions = mulInts(image.lines, constant(window.width));
    const full = b.let(operation('div', [positions, constant(4)], 'i32'), 'full');
    const endsWithin = (window.lines * window.width) % 4 > 0;
    if (endsWithin) b.store(waiting.name, mulInts(full, constant(4)), constant(0, type, 4), true);
    b.for('y', constant(0), image.lines, 1, (y) =>
      b.for('x', constant(0), constant(roundedUp(image.quads, atOnce)), atOnce, (first) => {
        const groups = Array.from({ length: atOnce }, (_, i) => b.let(addInts(first, constant(i)), 'x'));
        const sums = groups.map((x) => sumAt(y, x));
        // What is computed past the end of a line is overwritten by the next one.
        groups.forEach((x, i) =>
          b.store(waiting.name, place(y, window.width, mulInts(x, constant(4))), sums[i]!, true),
        );
      }),
    );
    const write = image.writeAlong(constant(0));
    const leave = (quad: Value, isFull: boolean): void => {
      const index = mulInts(quad, constant(4));
      // Of a single position no place has lanes: all four would be written where it stands.
      const wide = n.extent === 1 ? 1 : 4;
      const sum: Value = { kind: 'load', buffer: waiting.name, index, aligned: true, type, width: wide };
      write(row, quad, b.let(splat(sum, 4), 'sum'), isFull);
    };
    eachOf(b, constant(0), full, atOnce)((quads) => quads.forEach((quad) => leave(quad, true)));
    if (!endsWithin) return;
    // Of several blocks only the last one may end within a group.
    const rest = operation('mod', [positions, constant(4)], 'i32');
    b.if(blocks === 1 ? constant(1, 'bool') : less(constant(0), rest), () => leave(full, false));
  });
  const note = `[${batch.extent}] ${m.extent}x${k.extent} by ${k.extent}x${n.extent}, ${tiling.lines} lines at a time, weights in registers`;
  return finish(frame, b, [batch.extent * blocks, 1, 1], [1, 1, 1], note, buffers);
}
