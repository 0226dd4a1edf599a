// The statements of warp groups in CUDA C, and the maps of tensors whose tiles are copied:
// parameters of the kernel, which the runtime has the driver encode.

import { CompilerBug } from '../../../errors.ts';
import type { ProgramTileMap } from '../../../runtime/program.ts';
import type { Loop, TileOperand, Value, WarpgroupStmt } from '../../loop/loop.ts';
import { call, infix, primary, type Term } from '../shared/term.ts';
import type { CudaScribe } from './access.ts';

/** Writes the lines of a statement. */
export function spellWarpgroup(scribe: CudaScribe, stmt: WarpgroupStmt): void {
  const { prelude, names } = scribe;
  const place = (name: string, index: Value): Term =>
    infix('+', primary(names.buffer(name)), scribe.value(index));
  const line = (name: string, args: readonly Term[]): void => scribe.line(`${call(name, args).text};`);
  const fenceSums = (sums: readonly string[]): void => {
    if (sums.length === 0) return;
    line(
      prelude.use('settle'),
      sums.map((name) => primary(names.variable(name))),
    );
  };
  switch (stmt.kind) {
    case 'initBarrier':
      line(prelude.use('mbarrier_init'), [place(stmt.barrier, stmt.index), primary(String(stmt.count))]);
      return;
    case 'arrive': {
      const at = place(stmt.barrier, stmt.index);
      if (stmt.bytes === 0) line(prelude.use('mbarrier_arrive'), [at]);
      else line(prelude.use('mbarrier_arrive_with'), [at, primary(String(stmt.bytes))]);
      return;
    }
    case 'awaitBarrier':
      line(prelude.use('mbarrier_wait'), [place(stmt.barrier, stmt.index), scribe.value(stmt.parity)]);
      return;
    case 'copyTile': {
      const copy = prelude.use(`copy_tile_${stmt.at.length}d`);
      const map = primary(names.buffer(stmt.map));
      const coordinates = stmt.at.map((value) => scribe.value(value));
      line(copy, [place(stmt.buffer, stmt.index), map, place(stmt.barrier, stmt.slot), ...coordinates]);
      return;
    }
    case 'clearTile':
      line(prelude.use('clear_tile'), [primary(names.buffer(stmt.buffer)), scribe.value(stmt.index)]);
      return;
    case 'publishTiles':
      line(prelude.use('publish_tiles'), []);
      return;
    case 'wgmma': {
      const { sums, operand, lhs, words, rhs } = stmt;
      const across = ({ alongK }: TileOperand): string => (alongK ? '0' : '1');
      const side = ({ buffer, index, panel }: TileOperand): Term => {
        const [from, elements] = apart(index);
        const bytes = [2 * panel, 2 * elements].map((count) => primary(String(count)));
        return call(prelude.use('tile_descriptor'), [place(buffer, from), ...bytes]);
      };
      const multiply = prelude.wgmma(operand, 8 * sums.length, words !== undefined);
      const ways = lhs === undefined ? [across(rhs)] : [across(lhs), across(rhs)];
      line(`${multiply}<${ways.join(', ')}>`, [
        lhs === undefined ? scribe.value(words!) : side(lhs),
        side(rhs),
        ...sums.map((name) => primary(names.variable(name))),
      ]);
      return;
    }
    case 'wgmmaFence':
      fenceSums(stmt.sums);
      line(prelude.use('wgmma_fence'), []);
      return;
    case 'wgmmaCommit':
      line(prelude.use('wgmma_commit'), []);
      return;
    case 'wgmmaWait':
      line(`${prelude.use('wgmma_wait')}<${stmt.pending}>`, []);
      fenceSums(stmt.sums);
      return;
    case 'setRegisters':
      line(`${prelude.use(stmt.grow ? 'grow_registers' : 'shrink_registers')}<${stmt.count}>`, []);
      return;
    default:
      stmt satisfies never;
  }
}

/** Elements that one step of a descriptor's address is. */
const descriptorStep = 8;

/** A place as one that products of a tile have in common, and a number of elements behind it. */
function apart(index: Value): readonly [from: Value, elements: number] {
  if (index.kind !== 'op' || index.op !== 'add') return [index, 0];
  const [from, by] = index.args;
  return by?.kind === 'constant' && by.value % descriptorStep === 0 ? [from!, by.value] : [index, 0];
}

/** The maps of a Loop as data of its program: bindings instead of names. */
export function tileMapsOf({ tileMaps = [], buffers }: Loop): readonly ProgramTileMap[] {
  const bindings = buffers.filter(({ space }) => space === 'global');
  return tileMaps.map(({ name, buffer, offset, sizes, strides, box }) => {
    const binding = bindings.findIndex((candidate) => candidate.name === buffer);
    const dtype = bindings[binding]?.dtype;
    if (dtype !== 'f16' && dtype !== 'bf16')
      throw new CompilerBug('CUDA emitter', `${name} maps ${buffer}, which is ${dtype ?? 'no buffer'}`);
    return { binding, dtype, offset, sizes, strides, box };
  });
}
