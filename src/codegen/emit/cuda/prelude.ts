// The functions and types that a generated kernel uses, each after those it calls. Functions are
// written for scalars (cuda/prelude-functions.ts); those on short vectors are made of them lane by
// lane.

import { lowered, type DType } from '../../../ir/dtype.ts';
import type { MatrixType, RegisterType, Width } from '../../loop/loop.ts';
import { definitions } from './prelude-functions.ts';
import { wgmmaFunction, wgmmaName } from './prelude-warpgroup.ts';
import { isLong } from '../../loop/register.ts';
import { elementName, lanes, packName, typeName } from './types.ts';

const inline = '__device__ __forceinline__';

/** What one kernel needs in front of it. */
export class CudaPrelude {
  readonly #texts = new Map<string, string>();

  /** The name of a function or type of the table, from then on part of the prelude. */
  use(name: string): string {
    if (!this.#texts.has(name)) this.#add(name, definitions.get(name)!);
    return name;
  }

  /** The name of a register type. */
  type(type: RegisterType, width: Width): string {
    const name = typeName(type, width);
    if (isLong(type)) return width === 1 ? this.element(type) : this.#pack(type, width);
    if (type === 'bool' && width > 1)
      this.#add(name, `struct ${name} { bool ${lanes.slice(0, width).join(', ')}; };`);
    return name;
  }

  /** The name of an element's type. */
  element(dtype: DType): string {
    const name = elementName(dtype);
    return definitions.has(name) ? this.use(name) : name;
  }

  /** A function on vectors: `each` spells lane `.x`, `.y`, … of its parameters a, b, c. */
  lanewise(
    name: string,
    result: RegisterType,
    width: Width,
    types: readonly RegisterType[],
    each: (parameters: readonly string[]) => string,
  ): string {
    const names = ['a', 'b', 'c'].slice(0, types.length);
    const declared = types.map((type, i) => `${this.type(type, width)} ${names[i]}`);
    const type = this.type(result, width);
    const parts = lanes.slice(0, width).map((lane) => each(names.map((parameter) => `${parameter}.${lane}`)));
    this.#add(
      `${name}(${declared.join(', ')})`,
      `${inline} ${type} ${name}(${declared.join(', ')}) {\n  return ${type}{${parts.join(', ')}};\n}`,
    );
    return name;
  }

  /** The function of (x & m) | c on words. */
  andOr(width: Width): string {
    const one = this.use('and_or_u32');
    if (width === 1) return one;
    return this.lanewise(
      `${one}x${width}`,
      'u32',
      width,
      ['u32', 'u32', 'u32'],
      (args) => `${one}(${args.join(', ')})`,
    );
  }

  /** The function that puts one scalar into every lane. */
  splat(of: RegisterType, width: Width): string {
    const type = this.type(of, width);
    const name = `${type}_of`;
    const parts = Array.from({ length: width }, () => 'x').join(', ');
    this.#add(name, `${inline} ${type} ${name}(${this.type(of, 1)} x) {\n  return ${type}{${parts}};\n}`);
    return name;
  }

