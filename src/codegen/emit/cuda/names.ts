// The words that a Loop's names must not be in CUDA C: keywords of C++, words of CUDA, and what
// generated code calls by name.

import { functionNames } from '../../../ir/ops.ts';
import { definitions } from './prelude-functions.ts';

const words = `
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class compl concept const
consteval constexpr constinit const_cast continue co_await co_return co_yield decltype default delete do double dynamic_cast else
enum explicit export extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr
operator or or_eq private protected public register reinterpret_cast requires return short signed sizeof static static_assert
static_cast struct switch template this thread_local throw true try typedef typeid typename union unsigned using virtual void
volatile wchar_t while xor xor_eq NULL INFINITY NAN
threadIdx blockIdx blockDim gridDim warpSize scalars main
float2 float3 float4 int2 int3 int4 uint2 uint3 uint4 double2 double4 dim3 uchar4 char4 short4 ushort4 size_t
fabsf fmodf powf fminf fmaxf
fabs fmod pow fmin fmax isnan min max abs
atomicAdd atomicMin atomicMax atomicAnd atomicOr atomicCAS`;
const taken: ReadonlySet<string> = new Set([
  ...words.trim().split(/\s+/),
  ...functionNames('cuda').flatMap((name) => [name, `${name}f`]),
]);

/**
 * Names that the prelude makes as they are needed, of functions on vectors, over warps and of warp
 * groups.
 */
const made =
  /^(?:wgmma_n\d+_b?f16|warp(?:_part)?_[a-z]+_[fiub][a-z\d]+|\w+_(?:f|bf|i|u|bool)\d*x[24]|\w+[24]_of|(?:f|bf|i|u)\d+x[24])$/;

/** Whether CUDA C or the emitter gives a word another meaning. */
export function isTaken(name: string): boolean {
  return taken.has(name) || definitions.has(name) || made.test(name);
}
