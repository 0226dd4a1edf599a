// A transform by a core: stages from one half of thread memory to the other (Stockham's autosort).
// Vectors run along four lines where lines are neighbours in memory; else along four points of one
// line, which only the last stage has to turn around (Pommier, PFFFT, 2011): its radix is four then.

import {
  addIndex,
  axisIndex,
  constantIndex,
  offsetIndex,
  scaleIndex,
  type IndexExpr,
} from '../../../ir/index-algebra/expr.ts';
import type { Axis } from '../../../schedule/kernel.ts';
import { addInts, constant, mulInts, splat, type LoopBuilder } from '../../loop/builder.ts';
import type { Loop, LoopBuffer, Value, Width } from '../../loop/loop.ts';
import { laneAtom, quadIndex, registerOf } from '../../lower/expressions.ts';
import { finish, forUnits, openBuilder, type Frame } from '../shared/frame.ts';
import { butterfly, type Complex } from './butterfly.ts';
import { bodyOf, neighboursAlong, planOf, Points, stagesOf, type FftBody } from './points.ts';

type Lanes = 'line' | 'position' | 'none';

/** Bytes of thread memory that lines are transformed in together. */
const mostBytes = 2 ** 18;

function lanesOf({ kernel }: Frame, body: FftBody): Lanes {
  const { line, position } = body;
  const along = (axis: Axis): number => neighboursAlong(kernel, body, axis);
  const turns = position.extent % 16 === 0;
  if (turns && (line.extent < 4 || along(position) > along(line))) return 'position';
  return line.extent < 4 ? 'none' : 'line';
}

/** The Loop of a transform on a core. */
export function serialFftLoop(frame: Frame): Loop {
  const { target, kernel } = frame;
  const body = bodyOf(kernel);
  const { line, position } = body;
  const n = position.extent;
  const lanes = lanesOf(frame, body);
  const plan = planOf(body);
  const stages = stagesOf(lanes === 'position' ? plan.narrow : plan.wide, n);
  const width: Width = lanes === 'none' ? 1 : 4;
  const unit = lanes === 'line' ? 4 : 1;
  const type = registerOf(body.node.dtype);
  // Lines of a cache hold sixteen numbers: neighbours are read and written together.
  const seats =
    lanes !== 'line' || stages.length === 1
      ? 1
      : ([4, 2].find((count) => line.extent % (4 * count) === 0 && 64 * n * count <= mostBytes) ?? 1);
  const names =
    stages.length === 1 ? [] : stages.length === 2 ? ['re0', 'im0'] : ['re0', 'im0', 're1', 'im1'];
  const shared = names.map((name): LoopBuffer => ({
    name,
    space: 'workgroup',
    dtype: type,
    size: seats * n * unit,
    access: 'read_write',
  }));
  const b = openBuilder(frame, names);
  const points = new Points(frame, b);
  const units = lanes === 'line' ? Math.ceil(line.extent / (4 * seats)) : line.extent;
  const unitAtom = units === 1 ? constantIndex(0) : axisIndex('unit', units);
  const seatAtom = seats === 1 ? constantIndex(0) : axisIndex('seat', seats);
  const linePlace =
    lanes === 'line'
      ? addIndex(addIndex(scaleIndex(unitAtom, 4 * seats), scaleIndex(seatAtom, 4)), laneAtom)
      : unitAtom;
  const lanesAxis = lanes === 'none' ? undefined : lanes === 'line' ? line : position;

  const load = (buffer: string, index: Value): Value =>
    b.let({ kind: 'load', buffer, index, aligned: true, type, width }, buffer.startsWith('re') ? 're' : 'im');
  const read = (s: number, at: Value): Complex => ({
    re: load(`re${s % 2}`, at),
    im: load(`im${s % 2}`, at),
  });
  const write = (s: number, at: Value, { re, im }: Complex): void => {
    b.store(`re${s % 2}`, at, splat(re, width), true);
    b.store(`im${s % 2}`, at, splat(im, width), true);
  };
  const last = stages.length - 1;

  /** Butterflies of a stage: `j` counts its factors, `p` the points that share them. */
  const visit = (s: number, unitValue: Value, seat: Value, j: Value, p: Value): void => {
    const stage = stages[s]!;
    const { radix, below, apart } = stage;
    const atoms = new Map<IndexExpr, Value>([
      [unitAtom, unitValue],
      [seatAtom, seat],
    ]);
    const base = mulInts(seat, constant(n * unit));
    const inMemory = (place: Value, offset: number): Value =>
      addInts(addInts(base, mulInts(place, constant(unit))), constant(offset * unit));
    const turned = lanes === 'position' && s === last && s > 0;
    let values: readonly Complex[];
    if (s === 0) {
      const [pAtom, place] = spreadAlong('p', apart, lanes === 'position');
      const here = new Map([...atoms, [pAtom, p] as const]);
      values = Array.from({ length: radix }, (_, i) =>
        points.input(linePlace, offsetIndex(place, i * apart), here),
      );
    } else if (turned) {
      // Four neighbours j, and of each the four points that are transformed.
      const at = mulInts(j, constant(16));
      const [re, im] = (['re', 'im'] as const).map((part) =>
        transposed(
          b,
          [0, 1, 2, 3].map((i) => read(s - 1, addInts(at, constant(4 * i)))[part]),
        ),
      ) as [Value[], Value[]];
      values = re.map((value, i) => ({ re: value, im: im[i]! }));
    } else {
      const from = addInts(
        mulInts(j, constant(radix * apart)),
        lanes === 'position' ? mulInts(p, constant(4)) : p,
      );
      values = Array.from({ length: radix }, (_, i) => read(s - 1, inMemory(from, i * apart)));
    }
    const [jAtom, jPlace] = spreadAlong('j', below, turned);
    const factors = points
      .factors(stage, jPlace, new Map([[jAtom, j]]))
      .map(({ re, im }) => ({ re: splat(re, width), im: splat(im, width) }));
    const results = butterfly(points.c, points.multiplied(values, factors));
    if (s === last) {
      const here = new Map([...atoms, [jAtom, j] as const]);
      results.forEach((result, k) =>
        points.output(linePlace, offsetIndex(jPlace, below * k), here, result, lanesAxis),
      );
      return;
    }
    const to = addInts(mulInts(j, constant(apart)), lanes === 'position' ? mulInts(p, constant(4)) : p);
    results.forEach((result, k) => write(s, inMemory(to, below * k * apart), result));
  };
  const loop = (hint: string, count: number, each: (counter: Value) => void): void => {
    if (count === 1) each(constant(0));
    else b.for(hint, constant(0), constant(count), 1, each);
  };
  const turnsOf = (s: number, each: (j: Value, p: Value) => void): void => {
    const { below, apart } = stages[s]!;
    const quads = lanes === 'position';
    if (quads && s === last && s > 0) loop('j', below / 4, (j) => each(j, constant(0)));
    else loop('j', below, (j) => loop('p', quads ? apart / 4 : apart, (p) => each(j, p)));
  };
  const { grid } = forUnits(
    b,
    target,
    units,
    'unit',
    (unitValue) => {
      const seated = (each: (seat: Value) => void): void => loop('seat', seats, each);
      turnsOf(0, (j, p) => seated((seat) => visit(0, unitValue, seat, j, p)));
      if (last > 1)
        seated((seat) => {
          for (let s = 1; s < last; s++) turnsOf(s, (j, p) => visit(s, unitValue, seat, j, p));
        });
      if (last > 0) turnsOf(last, (j, p) => seated((seat) => visit(last, unitValue, seat, j, p)));
    },
    (seats * n * unit) / 4,
  );
  const note =
    `${line.extent} lines of ${n} by ${stages.map(({ radix }) => radix).join(' · ')}, ` +
    `lanes along ${lanes}, ${seats} group(s) of lines at a time`;
  return finish(frame, b, grid, [target.workgroupSize, 1, 1], note, shared);
}

