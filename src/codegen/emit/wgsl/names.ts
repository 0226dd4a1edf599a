// The words that a Loop's names must not be in WGSL.

import { functionNames } from '../../../ir/ops.ts';
import { isPreludeName } from './prelude.ts';

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
