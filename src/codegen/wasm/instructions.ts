// WebAssembly instructions by the names of its text format: opcodes and immediates, from the core specification (2.0, with SIMD). The
// table is all that the encoder and the printer know of an instruction.

/** Types of values. */
export type ValueType = 'i32' | 'i64' | 'f32' | 'f64' | 'v128';

/** What follows an opcode: nothing, indices, a memory address with its offset, constants, a lane, sixteen lanes, or both of two. */
type Immediate =
  | 'none'
  | 'local'
  | 'function'
  | 'label'
  | 'block'
  | 'memory'
  | 'i32'
  | 'f32'
  | 'v128'
  | 'lane'
  | 'lanes'
  | 'memory lane';

/** A prefix, if it is not 0, the opcode, and what follows. */
export type Coding = readonly [prefix: 0 | 0xfc | 0xfd, code: number, takes: Immediate];

export const instructions = {
  block: [0, 0x02, 'block'],
  loop: [0, 0x03, 'block'],
  if: [0, 0x04, 'block'],
  else: [0, 0x05, 'none'],
  end: [0, 0x0b, 'none'],
  br_if: [0, 0x0d, 'label'],
  call: [0, 0x10, 'function'],
  select: [0, 0x1b, 'none'],
  'local.get': [0, 0x20, 'local'],
  'local.set': [0, 0x21, 'local'],
  'local.tee': [0, 0x22, 'local'],

  'i32.load': [0, 0x28, 'memory'],
  'f32.load': [0, 0x2a, 'memory'],
  'i32.load8_s': [0, 0x2c, 'memory'],
  'i32.load8_u': [0, 0x2d, 'memory'],
  'i32.load16_s': [0, 0x2e, 'memory'],
  'i32.load16_u': [0, 0x2f, 'memory'],
  'i32.store': [0, 0x36, 'memory'],
  'f32.store': [0, 0x38, 'memory'],
  'i32.store8': [0, 0x3a, 'memory'],
  'i32.store16': [0, 0x3b, 'memory'],

  'i32.const': [0, 0x41, 'i32'],
  'f32.const': [0, 0x43, 'f32'],
  'i32.eqz': [0, 0x45, 'none'],
  'i32.eq': [0, 0x46, 'none'],
  'i32.ne': [0, 0x47, 'none'],
  'i32.lt_s': [0, 0x48, 'none'],
  'i32.lt_u': [0, 0x49, 'none'],
  'i32.le_s': [0, 0x4c, 'none'],
  'i32.le_u': [0, 0x4d, 'none'],
  'f32.eq': [0, 0x5b, 'none'],
  'f32.ne': [0, 0x5c, 'none'],
  'f32.lt': [0, 0x5d, 'none'],
  'f32.le': [0, 0x5f, 'none'],
  'i32.popcnt': [0, 0x69, 'none'],
  'i32.add': [0, 0x6a, 'none'],
  'i32.sub': [0, 0x6b, 'none'],
  'i32.mul': [0, 0x6c, 'none'],
  'i32.div_s': [0, 0x6d, 'none'],
  'i32.div_u': [0, 0x6e, 'none'],
  'i32.rem_s': [0, 0x6f, 'none'],
  'i32.rem_u': [0, 0x70, 'none'],
  'i32.and': [0, 0x71, 'none'],
  'i32.or': [0, 0x72, 'none'],
  'i32.xor': [0, 0x73, 'none'],
  'i32.shl': [0, 0x74, 'none'],
  'i32.shr_s': [0, 0x75, 'none'],
  'i32.shr_u': [0, 0x76, 'none'],
  'i64.mul': [0, 0x7e, 'none'],
  'i64.shr_u': [0, 0x88, 'none'],
  'f32.abs': [0, 0x8b, 'none'],
  'f32.neg': [0, 0x8c, 'none'],
  'f32.ceil': [0, 0x8d, 'none'],
  'f32.floor': [0, 0x8e, 'none'],
  'f32.trunc': [0, 0x8f, 'none'],
  'f32.nearest': [0, 0x90, 'none'],
  'f32.sqrt': [0, 0x91, 'none'],
  'f32.add': [0, 0x92, 'none'],
  'f32.sub': [0, 0x93, 'none'],
  'f32.mul': [0, 0x94, 'none'],
  'f32.div': [0, 0x95, 'none'],
  'f32.min': [0, 0x96, 'none'],
  'f32.max': [0, 0x97, 'none'],
  'i32.wrap_i64': [0, 0xa7, 'none'],
  'i64.extend_i32_s': [0, 0xac, 'none'],
  'i64.extend_i32_u': [0, 0xad, 'none'],
  'f32.convert_i32_s': [0, 0xb2, 'none'],
  'f32.convert_i32_u': [0, 0xb3, 'none'],
  'i32.reinterpret_f32': [0, 0xbc, 'none'],
  'f32.reinterpret_i32': [0, 0xbe, 'none'],
  'i32.trunc_sat_f32_s': [0xfc, 0x00, 'none'],
  'i32.trunc_sat_f32_u': [0xfc, 0x01, 'none'],

  'v128.load': [0xfd, 0, 'memory'],
  'v128.load16x4_s': [0xfd, 3, 'memory'],
  'v128.load16x4_u': [0xfd, 4, 'memory'],
  'v128.store': [0xfd, 11, 'memory'],
  'v128.const': [0xfd, 12, 'v128'],
  'i8x16.shuffle': [0xfd, 13, 'lanes'],
  'i32x4.splat': [0xfd, 17, 'none'],
  'f32x4.splat': [0xfd, 19, 'none'],
  'i32x4.extract_lane': [0xfd, 27, 'lane'],
  'i32x4.replace_lane': [0xfd, 28, 'lane'],
  'f32x4.extract_lane': [0xfd, 31, 'lane'],
  'f32x4.replace_lane': [0xfd, 32, 'lane'],
  'i32x4.eq': [0xfd, 55, 'none'],
  'i32x4.ne': [0xfd, 56, 'none'],
  'i32x4.lt_s': [0xfd, 57, 'none'],
  'i32x4.lt_u': [0xfd, 58, 'none'],
  'i32x4.gt_s': [0xfd, 59, 'none'],
  'i32x4.le_s': [0xfd, 61, 'none'],
  'i32x4.le_u': [0xfd, 62, 'none'],
  'f32x4.eq': [0xfd, 65, 'none'],
  'f32x4.ne': [0xfd, 66, 'none'],
  'f32x4.lt': [0xfd, 67, 'none'],
  'f32x4.le': [0xfd, 69, 'none'],
  'f32x4.ge': [0xfd, 70, 'none'],
  'v128.not': [0xfd, 77, 'none'],
  'v128.and': [0xfd, 78, 'none'],
  'v128.or': [0xfd, 80, 'none'],
  'v128.xor': [0xfd, 81, 'none'],
  'v128.bitselect': [0xfd, 82, 'none'],
  'v128.any_true': [0xfd, 83, 'none'],
  'v128.store16_lane': [0xfd, 89, 'memory lane'],
  'v128.store32_lane': [0xfd, 90, 'memory lane'],
  'v128.store64_lane': [0xfd, 91, 'memory lane'],
  'v128.load32_zero': [0xfd, 92, 'memory'],
  'v128.load64_zero': [0xfd, 93, 'memory'],
  'i8x16.popcnt': [0xfd, 98, 'none'],
  'f32x4.ceil': [0xfd, 103, 'none'],
  'f32x4.floor': [0xfd, 104, 'none'],
  'f32x4.trunc': [0xfd, 105, 'none'],
  'f32x4.nearest': [0xfd, 106, 'none'],
  'i16x8.extadd_pairwise_i8x16_u': [0xfd, 125, 'none'],
  'i32x4.extadd_pairwise_i16x8_u': [0xfd, 127, 'none'],
  'i16x8.extend_low_i8x16_s': [0xfd, 135, 'none'],
  'i16x8.extend_low_i8x16_u': [0xfd, 137, 'none'],
  'i32x4.abs': [0xfd, 160, 'none'],
  'i32x4.neg': [0xfd, 161, 'none'],
  'i32x4.extend_low_i16x8_s': [0xfd, 167, 'none'],
  'i32x4.extend_low_i16x8_u': [0xfd, 169, 'none'],
  'i32x4.shl': [0xfd, 171, 'none'],
  'i32x4.shr_s': [0xfd, 172, 'none'],
  'i32x4.shr_u': [0xfd, 173, 'none'],
  'i32x4.add': [0xfd, 174, 'none'],
  'i32x4.sub': [0xfd, 177, 'none'],
  'i32x4.mul': [0xfd, 181, 'none'],
  'i32x4.min_s': [0xfd, 182, 'none'],
  'i32x4.min_u': [0xfd, 183, 'none'],
  'i32x4.max_s': [0xfd, 184, 'none'],
  'i32x4.max_u': [0xfd, 185, 'none'],
  'i64x2.extmul_low_i32x4_s': [0xfd, 220, 'none'],
  'i64x2.extmul_high_i32x4_s': [0xfd, 221, 'none'],
  'i64x2.extmul_low_i32x4_u': [0xfd, 222, 'none'],
  'i64x2.extmul_high_i32x4_u': [0xfd, 223, 'none'],
  'f32x4.abs': [0xfd, 224, 'none'],
  'f32x4.neg': [0xfd, 225, 'none'],
  'f32x4.sqrt': [0xfd, 227, 'none'],
  'f32x4.add': [0xfd, 228, 'none'],
  'f32x4.sub': [0xfd, 229, 'none'],
  'f32x4.mul': [0xfd, 230, 'none'],
  'f32x4.div': [0xfd, 231, 'none'],
  'f32x4.min': [0xfd, 232, 'none'],
  'f32x4.max': [0xfd, 233, 'none'],
  'f32x4.pmin': [0xfd, 234, 'none'],
  'f32x4.pmax': [0xfd, 235, 'none'],
  'i32x4.trunc_sat_f32x4_s': [0xfd, 248, 'none'],
  'i32x4.trunc_sat_f32x4_u': [0xfd, 249, 'none'],
  'f32x4.convert_i32x4_s': [0xfd, 250, 'none'],
  'f32x4.convert_i32x4_u': [0xfd, 251, 'none'],
} as const;

export type InstructionName = keyof typeof instructions;

/** The type that a structured instruction leaves; `none` for statements. */
export type BlockType = 'none' | ValueType;

/** An instruction with its immediates: indices, offsets, constants and lanes as numbers, a v128 as its four words. */
export interface Instruction {
  readonly name: InstructionName;
  readonly immediates: readonly number[];
  readonly block?: BlockType;
}

/** Bytes that an instruction reads or writes. */
export function bytesAccessed(name: InstructionName): number {
  const [, type = '', bits, lanes] = /^(\w+)\.(?:load|store)(\d+)?(x\d)?/.exec(name) ?? [];
  if (lanes !== undefined) return 8;
  if (bits !== undefined) return Number(bits) / 8;
  return type === 'v128' ? 16 : type.endsWith('64') ? 8 : 4;
}

/** How an instruction is written in bytes. */
export function codingOf(name: InstructionName): Coding {
  return instructions[name];
}
