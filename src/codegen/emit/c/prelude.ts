// What a kernel's text needs before the kernel: types of vectors, and functions. Each stands in a
// guard block, so that the texts of several kernels can follow each other in one translation unit.

import { dtypeBytes, lowered, type DType, type RealDType } from '../../../ir/dtype.ts';
import type { RegisterType, Width } from '../../loop/loop.ts';
import { isLong, widened } from '../../loop/register.ts';
import { definitions } from './definitions.ts';
import { elementType, laneType, scalarType } from './types.ts';

/** A text that is there once in a translation unit. */
export function guarded(item: string, text: string): string {
  const guard = `SINTER_${item.toUpperCase()}`;
  return `#ifndef ${guard}\n#define ${guard}\n${text}\n#endif`;
}

/** The dtype that has the C type of an element. */
function memoryName(dtype: RealDType): RealDType {
  if (dtype === 'f16' || dtype === 'bf16') return 'u16';
  return dtype === 'bool' ? 'u8' : dtype;
}

/** Names of the operands of functions. */
const operands = ['x', 'y', 'z'] as const;

export class CPrelude {
  /** Texts by the name that they define, each behind those that it uses. */
  readonly #items = new Map<string, string>();

  /** The guard blocks. */
  get text(): string {
    return [...this.#items].map(([name, text]) => guarded(name, text)).join('\n');
  }

  /** Adds what a name stands for, unless it is there. */
  define(name: string, make: () => string): string {
    if (!this.#items.has(name)) {
      // What it uses comes first.
      const text = make();
      this.#items.set(name, text);
    }
    return name;
  }

  /** The name of a function that is the same in all kernels. */
  use(name: string): string {
    return this.define(name, () => definitions(name, this));
  }

  /** `float`, `f32x4`. */
  type(type: RegisterType, width: Width): string {
    return width === 1 ? scalarType(type) : this.vector(laneType(type), width);
  }

  /** The type of a vector in a register. */
  vector(lane: DType, width: Width): string {
    const name = `${lane}x${width}`;
    const bytes = width * dtypeBytes(lane);
    const attributes = `__attribute__((vector_size(${bytes})))`;
    return this.define(name, () => `typedef ${elementType(lane)} ${name} ${attributes};`);
  }

  /** The type of consecutive elements in memory, wherever they begin. */
  packed(dtype: DType, width: Width): string {
    const element = elementType(dtype);
    const size = dtypeBytes(lowered(dtype));
    const name = `${memoryName(lowered(dtype))}x${width}_u`;
    const attributes = `__attribute__((vector_size(${width * size}), aligned(${size}), may_alias))`;
    return this.define(name, () => `typedef ${element} ${name} ${attributes};`);
  }

  /** The function that puts a scalar into every lane. */
  splat(type: RegisterType, width: Width): string {
    const lane = laneType(type);
    const vector = this.vector(lane, width);
    const lanes = Array.from({ length: width }, () => 'x').join(', ');
    return this.define(
      `splat_${vector}`,
      () =>
        `static inline ${vector} splat_${vector}(${scalarType(lane)} x) {\n  return (${vector}){${lanes}};\n}`,
    );
  }

  /**
   * A function on vectors that does something to each lane: `lane` writes it, from the texts of the
   * operands' lanes. Compilers make instructions on vectors of such loops.
   */
  lanewise(
    name: string,
    type: RegisterType,
    width: Width,
    types: readonly RegisterType[],
    lane: (args: readonly string[]) => string,
  ): string {
    return this.define(name, () => {
      const result = this.type(type, width);
      const params = types.map((one, i) => `${this.type(one, width)} ${operands[i]}`).join(', ');
      const args = types.map((one, i) => {
        const text = `${operands[i]}[i]`;
        return one === 'bool' ? `(${text} != 0)` : text;
      });
      const value = lane(args);
      // A mask has all bits or none.
      const stored = type === 'bool' ? `-(int32_t)(${value})` : value;
      return [
        `static inline ${result} ${name}(${params}) {`,
        `  ${result} r = {0};`,
        `  for (int i = 0; i < ${width}; i++) r[i] = ${stored};`,
        '  return r;',
        '}',
      ].join('\n');
    });
  }

  /** The function that reads consecutive elements. */
  load(dtype: DType, width: Width): string {
    const name = `load_${lowered(dtype)}x${width}`;
    return this.define(name, () => {
      const type = widened(dtype);
      const result = this.type(type, width);
      const packed = this.packed(dtype, width);
      const read = `*(const ${packed} *)p`;
      return `static inline ${result} ${name}(const ${elementType(dtype)} *p) {\n  return ${this.#widen(dtype, width, read)};\n}`;
    });
  }

  #widen(dtype: DType, width: Width, read: string): string {
    switch (lowered(dtype)) {
      case 'f16':
        return `${this.#f32OfF16(width)}(__builtin_convertvector(${read}, ${this.vector('u32', width)}))`;
      case 'bf16': {
        const words = this.vector('u32', width);
        return `(${this.vector('f32', width)})(__builtin_convertvector(${read}, ${words}) << 16)`;
      }
      case 'bool':
        return `__builtin_convertvector(${read}, ${this.vector('i32', width)}) != 0`;
      case 'i8':
      case 'i16':
        return `__builtin_convertvector(${read}, ${this.vector('i32', width)})`;
      case 'u8':
      case 'u16':
        return `__builtin_convertvector(${read}, ${this.vector('u32', width)})`;
      default:
        return read;
    }
  }

  #f32OfF16(width: Width): string {
    const one = this.use('f32_of_f16');
    return this.lanewise(`${one}x${width}`, 'f32', width, ['u32'], ([x]) => `${one}(${x})`);
  }

  /** The function that writes consecutive elements. */
  store(dtype: DType, width: Width): string {
    const name = `store_${lowered(dtype)}x${width}`;
    return this.define(name, () => {
      const type = this.type(widened(dtype), width);
      const packed = this.packed(dtype, width);
      const narrow = this.#narrow(dtype, width, packed);
      return `static inline void ${name}(${elementType(dtype)} *p, ${type} x) {\n  *(${packed} *)p = ${narrow};\n}`;
    });
  }

  #narrow(dtype: DType, width: Width, packed: string): string {
    const plain = lowered(dtype);
    switch (plain) {
      case 'f16':
      case 'bf16': {
        const one = this.use(`${plain}_of_f32`);
        const lanes = this.lanewise(`${one}x${width}`, 'u32', width, ['f32'], ([x]) => `${one}(${x})`);
        return `__builtin_convertvector(${lanes}(x), ${packed})`;
      }
      case 'bool':
        return `__builtin_convertvector(-x, ${packed})`;
      case 'i8':
      case 'i16':
      case 'u8':
      case 'u16':
        return `__builtin_convertvector(x, ${packed})`;
      default:
        return 'x';
    }
  }

  /** Lanes of 64 bits have masks of 64 bits, which become masks of 32. */
  mask(type: RegisterType, width: Width, text: string): string {
    return isLong(type) ? `__builtin_convertvector(${text}, ${this.type('bool', width)})` : text;
  }
}