  /** The function that loads aligned elements into a register. */
  load(dtype: DType, of: RegisterType, width: Exclude<Width, 1>): string {
    const name = `load_${dtype}x${width}`;
    const [type, pack] = [this.type(of, width), this.#pack(dtype, width)];
    const parts = lanes.slice(0, width).map((lane) => this.widen(dtype, `pack.${lane}`));
    const from = `reinterpret_cast<const ${pack} *>(from)`;
    const body =
      pack === type
        ? `  return *${from};`
        : `  const ${pack} pack = *${from};\n  return ${type}{${parts.join(', ')}};`;
    this.#add(name, `${inline} ${type} ${name}(const ${this.element(dtype)} *from) {\n${body}\n}`);
    return name;
  }

  /** The function that stores a register to aligned elements. */
  store(dtype: DType, of: RegisterType, width: Exclude<Width, 1>): string {
    const name = `store_${dtype}x${width}`;
    const [type, pack] = [this.type(of, width), this.#pack(dtype, width)];
    const parts = lanes.slice(0, width).map((lane) => this.narrow(dtype, `value.${lane}`));
    const value = pack === type ? 'value' : `${pack}{${parts.join(', ')}}`;
    const body = `  *reinterpret_cast<${pack} *>(to) = ${value};`;
    this.#add(name, `${inline} void ${name}(${this.element(dtype)} *to, ${type} value) {\n${body}\n}`);
    return name;
  }

  /** An element as a register holds it. */
  widen(of: DType, text: string): string {
    const dtype = lowered(of);
    switch (dtype) {
      case 'f16':
      case 'bf16':
        return `${this.use(`${dtype}_to_float`)}(${text})`;
      case 'bool':
        return `${text} != 0`;
      case 'i8':
      case 'i16':
        return `int(${text})`;
      case 'u8':
      case 'u16':
        return `unsigned(${text})`;
      case 'f32':
      case 'f64':
      case 'i32':
      case 'u32':
      case 'i64':
      case 'u64':
        return text;
      default:
        return dtype satisfies never;
    }
  }

  /** A register as an element. */
  narrow(of: DType, text: string): string {
    const dtype = lowered(of);
    switch (dtype) {
      case 'f16':
      case 'bf16':
        return `${this.use(`float_to_${dtype}`)}(${text})`;
      case 'bool':
      case 'i8':
      case 'i16':
      case 'u8':
      case 'u16':
        return `${this.element(dtype)}(${text})`;
      case 'f32':
      case 'f64':
      case 'i32':
      case 'u32':
      case 'i64':
      case 'u64':
        return text;
      default:
        return dtype satisfies never;
    }
  }

  /**
   * The function that gives a scalar's combination, `combine` of `x` and `other`, over a warp: one
   * of 32 lanes, or of those that the block has left.
   */
  warp(monoid: string, of: RegisterType, combine: string, whole: boolean): string {
    const type = this.type(of, 1);
    const name = `warp_${whole ? '' : 'part_'}${monoid}_${of}`;
    // What a warp exchanges has 32 bits at least.
    const [give, take] = of === 'bool' ? ['int(x)', ' != 0'] : ['x', ''];
    const text = whole
      ? `${inline} ${type} ${name}(${type} x) {
  for (int apart = 16; apart > 0; apart /= 2) {
    const ${type} other = __shfl_xor_sync(0xffffffffu, ${give}, apart)${take};
    x = ${combine};
  }
  return x;
}`
      : // The first lane gathers what is there, and gives it to all.
        `${inline} ${type} ${name}(${type} x, unsigned thread, unsigned threads) {
  const unsigned lane = thread & 31u;
  const unsigned left = threads - (thread - lane);
  const unsigned lanes = left < 32u ? left : 32u;
  const unsigned all = 0xffffffffu >> (32u - lanes);
  for (unsigned apart = 16u; apart > 0u; apart /= 2u) {
    const ${type} other = __shfl_down_sync(all, ${give}, apart)${take};
    if (lane + apart < lanes) x = ${combine};
  }
  return __shfl_sync(all, ${give}, 0)${take};
}`;
    this.#add(name, text);
    return name;
  }

  /** The function by which a warp group multiplies 64 rows with `columns` columns. */
  wgmma(operand: MatrixType, columns: number, inRegisters: boolean): string {
    const name = wgmmaName(operand, columns, inRegisters);
    this.#add(name, wgmmaFunction(operand, columns, inRegisters));
    return name;
  }

  get text(): string {
    return [...this.#texts.values()].join('\n\n').replaceAll('#endif\n\n#ifndef SINTER_HOST\n', '\n');
  }

  #pack(dtype: DType, width: Exclude<Width, 1>): string {
    const name = packName(dtype, width);
    const element = this.element(dtype);
    const bytes = packBytes[dtype];
    if (bytes !== undefined)
      this.#add(
        name,
        `struct __align__(${Math.min(16, bytes * width)}) ${name} { ${element} ${lanes.slice(0, width).join(', ')}; };`,
      );
    return name;
  }

  #add(name: string, text: string): void {
    if (this.#texts.has(name)) return;
    for (const [word] of text.matchAll(/\w+/g)) if (word !== name && definitions.has(word)) this.use(word);
    this.#texts.set(name, text);
  }
}

/** Bytes of the elements whose packs are structs of the prelude. */
const packBytes: Partial<Record<DType, number>> = {
  f64: 8,
  i64: 8,
  u64: 8,
  f16: 2,
  bf16: 2,
  i16: 2,
  u16: 2,
  i8: 1,
  u8: 1,
  bool: 1,
};
