// Loop → WGSL text that is meant to be read: one statement a line, the Loop's own names, parentheses only where needed.
// Nothing is scheduled or hoisted here; memory.ts says how buffers are laid out, spelling.ts how operations are written.

import { CompilerBug } from '../../errors.ts';
import { dtypeBytes } from '../../ir/dtype.ts';
import type { Loop, LoopBuffer, Stmt, Value } from '../loop.ts';
import { divisors, isMultiple, type Known } from './divisible.ts';
import { literal } from './literal.ts';
import { chooseForms, perWord, type Form } from './memory.ts';
import { nameTable, type Names } from './names.ts';
import { Prelude } from './prelude.ts';
import { spell } from './spelling.ts';
import { atLeast, call, component, infix, level, prefix, primary, subscript, type Term } from './term.ts';
import { typeLetter, typeName } from './types.ts';

/** The WGSL module of one kernel. `scalarSlots`: words of the program's scalar block. */
export function emitWgsl(loop: Loop, options: { readonly scalarSlots: number }): string {
  return new Emitter(loop, options.scalarSlots).module();
}

const element = { f32: 'f', i32: 'i', u32: 'u' } as const;

class Emitter {
  readonly #loop: Loop;
  readonly #scalarSlots: number;
  readonly #prelude = new Prelude();
  readonly #names: Names;
  readonly #known: Known;
  readonly #forms: ReadonlyMap<string, Form>;
  readonly #buffers: ReadonlyMap<string, LoopBuffer>;
  readonly #lines: string[] = [];
  readonly #builtins = new Set<'workgroup' | 'local'>();
  #indent = '  ';

  constructor(loop: Loop, scalarSlots: number) {
    this.#loop = loop;
    this.#scalarSlots = scalarSlots;
    this.#names = nameTable(loop);
    this.#known = divisors(loop);
    this.#forms = chooseForms(loop, this.#known);
    this.#buffers = new Map(loop.buffers.map((buffer) => [buffer.name, buffer]));
  }

  module(): string {
    this.#body(this.#loop.body);
    const parts = [
      this.#loop.header.map((line) => `// ${line}`).join('\n'),
      this.#declarations().join('\n'),
      this.#prelude.text,
      `${this.#entry()} {\n${this.#lines.join('\n')}\n}`,
    ];
    return `${parts.filter((part) => part !== '').join('\n\n')}\n`;
  }

  #declarations(): string[] {
    const { buffers, usesScalars } = this.#loop;
    const globals = buffers.filter((buffer) => buffer.space === 'global');
    const lines = globals.map(
      (buffer, i) =>
        `@group(0) @binding(${i}) var<storage, ${buffer.access}> ${this.#names.buffer(buffer.name)}: ${this.#arrayType(buffer)};`,
    );
    if (usesScalars) {
      const rows = Math.max(1, Math.ceil(this.#scalarSlots / 4));
      lines.push(`@group(0) @binding(${globals.length}) var<uniform> scalars: array<vec4u, ${rows}>;`);
    }
    for (const buffer of buffers)
      if (buffer.space === 'workgroup')
        lines.push(`var<workgroup> ${this.#names.buffer(buffer.name)}: ${this.#arrayType(buffer)};`);
    return lines;
  }

  #arrayType({ name, dtype, size }: LoopBuffer): string {
    const words = Math.max(1, Math.ceil((size * dtypeBytes(dtype)) / 4));
    switch (this.#forms.get(name)!) {
      case 'scalar':
        return `array<${dtype}, ${words}>`;
      case 'quad':
        return `array<vec4${element[dtype as 'f32']}, ${Math.ceil(words / 4)}>`;
      case 'word':
        return `array<u32, ${words}>`;
      case 'atomic':
        return `array<atomic<u32>, ${words}>`;
    }
  }

