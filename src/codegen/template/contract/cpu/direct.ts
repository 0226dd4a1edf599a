// The form of conv for windows of few elements (depthwise), on targets that pack: a channel's weights stay in registers, and four
// neighbouring positions are summed up tap by tap from the padded input in memory (cpu/image-window.ts).

import { addInts, builtin, constant, mulInts, splat } from '../../../loop/builder.ts';
import { registerOf } from '../../../lower/expressions.ts';
import type { Loop, LoopBuffer, Value } from '../../../loop/loop.ts';
import type { Contract, ContractProblem } from '../problem.ts';
import { imageLines } from '../room.ts';
import type { ContractSchedule } from '../schedule.ts';
import { finish, openBuilder, type Frame } from '../../shared/frame.ts';
import { ImageWindow } from './image-window.ts';
import { divideInts, multiplyAdd, TileLowering } from '../tile.ts';

type Direct = Extract<ContractSchedule, { kind: 'direct' }>;

/** Elements of the padded input that a workgroup keeps. */
export function directRoom({ lines }: Direct, { k, window }: ContractProblem): number {
  const { plane, taps, tapLines } = window!;
  return (k / (taps * tapLines)) * imageLines(lines, plane!) * plane!.line;
}

export function directLoop(frame: Frame, body: Contract, schedule: Direct, problem: ContractProblem): Loop {
  const { batch, m, n, k } = body;
  const { window } = problem;
  const type = registerOf(body.node.dtype);
  const kept: LoopBuffer = {
    name: 'image',
    space: 'workgroup',
    dtype: type as LoopBuffer['dtype'],
    size: directRoom(schedule, problem),
    access: 'read_write',
  };
  const b = openBuilder(frame, [kept.name]);
  const blocks = Math.ceil(window!.lines / schedule.lines);
  const [group, block] = divideInts(b, builtin('workgroup', 0), blocks, ['group', 'block']);
  const image = new ImageWindow(b, frame, body, schedule.lines, { group, block, image: kept.name });
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
  const note = `[${batch.extent}] ${m.extent}x${k.extent} by ${k.extent}x${n.extent}, ${schedule.lines} lines at a time, weights in registers`;
  return finish(frame, b, [batch.extent * blocks, 1, 1], [1, 1, 1], note, [kept]);
}