/** A counter's atom and the place that it stands for; with `quads`, four places. */
function spreadAlong(
  name: string,
  extent: number,
  quads: boolean,
): readonly [atom: IndexExpr, place: IndexExpr] {
  if (quads) {
    const atom = quadIndex(name, extent);
    return [atom, addIndex(scaleIndex(atom, 4), laneAtom)];
  }
  const atom = extent === 1 ? constantIndex(0) : axisIndex(name, extent);
  return [atom, atom];
}

/** Rows of four vectors as columns: two rounds of lanes of two vectors each. */
function transposed(b: LoopBuilder, rows: readonly Value[]): Value[] {
  const pick = (x: Value, y: Value, lanes: readonly (readonly [of: 0 | 1, lane: number])[]): Value => {
    const args = lanes.map(([of, lane]): Value => ({
      kind: 'lane',
      arg: of === 0 ? x : y,
      lane,
      type: x.type,
      width: 1,
    }));
    return b.let({ kind: 'vector', args, type: x.type, width: 4 }, 'turned');
  };
  const low = [
    [0, 0],
    [1, 0],
    [0, 1],
    [1, 1],
  ] as const;
  const high = [
    [0, 2],
    [1, 2],
    [0, 3],
    [1, 3],
  ] as const;
  const first = [
    [0, 0],
    [0, 1],
    [1, 0],
    [1, 1],
  ] as const;
  const second = [
    [0, 2],
    [0, 3],
    [1, 2],
    [1, 3],
  ] as const;
  const [a, c] = [pick(rows[0]!, rows[1]!, low), pick(rows[2]!, rows[3]!, low)];
  const [d, e] = [pick(rows[0]!, rows[1]!, high), pick(rows[2]!, rows[3]!, high)];
  return [pick(a, c, first), pick(a, c, second), pick(d, e, first), pick(d, e, second)];
}
