// The files around a model in C: a Makefile, a program that calls each function, and a README.

import type { CFunction, CInput, CModel, CTensor } from './model.ts';
import { elementTypes } from './model.ts';
import { checksOf, hasOpenSizes, inputText, openLines, signature, tensorText } from './header.ts';
import { flagsFor } from './isas.ts';
import { literal, macro } from './names.ts';
import { derivedLine, libraryNames, outsideText, sizeText } from './sizes.ts';

/** A file for another language. */
export interface CBinding {
  readonly file: string;
  readonly text: string;
  readonly about: string;
}

export interface ProjectOptions {
  readonly embed: boolean;
  readonly freestanding: boolean;
  readonly bindings: readonly CBinding[];
}

/** What a compiler is told about `model.c`. */
export const compilerFlags =
  '-std=c11 -fno-tree-slp-vectorize -ffp-contract=off -fno-math-errno -fno-trapping-math -fno-strict-aliasing -Wall -Wextra -Wconversion';

/** `Makefile`. */
export function makefileText(model: CModel, { embed, freestanding }: ProjectOptions): string {
  const { prefix, producer, variants, threads } = model;
  const names = variants.map(({ isa }) => isa);
  const objects = [
    `${prefix}.o`,
    ...(names.length > 0 ? [`$(ISAS:%=${prefix}_%.o)`] : []),
    ...(threads === undefined ? [] : [`${prefix}_threads.o`]),
    ...(embed ? [`${prefix}_weights.o`] : []),
  ];
  const libraries = threads === undefined ? '-lm' : '-lm -pthread';
  // What runs on any processor of a kind is compiled for all of them.
  const usual = names.length > 0 ? '-O3' : '-O3 -march=native';
  const chosen = `
# Kernels for more lanes, chosen at run time by what the processor has: make ISAS=avx2 for some of them, ISAS= for none.
ifneq (,$(findstring x86_64,$(shell $(CC) -dumpmachine)))
ISAS ?= ${names.join(' ')}
endif
`;
  const rules = names.map(
    (isa) => `${prefix}_${isa}.o: ${prefix}_${isa}.c ${prefix}.h
	$(CC) $(MODEL_FLAGS) $(CFLAGS) ${flagsFor(isa)} -c -o $@ $<

`,
  );
  const defined = names.map((isa) => ` $(if $(filter ${isa},$(ISAS)),-D${macro(prefix, isa)})`).join('');
  const demo = freestanding
    ? ''
    : `
demo: main.c ${prefix}.h lib${prefix}.a
	$(CC) -std=c11 $(CFLAGS) -o $@ main.c lib${prefix}.a ${libraries}
`;
  return `# Made by ${producer}. CFLAGS are yours to set: make CFLAGS='-O2 -mcpu=cortex-m7'
CFLAGS ?= ${usual}
MODEL_FLAGS = ${compilerFlags}${defined}
${names.length > 0 ? chosen : ''}
all: lib${prefix}.a${freestanding ? '' : ' demo'}

lib${prefix}.a: ${objects.join(' ')}
	$(AR) rcs $@ $^

${rules.join('')}%.o: %.c ${prefix}.h
	$(CC) $(MODEL_FLAGS) $(CFLAGS) -c -o $@ $<
${demo}
clean:
	rm -f lib${prefix}.a demo *.o

.PHONY: all clean
`;
}

