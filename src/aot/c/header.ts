// The header of a model in C: its functions with all that a caller has to know, sizes as constants, and
// the context that the caller allocates.

import { alignment, stateHead } from './memory.ts';
import type { CheckPort } from '../../bundle-runtime/manifest.ts';
import type { CFunction, CInput, CModel, CTensor, CWeight } from './model.ts';
import { elementTypes, typeText } from './model.ts';
import { macro, remark } from './names.ts';
import { derivedText, sizeText, type COpenSizes } from './sizes.ts';
import { threadsHeader } from './threads.ts';
import { headBytes } from './weights.ts';

type ErrorRow = readonly [code: string, value: number, about: string];

const errors: readonly ErrorRow[] = [
  ['OK', 0, 'no error'],
  ['E_NULL', 1, 'an argument is NULL'],
  ['E_ALIGNMENT', 2, `the context or the weights do not begin at a multiple of ${alignment} bytes`],
  ['E_SIZE', 3, 'the weights have another number of bytes than this model'],
  ['E_FORMAT', 4, 'the bytes are no weights of sinter'],
  ['E_MODEL', 5, 'the weights are those of another model'],
  ['E_DAMAGED', 6, 'the weights are damaged: their hash is another one'],
  ['E_STATE', 7, 'the context was not initialized'],
  ['E_INDEX', 8, 'a label or an index is outside its range: the context says which'],
];

/** One that models alone have whose calls give sizes. */
const shapeError: ErrorRow = [
  'E_SHAPE',
  10,
  'a size is none that the model was built for: the context says which',
];

/** What the codes mean as well in models with threads, and one that they alone have. */
const errorsOfThreads: Readonly<Record<string, string>> = {
  E_ALIGNMENT: ', or the memory of threads does not',
  E_SIZE: ', or the memory of threads has too few',
};
const startError: ErrorRow = [
  'E_THREADS',
  9,
  'threads could not be started: the system has no more, they are more than the model allows, or the context has some already',
];

/** What calls return: the ends of the constants' names, the values, and what `error` says. */
export function errorsOf(model: CModel): readonly ErrorRow[] {
  const ofSizes = hasOpenSizes(model) ? [shapeError] : [];
  if (model.threads === undefined) return [...errors, ...ofSizes];
  const more = errors.map(([code, value, about]): ErrorRow => {
    return [code, value, `${about}${errorsOfThreads[code] ?? ''}`];
  });
  return [...more, startError, ...ofSizes];
}

/** Whether calls of some function give sizes. */
export function hasOpenSizes({ functions }: CModel): boolean {
  return functions.some(({ open }) => open !== undefined);
}

/** The codes after which the context says what was wrong. */
export function codesThatSay(model: CModel): readonly string[] {
  return ['E_INDEX', ...(hasOpenSizes(model) ? ['E_SHAPE'] : [])];
}

export interface HeaderOptions {
  /** Bytes of the weights with their head. */
  readonly weightsBytes: number;
  /** The weights are an array of the library. */
  readonly embed: boolean;
}

/** `model.h`. */
export function headerText(model: CModel, { weightsBytes, embed }: HeaderOptions): string {
  const { prefix, producer, title, functions, memory, variants, threads } = model;
  const name = (text: string): string => macro(prefix, text);
  const guard = name('H');
  return `/* Made by ${producer}: ${remark(title)} in C11. README.md shows how to use it. */
#ifndef ${guard}
#define ${guard}

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of the weights, of the part of a context that lives from call to call, and of the part that calls work in. */
#define ${name('WEIGHTS_BYTES')} ${weightsBytes}
#define ${name('STATE_BYTES')} ${memory.bytes.state}
#define ${name('ARENA_BYTES')} ${memory.bytes.arena}

/* What the functions return. */
enum ${prefix}_code {
${errorsOf(model)
  .map(
    ([code, value, about]) =>
      `  ${name(code)} = ${value},${' '.repeat(Math.max(1, 15 - `${code}${value}`.length))}/* ${about} */`,
  )
  .join('\n')}
};

/* One model at work, which the caller allocates: a static variable, or aligned_alloc(${alignment}, sizeof(${prefix})).
   Contexts share nothing but their weights: each thread may use one of its own. */
typedef struct ${prefix} {
  unsigned char state[${name('STATE_BYTES')}] __attribute__((aligned(${alignment})));
  unsigned char arena[${name('ARENA_BYTES')}] __attribute__((aligned(${alignment})));
  const unsigned char *weights;
${threads === undefined ? '' : '  void *pool;\n'}  /* After ${codesThatSay(model).map(name).join(' or ')}: which integer was outside, and a sentence that says of what. */
  const char *what;
  int64_t index;
  uint64_t ready;
} ${prefix};

${
  embed
    ? `/* The weights, for ${prefix}_init. */
extern const uint64_t ${prefix}_weights[${weightsBytes / 8}];

`
    : ''
}/* Begins with the weights${embed ? ` (${prefix}_weights)` : ` (the bytes of ${prefix}.bin)`}, which have to stay where they are, at a multiple of ${alignment} bytes. Sets the state
   to its first values, and the seed of random numbers to 0. */
int ${prefix}_init(${prefix} *ctx, const void *weights, size_t bytes);

/* What a code means. */
const char *${prefix}_error(int code);

/* The state, of ${name('STATE_BYTES')} bytes; NULL before ${prefix}_init. Write them to a file to save what was learned, and read
   them back to go on from there. ${macro(prefix, 'STATE')}_*_AT say where its tensors lie. */
void *${prefix}_state(${prefix} *ctx);

/* Sets the seed of random numbers, and begins their sequence. */
int ${prefix}_seed(${prefix} *ctx, uint64_t seed);

${
  variants.length > 0
    ? `/* Which kernels run on this processor: ${variants.map(({ isa }) => isa).join(', ')} or portable. */
const char *${prefix}_isa(void);

`
    : ''
}${threads === undefined ? '' : threadsHeader(model, threads)}${functions.map((one) => `${functionRemark(one)}\n${signature(one, prefix)};\n`).join('\n')}
${weightMacros(model)}#ifdef __cplusplus
}
#endif

#endif
`;
}

