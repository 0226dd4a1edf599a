// A transform by a core: stages from one half of thread memory to the other (Stockham's autosort).
// Vectors run along four lines, or along four points of one line, which only the last stage has to
// turn around (Pommier, PFFFT, 2011): its radix is four then. Where vectors run along lines and
// memory along points, squares of four by four are turned around before the first stage, or after
// the last.

import {
  addIndex,
  axisIndex,
  constantIndex,
  offsetIndex,
  scaleIndex,
  type IndexExpr,
} from '../../../ir/index-algebra/expr.ts';
import { dtypeBytes } from '../../../ir/dtype.ts';
import type { Axis } from '../../../schedule/kernel.ts';
import { addInts, constant, less, mulInts, splat } from '../../loop/builder.ts';
import type { Loop, LoopBuffer, Value, Width } from '../../loop/loop.ts';
import { laneAtom, quadIndex, registerOf } from '../../expression/lowering.ts';
import { countContiguous, isContiguous } from '../row-reduction/tiling.ts';
import { finish, forUnits, openBuilder, type Frame } from '../shared/frame.ts';
import { butterfly, type ComplexVector } from './butterfly.ts';
import { bodyOf, neighboursAlong, planOf, Points, stagesOf, type FftBody } from './points.ts';
import { transposed } from '../shared/transpose.ts';

type Lanes = 'line' | 'position' | 'none';

/** Bytes of thread memory that lines are transformed in together. */
const mostBytes = 2 ** 19;
/** Bytes that a cache of a core holds at the least. */
const cacheBytes = 2 ** 21;

function lanesOf({ kernel }: Frame, body: FftBody): Lanes {
  const { line, position } = body;
  const along = (axis: Axis): number => neighboursAlong(kernel, body, axis);
  const turns = position.extent % 16 === 0;
  if (turns && (line.extent < 4 || along(position) > along(line))) return 'position';
  return line.extent < 4 ? 'none' : 'line';
}

/** Which way memory runs, for vectors along lines. */
interface Turns {
  /** Points are neighbours where they are read, or where they are stored. */
  readonly before: boolean;
  readonly after: boolean;
  /**
   * All points come to thread memory before the first stage: those of a line lie far apart in memory
   * that no cache holds, and loads that nothing stands between wait for it together.
   */
  readonly copied: boolean;
  /** What is read is more than a cache holds. */
  readonly isFar: boolean;
  /** Groups of four lines that fill a line of a cache where lines are neighbours. */
  readonly seats: number;
}

function turnsOf({ kernel }: Frame, body: FftBody, lanes: Lanes): Turns {
  const { line, position } = body;
  if (lanes !== 'line') return { before: false, after: false, copied: false, isFar: false, seats: 1 };
  const given = [body.re, body.im];
  const results = kernel.writes.map(({ value }) => value);
  const read = (axis: Axis, step: number): number => countContiguous(given, axis, step);
  const stored = (axis: Axis, step: number): number =>
    kernel.writes.filter(({ index }) => isContiguous(index, axis, step)).length +
    countContiguous(results, axis, step);
  const all = (count: (axis: Axis, step: number) => number, axis: Axis): number =>
    count(axis, 1) + count(axis, 2);
  const enough = position.extent >= 4;
  const before = enough && all(read, position) > all(read, line);
  const after = enough && all(stored, position) > all(stored, line);
  const bytes = 2 * dtypeBytes(body.node.dtype) * line.extent * position.extent;
  const isFar = bytes >= cacheBytes;
  const meets = (before ? 0 : all(read, line)) + (after ? 0 : all(stored, line));
  return {
    before,
    after,
    isFar,
    copied: isFar && !before && all(read, line) > 0,
    // From afar, what lies within a few lines of a cache comes together.
    seats: meets === 0 ? 1 : isFar ? 8 : 2,
  };
}