/** `main.c`. */
export function demoText(model: CModel, { embed }: ProjectOptions): string {
  const { prefix, producer, functions } = model;
  // A function may be called as another one is in C.
  const called = [...functions.map((one) => one.title), ...functions.map((one) => one.name)];
  const calls = called.map((own, i) => {
    const { name } = functions[i % functions.length]!;
    return `  if (strcmp(argv[1], ${literal(own)}) == 0) return ${name}__demo(argc - 2, argv + 2);`;
  });
  const needed = new Set(functions.flatMap(({ inputs }) => inputs.map(({ kind }) => kind)));
  return `/* Made by ${producer}: calls a function of the model, and prints what it gives.

     ./demo                          the first function, with zeros
     ./demo FUNCTION INPUT...        inputs are files of the elements as they lie in memory, numbers, or - for zeros
${
  hasOpenSizes(model)
    ? `     ./demo FUNCTION SIZE... INPUT...  the sizes come first where a call gives any, - for the largest
`
    : ''
}
   This file is replaced when the model is built again. */
${functions.some(({ open }) => (open?.derived.length ?? 0) > 0) ? '#include <math.h>\n' : ''}#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "${prefix}.h"

static ${prefix} context;
${embed ? '' : `static unsigned char weights[${macro(prefix, 'WEIGHTS_BYTES')}] __attribute__((aligned(64)));\n`}
${embed && !needed.has('tensor') ? '' : readText}${needed.has('number') ? numberText : ''}${hasOpenSizes(model) ? wholeText : ''}static int report(int code)
{
  if (code != ${macro(prefix, 'OK')})
    fprintf(stderr, "%s%s%s\\n", ${prefix}_error(code), context.what == NULL ? "" : ": ", context.what == NULL ? "" : context.what);
  return code;
}

${functions.map(runText).join('\n')}
int main(int argc, char **argv)
{
${
  embed
    ? `  if (report(${prefix}_init(&context, ${prefix}_weights, sizeof ${prefix}_weights)) != 0) return 1;`
    : `  read_file("${prefix}.bin", weights, sizeof weights);
  if (report(${prefix}_init(&context, weights, sizeof weights)) != 0) return 1;`
}
  if (argc < 2) return ${functions[0]!.name}__demo(0, argv);
${calls.join('\n')}
  fprintf(stderr, "there is no function %s: there are %s\\n", argv[1], ${literal(functions.map(({ title }) => title).join(', '))});
  return 1;
}
`;
}

const readText = `static void read_file(const char *name, void *to, size_t bytes)
{
  FILE *file = fopen(name, "rb");
  if (file == NULL || fread(to, 1, bytes, file) != bytes || fgetc(file) != EOF) {
    fprintf(stderr, "%s: expected a file of %lu bytes\\n", name, (unsigned long)bytes);
    exit(1);
  }
  fclose(file);
}

`;

const numberText = `static float number(const char *text)
{
  char *end;
  float value = strtof(text, &end);
  if (end == text || *end != 0) {
    fprintf(stderr, "%s: expected a number\\n", text);
    exit(1);
  }
  return value;
}

`;

const wholeText = `static int64_t whole(const char *text)
{
  char *end;
  long long value = strtoll(text, &end, 10);
  if (end == text || *end != 0) {
    fprintf(stderr, "%s: expected a size\\n", text);
    exit(1);
  }
  return value;
}

static void *zeros(size_t bytes)
{
  void *room = calloc(bytes > 0 ? bytes : 1, 1);
  if (room != NULL) return room;
  fprintf(stderr, "there is no memory of %lu bytes\\n", (unsigned long)bytes);
  exit(1);
}

`;