  #entry(): string {
    const params = [
      this.#builtins.has('workgroup') ? '@builtin(workgroup_id) workgroup_id: vec3u' : '',
      this.#builtins.has('local') ? '@builtin(local_invocation_id) local_id: vec3u' : '',
    ].filter((param) => param !== '');
    const { name, workgroup } = this.#loop;
    return `@compute @workgroup_size(${workgroup.join(', ')})\nfn ${name}(${params.join(', ')})`;
  }

  #line(text: string): void {
    this.#lines.push(`${this.#indent}${text}`);
  }

  #nested(body: readonly Stmt[]): void {
    this.#indent += '  ';
    this.#body(body);
    this.#indent = this.#indent.slice(2);
  }

  #body(body: readonly Stmt[]): void {
    for (const stmt of body) this.#stmt(stmt);
  }

  #stmt(stmt: Stmt): void {
    switch (stmt.kind) {
      case 'let':
      case 'var':
        this.#line(`${stmt.kind} ${this.#names.variable(stmt.name)} = ${this.#value(stmt.value).text};`);
        return;
      case 'assign':
        this.#line(`${this.#names.variable(stmt.name)} = ${this.#value(stmt.value).text};`);
        return;
      case 'store':
        this.#store(stmt);
        return;
      case 'for': {
        const name = this.#names.variable(stmt.name);
        const start = this.#value(stmt.start).text;
        const end = this.#atom(stmt.end, 'end');
        const step = stmt.step === 1 ? `${name}++` : `${name} += ${stmt.step}`;
        this.#line(`for (var ${name} = ${start}; ${name} < ${atLeast(end, level.shift)}; ${step}) {`);
        this.#nested(stmt.body);
        this.#line('}');
        return;
      }
      case 'if':
        this.#line(`if (${this.#value(stmt.condition).text}) {`);
        this.#nested(stmt.then);
        if (stmt.else !== undefined && stmt.else.length > 0) {
          this.#line('} else {');
          this.#nested(stmt.else);
        }
        this.#line('}');
        return;
      case 'barrier':
        this.#line('workgroupBarrier();');
        return;
      case 'comment':
        for (const line of stmt.text.split('\n')) this.#line(`// ${line}`);
        return;
      default:
        stmt satisfies never;
    }
  }

  #value(value: Value): Term {
    switch (value.kind) {
      case 'constant':
        return literal(value.value, value.type, value.width, this.#prelude);
      case 'variable':
        return primary(this.#names.variable(value.name));
      case 'builtin':
        this.#builtins.add(value.of);
        return primary(`i32(${value.of === 'workgroup' ? 'workgroup_id' : 'local_id'}.${'xyz'[value.axis]})`);
      case 'op': {
        const terms = value.args.map((arg) => this.#value(arg));
        // WGSL evaluates constant expressions itself and refuses those that overflow: hide one operand from it.
        const [first] = value.args;
        if (first !== undefined && value.args.every(isConstant))
          terms[0] = call(this.#prelude.use(`opaque_${typeLetter[first.type]}`, first.width), [terms[0]!]);
        const end = value.args[value.args.length - 1];
        return spell(value.op, {
          type: value.type,
          width: value.width,
          args: terms,
          from: first!.type,
          last: end?.kind === 'constant' ? end.value : undefined,
          prelude: this.#prelude,
        });
      }
      case 'load':
        return this.#load(value);
      case 'scalar': {
        const word = component(primary(`scalars[${value.slot >> 2}]`), value.slot & 3);
        if (value.type === 'u32') return word;
        if (value.type === 'bool') return prefix('!', infix('==', word, primary('0u')));
        return call(`bitcast<${value.type}>`, [word]);
      }
      case 'vector':
        return call(
          typeName(value.type, value.width),
          value.args.map((arg) => this.#value(arg)),
        );
      case 'splat':
        return call(typeName(value.type, value.width), [this.#value(value.arg)]);
      case 'lane':
        return value.arg.width === 1 ? this.#value(value.arg) : component(this.#value(value.arg), value.lane);
      default:
        return value satisfies never;
    }
  }

  /** A value that is written more than once: named first unless it is a name or constant already. */
  #atom(value: Value, hint: string): Term {
    const term = this.#value(value);
    if (value.kind === 'constant' || value.kind === 'variable') return term;
    const name = this.#names.fresh(hint);
    this.#line(`let ${name} = ${term.text};`);
    return primary(name);
  }

  #load(value: Extract<Value, { kind: 'load' }>): Term {
    const { width, aligned, type } = value;
    const buffer = this.#buffers.get(value.buffer);
    if (buffer === undefined) throw new CompilerBug('WGSL emitter', `no buffer is called ${value.buffer}`);
    const array = primary(this.#names.buffer(value.buffer));
    const form = this.#forms.get(value.buffer)!;
    const each = (one: (index: Term) => Term): Term => {
      const index = this.#atom(value.index, 'at');
      const parts = Array.from({ length: width }, (_, i) => one(plus(index, i)));
      return width === 1 ? parts[0]! : call(typeName(type, width), parts);
    };
    if (form === 'scalar') {
      if (width === 1) return subscript(array, this.#value(value.index).text);
      return each((index) => subscript(array, index.text));
    }
    if (form === 'quad') {
      if (width === 4 && aligned) return subscript(array, this.#quotient(value.index, 4).text);
      return each((index) => subscript(subscript(array, shifted(index, 2).text), masked(index, 3).text));
    }
    const packed = perWord[buffer.dtype]!;
    const shift = packed === 2 ? 1 : 2;
    const word = (index: Term): Term =>
      form === 'atomic' ? primary(`atomicLoad(&${array.text}[${index.text}])`) : subscript(array, index.text);
    if (aligned && width >= packed) {
      const unpack = this.#prelude.use(`unpack_${buffer.dtype}`, 1);
      if (width === packed) return call(unpack, [word(this.#quotient(value.index, packed))]);
      const index = this.#atom(value.index, 'at');
      const halves = [0, 1].map((half) => call(unpack, [word(plus(shifted(index, 1), half))]));
      return call(typeName(type, width), halves);
    }
    const get = this.#prelude.use(`get_${buffer.dtype}`, 1);
    return each((index) => call(get, [word(shifted(index, shift)), index]));
  }

  #store(stmt: Extract<Stmt, { kind: 'store' }>): void {
    const { value, owned } = stmt;
    const { width } = value;
    const buffer = this.#buffers.get(stmt.buffer);
    if (buffer === undefined) throw new CompilerBug('WGSL emitter', `no buffer is called ${stmt.buffer}`);
    const array = this.#names.buffer(stmt.buffer);
    const form = this.#forms.get(stmt.buffer)!;
    const aligned = isMultiple(stmt.index, width, this.#known);
    const packed = perWord[buffer.dtype]!;
    if (packed === 1) {
      if (form === 'scalar' && width === 1) {
        const index = this.#value(stmt.index).text;
        this.#line(`${array}[${index}] = ${this.#value(value).text};`);
        return;
      }
      if (form === 'quad' && width === 4 && aligned) {
        const index = this.#quotient(stmt.index, 4).text;
        this.#line(`${array}[${index}] = ${this.#value(value).text};`);
        return;
      }
      const index = this.#atom(stmt.index, 'at');
      const source = this.#atom(value, 'value');
      for (let i = 0; i < width; i++) {
        const at = plus(index, i);
        const place = form === 'quad' ? `${shifted(at, 2).text}][${masked(at, 3).text}` : at.text;
        this.#line(`${array}[${place}] = ${(width === 1 ? source : component(source, i)).text};`);
      }
      return;
    }
    const index = this.#atom(stmt.index, 'at');
    const shift = packed === 2 ? 1 : 2;
    if (owned && aligned && width >= packed) {
      const source = width === packed ? this.#value(value) : this.#atom(value, 'value');
      const pack = this.#prelude.use(`pack_${buffer.dtype}`, 1);
      for (let i = 0; i < width / packed; i++) {
        const place = `${array}[${plus(shifted(index, shift), i).text}]`;
        const part = width === packed ? source : primary(`${source.text}.${i === 0 ? 'xy' : 'zw'}`);
        const word = call(pack, [part]).text;
        this.#line(form === 'atomic' ? `atomicStore(&${place}, ${word});` : `${place} = ${word};`);
      }
      return;
    }
    const source = this.#atom(value, 'value');
    const bits = this.#prelude.use(`bits_${buffer.dtype}`, 1);
    for (let i = 0; i < width; i++) {
      const at = plus(index, i);
      const place = `${array}[${shifted(at, shift).text}]`;
      const one = width === 1 ? source : component(source, i);
      const offset = `u32(${masked(at, packed - 1).text}) * ${32 / packed}u`;
      if (form === 'word') {
        this.#line(`${place} = insertBits(${place}, ${call(bits, [one]).text}, ${offset}, ${32 / packed}u);`);
      } else {
        const name = this.#names.fresh('offset');
        this.#line(`let ${name} = ${offset};`);
        this.#line(`atomicAnd(&${place}, ~(${packed === 2 ? '0xffffu' : '0xffu'} << ${name}));`);
        this.#line(`atomicOr(&${place}, ${call(bits, [one]).text} << ${name});`);
      }
    }
  }

  /** An index that is a multiple of `by`, divided by it; the factor is cancelled where it can be seen. */
  #quotient(value: Value, by: 1 | 2 | 4): Term {
    const divided = divideExactly(value, by);
    return divided === undefined ? shifted(this.#value(value), Math.log2(by)) : this.#value(divided);
  }
}

/** A value whose WGSL text is a constant expression. */
function isConstant(value: Value): boolean {
  if (value.kind === 'constant') return true;
  if (value.kind === 'vector') return value.args.every(isConstant);
  return (value.kind === 'splat' || value.kind === 'lane') && isConstant(value.arg);
}

function divideExactly(value: Value, by: number): Value | undefined {
  if (value.kind === 'constant')
    return value.value % by === 0 ? { ...value, value: value.value / by } : undefined;
  if (value.kind !== 'op') return undefined;
  const [a, b] = value.args;
  if (value.op === 'mul') {
    const right = divideExactly(b!, by);
    if (right !== undefined)
      return right.kind === 'constant' && right.value === 1 ? a! : { ...value, args: [a!, right] };
    const left = divideExactly(a!, by);
    return left === undefined ? undefined : { ...value, args: [left, b!] };
  }
  if (value.op === 'add') {
    const [left, right] = [divideExactly(a!, by), divideExactly(b!, by)];
    return left === undefined || right === undefined ? undefined : { ...value, args: [left, right] };
  }
  return undefined;
}

function plus(index: Term, offset: number): Term {
  if (offset === 0) return index;
  if (/^\d+$/.test(index.text)) return primary(String(Number(index.text) + offset));
  return infix('+', index, primary(String(offset)));
}

function shifted(index: Term, by: number): Term {
  return infix('>>', index, primary(`${by}u`));
}

function masked(index: Term, mask: number): Term {
  return infix('&', index, primary(String(mask)));
}
