// Offsets in scratch memory. Blocks are placed by size, the largest first, each at the lowest offset at which
// it does not overlap a block that lives at the same time (greedy by size: Pisarchyk and Lee, Efficient
// Memory Management for Deep Neural Net Inference, 2020).

/** A part of a block: bytes that are in use from one step to another, both included. */
export interface Extent {
  /** Bytes from the start of the block. */
  readonly offset: number;
  readonly bytes: number;
  readonly from: number;
  readonly to: number;
}

/** Bytes that are placed as one: a value, or a pack whose members have different lifetimes. */
export interface ArenaBlock {
  readonly bytes: number;
  readonly extents: readonly Extent[];
}

export interface Arenas {
  /** Where each block lies. */
  readonly places: readonly { readonly arena: number; readonly offset: number }[];
  /** Bytes of each arena. */
  readonly sizes: readonly number[];
}

/**
 * Places blocks in as few arenas of at most `largest` bytes as that takes; sizes are multiples of
 * the offsets' alignment.
 */
export function placeBlocks(blocks: readonly ArenaBlock[], largest: number): Arenas {
  const order = blocks.map((_, i) => i).sort((a, b) => blocks[b]!.bytes - blocks[a]!.bytes || a - b);
  /** Starts in one address space, which is cut into arenas of `largest` bytes. */
  const starts = new Array<number>(blocks.length).fill(0);
  /** Extents that have a place, by their offset. */
  const placed: Extent[] = [];
  for (const i of order) {
    const block = blocks[i]!;
    starts[i] = lowestPlace(block, placed, largest);
    for (const extent of block.extents) insert(placed, { ...extent, offset: starts[i] + extent.offset });
  }
  const sizes: number[] = [];
  const places = blocks.map((block, i) => {
    const arena = Math.floor(starts[i]! / largest);
    const offset = starts[i]! % largest;
    sizes[arena] = Math.max(sizes[arena] ?? 0, offset + block.bytes);
    return { arena, offset };
  });
  return { places, sizes: Array.from(sizes, (bytes) => bytes ?? 0) };
}

/** Most bytes in use at one step. */
export function mostLive(blocks: readonly ArenaBlock[]): number {
  const changes = new Map<number, number>();
  const change = (step: number, bytes: number): void =>
    void changes.set(step, (changes.get(step) ?? 0) + bytes);
  for (const { bytes, from, to } of blocks.flatMap((block) => block.extents)) {
    change(from, bytes);
    change(to + 1, -bytes);
  }
  let [live, peak] = [0, 0];
  for (const [, bytes] of [...changes].sort(([a], [b]) => a - b)) {
    live += bytes;
    peak = Math.max(peak, live);
  }
  return peak;
}

/**
 * The lowest start at which no extent of the block meets a placed one, and the block lies in one
 * arena.
 */
function lowestPlace({ bytes, extents }: ArenaBlock, placed: readonly Extent[], largest: number): number {
  let start = 0;
  for (let isMoved = true; isMoved;) {
    isMoved = false;
    for (const extent of extents) {
      // Placed extents come by offset, so raising the start never makes an earlier one matter again
      // for this extent.
      for (const other of placed) {
        const at = start + extent.offset;
        if (other.offset >= at + extent.bytes) break;
        const isDisjoint =
          other.to < extent.from || extent.to < other.from || other.offset + other.bytes <= at;
        if (isDisjoint) continue;
        start = other.offset + other.bytes - extent.offset;
        isMoved = true;
      }
    }
    const end = start + bytes;
    if (bytes <= largest && Math.floor(start / largest) !== Math.floor((end - 1) / largest)) {
      start = Math.ceil(start / largest) * largest;
      isMoved = true;
    }
  }
  return start;
}

/** Puts the extent behind those of no higher offset. */
function insert(placed: Extent[], extent: Extent): void {
  let [low, high] = [0, placed.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (placed[middle]!.offset <= extent.offset) low = middle + 1;
    else high = middle;
  }
  placed.splice(low, 0, extent);
}