/** The function of the program that calls one of the model. */
function runText({ name, title, open, inputs, outputs }: CFunction): string {
  const sizes = open?.given ?? [];
  const isGiven = (i: number): string => `count > ${i} && strcmp(inputs[${i}], "-") != 0`;
  const room = ({ dtype, count, bytes }: CTensor, own: string): string =>
    typeof count === 'string'
      ? `${elementTypes[dtype]} *${own} = zeros(${bytes});`
      : `static ${elementTypes[dtype]} ${own}[${Math.max(1, count)}];`;
  const given = sizes.flatMap((size, i) => [
    `const int64_t ${size.name} = ${isGiven(i)} ? whole(inputs[${i}]) : ${size.max};`,
    `if (${outsideText(size)}) {`,
    `  fputs(${literal(`${sizeText(size)}\n`)}, stderr);`,
    '  return 1;',
    '}',
  ]);
  const derived = (open?.derived ?? []).flatMap((size) => [
    derivedLine(size, open!, libraryNames()),
    `(void)${size.name};`,
  ]);
  const values = inputs.flatMap((input, k): string[] => {
    const i = sizes.length + k;
    if (input.kind === 'number') return [`float in${k} = ${isGiven(i)} ? number(inputs[${i}]) : 0.0f;`];
    return [room(input, `in${k}`), `if (${isGiven(i)}) read_file(inputs[${i}], in${k}, ${input.bytes});`];
  });
  const all = [...sizes, ...inputs];
  const args = [
    '&context',
    ...sizes.map((size) => size.name),
    ...inputs.map((_, i) => `in${i}`),
    ...outputs.map((_, i) => `out${i}`),
  ];
  const allocated = (tensors: readonly (CInput | CTensor)[], own: string): string[] =>
    tensors.flatMap((one, i) =>
      'count' in one && typeof one.count === 'string' ? [`free(${own}${i});`] : [],
    );
  const lines = [
    ...given,
    ...derived,
    ...outputs.map((output, i) => room(output, `out${i}`)),
    ...values,
    `if (count > ${all.length}) {`,
    `  fprintf(stderr, "expected at most ${all.length} inputs\\n");`,
    '  return 1;',
    '}',
    ...(all.length === 0 ? ['(void)inputs;'] : []),
    `if (report(${name}(${args.join(', ')})) != 0) return 1;`,
    ...outputs.flatMap(printLines),
    ...allocated(inputs, 'in'),
    ...allocated(outputs, 'out'),
    'return 0;',
  ];
  return `/* ${title.replaceAll(/[^\w$.-]/g, '_')}: ${all.map(({ name: own }) => own).join(', ') || 'no inputs'} */
static int ${name}__demo(int count, char **inputs)
{
${lines.map((line) => `  ${line}\n`).join('')}}
`;
}

const mostPrinted = 16;

function printLines({ dtype, title, count }: CTensor, i: number): string[] {
  const [format, cast] =
    dtype === 'f32' || dtype === 'f64'
      ? ['%.9g', '(double)']
      : /^u|^f16$|^bf16$|^bool$/.test(dtype)
        ? ['%llu', '(unsigned long long)']
        : ['%lld', '(long long)'];
  const print = `printf(" ${format}", ${cast}out${i}[i]);`;
  const head = `fputs(${literal(`${title}:`)}, stdout);`;
  const end = 'printf("\\n");';
  if (typeof count === 'string')
    return [
      head,
      `for (size_t i = 0; i < ${count} && i < ${mostPrinted}; i++) ${print}`,
      `if (${count} > ${mostPrinted}) printf(" ... (%lu elements)", (unsigned long)(${count}));`,
      end,
    ];
  const shown = Math.min(count, mostPrinted);
  return [
    head,
    ...(shown === 0 ? [] : [`for (int i = 0; i < ${shown}; i++) ${print}`]),
    ...(count > shown ? [`printf(" ... (${count} elements)");`] : []),
    end,
  ];
}

