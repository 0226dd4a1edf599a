// The form of conv for windows of few elements (depthwise), on targets that pack: a channel's
// weights stay in registers, and four neighbouring positions are summed up tap by tap from the
// padded input in memory (cpu/image-window.ts).

import { packsOperands } from '../../../../schedule/machine.ts';
import { CompilerBug } from '../../../../errors.ts';
import { isWide } from '../../../../ir/dtype.ts';
import { addInts, builtin, constant, mulInts, splat } from '../../../loop/builder.ts';
import { registerOf } from '../../../expression/lowering.ts';
import type { Loop, LoopBuffer, Value } from '../../../loop/loop.ts';
import type { Contract, ContractProblem, Plane, Window } from '../problem.ts';
import { hasRows } from '../size.ts';
import type { Strategy, Tile } from '../strategy.ts';
import { finish, openBuilder, type Frame } from '../../shared/frame.ts';
import { cpu, shared } from './costs.ts';
import { imageLines } from './image-lines.ts';
import { ImageWindow } from './image-window.ts';
import { multiplyAdd, TileLowering } from '../tile.ts';
import { divideInts } from '../../../loop/integers.ts';

export interface DirectTiling extends Tile {
  /**
   * conv of few elements: four positions at a time from a part of the padded input, weights in
   * registers.
   */
  readonly kind: 'direct';
  readonly lines: number;
}

/** Weights that one position is summed up with. */
const mostWeights = 32;

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
    const bytes = (dtype === 'f64' ? 8 : 4) * roomOf(tiling, k, window, window.plane);
    return (
      packsOperands(target) && !isWide(dtype) && k <= mostWeights && bytes <= target.limits.workgroupBytes
    );
  },
  time(tiling, problem, target) {
    const { batch, m, k, epilogue, window } = problem;
    if (window?.plane === undefined) return Infinity;
    const lines = Math.min(tiling.lines, window.lines);
    const quads = lines * Math.ceil(window.width / 4);
    const spilled = k > cpu.registers - 4 ? k * cpu.spill : 0;
    const sums = m * quads * (cpu.turn + k * 0.15 + spilled + 0.2 * epilogue);
    const brought = cpu.filled * roomOf(tiling, k, window, window.plane);
    const block = sums + brought + m * lines * 3 + cpu.workgroup / 8;
    return shared(batch * Math.ceil(window.lines / tiling.lines), problem, target) * block;
  },
  loop: directLoop,
};

/** Elements of the padded input that a workgroup keeps. */
function roomOf({ lines }: DirectTiling, k: number, { taps, tapLines }: Window, plane: Plane): number {
  return (k / (taps * tapLines)) * imageLines(lines, plane) * plane.line;
}

function directLoop(frame: Frame, body: Contract, tiling: DirectTiling, problem: ContractProblem): Loop {
  const { batch, m, n, k } = body;
  const { window } = problem;
  if (window?.plane === undefined) throw new CompilerBug('direct template', 'there is no padded input');
  const type = registerOf(body.node.dtype);
  const kept: LoopBuffer = {
    name: 'image',
    space: 'workgroup',
    dtype: type as LoopBuffer['dtype'],
    size: roomOf(tiling, k.extent, window, window.plane),
    access: 'read_write',
  };
  const b = openBuilder(frame, [kept.name]);
  const blocks = Math.ceil(window.lines / tiling.lines);
  const [group, block] = divideInts(b, builtin('workgroup', 0), blocks, ['group', 'block']);
  const image = new ImageWindow(b, frame, body, tiling.lines, { group, block, image: kept.name });
  const { taps, tapLines } = image.window;
  const points = new TileLowering(b, frame, body, group);
  image.begin(constant(0), constant(k.extent / (taps * tapLines)));
  b.for('m', constant(0), constant(m.extent), 1, (row) => {
    const weights = Array.from({ length: k.extent }, (_, step) =>
      b.let(splat(points.at({ row, step: constant(step) }).value(body.lhs), 4), 'weight'),
    );
    b.for('y', constant(0), image.lines, 1, (y) =>
      b.for('x', constant(0), constant(image.quads), 1, (x) => {
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
        image.write(row, y, x, b.let(sum, 'sum'));
      }),
    );
  });
  const note = `[${batch.extent}] ${m.extent}x${k.extent} by ${k.extent}x${n.extent}, ${tiling.lines} lines at a time, weights in registers`;
  return finish(frame, b, [batch.extent * blocks, 1, 1], [1, 1, 1], note, [kept]);
}
