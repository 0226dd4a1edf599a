// Loop → WGSL text that is meant to be read: one statement a line, the Loop's own names,
// parentheses only where needed. The order of statements is the Loop's: nothing is scheduled or
// hoisted here; memory.ts says how buffers are laid out, spelling.ts how operations are written.

import { CompilerBug } from '../../../errors.ts';
import { dtypeBytes, isWide } from '../../../ir/dtype.ts';
import { CTextEmitter, type OwnStmt } from '../shared/c-text.ts';
import type { Loop, LoopBuffer, Value } from '../../loop/loop.ts';
import { spellAtomic, spellLoad, spellStore, type WgslScribe } from './access.ts';
import { stmtAsText } from '../../loop/text.ts';
import { isMatrixStmt, isWarpgroupStmt } from '../../loop/walk.ts';
import { splitWideVectors } from './lanes.ts';
import { literal, spell } from './spelling.ts';
import { chooseForms, readsItsOutput, type Form } from './memory.ts';
import { WgslPrelude, isPreludeName } from './prelude.ts';
import { withShifts } from '../../loop/ranges.ts';
import { call, component, infix, primary, type Term } from '../shared/term.ts';
import { typeLetter, typeName } from './types.ts';
import { functionNames, type Monoid } from '../../../ir/ops.ts';

// The words that a Loop's names must not be in WGSL.

/**
 * Keywords, reserved words, and the predeclared types and functions that generated code calls by
 * name.
 */
const words = `
alias break case const const_assert continue continuing default diagnostic discard else enable false fn for if let loop
override requires return struct switch true var while
NULL Self abstract active alignas alignof as asm asm_fragment async attribute auto await become binding_array cast catch class
co_await co_return co_yield coherent column_major common compile compile_fragment concept const_cast consteval constexpr
constinit crate debugger decltype delete demote demote_to_helper do dynamic_cast enum explicit export extends extern external
fallthrough filter final finally friend from fxgroup get goto groupshared highp impl implements import inline instanceof
interface layout lowp macro macro_rules match mediump meta mod module move mut mutable namespace new nil noexcept noinline
nointerpolation non_coherent noncoherent noperspective null nullptr of operator package packoffset partial pass patch
pixelfragment precise precision premerge priv protected pub public readonly ref regardless register reinterpret_cast require
resource restrict self set shared sizeof smooth snorm static static_assert static_cast std subroutine super target template
this thread_local throw trait try type typedef typeid typename typeof union unless unorm unsafe unsized use using varying
virtual volatile wgsl where with writeonly yield
atomic bool f16 f32 i32 u32 vec2 vec3 vec4 vec2f vec3f vec4f vec2i vec3i vec4i vec2u vec3u vec4u ptr
abs any array atomicAdd atomicAnd atomicLoad atomicOr atomicStore bitcast clamp countLeadingZeros exp2 extractBits fma insertBits max
min select sign storageBarrier unpack2x16float workgroupBarrier
subgroupAdd subgroupAnd subgroupMax subgroupMin subgroupMul subgroupOr
scalars workgroup_id local_id local_index subgroup_place subgroup_number subgroup_count`;
const taken: ReadonlySet<string> = new Set([...words.trim().split(/\s+/), ...functionNames('wgsl')]);

/** Whether WGSL or the emitter gives a word another meaning. */
export function isTaken(name: string): boolean {
  return taken.has(name) || isPreludeName(name);
}

// Reductions over a subgroup in WGSL. The specification leaves open what subgroupMax and
// subgroupMin do with NaN, so floats are compared as integers in the same order, in which NaN is
// the greatest or the least.

const foldNames: Readonly<Record<Monoid, string>> = {
  sum: 'subgroupAdd',
  prod: 'subgroupMul',
  min: 'subgroupMin',
  max: 'subgroupMax',
  and: 'subgroupAnd',
  or: 'subgroupOr',
};

/** The combination of a value over the subgroup. */
function spellSubgroup(monoid: Monoid, { type, width }: Value, term: Term, prelude: WgslPrelude): Term {
  const extreme = monoid === 'min' || monoid === 'max';
  if (type === 'bool') {
    // false < true, as bits.
    const bits = typeName('u32', width);
    const joined = call(foldNames[monoid], [call(bits, [term])]);
    return width === 1 ? infix('!=', joined, primary('0u')) : infix('!=', joined, primary(`${bits}(0u)`));
  }
  if (type !== 'f32' || !extreme) return call(foldNames[monoid], [term]);
  const ordered = call(prelude.use(`order_${monoid}_F`, width), [term]);
  return call(prelude.use('unorder_F', width), [call(foldNames[monoid], [ordered])]);
}

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
      case 'pair':
        return `array<vec2u, ${Math.ceil(words / 2)}>`;
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
      throw new CompilerBug('emit-wgsl', `WGSL has no ${stmt.kind}\n  in: ${stmtAsText(stmt)}`);
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
      // WGSL has no word for it.
      case 'prefetch':
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
