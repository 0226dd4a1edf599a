// Builds one WebAssembly function: instructions in order, locals by name, and vector constants. The constants
// are set once, at the start, because engines would make them again in every iteration of a loop.

import type { WasmFunction } from './module/encode.ts';
import type { BlockType, Instruction, InstructionName, ValueType } from './module/instructions.ts';

export class FunctionBuilder {
  readonly name: string;
  readonly #params: readonly ValueType[];
  readonly #results: readonly ValueType[];
  readonly #locals: ValueType[] = [];
  readonly #names: string[] = [];
  readonly #used = new Map<string, number>();
  readonly #scratch = new Map<string, number>();
  readonly #constants = new Map<string, number>();
  readonly #preamble: Instruction[] = [];
  readonly #body: Instruction[] = [];

  constructor(
    name: string,
    params: readonly (readonly [name: string, type: ValueType])[],
    results: readonly ValueType[] = [],
  ) {
    this.name = name;
    this.#params = params.map(([, type]) => type);
    this.#results = results;
    for (const [param] of params) this.#names.push(this.#fresh(param));
  }

  /** The finished function. */
  get function(): WasmFunction {
    return {
      name: this.name,
      params: this.#params,
      results: this.#results,
      locals: this.#locals,
      body: [...this.#preamble, ...this.#body],
    };
  }

  /** Names of parameters and locals, for reading. */
  get localNames(): readonly string[] {
    return this.#names;
  }

  #fresh(hint: string): string {
    let name = hint;
    let count = this.#used.get(hint) ?? 0;
    // `x_1` may be the name of another local.
    while (this.#used.has(name)) name = `${hint}_${(count += 1)}`;
    this.#used.set(hint, count);
    if (name !== hint) this.#used.set(name, 0);
    return name;
  }

  /** A new local. */
  local(hint: string, type: ValueType): number {
    this.#names.push(this.#fresh(hint));
    return this.#params.length + this.#locals.push(type) - 1;
  }

  /** The local of this name that values are kept in for a few instructions. */
  scratch(name: string, type: ValueType): number {
    const known = this.#scratch.get(name) ?? this.local(name, type);
    this.#scratch.set(name, known);
    return known;
  }

  op(name: InstructionName, ...immediates: readonly number[]): void {
    this.#body.push({ name, immediates });
  }

  get(local: number): void {
    this.op('local.get', local);
  }

  set(local: number): void {
    this.op('local.set', local);
  }

  tee(local: number): void {
    this.op('local.tee', local);
  }

  int(value: number): void {
    this.op('i32.const', value | 0);
  }

  /** An i32 or an i64. */
  whole(type: 'i32' | 'i64', value: number): void {
    if (type === 'i32') this.int(value);
    else this.op('i64.const', value, value < 0 ? -1 : 0);
  }

  /** Four words, from a local that is set at the start. */
  vector(words: readonly [number, number, number, number]): void {
    const key = words.map((word) => word >>> 0).join();
    let local = this.#constants.get(key);
    if (local === undefined) {
      local = this.local('c', 'v128');
      this.#constants.set(key, local);
      this.#preamble.push(
        { name: 'v128.const', immediates: words.map((word) => word >>> 0) },
        { name: 'local.set', immediates: [local] },
      );
    }
    this.get(local);
  }

  /** The same word in all four lanes. */
  splat(word: number): void {
    this.vector([word, word, word, word]);
  }

  /** One word in every lane, or two. */
  repeat(words: readonly number[]): void {
    const [low = 0, high = low] = words;
    this.vector([low, high, low, high]);
  }

  /**
   * Lanes of the two vectors on the stack, of so many bytes; what is left of the v128 is lane 0.
   */
  shuffle(bytes: 4 | 8, lanes: readonly { readonly source: number; readonly lane: number }[]): void {
    const all = Array.from({ length: 16 }, (_, i) => {
      const { source, lane } = lanes[Math.floor(i / bytes)] ?? { source: 0, lane: 0 };
      return 16 * source + bytes * lane + (i % bytes);
    });
    this.op('i8x16.shuffle', ...all);
  }

  block(kind: 'block' | 'loop' | 'if', inside: () => void, type: BlockType = 'none'): void {
    this.#body.push({ name: kind, immediates: [], block: type });
    inside();
    this.op('end');
  }

  /** An `if` with both branches; the condition lies on the stack. */
  either(then: () => void, otherwise: () => void, type: BlockType = 'none'): void {
    this.#body.push({ name: 'if', immediates: [], block: type });
    then();
    this.op('else');
    otherwise();
    this.op('end');
  }
}
