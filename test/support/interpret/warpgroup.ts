// What the statements of warp groups (wgmma and TMA copies of sm_90a) do in the Loop interpreter:
// copies of tiles arrive as late as they are allowed to, sums are poison until they are waited for,
// and whether an invocation may read or overwrite a tile follows from the mbarriers alone (vector
// clocks of warps: what happened before an arrival has happened for those that waited for it).

import type { Memory, Worker } from './matrix.ts';
import { MBarriers, type MBarrier } from './mbarrier.ts';
import type { Frame } from './registers.ts';
import type { LoopBuffer, TileMap } from '../../../src/codegen/loop/loop.ts';
import { bf16FromBits, f16FromBits } from '../../../src/ir/value.ts';
import { tileLine, tileLines } from '../../../src/codegen/loop/verify-warpgroup.ts';

/** Invocations of a warp group, and of a warp. */
export const warpgroup = 128;
const warp = 32;
/** Rows and steps of k of a multiplication. */
const rows = 64;
const steps = 16;

export interface Line {
  /** The copy that is on its way. */
  arriving: Copy | undefined;
  /** The mbarrier and the phase that the last copy belonged to. */
  landed: { readonly barrier: MBarrier; readonly phase: number } | undefined;
  /** By warp: when it last read the line, on its own clock; ∞ while it does. */
  readonly readers: Float64Array;
  /** And when it last cleared an element of it; ∞ before it publishes that. */
  readonly clearers: Float64Array;
}

interface Copy {
  readonly to: Tile;
  readonly at: number;
  readonly values: Float64Array;
  readonly barrier: MBarrier;
}

/** Tiled memory of the workgroup. */
export interface Tile {
  readonly buffer: LoopBuffer;
  readonly data: Memory['data'];
  readonly lines: Line[];
}

/** Where an operand begins, as given in its statement. */
export interface Side {
  readonly tile: Tile;
  readonly alongK: boolean;
  readonly panel: number;
}

/** An operand's values, and the lines of tiled memory that it lies in. */
export interface Operand {
  readonly values: Float64Array;
  readonly lines: ReadonlySet<Line>;
}

interface Group {
  /** Whether the sums may be added to. */
  fenced: boolean;
  /** Multiplications since the last commit, and committed groups of them. */
  open: Multiplication[];
  groups: Multiplication[][];
  /** Sums under way, by their first register: four for each invocation. */
  readonly flight: Map<number, Float64Array>;
}

interface Multiplication {
  readonly sums: readonly number[];
  readonly lines: ReadonlySet<Line>;
}

export class Warpgroups {
  readonly #worker: Worker;
  readonly barriers: MBarriers;
  readonly #tiles: Tile[] = [];
  readonly #warps: number;
  readonly #groups: Group[];
  #copies: Copy[] = [];
  /** By invocation: elements that it has cleared and not published. */
  readonly #cleared = new Map<number, { readonly tile: Tile; readonly at: number }[]>();

