// What each statement of warp groups does to their state: copies, arrivals, waits and products.

import type {
  BarrierArray,
  TileMap,
  TileOperand,
  Value,
  WarpgroupStmt,
} from '../../../src/codegen/loop/loop.ts';
import type { Meeting } from './interleaving.ts';
import type { Surroundings } from './matrix.ts';
import type { MBarrier } from './mbarrier.ts';
import type { Frame } from './registers.ts';
import { fragmentsOf, type Side, warpgroup, Warpgroups } from './warpgroup.ts';

/** What a statement of warp groups is made of, beside what others are. */
export interface WarpgroupSurroundings extends Surroundings {
  readonly warpgroups: Warpgroups;
  readonly map: (name: string) => TileMap;
  readonly barriers: (name: string) => BarrierArray;
}

/**
 * A statement as what an invocation does on its own, or as what it leaves for the others and where
 * it meets them.
 */
export type WarpgroupStep =
  | { readonly run: (frame: Frame) => void; readonly meeting?: undefined }
  | { readonly run?: undefined; readonly leave: (frame: Frame) => void; readonly meeting: Meeting };

export function warpgroupStep(stmt: WarpgroupStmt, around: WarpgroupSurroundings): WarpgroupStep {
  const { memory, lane, registers, keep, item, worker, warpgroups, map, barriers } = around;
  const mbarrier = (name: string, at: Value): ((frame: Frame) => MBarrier) => {
    const { size } = barriers(name);
    const index = lane(at);
    return (frame) => warpgroups.barriers.at(name, size, index(frame));
  };
  const together = (
    act: (frames: readonly Frame[], first: number) => void,
    leave: (frame: Frame) => void = () => {},
  ): WarpgroupStep => ({ leave, meeting: { size: warpgroup, act } });
  switch (stmt.kind) {
    case 'initBarrier': {
      const at = mbarrier(stmt.barrier, stmt.index);
      return { run: (frame) => warpgroups.barriers.init(item(), at(frame), stmt.count) };
    }
    case 'arrive': {
      const at = mbarrier(stmt.barrier, stmt.index);
      return { run: (frame) => warpgroups.barriers.arrive(item(), at(frame), stmt.bytes) };
    }
    case 'awaitBarrier': {
      const at = mbarrier(stmt.barrier, stmt.index);
      const parity = lane(stmt.parity);
      const wanted = new Map<number, readonly [MBarrier, number]>();
      const ready = (of: number): boolean => {
        worker.enter(of);
        return warpgroups.barriers.isOver(of, ...wanted.get(of)!);
      };
      return {
        leave: (frame) => void wanted.set(item(), [at(frame), parity(frame)]),
        meeting: { size: 1, ready },
      };
    }
    case 'copyTile': {
      const [from, to] = [memory(map(stmt.map).buffer), warpgroups.tile(memory(stmt.buffer))];
      const index = lane(stmt.index);
      const start = stmt.at.map(lane);
      const at = mbarrier(stmt.barrier, stmt.slot);
      return {
        run: (frame) => {
          const place = start.map((coordinate) => coordinate(frame));
          warpgroups.copy(item(), to, index(frame), from, map(stmt.map), place, at(frame));
        },
      };
    }
    case 'clearTile': {
      const tile = warpgroups.tile(memory(stmt.buffer));
      const index = lane(stmt.index);
      return { run: (frame) => warpgroups.clearElement(item(), tile, index(frame)) };
    }
    case 'publishTiles':
      return { run: () => warpgroups.publish(item()) };
    case 'wgmma': {
      const side = (operand: TileOperand): Side & { readonly index: ReturnType<Surroundings['keep']> } => ({
        tile: warpgroups.tile(memory(operand.buffer)),
        alongK: operand.alongK,
        panel: operand.panel,
        index: keep(operand.index),
      });
      const lhs = stmt.lhs === undefined ? undefined : side(stmt.lhs);
      const words = stmt.words === undefined ? undefined : keep(stmt.words);
      const rhs = side(stmt.rhs);
      const sums = stmt.sums.map(registers);
      const at = (frames: readonly Frame[], slot: number): number => {
        const [first] = frames.map((frame) => frame[slot]!);
        if (frames.some((frame) => frame[slot] !== first))
          worker.fail('invocations of one warp group multiply different tiles');
        return first!;
      };
      return together(
        (frames, first) => {
          const placed = <S extends typeof rhs>(of: S): S & { readonly at: number } => ({
            ...of,
            at: at(frames, of.index.slot),
          });
          const left =
            lhs === undefined
              ? fragmentsOf(frames, words!.slot, stmt.operand)
              : warpgroups.operand(placed(lhs), 64, first);
          warpgroups.multiply(
            first,
            frames,
            sums,
            left,
            warpgroups.operand(placed(rhs), 8 * sums.length, first),
          );
        },
        (frame) => {
          lhs?.index.leave(frame);
          words?.leave(frame);
          rhs.index.leave(frame);
        },
      );
    }
    case 'wgmmaFence':
      return together((_, first) => warpgroups.fence(first));
    case 'wgmmaCommit':
      return together((_, first) => warpgroups.commit(first));
    case 'wgmmaWait':
      return together((frames, first) => warpgroups.wait(frames, first, stmt.pending));
    case 'setRegisters':
      return together(() => {});
    default:
      return stmt satisfies never;
  }
}
