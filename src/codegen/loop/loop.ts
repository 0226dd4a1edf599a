// Loop IR: one kernel as statements over work-items. Templates build it, an interpreter gives it a meaning that needs no GPU
// (test/support/interpret/), emitters spell it. Buffers are addressed by element; how elements are packed into words is the emitter's affair.

import type { DType } from '../../ir/dtype.ts';
import type { ElementwiseOp, Monoid } from '../../ir/ops.ts';

/** What a register holds. Storage dtypes are widened on load: f16 and bf16 to f32, i8…u16 to i32/u32. Those of 64 bits are for targets
 *  that have them (`Target.dtypes`). */
export type RegisterType = 'f32' | 'i32' | 'u32' | 'bool' | 'f64' | 'i64' | 'u64';
/** Elements a register holds: a scalar or a short vector. Templates write vectors of up to four; 8 and 16 are made by the emitter of C
 *  for itself (emit/c/rewrite/widen.ts), and nobody but it and the interpreter may see them. */
export type Width = 1 | 2 | 4 | 8 | 16;

/**
 * Arithmetic on registers: the elementwise ops with the Graph IR's exact meaning, plus
 * `roundF16`/`roundBf16` (f32 → nearest value of the narrow type, still in f32),
 * `philox` (args, all scalar: key lo, key hi, counter lo, counter hi, element index i32 → u32 word of that element; with
 * width 4 the index is a multiple of 4 and the result holds the words of four consecutive elements),
 * `floorDiv`/`floorMod` (i32 by a positive constant, rounding toward −∞),
 * `roundTf32` (f32 → the nearest value with 10 bits of fraction, ties away from zero),
 * `pmin`/`pmax` (f32; `pmin(x, c)` is `c < x ? c : x`, `pmax(x, c)` is `x < c ? c : x`: x where one of them is NaN),
 * `exp2Normal` (f32 → 2^x, and 0 where that is less than the least normal number),
 * `recipNormal` (f32 → 1 / x; 0 where that is less than the least normal number, and NaN where x is, or is infinite),
 * `popcount` (u32 → how many of its bits are set),
 * `packF16`/`packBf16` (two f32 → u32: the first as 16 bits in the low half, the second in the high half),
 * `unpackF16` (u32 → the f32 that its low 16 bits are),
 * `byteU`/`byteS` (u32, and a place from 0 to 3 → that byte, the lowest first, as a u32 or, with its sign, as an i32),
 * `evenI8`/`oddI8` (u32 → u32: bytes 0 and 2, or 1 and 3, with their signs as 16 bits each),
 * `dotI16` (two u32 → i32: the products of their low and of their high 16 bits, with signs, added; it wraps).
 */
export type LoopOp = ElementwiseOp | RegisterOp;

/** Operations that only Loops have. */
export type RegisterOp =
  | 'roundF16'
  | 'roundBf16'
  | 'philox'
  | 'floorDiv'
  | 'floorMod'
  | 'roundTf32'
  | 'pmin'
  | 'pmax'
  | 'exp2Normal'
  | 'recipNormal'
  | 'popcount'
  | 'packF16'
  | 'packBf16'
  | 'unpackF16'
  | 'byteU'
  | 'byteS'
  | 'evenI8'
  | 'oddI8'
  | 'dotI16';

/** What an atomic statement does with the element that is there. */
export type AtomicOp = 'add' | 'mul' | 'min' | 'max' | 'and' | 'or';

interface Typed {
  readonly type: RegisterType;
  readonly width: Width;
}

export type Value = Typed &
  /** `exact`: an i64 or u64 that a number is only near to. */
  (
    | { readonly kind: 'constant'; readonly value: number; readonly exact?: bigint }
    /** A `let`, a `var` or a loop counter. */
    | { readonly kind: 'variable'; readonly name: string }
    /** Coordinate of the work-item: its workgroup in the grid, or its place in the workgroup. Always i32. */
    | { readonly kind: 'builtin'; readonly of: 'workgroup' | 'local'; readonly axis: 0 | 1 | 2 }
    /** Where the work-item stands among subgroups: its place in its own, the number of that one in the workgroup, and how many
     *  there are. Subgroups are consecutive invocations; how many make one, the device decides. Always i32. */
    | { readonly kind: 'subgroup'; readonly of: 'place' | 'number' | 'count' }
    /** Elementwise over lanes: every argument has the result's width. `cast` converts the argument's type to `type`. `wraps`: an
     *  i32 that the program computes, or bits; all other i32 arithmetic finds places, and may not leave 32 bits. */
    | { readonly kind: 'op'; readonly op: LoopOp; readonly args: readonly Value[]; readonly wraps?: true }
    /** `width` consecutive elements from element `index` (i32 scalar). `aligned`: index is a multiple of width. */
    | { readonly kind: 'load'; readonly buffer: string; readonly index: Value; readonly aligned: boolean }
    /** Word `slot` of the scalar block. */
    | { readonly kind: 'scalar'; readonly slot: number }
    /** A vector of scalars. */
    | { readonly kind: 'vector'; readonly args: readonly Value[] }
    /** One scalar in every lane. */
    | { readonly kind: 'splat'; readonly arg: Value }
    /** One lane of a vector. */
    | { readonly kind: 'lane'; readonly arg: Value; readonly lane: number }
  );

