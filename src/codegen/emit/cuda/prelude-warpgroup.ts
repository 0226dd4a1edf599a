// Prelude functions for warp groups of Hopper (sm_90a): mbarriers, TMA copies of tiles, and
// products of tiles in workgroup memory (wgmma). Thin wrappers of PTX; a build for the host
// (SINTER_HOST) supplies its own functions of these names.

import type { MatrixType } from '../../loop/loop.ts';
import { device, inline } from './prelude-matrix.ts';

/** Axes of a tensor whose boxes are copied, and what their coordinates are called. */
const coordinates = ['x', 'y', 'z', 'u', 'v'] as const;

function copyTile(axes: number): string {
  const at = coordinates.slice(0, axes);
  const places = at.map((_, i) => `%${i + 3}`).join(', ');
  return device(
    inline(
      `void copy_tile_${axes}d(void *to, const TileMap &map, unsigned long long *barrier, ${at.map((name) => `int ${name}`).join(', ')})`,
      `asm volatile("cp.async.bulk.tensor.${axes}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {${places}}], [%2];"`,
      `             :: "r"(shared_address(to)), "l"(&map), "r"(shared_address(barrier)), ${at.map((name) => `"r"(${name})`).join(', ')} : "memory");`,
    ),
  );
}

const onBarrier = (instruction: string, operands: string): string =>
  `asm volatile("${instruction}" :: "r"(shared_address(barrier))${operands} : "memory");`;

const together = (name: string, instruction: string): string =>
  device(inline(`void ${name}()`, `asm volatile("${instruction}.sync.aligned;" ::: "memory");`));

const registers = (name: string, direction: 'inc' | 'dec'): string =>
  device(
    `template <int registers>\n${inline(
      `void ${name}()`,
      `asm volatile("setmaxnreg.${direction}.sync.aligned.u32 %0;" :: "n"(registers));`,
    )}`,
  );

/** Text by name. */
export const warpgroupFunctions: Readonly<Record<string, string>> = {
  // What the driver encodes: a tensor in global memory, and the box that one copy brings.
  TileMap: device('struct __align__(64) TileMap {\n  unsigned long long words[16];\n};'),
  // The address at which memory really begins. Inline assembly, because the compiler takes the
  // declared alignment for granted and would fold the check away.
  begins_at: device(
    inline(
      'bool begins_at(const void *memory, unsigned multiple)',
      'unsigned start;',
      'asm volatile("mov.u32 %0, %1;" : "=r"(start) : "r"(shared_address(memory)));',
      'return start % multiple == 0u;',
    ),
  ),
  // With a fence that makes the mbarrier visible to asynchronous copies.
  mbarrier_init: device(
    inline(
      'void mbarrier_init(unsigned long long *barrier, int count)',
      onBarrier('mbarrier.init.shared::cta.b64 [%0], %1;', ', "r"(count)'),
      'asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");',
    ),
  ),
  mbarrier_arrive: device(
    inline(
      'void mbarrier_arrive(unsigned long long *barrier)',
      onBarrier('mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];', ''),
    ),
  ),
  mbarrier_arrive_with: device(
    inline(
      'void mbarrier_arrive_with(unsigned long long *barrier, int bytes)',
      onBarrier('mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;', ', "r"(bytes)'),
    ),
  ),
  mbarrier_wait: device(
    inline(
      'void mbarrier_wait(unsigned long long *barrier, int parity)',
      'const unsigned at = shared_address(barrier);',
      'unsigned over;',
      'do {',
      '  asm volatile("{\\n"',
      '               ".reg .pred over;\\n"',
      '               "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 over, [%1], %2;\\n"',
      '               "selp.u32 %0, 1, 0, over;\\n"',
      '               "}" : "=r"(over) : "r"(at), "r"(parity) : "memory");',
      '} while (over == 0u);',
    ),
  ),
  ...Object.fromEntries([2, 3, 4, 5].map((axes) => [`copy_tile_${axes}d`, copyTile(axes)])),
  // One of 64 elements of a line: pieces of eight change places, as the copies write them.
  clear_tile: device(
    inline(
      'void clear_tile(void *tiles, int element)',
      'static_cast<unsigned short *>(tiles)[element ^ (element >> 6 & 7) << 3] = 0;',
    ),
  ),
  // Copies and products go another way to shared memory than the stores of a thread.
  publish_tiles: device(
    inline('void publish_tiles()', 'asm volatile("fence.proxy.async.shared::cta;" ::: "memory");'),
  ),
  // Lines of 128 bytes, whose pieces of 16 are permuted as the copies write them (128-byte
  // swizzle). Eight lines are 1024 bytes; where lines run along the free axis, panels of them are
  // `panel` bytes apart. The address is `offset` bytes behind `at`, added last: products of one tile
  // differ in nothing else, which is then one instruction for each.
  tile_descriptor: inline(
    'unsigned long long tile_descriptor(const void *at, int panel, int offset)',
    'const unsigned start = (shared_address(at) & 0x3ffffu) >> 4 | unsigned(panel >> 4) << 16;',
    'return (start + unsigned(offset >> 4)) | 64ull << 32 | 1ull << 62;',
  ),
  // What all threads of a warp have alike, as the compiler cannot know of a thread's own number.
  of_warp: inline(
    'int of_warp(int x)',
    '#ifdef SINTER_HOST',
    'return x;',
    '#else',
    'return __shfl_sync(0xffffffffu, x, 0);',
    '#endif',
  ),
  // A fence for registers: writes before it stay before, reads after it stay after. Compilers see
  // no other dependence between registers and the asynchronous instructions that use them later.
  settle_one: device(
    inline(
      'void settle_one(float4 &x)',
      'asm volatile("" : "+f"(x.x), "+f"(x.y), "+f"(x.z), "+f"(x.w) :: "memory");',
    ),
  ),
  settle: device(
    `template <class... Registers>\n${inline('void settle(Registers &...registers)', '(settle_one(registers), ...);')}`,
  ),
  wgmma_fence: together('wgmma_fence', 'wgmma.fence'),
  wgmma_commit: together('wgmma_commit', 'wgmma.commit_group'),
  wgmma_wait: device(
    `template <int groups>\n${inline(
      'void wgmma_wait()',
      'asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(groups) : "memory");',
    )}`,
  ),
  grow_registers: registers('grow_registers', 'inc'),
  shrink_registers: registers('shrink_registers', 'dec'),
};