  constructor(invocations: number, worker: Worker) {
    this.#worker = worker;
    this.#warps = Math.ceil(invocations / warp);
    this.barriers = new MBarriers(invocations, warp, worker);
    const groups = Math.ceil(invocations / warpgroup);
    this.#groups = Array.from({ length: groups }, () => {
      return { fenced: false, open: [], groups: [], flight: new Map<number, Float64Array>() };
    });
  }

  /** Tiled memory, where a buffer is. */
  tile({ buffer, data }: Memory): Tile {
    const known = this.#tiles.find((tile) => tile.buffer === buffer);
    if (known !== undefined) return known;
    const lines = Array.from({ length: buffer.size / tileLine }, (): Line => {
      const never = (): Float64Array => new Float64Array(this.#warps).fill(-1);
      return { arriving: undefined, landed: undefined, readers: never(), clearers: never() };
    });
    const tile: Tile = { buffer, data, lines };
    this.#tiles.push(tile);
    return tile;
  }

  /** At the start of a workgroup. */
  clear(): void {
    this.barriers.clear();
    this.#copies = [];
    for (const { lines } of this.#tiles)
      for (const line of lines) {
        line.arriving = line.landed = undefined;
        line.readers.fill(-1);
        line.clearers.fill(-1);
      }
    this.#cleared.clear();
    for (const group of this.#groups) {
      [group.fenced, group.open, group.groups] = [false, [], []];
      group.flight.clear();
    }
  }

  /** At the end of a workgroup. */
  finish(): void {
    if (this.#copies.length > 0) this.#worker.fail('the workgroup ends while tiles are being copied');
  }

  copy(
    item: number,
    to: Tile,
    at: number,
    from: Memory,
    map: TileMap,
    start: readonly number[],
    barrier: MBarrier,
  ): void {
    const { fail, touch } = this.#worker;
    this.barriers.check(item, barrier);
    const values = boxOf(from, map, start);
    const { name, size } = to.buffer;
    if (at % (tileLine * tileLines) !== 0) fail(`element ${at} of ${name} is where no tile can begin`);
    if (!(at >= 0 && at + values.length <= size))
      fail(`a tile at element ${at} is outside ${name}, which has ${size}`);
    const copy: Copy = { to, at, values, barrier };
    const clock = this.barriers.clockOf(item);
    for (const [i, line] of linesOf(to, at, values.length)) {
      touch(`line ${i} of ${name}`);
      if (line.arriving !== undefined) fail(`line ${i} of ${name} is being copied to already`);
      line.readers.forEach((read, w) => {
        if (read === Infinity) fail(`line ${i} of ${name} is overwritten while warp ${w} multiplies it`);
        if (read > clock[w]!)
          fail(`race on line ${i} of ${name}: warp ${w} read it, and no mbarrier orders the two`);
      });
      this.#checkCleared(line, i, name, item);
      line.arriving = copy;
    }
    to.data.fill(Number.NaN as never, at, at + values.length);
    barrier.flying += 1;
    this.#copies.push(copy);
  }

  /** Completes the oldest copy. */
  land(): boolean {
    const copy = this.#copies.shift();
    if (copy === undefined) return false;
    const { to, at, values, barrier } = copy;
    to.data.set(values as never, at);
    for (const [, line] of linesOf(to, at, values.length)) {
      line.arriving = undefined;
      line.landed = { barrier, phase: barrier.phase };
      line.clearers.fill(-1);
    }
    this.barriers.bring(barrier, 2 * values.length);
    return true;
  }

  /** Until it is published, the element is poison. */
  clearElement(item: number, tile: Tile, at: number): void {
    const { fail, touch } = this.#worker;
    const { name, size } = tile.buffer;
    if (!(at >= 0 && at < size)) fail(`element ${at} is outside ${name}, which has ${size}`);
    const number = Math.floor(at / tileLine);
    const line = tile.lines[number]!;
    touch(`line ${number} of ${name}`);
    this.#checkLanded(line, number, name, item);
    const clock = this.barriers.clockOf(item);
    line.readers.forEach((read, w) => {
      if (read > clock[w]!) fail(`race on line ${number} of ${name}: warp ${w} reads what is cleared`);
    });
    tile.data[at] = Number.NaN as never;
    line.clearers[Math.floor(item / warp)] = Infinity;
    const cleared = this.#cleared.get(item) ?? [];
    this.#cleared.set(item, [...cleared, { tile, at }]);
  }

  publish(item: number): void {
    const w = Math.floor(item / warp);
    for (const { tile, at } of this.#cleared.get(item) ?? []) {
      tile.data[at] = 0 as never;
      tile.lines[Math.floor(at / tileLine)]!.clearers[w] = this.barriers.clockOf(item)[w]!;
    }
    this.#cleared.delete(item);
  }

  fence(first: number): void {
    this.#group(first).fenced = true;
  }

  /**
   * Begins sums[m, n] += Σ lhs[m, k]·rhs[k, n] for the warp group whose first invocation is
   * `first`. `sums`: registers.
   */
  multiply(
    first: number,
    frames: readonly Frame[],
    sums: readonly number[],
    { values: left, lines: leftLines }: Operand,
    { values: right, lines: rightLines }: Operand,
  ): void {
    const group = this.#group(first);
    if (!group.fenced) this.#worker.fail('sums are added to before a fence');
    const lines = new Set([...leftLines, ...rightLines]);
    const firstWarp = first / warp;
    for (const line of lines) line.readers.fill(Infinity, firstWarp, firstWarp + warpgroup / warp);
    sums.forEach((slot, j) => {
      const values = group.flight.get(slot) ?? registersOf(frames, slot);
      group.flight.set(slot, values);
      for (let item = 0; item < warpgroup; item++)
        for (let part = 0; part < 4; part++) {
          const m = 16 * (item >> 5) + ((item & 31) >> 2) + 8 * (part >> 1);
          const n = 8 * j + 2 * (item & 3) + (part & 1);
          let total = values[4 * item + part]!;
          for (let k = 0; k < steps; k++) total += left[m * steps + k]! * right[n * steps + k]!;
          values[4 * item + part] = Math.fround(total);
        }
      for (const frame of frames) frame.fill(Number.NaN, slot, slot + 4);
    });
    group.open.push({ sums, lines });
  }

  commit(first: number): void {
    const group = this.#group(first);
    group.groups.push(group.open);
    group.open = [];
  }

  wait(frames: readonly Frame[], first: number, pending: number): void {
    const group = this.#group(first);
    const done = group.groups.splice(0, Math.max(0, group.groups.length - pending)).flat();
    if (done.length === 0) return;
    const under = [...group.groups.flat(), ...group.open];
    const busy = new Set(under.flatMap(({ sums }) => sums));
    const [start, end] = [first / warp, (first + warpgroup) / warp];
    for (const { sums, lines } of done) {
      for (const line of lines) {
        if (under.some((other) => other.lines.has(line))) continue;
        for (let w = start; w < end; w++) line.readers[w] = this.barriers.timeOf(w);
      }
      for (const slot of sums) {
        const values = group.flight.get(slot);
        if (busy.has(slot) || values === undefined) continue;
        frames.forEach((frame, item) => {
          for (let i = 0; i < 4; i++) frame[slot + i] = values[4 * item + i]!;
        });
        group.flight.delete(slot);
      }
    }
    if (group.flight.size === 0) group.fenced = false;
  }

  #group(first: number): Group {
    return this.#groups[first / warpgroup]!;
  }

  /** Positions × 16 steps of an operand in tiled memory. */
  operand(side: Side & { readonly at: number }, positions: number, first: number): Operand {
    const lines = new Set<Line>();
    const { tile, alongK, panel, at } = side;
    const { fail } = this.#worker;
    const { name, size } = tile.buffer;
    const block = tileLine * tileLines;
    // Along k an operand may begin inside its lines, at steps of 16; across, at a whole group of
    // lines.
    if (at % block !== 0 && !(alongK && at % block < tileLine && at % steps === 0))
      fail(`element ${at} of ${name} is where no operand can begin`);
    const values = new Float64Array(positions * steps);
    for (let i = 0; i < positions; i++)
      for (let k = 0; k < steps; k++) {
        const place = alongK
          ? at + tileLine * i + k
          : at + tileLine * k + (i % tileLine) + panel * Math.floor(i / tileLine);
        if (!(place >= 0 && place < size)) fail(`element ${place} is outside ${name}, which has ${size}`);
        const line = tile.lines[Math.floor(place / tileLine)]!;
        if (!lines.has(line)) this.#read(line, Math.floor(place / tileLine), name, first);
        lines.add(line);
        values[i * steps + k] = Number(tile.data[place]);
      }
    return { values, lines };
  }

  #read(line: Line, number: number, name: string, first: number): void {
    for (let item = first; item < first + warpgroup; item++) {
      this.#checkLanded(line, number, name, item);
      this.#checkCleared(line, number, name, item);
    }
  }

  #checkLanded({ arriving, landed }: Line, number: number, name: string, item: number): void {
    const { enter, fail } = this.#worker;
    if (arriving !== undefined) fail(`line ${number} of ${name} is read before its copy has come`);
    if (landed === undefined) return fail(`line ${number} of ${name} is read but nobody wrote it`);
    if (this.barriers.seen(item, landed.barrier) > landed.phase) return;
    enter(item);
    fail(`race on line ${number} of ${name}: this invocation did not wait for the copy`);
  }

  #checkCleared({ clearers }: Line, number: number, name: string, item: number): void {
    const clock = this.barriers.clockOf(item);
    clearers.forEach((cleared, w) => {
      if (cleared <= clock[w]!) return;
      const without = cleared === Infinity ? 'did not publish that' : 'no mbarrier orders the two';
      this.#worker.fail(`race on line ${number} of ${name}: warp ${w} cleared a part, and ${without}`);
    });
  }
}

