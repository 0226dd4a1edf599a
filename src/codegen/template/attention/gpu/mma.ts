// Attention on matrix units (tensor cores), in the manner of FlashAttention-2 (Dao, 2023): a
// subgroup has 16 rows; a block of keys and values comes to workgroup memory while the one before
// is multiplied; scores stay in registers and become the left operand of the weighted sums there
// (fragment-rows.ts).

import type { Node } from '../../../../ir/graph.ts';
import { substitute } from '../../../../ir/index-algebra/expr.ts';
import type { OuterProduct } from '../../../../schedule/kernel.ts';
import {
  addInts,
  builtin,
  constant,
  less,
  mulInts,
  operation,
  type LoopBuilder,
} from '../../../loop/builder.ts';
import { rounded } from '../../../expression/convert.ts';
import type { LoopBuffer, MatrixType, Value } from '../../../loop/loop.ts';
import type { AttentionUnits, Sums } from '../products.ts';
import type { Attention } from '../rows.ts';
import type { KeyBlock } from '../seats.ts';
import { FragmentRows, seatInFragment, type FragmentSeats } from './fragment-rows.ts';
import { contiguousReads, matrixType, narrowed } from '../../contract/problem.ts';
import { exchanged, fragment, isOddLane, lanes, pairOf } from '../../shared/fragment.ts';
import type { FittingStrategy } from '../../shared/first-fit.ts';
import type { Frame } from '../../shared/frame.ts';
import { sweptLoop, type Staff } from './sweep.ts';
import { MmaStage, type MmaSide } from '../../contract/gpu/mma-stage.ts';
import { laneOf } from '../../../loop/register.ts';
import { place } from '../../../loop/integers.ts';

/** How an attention kernel is spread over matrix units. */
export interface MmaAttentionTiling {
  /** Subgroups of a workgroup, 16 rows each. */
  readonly subgroups: number;
  /** Keys of a block. */
  readonly keys: number;
}

/** Features of keys and values together, at most, for which rows stay in registers. */
const mostKept = 256;

/** Blocks in workgroup memory: one is used, one is on its way. */
const slots = 2;

/**
 * On matrix units, where the kernel's products are of 16-bit operands and the target has units for
 * them.
 */
export const mma: FittingStrategy<Attention> = {
  loop(frame, body) {
    const staff = staffOf(frame, body);
    return staff === undefined ? undefined : sweptLoop(frame, body, staff);
  },
};

function staffOf(frame: Frame, body: Attention): Staff | undefined {
  const operand = matrixTypeOf(body);
  const { matrixUnits = [], limits } = frame.target;
  if (operand === undefined || !matrixUnits.includes(operand)) return undefined;
  const tiling = tilings.find((one) => bytesOf(body, one) <= limits.workgroupBytes);
  if (tiling === undefined || lanes * tiling.subgroups > limits.workgroupInvocations) return undefined;
  // Most of a fragment's rows would be idle: a row for a few lanes is faster.
  if (2 * body.row.extent < fragment.m || 2 * body.key.extent < fragment.k) return undefined;
  const rows = new FragmentRows(frame, body, seatsOf(tiling), memoryNames(body));
  const units = new MmaUnits(rows, operand, tiling);
  const { subgroups, keys } = tiling;
  const note = `on matrix units (${operand}), ${fragment.m * subgroups} rows by ${keys} keys a workgroup`;
  return { rows, units, note };
}

/** The first that fits is taken. */
const tilings: readonly MmaAttentionTiling[] = [
  { subgroups: 8, keys: 64 },
  { subgroups: 4, keys: 64 },
  { subgroups: 4, keys: 32 },
  { subgroups: 4, keys: 16 },
];

/** The 16-bit type of every operand, if they are of one. */
export function matrixTypeOf({ inners, outers }: Attention): MatrixType | undefined {
  const operands = [
    ...inners.flatMap(({ ofRow, ofKey }) => [ofRow, ofKey]),
    ...outers.flatMap(({ weight, value }) => [weight, value]),
  ];
  const types = new Set(operands.map(matrixType));
  const [dtype] = types;
  return types.size === 1 ? dtype : undefined;
}