/**
 * The name of the function that multiplies 64 rows with `columns` columns; rows in registers are
 * words of every thread.
 */
export function wgmmaName(operand: MatrixType, columns: number, inRegisters: boolean): string {
  return `wgmma${inRegisters ? '_words' : ''}_n${columns}_${operand}`;
}

/**
 * Its text: sums of eight columns each, in registers that only the instruction may touch until it
 * is waited for.
 */
export function wgmmaFunction(operand: MatrixType, columns: number, inRegisters: boolean): string {
  const parts = Array.from({ length: columns / 8 }, (_, i) => `d${i}`);
  const lines = <T>(all: readonly T[], count: number): readonly (readonly T[])[] =>
    Array.from({ length: Math.ceil(all.length / count) }, (_, i) => all.slice(i * count, (i + 1) * count));
  const places = (from: number, count: number): readonly string[] =>
    Array.from({ length: count }, (_, i) => `%${from + i}`);
  const sums = lines(places(0, columns / 2), 16).map((line) => line.join(', '));
  const bound = lines(
    parts.flatMap((part) => ['x', 'y', 'z', 'w'].map((lane) => `"+f"(${part}.${lane})`)),
    8,
  ).map((line) => line.join(', '));
  const parameters = lines(
    parts.map((part) => `float4 &${part}`),
    8,
  ).map((line) => line.join(', '));
  // After the sums: the left operand, the right one, factors of 1, and which way their lines run.
  const [left, ways, given] = inRegisters
    ? [4, 1, '"r"(lhs.x), "r"(lhs.y), "r"(lhs.z), "r"(lhs.w)']
    : [1, 2, '"l"(lhs)'];
  const at = columns / 2;
  const lhs = places(at, left).join(', ');
  const across = places(at + left + 1, ways).join(', ');
  const [type, templates, flags] = inRegisters
    ? ['uint4', 'int rhs_across', '"n"(rhs_across)']
    : ['unsigned long long', 'int lhs_across, int rhs_across', '"n"(lhs_across), "n"(rhs_across)'];
  return device(
    `template <${templates}>\n${inline(
      `void ${wgmmaName(operand, columns, inRegisters)}(${type} lhs, unsigned long long rhs,\n    ${parameters.join(',\n    ')})`,
      `asm volatile("wgmma.mma_async.sync.aligned.m64n${columns}k16.f32.${operand}.${operand} {"`,
      ...sums.map((line, i) => `             "${line}${i < sums.length - 1 ? ',' : ''} "`),
      `             "}, ${inRegisters ? `{${lhs}}` : lhs}, %${at + left}, 1, 1, 1, ${across};"`,
      ...bound.map(
        (line, i) => `             ${i === 0 ? ':' : ' '} ${line}${i < bound.length - 1 ? ',' : ''}`,
      ),
      `             : ${given}, "l"(rhs), ${flags});`,
    )}`,
  );
}
