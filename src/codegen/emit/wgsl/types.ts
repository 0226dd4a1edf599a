// Register types as WGSL writes them.

import { CompilerBug } from '../../../errors.ts';
import { isWide } from '../../../ir/dtype.ts';
import type { RegisterType, Width } from '../../loop/loop.ts';

/** Register types that WGSL has: integers of 64 bits are pairs of words. */
export type NarrowType = Exclude<RegisterType, 'f64' | 'i64' | 'u64'>;

/** The type, which has 32 bits at most. */
export function narrow(type: RegisterType): NarrowType {
  if (type === 'f64' || type === 'i64' || type === 'u64')
    throw new CompilerBug('WGSL emitter', `WGSL has no registers of ${type}`);
  return type;
}

/** `f32`, `vec4f`, `vec2<bool>`; `vec2u` of an integer of 64 bits. */
export function typeName(type: RegisterType, width: Width): string {
  if (isWide(type) && width === 1) return 'vec2u';
  const element = narrow(type);
  if (width === 1) return element;
  return element === 'bool' ? `vec${width}<bool>` : `vec${width}${element[0]}`;
}

/** The letter that stands for a register type in the prelude. */
export function typeLetter(type: RegisterType): string {
  return { f32: 'F', i32: 'I', u32: 'U', bool: 'B' }[narrow(type)];
}