function padded(extent: number): number {
  return 16 * Math.ceil(extent / 16);
}

/** Names of the workgroup memory for the operands that are staged. */
export function memoryNames({ inners, outers }: Attention): readonly string[] {
  return [...inners.flatMap((_, i) => [`rows_${i}`, `keys_${i}`]), ...outers.map((_, i) => `values_${i}`)];
}

/**
 * The product of scores whose keys are the values of an outer product, as in gradients: the tile of one is that of the
 * other, turned. None where the last block is not whole: there, values are zeros, and keys are not.
 */
function keysThatAre({ value, column }: OuterProduct, body: Attention, keys: number): number {
  const values = narrowed(value);
  if (values.kind !== 'read' || body.key.extent % keys !== 0) return -1;
  return body.inners.findIndex(({ ofKey, depth }) => {
    const other = narrowed(ofKey);
    if (other.kind !== 'read' || other.node !== values.node || depth.extent !== column.extent) return false;
    const isAlongDepth = contiguousReads(other, depth) > contiguousReads(other, body.key);
    return isAlongDepth && substitute(values.index, new Map([[column.atom, depth.atom]])) === other.index;
  });
}

/** Workgroup memory at most, whichever way the operands lie. */
function bytesOf(body: Attention, { subgroups, keys }: MmaAttentionTiling): number {
  const { inners, outers } = body;
  const tile = (a: number, b: number): number => 2 * Math.max(a * (b + 8), (a + 8) * b);
  const inner = inners.map(
    ({ depth }) =>
      tile(fragment.m * subgroups, padded(depth.extent)) + slots * tile(keys, padded(depth.extent)),
  );
  const outer = outers
    .filter((one) => keysThatAre(one, body, keys) < 0)
    .map(({ column }) => slots * tile(keys, padded(column.extent)));
  return [...inner, ...outer].reduce((sum, bytes) => sum + bytes, 0);
}

function seatsOf({ subgroups, keys }: MmaAttentionTiling): FragmentSeats {
  const { upper, place: inFragment, part } = seatInFragment();
  const own = mulInts(builtin('local', 1), constant(fragment.m));
  return {
    rows: fragment.m * subgroups,
    parts: 2,
    place: addInts(own, inFragment),
    upper: addInts(own, upper),
    part,
    workgroup: [lanes, subgroups, 1],
    quads: keys / 8,
  };
}

/** The words of a left operand that an invocation's four weights of a fragment are: those of the upper row, then of the lower. */
export function packedPairs(b: LoopBuilder, weight: Value, operand: MatrixType): readonly Value[] {
  const op = operand === 'f16' ? 'packF16' : 'packBf16';
  const pick = (...of: readonly number[]): Value => ({
    kind: 'vector',
    args: of.map((lane) => laneOf(weight, lane)),
    type: 'f32',
    width: 2,
  });
  const words = b.let(operation(op, [pick(0, 2), pick(1, 3)], 'u32'), 'words');
  return [laneOf(words, 0), laneOf(words, 1)];
}

/** Multiplies fragments of sums by factors of their rows. */
export function shrinkSums(b: LoopBuilder, all: readonly Sums[], factors: readonly Value[]): void {
  all.forEach(({ registers }, i) => {
    for (const sum of registers) b.assign(sum, operation('mul', [sum, factors[i]!], 'f32'));
  });
}

class MmaUnits implements AttentionUnits {
  readonly #rows: FragmentRows;
  readonly #operand: MatrixType;
  readonly #tiling: MmaAttentionTiling;
  #staged: Staged | undefined;
  /** Fragments of the rows, by steps of the depth, where they stay in registers. */
  readonly #kept: Value[] = [];

