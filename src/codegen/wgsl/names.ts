// Identifiers that WGSL accepts: names of a Loop that clash with its words, with what the emitter itself uses, or with a
// buffer, get a trailing underscore.

import type { Loop, Stmt } from '../loop.ts';
import { preludeNames } from './prelude.ts';

/** Keywords, reserved words, and the predeclared types and functions that generated code calls by name. */
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
abs any array atomicAnd atomicLoad atomicOr atomicStore bitcast ceil clamp exp2 extractBits floor fma insertBits inverseSqrt max
min round select sign sqrt storageBarrier trunc unpack2x16float workgroupBarrier
subgroupAdd subgroupAnd subgroupMax subgroupMin subgroupMul subgroupOr
scalars workgroup_id local_id local_index subgroup_place subgroup_size`;
const taken: ReadonlySet<string> = new Set(words.trim().split(/\s+/));

/** Whether WGSL or the emitter gives a word another meaning. */
export function isTaken(name: string): boolean {
  return taken.has(name) || preludeNames.has(name);
}

/** Spellings of a Loop's buffers, variables and entry point. */
export interface Names {
  buffer(name: string): string;
  variable(name: string): string;
  /** A variable of the emitter's own, unlike all others. */
  fresh(hint: string): string;
}

/** Gives every name of the Loop a spelling of its own; buffers first, so that they keep theirs. */
export function nameTable(loop: Loop): Names {
  const used = new Set<string>();
  const claim = (name: string): string => {
    let safe = /^_+[^_]/.test(name) ? name.replace(/^_+/, '_') : name.replace(/^_+$/, 'blank');
    while (isTaken(safe) || used.has(safe)) safe += '_';
    used.add(safe);
    return safe;
  };
  const fresh = (hint: string): string => {
    let name = hint;
    for (let i = 1; used.has(name) || isTaken(name); i++) name = `${hint}_${i}`;
    used.add(name);
    return name;
  };
  const spelled = (names: Iterable<string>): Map<string, string> => {
    const map = new Map<string, string>();
    for (const name of names) if (!map.has(name)) map.set(name, claim(name));
    return map;
  };
  // Variables may have the entry point's name, which nothing else refers to.
  used.add(loop.name);
  const buffers = spelled(loop.buffers.map((buffer) => buffer.name));
  used.delete(loop.name);
  const variables = spelled(declared(loop.body));
  return {
    buffer: (name) => buffers.get(name) ?? name,
    variable: (name) => variables.get(name) ?? name,
    fresh,
  };
}

function* declared(body: readonly Stmt[]): Generator<string> {
  for (const stmt of body) {
    if ('name' in stmt && stmt.kind !== 'assign' && stmt.kind !== 'mma' && stmt.kind !== 'for')
      yield stmt.name;
    if (stmt.kind === 'for') {
      yield stmt.name;
      yield* declared(stmt.body);
    }
    if (stmt.kind === 'if') {
      yield* declared(stmt.then);
      yield* declared(stmt.else ?? []);
    }
  }
}