export type Stmt =
  /** Names an immutable value. */
  | { readonly kind: 'let'; readonly name: string; readonly value: Value }
  /** Declares a mutable register. */
  | { readonly kind: 'var'; readonly name: string; readonly value: Value }
  | { readonly kind: 'assign'; readonly name: string; readonly value: Value }
  /** Writes `value.width` consecutive elements. `owned`: this work-item alone writes the 32-bit words it touches (they may
   *  be written whole); otherwise narrow elements must be merged into their word atomically. */
  | {
      readonly kind: 'store';
      readonly buffer: string;
      readonly index: Value;
      readonly value: Value;
      readonly owned: boolean;
    }
  /** Folds a scalar into a 32-bit element, no other atomic between reading and writing it. Invocations take turns in no fixed
   *  order: the result is one only where the order does not matter (integers), or where that is accepted. */
  | {
      readonly kind: 'atomic';
      readonly op: AtomicOp;
      readonly buffer: string;
      readonly index: Value;
      readonly value: Value;
    }
  /** Serial loop: `name` runs over [start, end) by `step` (a positive number). Bounds are i32 scalars. */
  | {
      readonly kind: 'for';
      readonly name: string;
      readonly start: Value;
      readonly end: Value;
      readonly step: number;
      readonly body: readonly Stmt[];
    }
  | {
      readonly kind: 'if';
      readonly condition: Value;
      readonly then: readonly Stmt[];
      readonly else?: readonly Stmt[];
    }
  /** All work-items of the workgroup arrive; workgroup memory written before is visible after. Uniform control flow only. */
  | { readonly kind: 'barrier' }
  /** Names the combination of `value` over the invocations of the subgroup. Uniform control flow only. */
  | {
      readonly kind: 'subgroupReduce';
      readonly name: string;
      readonly monoid: Monoid;
      readonly value: Value;
    }
  | MatrixStmt
  | WarpgroupStmt
  /**
   * An element will be read soon, if the buffer has it: memory may bring it nearer. It means nothing; languages that cannot say it leave it
   * out.
   */
  | { readonly kind: 'prefetch'; readonly buffer: string; readonly index: Value }
  | { readonly kind: 'comment'; readonly text: string };

/** Element types of matrices that matrix units multiply; sums are f32. A tf32 is a f32 of which the upper 19 bits count. */
export type MatrixType = 'f16' | 'bf16' | 'tf32';

/**
 * What matrix units (tensor cores) need, on targets that have them: subgroups of 32 invocations which act as one, and tiles of
 * 16-bit elements that come to workgroup memory while others are multiplied. All but `asyncCopy` in uniform control flow only.
 * Which invocation holds which element is as the PTX ISA lays it down for `mma.m16n8k16` (tf32: `mma.m16n8k8`) and `ldmatrix`.
 */
export type MatrixStmt =
  /** Names a u32 vector of four: four 8×8 matrices of 16-bit elements from workgroup memory, two elements a word. Invocation i
   *  says where row i % 8 of matrix ⌊i / 8⌋ begins (a multiple of 8). `transposed`: rows and columns change places. */
  | {
      readonly kind: 'loadMatrix';
      readonly name: string;
      readonly buffer: string;
      readonly index: Value;
      readonly transposed: boolean;
    }
  /** Adds a 16×16 matrix (u32×4; of tf32 16×8) times a 16×8 one (u32×2; 8×8) to the 16×8 sums of `name` (a var, f32×4). */
  | {
      readonly kind: 'mma';
      readonly name: string;
      readonly operand: MatrixType;
      readonly lhs: Value;
      readonly rhs: Value;
    }
  /** Names the value that the invocation whose place in the subgroup differs by the bits of `mask` has. */
  | { readonly kind: 'shuffle'; readonly name: string; readonly value: Value; readonly mask: number }
  /** Begins to copy 16 bytes of elements from global memory (`from`, at `at`) to workgroup memory, both aligned to that;
   *  zeros where `inside` is false. They may be read after an `asyncWait` and a barrier. */
  | {
      readonly kind: 'asyncCopy';
      readonly buffer: string;
      readonly index: Value;
      readonly from: string;
      readonly at: Value;
      readonly inside: Value;
    }
  /** Puts the copies that this invocation began since the last time into one group. */
  | { readonly kind: 'asyncCommit' }
  /** Waits until at most `pending` groups of this invocation's are under way, the youngest. */
  | { readonly kind: 'asyncWait'; readonly pending: number };

/** Sixteen steps of k of one operand in tiled memory, from element `index`: lines of 64 elements run along k, or along the free
 *  axis in panels of 64 that begin `panel` elements apart. */
