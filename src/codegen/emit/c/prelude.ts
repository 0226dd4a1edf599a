// What a kernel's text needs before the kernel: types of vectors, and functions. Each stands in a
// guard block, so that the texts of several kernels can follow each other in one translation unit.

import { dtypeBytes, lowered, type DType } from '../../../ir/dtype.ts';
import type { RegisterType, Width } from '../../loop/loop.ts';
import { isLong } from '../../loop/register.ts';
import { conditionOf } from './builtins.ts';
import { definitions } from './definitions.ts';
import { elementType, laneType, scalarType } from './types.ts';

/** A text that is there once in a translation unit. */
export function guarded(item: string, text: string): string {
  const guard = `SINTER_${item.toUpperCase()}`;
  return `#ifndef ${guard}\n#define ${guard}\n${text}\n#endif`;
}

/** Compilers warn where what they are told of the processor decides how such vectors are passed. */
const quiet = `// Only functions of this file are passed vectors.
#pragma GCC diagnostic ignored "-Wpsabi"`;

/** Whether the compiler has a function of its own, for the processor that it compiles for. */
const hasBuiltin = `#if !defined(SINTER_KNOWS) && defined(__has_builtin)
#define SINTER_KNOWS(name) __has_builtin(name)
#elif !defined(SINTER_KNOWS)
#define SINTER_KNOWS(name) 0
#endif`;

/** Names of the operands of functions. */
const operands = ['x', 'y', 'z'] as const;

/** What a function on vectors returns, and statements before. */
export interface VectorBody {
  readonly lines?: readonly string[];
  readonly result: string;
}

/** How a function on vectors `x`, `y` and `z` may be written; the first one that there is, is. */
interface VectorTexts {
  /** A call of what the compiler knows by name. */
  readonly builtin: string | undefined;
  readonly body: VectorBody | undefined;
  readonly lane: (args: readonly string[]) => string;
}

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
  vector(lane: DType, width: Width | 32): string {
    const name = `${lane}x${width}`;
    if (width * dtypeBytes(lane) > 16) this.define('wide_vectors', () => quiet);
    const bytes = width * dtypeBytes(lane);
    const attributes = `__attribute__((vector_size(${bytes})))`;
    return this.define(name, () => `typedef ${elementType(lane)} ${name} ${attributes};`);
  }

  /** The type of consecutive elements in memory, wherever they begin, that are as wide as lanes. */
  packed(dtype: DType, width: Width): string {
    const element = elementType(dtype);
    const size = dtypeBytes(lowered(dtype));
    const name = `${lowered(dtype)}x${width}_u`;
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
   * A function on vectors: in what the compiler knows by name, in operators, or of each lane. `lane` writes it for one, from the texts of
   * the operands' lanes.
   */
  lanewise(
    name: string,
    type: RegisterType,
    width: Width,
    types: readonly RegisterType[],
    { builtin, body, lane }: VectorTexts,
  ): string {
    return this.define(name, () => {
      const result = this.type(type, width);
      const params = types.map((one, i) => `${this.type(one, width)} ${operands[i]}`).join(', ');
      const lines = body === undefined ? this.#laneByLane(type, width, types, lane) : this.#whole(body);
      const known = builtin === undefined ? lines : this.known(builtin, [`  return ${builtin};`], lines);
      return [`static inline ${result} ${name}(${params}) {`, ...known, '}'].join('\n');
    });
  }

  /** Lines for compilers that know the builtin that an expression begins with, on processors that have it, and for others. */
  known(builtin: string, yes: readonly string[], no: readonly string[]): readonly string[] {
    this.define('has_builtin', () => hasBuiltin);
    const name = /^\w+/.exec(builtin)![0];
    const condition = conditionOf(name);
    const processor = condition === undefined ? '' : ` && ${condition}`;
    return [`#if SINTER_KNOWS(${name})${processor}`, ...yes, '#else', ...no, '#endif'];
  }

  #whole({ lines = [], result }: VectorBody): readonly string[] {
    return [...lines, `return ${result};`].map((line) => `  ${line}`);
  }

  #laneByLane(
    type: RegisterType,
    width: Width,
    types: readonly RegisterType[],
    lane: VectorTexts['lane'],
  ): readonly string[] {
    const args = types.map((one, i) => {
      const text = `${operands[i]}[i]`;
      return one === 'bool' ? `(${text} != 0)` : text;
    });
    const value = lane(args);
    // A mask has all bits or none.
    const stored = type === 'bool' ? `-(int32_t)(${value})` : value;
    return [
      `  ${this.type(type, width)} r = {0};`,
      `  for (int i = 0; i < ${width}; i++) r[i] = ${stored};`,
      '  return r;',
    ];
  }

  /** The function that puts lanes of two vectors, those of the second after those of the first, in a row. */
  shuffle(type: RegisterType, from: Width, width: Width, places: readonly number[]): string {
    const [own, given] = [this.type(type, width), this.type(type, from)];
    const name = `shuffle_${given}_${places.join('_')}`;
    return this.define(name, () => {
      const lanes = places.map((place) => `${place < from ? 'x' : 'y'}[${place % from}]`);
      const builtin = `__builtin_shufflevector(x, y, ${places.join(', ')})`;
      const plain = [`  return (${own}){${lanes.join(', ')}};`];
      if (width === 16 && from === 4 && !isLong(type))
        return [
          `static inline ${own} ${name}(${given} x, ${given} y) {`,
          '  (void)y;',
          // GCC would bring the register to its width in memory.
          ...this.known(
            '__builtin_ia32_ps512_ps',
            [
              `  const ${own} wide = (${own})__builtin_ia32_ps512_ps((${this.type('f32', 4)})x);`,
              `  return __builtin_shufflevector(wide, wide, ${places.join(', ')});`,
            ],
            plain,
          ),
          '}',
        ].join('\n');
      return [
        `static inline ${own} ${name}(${given} x, ${given} y) {`,
        ...(places.some((place) => place >= from) ? [] : ['  (void)y;']),
        ...this.known(builtin, [`  return ${builtin};`], plain),
        '}',
      ].join('\n');
    });
  }

  /** Lanes of 64 bits have masks of 64 bits, which become masks of 32. */
  mask(type: RegisterType, width: Width, text: string): string {
    return isLong(type) ? `__builtin_convertvector(${text}, ${this.type('bool', width)})` : text;
  }
}
