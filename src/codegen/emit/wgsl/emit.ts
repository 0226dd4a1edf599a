// Loop → WGSL text that is meant to be read: one statement a line, the Loop's own names,
// parentheses only where needed. The order of statements is the Loop's: nothing is scheduled or
// hoisted here; memory.ts says how buffers are laid out, spelling.ts how operations are written.

import { CompilerBug } from '../../../errors.ts';
import { dtypeBytes, isWide } from '../../../ir/dtype.ts';
import { CTextEmitter, type OwnStmt } from '../shared/c-text.ts';
import type { Loop, LoopBuffer, Value } from '../../loop/loop.ts';
import { spellAtomic, spellLoad, spellStore, type WgslScribe } from './access.ts';
import { printStmt } from '../../loop/print.ts';
import { isMatrixStmt, isWarpgroupStmt } from '../../loop/walk.ts';
import { splitWideVectors } from './lanes.ts';
import { literal } from './literal.ts';
import { chooseForms, readsItsOutput, type Form } from './memory.ts';
import { isTaken } from './names.ts';
import { WgslPrelude } from './prelude.ts';
import { withShifts } from '../../loop/ranges.ts';
import { spell } from './spelling.ts';
import { spellSubgroup } from './subgroup.ts';
import { call, component, infix, primary, type Term } from '../shared/term.ts';
import { typeLetter, typeName } from './types.ts';

/** The WGSL module of one kernel. `scalarSlots`: words of the program's scalar block. */
export function emitWgsl(loop: Loop, options: { readonly scalarSlots: number }): string {
  return new Emitter(splitWideVectors(loop), options.scalarSlots).module();
}

/** Parameters of the entry point. */
const builtins = {
  workgroup: '@builtin(workgroup_id) workgroup_id: vec3u',
  local: '@builtin(local_invocation_id) local_id: vec3u',
  subgroupPlace: '@builtin(subgroup_invocation_id) subgroup_place: u32',
  subgroupNumber: '@builtin(subgroup_id) subgroup_number: u32',
  subgroupCount: '@builtin(num_subgroups) subgroup_count: u32',
} as const;

const element = { f32: 'f', i32: 'i', u32: 'u' } as const;

class Emitter extends CTextEmitter implements WgslScribe {
  readonly #scalarSlots: number;
  readonly prelude = new WgslPrelude();
  readonly forms: ReadonlyMap<string, Form>;
  readonly #builtins = new Set<keyof typeof builtins>();
  #usesSubgroups = false;
  #countsSubgroups = false;
  /** Whether invocations may hand each other values through storage. */
  readonly #communicates: boolean;

  constructor(loop: Loop, scalarSlots: number) {
    super(loop, isTaken);
    this.#scalarSlots = scalarSlots;
    this.forms = chooseForms(loop, this.known);
    this.#communicates = readsItsOutput(loop);
  }