/** 64 rows × 16 steps that lie in registers, as left operands of `mma` of the group's warps. */
export function fragmentsOf(frames: readonly Frame[], slot: number, type: 'f16' | 'bf16'): Operand {
  const fromBits = type === 'f16' ? f16FromBits : bf16FromBits;
  const values = new Float64Array(rows * steps);
  frames.forEach((frame, item) => {
    for (let word = 0; word < 4; word++) {
      const m = 16 * (item >> 5) + ((item & 31) >> 2) + 8 * (word & 1);
      const k = 2 * (item & 3) + 8 * (word >> 1);
      const bits = frame[slot + word]!;
      values[m * steps + k] = fromBits(bits & 0xffff);
      values[m * steps + k + 1] = fromBits(bits >>> 16);
    }
  });
  return { values, lines: new Set() };
}

function registersOf(frames: readonly Frame[], slot: number): Float64Array {
  const values = new Float64Array(4 * frames.length);
  frames.forEach((frame, item) => values.set(frame.slice(slot, slot + 4), 4 * item));
  return values;
}

function* linesOf({ lines }: Tile, at: number, count: number): Generator<readonly [number, Line]> {
  for (let i = at / tileLine; i < (at + count) / tileLine; i++) yield [i, lines[i]!];
}

/** Elements of a box, the first axis fastest; zeros outside the tensor. */
function boxOf(
  { data }: Memory,
  { offset, sizes, strides, box }: TileMap,
  start: readonly number[],
): Float64Array {
  const values = new Float64Array(box.reduce((product, extent) => product * extent, 1));
  for (let i = 0; i < values.length; i++) {
    let [rest, place, inside] = [i, offset, true];
    box.forEach((extent, axis) => {
      const coordinate = start[axis]! + (rest % extent);
      rest = Math.floor(rest / extent);
      inside &&= coordinate >= 0 && coordinate < sizes[axis]!;
      place += coordinate * strides[axis]!;
    });
    values[i] = inside ? Number(data[place]) : 0;
  }
  return values;
}
