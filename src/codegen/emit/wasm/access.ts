// Elements of buffers as WebAssembly reads and writes them: any address, any alignment. Narrow
// elements lie as they are, and are widened as they are read; stores keep the low bits, floats
// rounded to the nearest.

import { dtypeBytes, lowered, type RealDType } from '../../../ir/dtype.ts';
import type { Stmt, Value } from '../../loop/loop.ts';
import type { Emitter } from './emitter.ts';
import type { InstructionName } from './module/instructions.ts';
import { signedHalvesToFloats } from './routines.ts';
import type { Access } from './rewrite/pointers.ts';

type Load = Extract<Value, { kind: 'load' }>;
type Store = Extract<Stmt, { kind: 'store' }>;

/**
 * Leaves the address of what is accessed on the stack; gives what must be added to it as an offset.
 */
function address(to: Emitter, access: Access, bytes: number): number {
  const { f } = to;
  const running = to.running(access);
  if (running !== undefined) {
    f.get(running.local);
    return running.offset;
  }
  const { buffer, index } = access;
  const isSum = index.kind === 'op' && index.op === 'add';
  const [base, by] = isSum ? index.args : [];
  if (index.kind === 'constant' && index.value >= 0) {
    f.get(to.pointer(buffer));
    return index.value * bytes;
  }
  // Offsets do not wrap: they may be added only to what is not below 0.
  const folds = base !== undefined && by?.kind === 'constant' && by.value > 0 && to.isNonnegative(base);
  addressOf(to, buffer, folds ? base : index, bytes);
  return folds ? by.value * bytes : 0;
}

/** Leaves the address of an element on the stack. */
export function addressOf(to: Emitter, buffer: string, index: Value, bytes: number): void {
  const { f } = to;
  f.get(to.pointer(buffer));
  if (index.kind === 'constant') {
    if (index.value === 0) return;
    f.int(index.value * bytes);
    f.op('i32.add');
    return;
  }
  to.value(index);
  if (bytes > 1) {
    f.int(Math.log2(bytes));
    f.op('i32.shl');
  }
  f.op('i32.add');
}

const scalarLoads: Readonly<Record<RealDType, InstructionName>> = {
  f64: 'f64.load',
  i64: 'i64.load',
  u64: 'i64.load',
  f32: 'f32.load',
  i32: 'i32.load',
  u32: 'i32.load',
  i16: 'i32.load16_s',
  u16: 'i32.load16_u',
  f16: 'i32.load16_s',
  bf16: 'i32.load16_u',
  i8: 'i32.load8_s',
  u8: 'i32.load8_u',
  bool: 'i32.load8_u',
};

/** Leaves loaded elements on the stack, as a register holds them. */
export function loadValue(to: Emitter, load: Load): void {
  const { f } = to;
  const { buffer, width, type } = load;
  const dtype = lowered(to.buffers.get(buffer)!.dtype);
  const offset = address(to, load, dtypeBytes(dtype));
  if (width === 1) {
    f.op(scalarLoads[dtype], offset);
    if (dtype === 'bf16') {
      f.int(16);
      f.op('i32.shl');
      f.op('f32.reinterpret_i32');
    }
    if (dtype === 'f16') {
      f.op('i32x4.splat');
      signedHalvesToFloats(f);
      f.op('f32x4.extract_lane', 0);
    }
    return;
  }
  switch (dtype) {
    case 'f64':
    case 'i64':
    case 'u64':
      f.op('v128.load', offset);
      return;
    case 'f32':
    case 'i32':
    case 'u32':
      f.op(width === 4 ? 'v128.load' : 'v128.load64_zero', offset);
      return;
    case 'i16':
    case 'f16':
      f.op('v128.load16x4_s', offset);
      if (dtype === 'f16') signedHalvesToFloats(f);
      return;
    case 'u16':
    case 'bf16':
      f.op('v128.load16x4_u', offset);
      if (dtype === 'bf16') {
        f.int(16);
        f.op('i32x4.shl');
      }
      return;
    case 'i8':
    case 'u8':
    case 'bool': {
      const sign = dtype === 'i8' ? 's' : 'u';
      f.op('v128.load32_zero', offset);
      f.op(`i16x8.extend_low_i8x16_${sign}`);
      f.op(`i32x4.extend_low_i16x8_${sign}`);
      if (type === 'bool') {
        f.splat(0);
        f.op('i32x4.ne');
      }
      return;
    }
    default:
      dtype satisfies never;
  }
}

/** Leaves a loaded element in every lane, if there is an instruction for that: says whether. */
export function loadSplat(to: Emitter, { arg, width }: Extract<Value, { kind: 'splat' }>): boolean {
  if (arg.kind !== 'load' || width !== 4) return false;
  const { dtype } = to.buffers.get(arg.buffer)!;
  if (dtype !== 'f32' && dtype !== 'i32' && dtype !== 'u32') return false;
  to.f.op('v128.load32_splat', address(to, arg, 4));
  return true;
}

const scalarStores: Readonly<Record<RealDType, InstructionName>> = {
  f64: 'f64.store',
  i64: 'i64.store',
  u64: 'i64.store',
  f32: 'f32.store',
  i32: 'i32.store',
  u32: 'i32.store',
  i16: 'i32.store16',
  u16: 'i32.store16',
  f16: 'i32.store16',
  bf16: 'i32.store16',
  i8: 'i32.store8',
  u8: 'i32.store8',
  bool: 'i32.store8',
};

/** Bytes 0, 2, … of each lane's low half, or 0, 4, …: four narrow elements side by side. */
const halves = [0, 1, 4, 5, 8, 9, 12, 13, 0, 0, 0, 0, 0, 0, 0, 0];
const bytes = [0, 4, 8, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

export function storeValue(to: Emitter, store: Store): void {
  const { f } = to;
  const { buffer, value } = store;
  const dtype = lowered(to.buffers.get(buffer)!.dtype);
  const offset = address(to, store, dtypeBytes(dtype));
  to.value(value);
  if (value.width === 1) {
    if (dtype === 'f16' || dtype === 'bf16') {
      f.op('f32x4.splat');
      to.call(dtype === 'f16' ? 'f32_to_f16' : 'f32_to_bf16');
      f.op('i32x4.extract_lane', 0);
    }
    f.op(scalarStores[dtype], offset);
    return;
  }
  switch (dtype) {
    case 'f64':
    case 'i64':
    case 'u64':
      f.op('v128.store', offset);
      return;
    case 'f32':
    case 'i32':
    case 'u32':
      if (value.width === 4) f.op('v128.store', offset);
      else f.op('v128.store64_lane', offset, 0);
      return;
    case 'f16':
    case 'bf16':
    case 'i16':
    case 'u16': {
      if (dtype === 'f16') to.call('f32_to_f16');
      if (dtype === 'bf16') to.call('f32_to_bf16');
      const narrow = f.local('narrow', 'v128');
      f.tee(narrow);
      f.get(narrow);
      f.op('i8x16.shuffle', ...halves);
      if (value.width === 4) f.op('v128.store64_lane', offset, 0);
      else f.op('v128.store32_lane', offset, 0);
      return;
    }
    case 'i8':
    case 'u8':
    case 'bool': {
      if (dtype === 'bool') {
        f.splat(1);
        f.op('v128.and');
      }
      const narrow = f.local('narrow', 'v128');
      f.tee(narrow);
      f.get(narrow);
      f.op('i8x16.shuffle', ...bytes);
      f.op(value.width === 4 ? 'v128.store32_lane' : 'v128.store16_lane', offset, 0);
      return;
    }
    default:
      dtype satisfies never;
  }
}
