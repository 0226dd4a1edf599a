// What well-formed statements of warp groups are: tiles that nothing else touches, maps that a device can address, mbarriers
// that exist. `loop/verify.ts` calls this for each such statement.

import { dtypeBytes } from '../../ir/dtype.ts';
import { strideProblem } from '../../runtime/program.ts';
import type { BarrierArray, Loop, LoopBuffer, RegisterType, TileMap, TileOperand, Value } from './loop.ts';
import type { Stmt, WarpgroupStmt, Width } from './loop.ts';
import { isWarpgroupStmt, namesIn } from './walk.ts';

/** Elements of a line of tiled memory: 128 bytes. */
export const tileLine = 64;
/** Lines after which the order of elements in tiled memory repeats: tiles begin at multiples of so many. */
export const tileLines = 8;
/** Elements of 16 bits in 16 bytes: strides and starts of tensors that are copied by tiles are multiples of it. */
export const tileAlignment = 8;
/** Elements of a box along an axis, and axes of a tensor, at most. */
const longestBox = 256;
const mostAxes = 5;

/** What checks of a statement need of the whole. */
export interface Checker {
  readonly fail: (problem: string) => never;
  /** Checks a value inside, and that it has this type. */
  readonly typed: (value: Value, type: RegisterType, width: Width) => void;
  readonly buffer: (name: string) => LoopBuffer;
  /** A variable's type, and whether it may be written. */
  readonly variable: (name: string) => {
    readonly type: RegisterType;
    readonly width: Width;
    readonly mutable: boolean;
  };
}

/** Checks maps, mbarriers and tiled buffers. */
export function checkTileMaps(
  { buffers, tileMaps = [], mbarriers = [], workgroup }: Loop,
  fail: (problem: string) => never,
): void {
  const names = new Set(buffers.map(({ name }) => name));
  for (const { name } of [...tileMaps, ...mbarriers]) {
    if (names.has(name)) fail(`two buffers, maps or mbarriers are called ${name}`);
    names.add(name);
  }
  for (const { name, size } of mbarriers)
    if (!(Number.isInteger(size) && size > 0)) fail(`${name} has ${size} mbarriers`);
  for (const map of tileMaps) checkMap(map, buffers, fail);
  for (const { name, space, dtype, size, tiled } of buffers)
    if (tiled && (space !== 'workgroup' || dtypeBytes(dtype) !== 2 || size % (tileLine * tileLines) !== 0))
      fail(`${name} cannot be tiled: tiles are whole groups of ${tileLines} lines of 16-bit elements`);
  if (mbarriers.length > 0 && workgroup[0] % 128 !== 0) fail('warp groups are rows of 128 invocations');
}

function checkMap(map: TileMap, buffers: readonly LoopBuffer[], fail: (problem: string) => never): void {
  const { name, offset, sizes, strides, box } = map;
  const buffer = buffers.find((candidate) => candidate.name === map.buffer);
  if (buffer === undefined) return fail(`${name} maps ${map.buffer}, which is no buffer`);
  const { space, access, dtype, size } = buffer;
  if (space !== 'global' || access !== 'read' || (dtype !== 'f16' && dtype !== 'bf16'))
    fail(`${name} maps ${dtype} ${map.buffer}, which is not global memory of 16 bits that is only read`);
  const axes = sizes.length;
  if (axes < 2 || axes > mostAxes || strides.length !== axes || box.length !== axes)
    fail(`${name} has ${axes} sizes, ${strides.length} strides and a box of ${box.length}`);
  if (offset % tileAlignment !== 0)
    fail(`${name}: its offset is a multiple of ${tileAlignment} elements, not ${offset}`);
  const odd = strideProblem(map);
  if (odd !== undefined) fail(`${name}: ${odd}`);
  if (box.some((extent) => extent < 1 || extent > longestBox))
    fail(`${name}: boxes are 1 to ${longestBox} elements long`);
  if (box[0] !== tileLine) fail(`${name}: a box has ${tileLine} neighbouring elements, not ${box[0]}`);
  const last = sizes.reduce((at, extent, axis) => at + (extent - 1) * strides[axis]!, offset);
  if (offset < 0 || last >= size) fail(`${name} ends at element ${last} of ${size}`);
}