/** The Loop of a transform on a core. */
export function serialFftLoop(frame: Frame): Loop {
  const { target, kernel } = frame;
  const body = bodyOf(kernel);
  const { line, position } = body;
  const n = position.extent;
  const lanes = lanesOf(frame, body);
  const stages = stagesOf(planOf(body).narrow, n);
  const last = stages.length - 1;
  const { before, after, copied, isFar, seats: wanted } = turnsOf(frame, body, lanes);
  const width: Width = lanes === 'none' ? 1 : 4;
  const unit = lanes === 'line' ? 4 : 1;
  const type = registerOf(body.node.dtype);
  // Places that a page divides lie in one set of a cache, which holds few: what follows a large
  // power of two begins five lines of a cache later.
  const held = (n * unit) % 1024 === 0 ? n + 80 / unit : n;
  const seats =
    stages.length === 1 && !before && !after && !copied
      ? 1
      : ([8, 4, 2].find(
          (count) => count <= wanted && line.extent % (4 * count) === 0 && 64 * n * count <= mostBytes,
        ) ?? 1);
  const fromMemory = (s: number): boolean => s > 0 || before || copied;
  const toMemory = (s: number): boolean => s < last || after;
  // A stage writes the half of its parity, and reads the other one.
  const names = [0, 1].flatMap((half) =>
    stages.some((_, s) => (toMemory(s) && s % 2 === half) || (fromMemory(s) && s % 2 !== half))
      ? [`re${half}`, `im${half}`]
      : [],
  );
  const shared = names.map((name): LoopBuffer => ({
    name,
    space: 'workgroup',
    dtype: type,
    size: seats * held * unit,
    access: 'read_write',
  }));
  const b = openBuilder(frame, names);
  const points = new Points(frame, b);
  const units = lanes === 'line' ? Math.ceil(line.extent / (4 * seats)) : line.extent;
  const unitAtom = units === 1 ? constantIndex(0) : axisIndex('unit', units);
  const seatAtom = seats === 1 ? constantIndex(0) : axisIndex('seat', seats);
  const firstLine =
    lanes === 'line' ? addIndex(scaleIndex(unitAtom, 4 * seats), scaleIndex(seatAtom, 4)) : unitAtom;
  const linePlace = lanes === 'line' ? addIndex(firstLine, laneAtom) : firstLine;
  const lanesAxis = lanes === 'none' ? undefined : lanes === 'line' ? line : position;

  const load = (buffer: string, index: Value): Value =>
    b.let({ kind: 'load', buffer, index, aligned: true, type, width }, buffer.startsWith('re') ? 're' : 'im');
  const read = (s: number, at: Value): ComplexVector => ({
    re: load(`re${s & 1}`, at),
    im: load(`im${s & 1}`, at),
  });
  const write = (s: number, at: Value, { re, im }: ComplexVector): void => {
    b.store(`re${s & 1}`, at, splat(re, width), true);
    b.store(`im${s & 1}`, at, splat(im, width), true);
  };
  // Named, so that it is done outside of loops that share it.
  const spread = (factor: Value): Value => b.let(splat(factor, width), 'w');
  const inMemory = (seat: Value, place: Value, offset: number): Value =>
    addInts(
      addInts(mulInts(seat, constant(held * unit)), mulInts(place, constant(unit))),
      constant(offset * unit),
    );
  const placed = (unitValue: Value, seat: Value): Map<IndexExpr, Value> =>
    new Map([
      [unitAtom, unitValue],
      [seatAtom, seat],
    ]);

  /** Butterflies of a stage: `j` counts its factors, `p` the points that share them. */
  const visit = (s: number, unitValue: Value, seat: Value, j: Value, p: Value): void => {
    const stage = stages[s]!;
    const { radix, below, apart } = stage;
    const atoms = placed(unitValue, seat);
    const turned = lanes === 'position' && s === last && s > 0;
    let values: readonly ComplexVector[];
    if (!fromMemory(s)) {
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
      values = Array.from({ length: radix }, (_, i) => read(s - 1, inMemory(seat, from, i * apart)));
    }
    const [jAtom, jPlace] = spreadAlong('j', below, turned);
    const factors = points
      .factors(stage, jPlace, new Map([[jAtom, j]]))
      .map(({ re, im }) => ({ re: spread(re), im: spread(im) }));
    const results = butterfly(points.c, points.multiplied(values, factors));
    if (!toMemory(s)) {
      const here = new Map([...atoms, [jAtom, j] as const]);
      results.forEach((result, k) =>
        points.output(linePlace, offsetIndex(jPlace, below * k), here, result, lanesAxis),
      );
      return;
    }
    const to = addInts(mulInts(j, constant(apart)), lanes === 'position' ? mulInts(p, constant(4)) : p);
    results.forEach((result, k) => write(s, inMemory(seat, to, below * k * apart), result));
  };
  const quads = Math.floor(n / 4);
  /** Four points of each of four lines, whose vectors run along points outside; fewer at the end. */
  const turn = (side: 'before' | 'after', unitValue: Value, seat: Value, quad: Value): void => {
    const isLast = quad.kind === 'constant' && quad.value === quads;
    const ofFour = isLast ? n : 4 * quads;
    const [quadAtom, place] = spreadAlong('quad', ofFour, true);
    const atoms = placed(unitValue, seat).set(quadAtom, quad);
    const inside = isLast ? n % 4 : 4;
    const rows = [0, 1, 2, 3];
    const [from, half] = [mulInts(quad, constant(4)), side === 'before' ? 1 : last];
    if (side === 'before') {
      const given = rows.map((row) => points.input(offsetIndex(firstLine, row), place, atoms));
      const re = transposed(
        b,
        given.map((value) => splat(value.re, 4)),
      );
      const im = transposed(
        b,
        given.map((value) => splat(value.im, 4)),
      );
      for (const i of rows.slice(0, inside)) write(half, inMemory(seat, from, i), { re: re[i]!, im: im[i]! });
      return;
    }
    const found = rows.map((i) => read(half, inMemory(seat, from, Math.min(i, inside - 1))));
    const re = transposed(
      b,
      found.map((value) => value.re),
    );
    const im = transposed(
      b,
      found.map((value) => value.im),
    );
    const first = mulInts(addInts(mulInts(unitValue, constant(seats)), seat), constant(4));
    for (const row of rows) {
      const result = { re: re[row]!, im: im[row]! };
      const along = { ...position, extent: ofFour };
      const present =
        line.extent % 4 === 0
          ? constant(1, 'bool')
          : less(addInts(first, constant(row)), constant(line.extent));
      b.if(present, () => points.output(offsetIndex(firstLine, row), place, atoms, result, along));
    }
  };
  /** A point of all lines, to where the first stage reads it. */
  const copy = (unitValue: Value, p: Value): void => {
    const pAtom = axisIndex('p', n);
    const atoms = placed(unitValue, constant(0)).set(pAtom, p);
    for (let seat = 0; seat < seats; seat++) {
      const lines = addIndex(offsetIndex(scaleIndex(unitAtom, 4 * seats), 4 * seat), laneAtom);
      write(1, inMemory(constant(seat), p, 0), points.input(lines, pAtom, atoms));
    }
  };
  const loop = (hint: string, count: number, each: (counter: Value) => void): void => {
    if (count === 1) each(constant(0));
    else b.for(hint, constant(0), constant(count), 1, each);
  };
  const turnsOfStage = (s: number, each: (j: Value, p: Value) => void): void => {
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
      const allQuads = (each: (quad: Value) => void): void => {
        loop('quad', quads, each);
        if (n % 4 > 0) each(constant(quads));
      };
      const turned = (side: 'before' | 'after', seat: Value): void =>
        allQuads((quad) => turn(side, unitValue, seat, quad));
      // Neighbouring lines are read together, and stored together; what lies between stays inside
      // of thread memory.
      const together = before && isFar;
      if (copied) loop('p', n, (p) => copy(unitValue, p));
      else if (together) allQuads((quad) => seated((seat) => turn('before', unitValue, seat, quad)));
      else if (!before) turnsOfStage(0, (j, p) => seated((seat) => visit(0, unitValue, seat, j, p)));
      const inner = stages.flatMap((_, s) => (fromMemory(s) && toMemory(s) ? [s] : []));
      if (before || after || inner.length > 0)
        seated((seat) => {
          if (before && !together) turned('before', seat);
          for (const s of inner) turnsOfStage(s, (j, p) => visit(s, unitValue, seat, j, p));
          if (after) turned('after', seat);
        });
      if (!after && fromMemory(last))
        turnsOfStage(last, (j, p) => seated((seat) => visit(last, unitValue, seat, j, p)));
    },
    (seats * n * unit) / 4,
  );
  const around =
    before && after
      ? ', turned around before and after'
      : before
        ? ', turned around before'
        : after
          ? ', turned around after'
          : '';
  const note =
    `${line.extent} lines of ${n} by ${stages.map(({ radix }) => radix).join(' · ')}, ` +
    `lanes along ${lanes}${around}, ${seats} group(s) of lines at a time`;
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