export interface TileOperand {
  readonly buffer: string;
  readonly index: Value;
  readonly alongK: boolean;
  readonly panel: number;
}

/**
 * What Hopper's matrix units need beyond that: warp groups of 128 consecutive invocations that multiply tiles straight from
 * workgroup memory, and tiles that one invocation has copied while others multiply. Who waits for whom is said by mbarriers: a
 * phase of one ends when `count` invocations have arrived and all bytes that they announced have come; then the next begins.
 */
export type WarpgroupStmt =
  /** One invocation makes an mbarrier, in phase 0; a workgroup's barrier comes before its use. */
  | {
      readonly kind: 'initBarrier';
      readonly barrier: string;
      readonly index: Value;
      readonly count: number;
    }
  /** This invocation arrives, and announces bytes that copies will bring. */
  | { readonly kind: 'arrive'; readonly barrier: string; readonly index: Value; readonly bytes: number }
  /** This invocation waits until the phase of this parity (0 or 1) is over. What was done before the arrivals, and what the
   *  copies brought, is visible after. */
  | { readonly kind: 'awaitBarrier'; readonly barrier: string; readonly index: Value; readonly parity: Value }
  /** Begins to copy the box at coordinates `at` (in the order of the map's sizes) to tiled memory, line by line from element
   *  `index`; zeros where the box leaves the tensor. Its bytes are announced to an mbarrier. */
  | {
      readonly kind: 'copyTile';
      readonly buffer: string;
      readonly index: Value;
      readonly map: string;
      readonly at: readonly Value[];
      readonly barrier: string;
      readonly slot: Value;
    }
  /** Sets an element of tiled memory to zero, whose copy this invocation has waited for. */
  | { readonly kind: 'clearTile'; readonly buffer: string; readonly index: Value }
  /** What this invocation cleared before is visible to products and copies of those who wait for what it does after. */
  | { readonly kind: 'publishTiles' }
  /** A warp group begins to add a 64×16 matrix times a 16×8n one to `sums`, n vars of f32×4: each holds eight columns, of which
   *  warp w of the group has rows 16w to 16w + 15 as in `mma`. Nobody may touch them before a wait. The left matrix is a tile,
   *  or in registers: u32×4 of every invocation, of which each warp's are a left operand of `mma`. */
  | {
      readonly kind: 'wgmma';
      readonly sums: readonly string[];
      readonly operand: 'f16' | 'bf16';
      readonly lhs?: TileOperand;
      readonly words?: Value;
      readonly rhs: TileOperand;
    }
  /** These sums, which were written since the last wait, may be added to. */
  | { readonly kind: 'wgmmaFence'; readonly sums: readonly string[] }
  /** Puts the multiplications that the warp group began since the last time into one group. */
  | { readonly kind: 'wgmmaCommit' }
  /** Waits until at most `pending` groups of the warp group's are under way, the youngest; after that these sums are read. */
  | { readonly kind: 'wgmmaWait'; readonly pending: number; readonly sums: readonly string[] }
  /** The warp group's invocations keep at most `count` registers, more or fewer than before. Means nothing to what is computed. */
  | { readonly kind: 'setRegisters'; readonly count: number; readonly grow: boolean };

/** A global buffer as a tensor of which boxes are copied; the axis along which elements are neighbours comes first. */
export interface TileMap {
  readonly name: string;
  readonly buffer: string;
  /** Elements before the first. */
  readonly offset: number;
  readonly sizes: readonly number[];
  /** Elements from one index to the next along every axis; 1 along the first. */
  readonly strides: readonly number[];
  readonly box: readonly number[];
}

/** A row of mbarriers in workgroup memory. */
export interface BarrierArray {
  readonly name: string;
  readonly size: number;
}

export interface LoopBuffer {
  readonly name: string;
  readonly space: 'global' | 'workgroup';
  /** Storage dtype of an element (workgroup memory: f32, i32, u32; f16 and bf16 where there are matrix units). */
  readonly dtype: DType;
  /** Elements. */
  readonly size: number;
  readonly access: 'read' | 'read_write';
  /** Workgroup memory of lines of 64 elements that only `copyTile` and `clearTile` write and only `wgmma` reads: how elements
   *  lie in it is their affair. */
  readonly tiled?: true;
}

/** One kernel, ready to be spelled. Global buffers come in binding order. */
export interface Loop {
  /** Identifier, unique in its program; the entry point. */
  readonly name: string;
  readonly kind: string;
  /** Lines of the header comment: shapes, flops, bytes, schedule. */
  readonly header: readonly string[];
  readonly buffers: readonly LoopBuffer[];
  readonly tileMaps?: readonly TileMap[];
  readonly mbarriers?: readonly BarrierArray[];
  readonly usesScalars: boolean;
  /** Workgroups along x, y, z. */
  readonly grid: readonly [number, number, number];
  readonly workgroup: readonly [number, number, number];
  readonly body: readonly Stmt[];
}