/** The declaration of a function, without an end. */
export function signature({ name, open, inputs, outputs }: CFunction, prefix: string): string {
  const parameters = [
    `${prefix} *ctx`,
    ...(open?.given ?? []).map((size) => `int64_t ${size.name}`),
    ...inputs.map((input) => (input.kind === 'number' ? `float ${input.name}` : `const ${parameter(input)}`)),
    ...outputs.map(parameter),
  ];
  return `int ${name}(${parameters.join(', ')})`;
}

function parameter({ name, dtype, count }: CTensor): string {
  if (typeof count === 'string') return `${elementTypes[dtype]} *${name}`;
  return `${elementTypes[dtype]} ${name}[${Math.max(1, count)}]`;
}

/** What calls of a function check, as its program for the largest sizes says it. */
export function checksOf({ programs }: CFunction): readonly CheckPort[] {
  return programs.at(-1)!.ported.ports.checks ?? [];
}

function functionRemark(one: CFunction): string {
  const { title, sizes, open, inputs, outputs } = one;
  const at = Object.entries(sizes).map(([size, value]) => `${size} ${value}`);
  const checks = checksOf(one).map(
    ({ what, where }) => `   ${remark(what)}: checked to be inside ${remark(where)}.`,
  );
  const lines = [
    `/* ${remark(title)}${at.length > 0 ? ` at ${remark(at.join(', '))}` : ''}. Elements lie in rows: the last axis is the fastest.`,
    ...openLines(open).map((line) => `   ${remark(line)}`),
    ...inputs.map((input) => `   takes ${inputText(input)}`),
    ...outputs.map((output) => `   gives ${tensorText(output)}`),
    ...checks,
  ];
  return `${lines.join('\n')} */`;
}

/** The sizes of a function in words, a line each. */
export function openLines(open: COpenSizes | undefined): string[] {
  if (open === undefined) return [];
  const derived = open.derived.map((size) => `where ${derivedText(size)}`);
  return [...open.given.map((size) => `takes ${sizeText(size)}`), ...derived];
}

/** An input in words. */
export function inputText(input: CInput): string {
  return input.kind === 'number' ? `${input.name}: a number` : tensorText(input);
}

/** A tensor in words. */
export function tensorText(tensor: CTensor): string {
  const { name, title, dtype, count } = tensor;
  const own = name === title ? '' : ` (${remark(title)})`;
  const bits = dtype === 'f16' || dtype === 'bf16' ? ', by bits' : dtype === 'bool' ? ', 0 or 1' : '';
  const elements = typeof count === 'string' ? '' : count === 1 ? ', 1 element' : `, ${count} elements`;
  return `${name}${own}: ${typeText(tensor)}${elements}${bits}`;
}

function weightMacros({ prefix, weights }: CModel): string {
  if (weights.length === 0) return '';
  const line = ({ name, title, place, ...rest }: CWeight): string => {
    const [region, offset] =
      place.region === 'state' ? ['STATE', place.offset] : ['WEIGHTS', headBytes + place.offset];
    return `#define ${macro(prefix, region, name)}_AT ${offset} /* ${remark(title)}: ${typeText(rest)} */`;
  };
  const lines = weights
    .toSorted((a, b) => order(a) - order(b))
    .map(line)
    .join('\n');
  return `/* Where tensors begin, in bytes: in the state, whose first ${stateHead} bytes are those of random numbers, or in the weights. */
${lines}

`;
}

/** The state first, and each region from its beginning. */
function order({ place }: CWeight): number {
  return place.offset + (place.region === 'state' ? 0 : Number.MAX_SAFE_INTEGER / 2);
}