  module(): string {
    const body = this.written(this.loop.body);
    const parts = [
      this.loop.header.map((line) => `// ${line}`).join('\n'),
      [this.#usesSubgroups ? 'enable subgroups;' : '', this.#countsSubgroups ? 'requires subgroup_id;' : '']
        .filter((line) => line !== '')
        .join('\n'),
      this.#declarations().join('\n'),
      this.prelude.text,
      `${this.#entry()} {\n${body}\n}`,
    ];
    return `${parts.filter((part) => part !== '').join('\n\n')}\n`;
  }

  #declarations(): string[] {
    const { buffers, usesScalars } = this.loop;
    const globals = buffers.filter((buffer) => buffer.space === 'global');
    const lines = globals.map(
      (buffer, i) =>
        `@group(0) @binding(${i}) var<storage, ${buffer.access}> ${this.names.buffer(buffer.name)}: ${this.#arrayType(buffer)};`,
    );
    if (usesScalars) {
      const rows = Math.max(1, Math.ceil(this.#scalarSlots / 4));
      lines.push(`@group(0) @binding(${globals.length}) var<uniform> scalars: array<vec4u, ${rows}>;`);
    }
    for (const buffer of buffers)
      if (buffer.space === 'workgroup')
        lines.push(`var<workgroup> ${this.names.buffer(buffer.name)}: ${this.#arrayType(buffer)};`);
    return lines;
  }

  #arrayType({ name, dtype, size }: LoopBuffer): string {
    const words = Math.max(1, Math.ceil((size * dtypeBytes(dtype)) / 4));
    switch (this.forms.get(name)!) {
      case 'scalar':
        return isWide(dtype) ? `array<vec2u, ${Math.max(1, size)}>` : `array<${dtype}, ${words}>`;
      case 'quad':
        return `array<vec4${element[dtype as 'f32']}, ${Math.ceil(words / 4)}>`;
      case 'word':
        return `array<u32, ${words}>`;
      case 'atomic':
        return `array<atomic<${dtype === 'i32' ? 'i32' : 'u32'}>, ${words}>`;
    }
  }

  #entry(): string {
    const params = (Object.keys(builtins) as (keyof typeof builtins)[])
      .filter((name) => this.#builtins.has(name))
      .map((name) => builtins[name]);
    const { name, workgroup } = this.loop;
    return `@compute @workgroup_size(${workgroup.join(', ')})\nfn ${name}(${params.join(', ')})`;
  }

  protected declared(kind: 'let' | 'var' | 'counter'): string {
    return kind === 'let' ? 'let' : 'var';
  }

  protected own(stmt: OwnStmt): void {
    if (isMatrixStmt(stmt) || isWarpgroupStmt(stmt))
      throw new CompilerBug('emit-wgsl', `WGSL has no ${stmt.kind}\n  in: ${printStmt(stmt)}`);
    switch (stmt.kind) {
      case 'store':
        spellStore(this, stmt);
        return;
      case 'atomic':
        spellAtomic(this, stmt);
        return;
      case 'subgroupReduce':
        this.#usesSubgroups = true;
        this.line(
          `let ${this.names.variable(stmt.name)} = ${spellSubgroup(stmt.monoid, stmt.value, this.value(stmt.value), this.prelude).text};`,
        );
        return;
      case 'barrier':
        if (this.#communicates) this.line('storageBarrier();');
        this.line('workgroupBarrier();');
        return;
      default:
        stmt satisfies never;
    }
  }

  value(value: Value): Term {
    switch (value.kind) {
      case 'constant':
        return literal(value.value, value.type, value.width, this.prelude, value.exact);
      case 'variable':
        return primary(this.names.variable(value.name));
      case 'builtin':
        this.#builtins.add(value.of);
        return primary(`i32(${value.of === 'workgroup' ? 'workgroup_id' : 'local_id'}.${'xyz'[value.axis]})`);
      case 'subgroup':
        return this.#subgroup(value.of);
      case 'op': {
        const terms = value.args.map((arg) => this.value(arg));
        // WGSL evaluates constant expressions itself and refuses those that overflow: hide one
        // operand from it.
        const [first] = value.args;
        if (first !== undefined && !isWide(first.type) && value.args.every(isConstant))
          terms[0] = call(this.prelude.use(`opaque_${typeLetter(first.type)}`, first.width), [terms[0]!]);
        const { type, width } = value;
        const known = (arg: Value | undefined): number | undefined =>
          arg?.kind === 'constant' ? arg.value : undefined;
        return this.short(
          spell(withShifts(value, this.loop, this.ranges), {
            type,
            width,
            args: terms,
            from: first!.type,
            first: known(first),
            second: known(value.args[1]),
            last: known(value.args.at(-1)),
            prelude: this.prelude,
          }),
          value,
        );
      }
      case 'load':
        return spellLoad(this, value);
      case 'scalar': {
        const word = component(primary(`scalars[${value.slot >> 2}]`), value.slot & 3);
        if (value.type === 'u32') return word;
        if (value.type === 'bool') return infix('!=', word, primary('0u'));
        return call(`bitcast<${value.type}>`, [word]);
      }
      case 'vector':
        return call(
          typeName(value.type, value.width),
          value.args.map((arg) => this.value(arg)),
        );
      case 'splat':
        return call(typeName(value.type, value.width), [this.value(value.arg)]);
      case 'lane':
        return value.arg.width === 1 ? this.value(value.arg) : component(this.value(value.arg), value.lane);
      default:
        return value satisfies never;
    }
  }

  /** The device alone decides which invocations form a subgroup, and how many: builtins give it. */
  #subgroup(of: 'place' | 'number' | 'count'): Term {
    this.#usesSubgroups = true;
    const [builtin, name] = (
      {
        place: ['subgroupPlace', 'subgroup_place'],
        number: ['subgroupNumber', 'subgroup_number'],
        count: ['subgroupCount', 'subgroup_count'],
      } as const
    )[of];
    if (of !== 'place') this.#countsSubgroups = true;
    this.#builtins.add(builtin);
    return primary(`i32(${name})`);
  }
}

/** A value whose WGSL text is a constant expression. */
function isConstant(value: Value): boolean {
  if (value.kind === 'constant') return true;
  if (value.kind === 'vector') return value.args.every(isConstant);
  return (value.kind === 'splat' || value.kind === 'lane') && isConstant(value.arg);
}