/** Tiled memory is no memory to others. */
export function checkTiled(stmt: Stmt, { buffer, fail }: Checker): void {
  if (isWarpgroupStmt(stmt)) return;
  for (const name of namesIn(stmt, 'read', 'written'))
    if (buffer(name).tiled) fail(`a ${stmt.kind} knows nothing of how ${name} lies`);
}

export function checkWarpgroup(stmt: WarpgroupStmt, loop: Loop, by: Checker): void {
  const { fail, typed, buffer, variable } = by;
  const index = (value: Value): void => typed(value, 'i32', 1);
  const barrier = (name: string, at: Value): BarrierArray => {
    index(at);
    return loop.mbarriers?.find((array) => array.name === name) ?? fail(`there are no mbarriers ${name}`);
  };
  const tiles = (name: string): LoopBuffer => {
    const found = buffer(name);
    return found.tiled ? found : fail(`${name} is not tiled`);
  };
  const checkSums = (sums: readonly string[]): void => {
    if (new Set(sums).size !== sums.length) fail('sums are named twice');
    for (const name of sums) {
      const { type, width, mutable } = variable(name);
      if (!mutable || type !== 'f32' || width !== 4) fail(`${name} is no var of f32x4`);
    }
  };
  switch (stmt.kind) {
    case 'initBarrier':
      barrier(stmt.barrier, stmt.index);
      if (!(Number.isInteger(stmt.count) && stmt.count > 0)) fail(`nobody arrives: ${stmt.count}`);
      return;
    case 'arrive':
      barrier(stmt.barrier, stmt.index);
      if (!(Number.isInteger(stmt.bytes) && stmt.bytes >= 0 && stmt.bytes < 2 ** 20))
        fail(`an mbarrier cannot wait for ${stmt.bytes} bytes`);
      return;
    case 'awaitBarrier':
      barrier(stmt.barrier, stmt.index);
      index(stmt.parity);
      return;
    case 'copyTile': {
      barrier(stmt.barrier, stmt.slot);
      index(stmt.index);
      const to = tiles(stmt.buffer);
      const map = loop.tileMaps?.find(({ name }) => name === stmt.map) ?? fail(`there is no map ${stmt.map}`);
      if (buffer(map.buffer).dtype !== to.dtype) fail(`${map.name} is not of ${to.dtype}, as ${to.name} is`);
      if (stmt.at.length !== map.sizes.length)
        fail(`${map.name} has ${map.sizes.length} axes, not ${stmt.at.length}`);
      stmt.at.forEach(index);
      return;
    }
    case 'clearTile':
      index(stmt.index);
      tiles(stmt.buffer);
      return;
    case 'publishTiles':
      return;
    case 'wgmma': {
      const side = ({ buffer: name, index: at, panel }: TileOperand): void => {
        index(at);
        if (tiles(name).dtype !== stmt.operand) fail(`${name} does not hold ${stmt.operand}`);
        if (panel % (tileLine * tileLines) !== 0) fail(`panels begin at whole tiles, not ${panel} apart`);
      };
      const { lhs, words, rhs } = stmt;
      if ((lhs === undefined) === (words === undefined)) fail('the left operand is a tile or in registers');
      if (lhs !== undefined) side(lhs);
      if (words !== undefined) typed(words, 'u32', 4);
      side(rhs);
      if (stmt.sums.length < 1 || stmt.sums.length > 32) fail(`${8 * stmt.sums.length} columns of sums`);
      if (!stmt.rhs.alongK && stmt.sums.length % 8 !== 0) fail('the last panel is not whole');
      checkSums(stmt.sums);
      return;
    }
    case 'wgmmaWait':
      if (!(Number.isInteger(stmt.pending) && stmt.pending >= 0))
        fail(`${stmt.pending} groups cannot be under way`);
      checkSums(stmt.sums);
      return;
    case 'setRegisters':
      if (!(stmt.count >= 24 && stmt.count <= 256 && stmt.count % 8 === 0))
        fail(`${stmt.count} registers are no multiple of 8 from 24 to 256`);
      return;
    case 'wgmmaFence':
      checkSums(stmt.sums);
      return;
    case 'wgmmaCommit':
      return;
    default:
      stmt satisfies never;
  }
}