/** `README.md`. */
export function readmeText(model: CModel, { embed, freestanding, bindings }: ProjectOptions): string {
  const { prefix, producer, title, functions, memory, weights, variants, threads } = model;
  const [first] = functions;
  const lib = `lib${prefix}.a`;
  const hasState = weights.some(({ place }) => place.region === 'state');
  const rows = [
    [`${prefix}.h`, 'what to include, from C or C++'],
    [`${prefix}.c`, 'the model: kernels and functions'],
    ...variants.map(({ isa }) => [`${prefix}_${isa}.c`, `the same for processors with ${isa}`]),
    ...(threads === undefined ? [] : [[`${prefix}_threads.c`, 'threads that share the work of calls']]),
    embed
      ? [`${prefix}_weights.c`, 'the weights, as an array']
      : [`${prefix}.bin`, 'the weights: little endian, each tensor at a multiple of 64 bytes'],
    ...(freestanding ? [] : [['main.c', 'a program that calls each function']]),
    ...bindings.map(({ file, about }) => [file, about]),
    ['Makefile', freestanding ? `makes \`${lib}\`` : `makes \`${lib}\` and \`demo\``],
  ];
  return `# ${title}

Made by ${producer}: a compiled model in C11, for GCC and Clang on machines that keep the low byte first. ${
    freestanding
      ? 'It needs no C library but `memcpy` and `memset`, and allocates nothing.'
      : `It needs nothing but the C library${threads === undefined ? ' and libm' : ', libm and POSIX threads'}, and allocates nothing.`
  }

\`\`\`sh
make
${freestanding ? '' : './demo\n'}\`\`\`

\`\`\`c
#include "${prefix}.h"

static ${prefix} model_context;
${embed ? '' : `static unsigned char weights[${macro(prefix, 'WEIGHTS_BYTES')}] __attribute__((aligned(64)));\n/* Fill weights with the bytes of ${prefix}.bin. */\n`}
int code = ${prefix}_init(&model_context, ${embed ? `${prefix}_weights, sizeof ${prefix}_weights` : 'weights, sizeof weights'});
if (code == 0) code = ${exampleCall(first!)};
if (code != 0) puts(${prefix}_error(code));
\`\`\`

Every function returns 0, or a code that \`${prefix}_error\` explains. A code leaves the results as they were. Arrays hold elements
in rows: the last axis is the fastest.
${
  hasOpenSizes(model)
    ? `
Sizes are arguments. They may be any within their ranges at each call: a context has room for the largest. A call with another size
returns \`${macro(prefix, 'E_SHAPE')}\`. Arrays have as many elements as the sizes say.
`
    : ''
}
${functions.map((one) => functionGuide(one, prefix)).join('\n')}
## Memory

A context (\`${prefix}\`) has ${memory.bytes.state + memory.bytes.arena} bytes and must begin at a multiple of 64 bytes. Several contexts may
use the same weights, one in each thread. ${
    hasState
      ? `What calls change lies in its state of ${memory.bytes.state} bytes:
write them to a file to save what was learned (\`${prefix}_state\`), and read them back into it to go on. The header has the places
of all tensors in it.`
      : 'Calls change nothing but the sequence of random numbers.'
  } \`${prefix}_seed\` sets the seed of random numbers, which is 0 at first.

| file | what it is |
| --- | --- |
${rows.map(([file, about]) => `| \`${file}\` | ${about} |`).join('\n')}
${threads === undefined ? '' : threadsGuide(model, threads)}`;
}

function threadsGuide({ prefix }: CModel, most: number): string {
  const count = Math.min(4, most);
  return `
## Threads

\`\`\`c
static unsigned char room[${macro(prefix, 'THREADS_BYTES')}(${count})] __attribute__((aligned(64)));
int code = ${prefix}_start(&model_context, ${count}, room, sizeof room);
\`\`\`

From then on ${count} threads, the one that calls among them, share the work of each call with this context, until
\`${prefix}_stop(&model_context)\`. There may be ${most} at most. Link with \`-pthread\`. Results are the same for any number of threads.
`;
}

function exampleCall({ name, open, inputs, outputs }: CFunction): string {
  const values = [...(open?.given ?? []), ...inputs, ...outputs];
  const args = ['&model_context', ...values.map((value) => value.name)];
  return `${name}(${args.join(', ')})`;
}

function functionGuide(one: CFunction, prefix: string): string {
  const { open, inputs, outputs } = one;
  const checks = checksOf(one).map(
    ({ what, where }) =>
      `- \`${what.replaceAll('`', "'")}\` must be inside ${where.replaceAll('`', "'")}, else the call returns \`${macro(prefix, 'E_INDEX')}\``,
  );
  const line = (verb: string, text: string): string => `- ${verb} ${text.replaceAll('`', "'")}`;
  return `## \`${one.name}\`

\`\`\`c
${signature(one, prefix)};
\`\`\`

${[
  ...openLines(open).map((text) => `- ${text}`),
  ...inputs.map((input: CInput) => line('takes', inputText(input))),
  ...outputs.map((output) => line('gives', tensorText(output))),
  ...checks,
].join('\n')}
`;
}
