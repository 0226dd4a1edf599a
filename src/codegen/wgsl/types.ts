// Register types as WGSL writes them.

import type { RegisterType, Width } from '../loop.ts';

/** `f32`, `vec4f`, `vec2<bool>`. */
export function typeName(type: RegisterType, width: Width): string {
  if (width === 1) return type;
  return type === 'bool' ? `vec${width}<bool>` : `vec${width}${type[0]}`;
}

/** The letter that stands for a register type in the prelude. */
export const typeLetter: Readonly<Record<RegisterType, string>> = { f32: 'F', i32: 'I', u32: 'U', bool: 'B' };