  constructor(rows: FragmentRows, operand: MatrixType, tiling: MmaAttentionTiling) {
    this.#rows = rows;
    this.#operand = operand;
    this.#tiling = tiling;
    rows.feed = {
      open: (from) => this.#open(from),
      each: (first, end) => this.#each(first, end),
    };
  }

  get rounds(): 'f16' | 'bf16' | undefined {
    return this.#operand === 'tf32' ? undefined : this.#operand;
  }

  get memory(): readonly LoopBuffer[] {
    return this.#staged?.stage.memory ?? [];
  }

  scores({ first }: KeyBlock): readonly ReadonlyMap<Node, Value>[] {
    const { b, body } = this.#rows;
    const { stage, rowSides, keySides } = this.#stagedNow();
    const { keys } = this.#tiling;
    const kept = this.#kept;
    const lane = builtin('local', 0);
    const row = mulInts(builtin('local', 1), constant(fragment.m));
    const slot = this.#slot(first);
    const found = Array.from({ length: keys / 8 }, () => new Map<Node, Value>());
    body.inners.forEach(({ node, depth }, i) => {
      const sums = Array.from({ length: keys / 8 }, () => b.var('dot', constant(0, 'f32', 4)));
      const step = (d: Value, lhs: Value): void => {
        for (let pair = 0; pair < keys / 16; pair++) {
          const rhs = stage.rhs(keySides[i]!, slot, d, constant(16 * pair), lane);
          for (const half of [0, 1]) b.mma(sums[2 * pair + half]!, this.#operand, lhs, pairOf(rhs, half));
        }
      };
      if (kept.length > 0) kept.forEach((lhs, d) => step(constant(fragment.k * d), lhs));
      else
        b.for('d', constant(0), constant(padded(depth.extent)), fragment.k, (d) =>
          step(d, stage.lhs(rowSides[i]!, constant(0), d, row, lane)),
        );
      sums.forEach((sum, quad) => {
        found[quad]!.set(node as Node, b.let(rounded(sum, node.dtype), 'score'));
      });
    });
    return found;
  }

  open(outer: number): Sums {
    const { b, body } = this.#rows;
    const columns = body.outers[outer]!.column.extent;
    const registers = Array.from({ length: Math.ceil(columns / 8) }, () =>
      b.var('sum', constant(0, 'f32', 4)),
    );
    return { outer, registers };
  }

  shrink(all: readonly Sums[], factors: readonly Value[]): void {
    shrinkSums(this.#rows.b, all, factors);
  }

  add({ first }: KeyBlock, all: readonly Sums[], weights: readonly (readonly Value[])[]): void {
    const { b } = this.#rows;
    const { stage, valueSides } = this.#stagedNow();
    const { keys } = this.#tiling;
    const slot = this.#slot(first);
    const lane = builtin('local', 0);
    all.forEach(({ outer, registers }, i) => {
      const words = weights[i]!.map((weight) => packedPairs(b, weight, this.#operand));
      for (let step = 0; step < keys / fragment.k; step++) {
        const args = words.slice(2 * step, 2 * step + 2).flat();
        const lhs = b.let({ kind: 'vector', args, type: 'u32', width: 4 }, 'weights');
        for (let pair = 0; pair < Math.ceil(registers.length / 2); pair++) {
          const at = constant(fragment.k * step);
          const rhs = stage.rhs(valueSides[outer]!, slot, at, constant(16 * pair), lane);
          for (const half of [0, 1]) {
            const sum = registers[2 * pair + half];
            if (sum !== undefined) b.mma(sum, this.#operand, lhs, pairOf(rhs, half));
          }
        }
      }
    });
  }

  whole({ registers }: Sums): readonly Value[] {
    const { b } = this.#rows;
    return registers.map((sum) => exchanged(b, sum, isOddLane(b)));
  }

  #stagedNow(): Staged {
    this.#staged ??= this.#stage();
    return this.#staged;
  }

  /** Sides of all operands; those of the rows are loaded once for all blocks. */
  #stage(): Staged {
    const { b, body, frame, batch, firstRow } = this.#rows;
    const { subgroups, keys } = this.#tiling;
    const lane = builtin('local', 0);
    const stage = new MmaStage(b, frame, {
      operand: this.#operand,
      atoms: [[body.batch.atom, batch]],
      local: b.let(place(builtin('local', 1), lanes, lane), 'local'),
      threads: lanes * subgroups,
    });
    const inner = (free: 'row' | 'key', tile: number, count: number): MmaSide[] =>
      body.inners.map(({ ofRow, ofKey, depth }, i) =>
        stage.side(`${free}s_${i}`, narrowed(free === 'row' ? ofRow : ofKey), {
          free: body[free],
          tile,
          k: depth,
          depth: padded(depth.extent),
          slots: count,
        }),
      );
    const rowSides = inner('row', fragment.m * subgroups, 1);
    const keySides = inner('key', keys, slots);
    const ownValues: MmaSide[] = [];
    const valueSides = body.outers.map((outer, i): MmaSide => {
      const { value, column } = outer;
      const shape = { free: column, tile: padded(column.extent), k: body.key, depth: keys, slots };
      const same = keySides[keysThatAre(outer, body, keys)];
      if (same !== undefined) return { ...same, ...shape, alongK: false };
      const own = stage.side(`values_${i}`, narrowed(value), shape);
      ownValues.push(own);
      return own;
    });
    for (const side of rowSides) stage.bring(side, firstRow, constant(0), constant(0));
    return { stage, rowSides, keySides, valueSides, ownValues };
  }

  #open(from: Value): void {
    const { b } = this.#rows;
    const isFirst = this.#staged === undefined;
    this.#stagedNow();
    // Another sweep: a barrier ensures that all invocations have read the last one's blocks.
    if (!isFirst) b.barrier();
    this.#bring(from);
    if (isFirst) this.#keep();
  }

  /** Loads the rows' fragments once, where registers hold them besides all sums. */
  #keep(): void {
    const { b, body } = this.#rows;
    const { stage, rowSides } = this.#stagedNow();
    const [inner] = body.inners;
    const columns = body.outers.reduce((sum, { column }) => sum + padded(column.extent), 0);
    if (body.inners.length > 1 || padded(inner!.depth.extent) + columns > mostKept) return;
    stage.await(0);
    b.barrier();
    const [lane, row] = [builtin('local', 0), mulInts(builtin('local', 1), constant(fragment.m))];
    for (let d = 0; d < inner!.depth.extent; d += fragment.k)
      this.#kept.push(stage.lhs(rowSides[0]!, constant(0), constant(d), row, lane));
  }

  #each(first: Value, end: Value): void {
    const { b, blockQuads } = this.#rows;
    const { stage } = this.#stagedNow();
    stage.await(0);
    b.barrier();
    const next = b.let(addInts(first, constant(blockQuads)), 'next');
    b.if(less(next, end), () => this.#bring(next));
  }

  /** Keys and values of the block that begins at a quad. */
  #bring(first: Value): void {
    const { b } = this.#rows;
    const { stage, keySides, ownValues } = this.#stagedNow();
    const slot = this.#slot(first);
    const key = b.let(mulInts(first, constant(4)), 'first_key');
    for (const side of keySides) stage.bring(side, key, constant(0), slot);
    for (const side of ownValues) stage.bring(side, constant(0), key, slot);
    stage.commit();
  }

  #slot(first: Value): Value {
    const { b, blockQuads } = this.#rows;
    const block = operation('div', [first, constant(blockQuads)], 'i32');
    return b.let(operation('mod', [block, constant(slots)], 'i32'), 'slot');
  }
}

interface Staged {
  readonly stage: MmaStage;
  readonly rowSides: readonly MmaSide[];
  readonly keySides: readonly MmaSide[];
  readonly valueSides: readonly MmaSide[];
  /** Of the values, those that are no keys. */
  readonly ownValues: readonly MmaSide[];
}
