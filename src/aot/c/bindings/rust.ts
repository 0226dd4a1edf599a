// A module of Rust over a library of C: its constants, its context, and its functions as they are declared.

import type { ElementType } from '../../../runtime/program.ts';
import { codesThatSay, errorsOf, inputText, openLines, tensorText } from '../header.ts';
import { alignment } from '../memory.ts';
import type { CFunction, CModel, CTensor } from '../model.ts';
import { remark } from '../names.ts';
import { threadsMemory } from '../threads.ts';

const rustTypes: Readonly<Record<ElementType, string>> = {
  bool: 'u8',
  i8: 'i8',
  u8: 'u8',
  i16: 'i16',
  u16: 'u16',
  i32: 'i32',
  u32: 'u32',
  i64: 'i64',
  u64: 'u64',
  f16: 'u16',
  bf16: 'u16',
  f32: 'f32',
  f64: 'f64',
};

/** `model.rs`. */
export function rustText(model: CModel, weightsBytes: number, embed: boolean): string {
  const { prefix, producer, title, functions, memory, threads } = model;
  const ofThreads = (text: string): string => (threads === undefined ? '' : text);
  const words = weightsBytes / 8;
  return `// Made by ${producer}: ${remark(title)} for Rust. Link it with lib${prefix}.a; README.md shows how to use it.
#![allow(dead_code, non_camel_case_types)]

use std::os::raw::{c_char, c_int, c_void};

pub const WEIGHTS_BYTES: usize = ${weightsBytes};
pub const STATE_BYTES: usize = ${memory.bytes.state};
pub const ARENA_BYTES: usize = ${memory.bytes.arena};

${errorsOf(model)
  .map(([code, value, about]) => `/// ${about}\npub const ${code}: c_int = ${value};`)
  .join('\n')}

${ofThreads(rustThreads(model))}/// Bytes that begin at a multiple of ${alignment}.
#[repr(C, align(${alignment}))]
pub struct Aligned<const BYTES: usize>(pub [u8; BYTES]);

/// One model at work: \`Box::new(Context::new())\`.
#[repr(C)]
pub struct Context {
    state: Aligned<STATE_BYTES>,
    arena: Aligned<ARENA_BYTES>,
    weights: *const u8,
${ofThreads('    pool: *mut c_void,\n')}    /// After ${codesThatSay(model).join(' or ')}: a sentence that says which integer was outside of what, and the integer.
    pub what: *const c_char,
    pub index: i64,
    ready: u64,
}

impl Context {
    pub const fn new() -> Context {
        Context {
            state: Aligned([0; STATE_BYTES]),
            arena: Aligned([0; ARENA_BYTES]),
            weights: std::ptr::null(),
${ofThreads('            pool: std::ptr::null_mut(),\n')}            what: std::ptr::null(),
            index: 0,
            ready: 0,
        }
    }
}

extern "C" {
${embed ? `    pub static ${prefix}_weights: [u64; ${words}];\n` : ''}    /// The weights have to stay where they are, at a multiple of ${alignment} bytes.
    pub fn ${prefix}_init(ctx: *mut Context, weights: *const c_void, bytes: usize) -> c_int;
    pub fn ${prefix}_error(code: c_int) -> *const c_char;
    pub fn ${prefix}_state(ctx: *mut Context) -> *mut c_void;
    pub fn ${prefix}_seed(ctx: *mut Context, seed: u64) -> c_int;
${ofThreads(`    /// The memory of threads_bytes(threads) bytes begins at a multiple of ${alignment} and is theirs until ${prefix}_stop.
    pub fn ${prefix}_start(ctx: *mut Context, threads: c_int, memory: *mut c_void, bytes: usize) -> c_int;
    pub fn ${prefix}_stop(ctx: *mut Context) -> c_int;
`)}
${functions.map(functionText).join('\n')}}
`;
}

function rustThreads(model: CModel): string {
  const { fixed, each } = threadsMemory(model);
  return `pub const MOST_THREADS: usize = ${model.threads};

/// Bytes of the memory that so many threads need.
pub const fn threads_bytes(threads: usize) -> usize {
    ${fixed} + threads * ${each}
}

`;
}

/** Rust knows no array whose length a call gives. */
function arrayType({ dtype, count }: CTensor): string {
  if (typeof count === 'string') return rustTypes[dtype];
  return `[${rustTypes[dtype]}; ${Math.max(1, count)}]`;
}

function functionText({ name, open, inputs, outputs }: CFunction): string {
  const remarks = [
    ...openLines(open).map((line) => `    /// ${line}`),
    ...inputs.map((input) => `    /// takes ${inputText(input)}`),
    ...outputs.map((output) => `    /// gives ${tensorText(output)}`),
  ];
  const parameters = [
    'ctx: *mut Context',
    ...(open?.given ?? []).map((size) => `${size.name}: i64`),
    ...inputs.map((input) =>
      input.kind === 'number' ? `${input.name}: f32` : `${input.name}: *const ${arrayType(input)}`,
    ),
    ...outputs.map((output) => `${output.name}: *mut ${arrayType(output)}`),
  ];
  return `${remarks.join('\n')}
    pub fn ${name}(
        ${parameters.join(',\n        ')},
    ) -> c_int;
`;
}
