// `model.c`: the kernels of a model as static functions, and for each function of the model its steps as
// straight C.

import { SinterError } from '../../errors.ts';
import type { CheckPort, Formula, ScalarSource } from '../../bundle-runtime/manifest.ts';
import { showFormula } from '../formula.ts';
import type { ProgramStep } from '../../runtime/program.ts';
import { cutsOf, type JobCut } from '../../runtime/wasm/cut.ts';
import { errorsOf, signature } from './header.ts';
import { alignment, stateHead, type CPlace, type PlacedCopy } from './memory.ts';
import type { CFunction, CKernelText, CModel, CProgram, CVariant } from './model.ts';
import { flagsFor, isPresentText } from './isas.ts';
import { literal, macro } from './names.ts';
import {
  derivedLine,
  formulaText,
  helperName,
  helpersText,
  outsideMessage,
  outsideText,
  ownNames,
  withinText,
  wordOf,
  type COpenSizes,
} from './sizes.ts';
import { shareName, shareSignature } from './threads.ts';
import { headBytes, magic } from './weights.ts';

export interface SourceOptions {
  /** Of the weights' layout. */
  readonly layout: bigint;
  /** No headers but those that a compiler has without a C library. */
  readonly freestanding: boolean;
  /** Kernels' texts as one. */
  readonly join: (sources: readonly string[]) => string;
}

/** What `ready` of an initialized context holds. */
export const ready = '0x53494e5445524331u';

/** `model.c`. */
export function sourceText(model: CModel, { layout, freestanding, join }: SourceOptions): string {
  const { prefix, functions, kernels } = model;
  const all = functions.map((one, i) => functionText(model, one, choiceLines(model, i))).join('\n');
  const shared = model.threads === undefined ? '' : `${shareSignature(model)};\n\n`;
  return `${headText(model, freestanding)}
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the weights are for machines that keep the low byte first"
#endif

${kernelsText(kernels, join)}
/* The model. */
${commonText(model, layout)}
${choiceText(model)}${shared}${helpersText(prefix, all)}${all}`;
}

/** `model_avx512.c`: the functions for processors with an instruction set. */
export function isaText(
  model: CModel,
  { isa, functions, kernels }: CVariant,
  options: SourceOptions,
): string {
  const { freestanding, join } = options;
  const all = functions
    .map((one) => `${signature(one, model.prefix)};\n${functionText(model, one)}`)
    .join('\n');
  const shared = model.threads === undefined ? '' : `${shareSignature(model)};\n\n`;
  return `${headText(model, freestanding)}
${kernelsText(kernels, join)}
${shared}/* The functions for processors with ${isa}: the compiler needs ${flagsFor(isa)}. */
${helpersText(model.prefix, all)}${all}`;
}

function headText({ producer, prefix }: CModel, freestanding: boolean): string {
  return `/* Made by ${producer}: see ${prefix}.h. */
#include "${prefix}.h"

${
  freestanding
    ? `void *memcpy(void *to, const void *from, size_t bytes);
void *memset(void *to, int byte, size_t bytes);
`
    : '#include <string.h>\n'
}`;
}

function kernelsText(kernels: readonly CKernelText[], join: SourceOptions['join']): string {
  return `/* Kernels. */
#define SINTER_KERNEL static __attribute__((noinline))

${join(kernels.map(renamed))}`;
}

/** Whether the processor has each instruction set, and the name of the one that is used. */
function choiceText({ prefix, variants }: CModel): string {
  if (variants.length === 0) return '';
  const asked = variants.map(({ isa, functions }) => {
    return `#ifdef ${macro(prefix, isa)}
${functions.map((one) => `${signature(one, prefix)};\n`).join('')}
static int ${prefix}_has_${isa}(void)
{
  return ${isPresentText(isa)};
}
#endif

`;
  });
  const answers = variants.map(
    ({ isa }) => `#ifdef ${macro(prefix, isa)}
  if (${prefix}_has_${isa}()) return "${isa}";
#endif
`,
  );
  return `${asked.join('')}const char *${prefix}_isa(void)
{
${answers.join('')}  return "portable";
}

`;
}

/** A kernel's text, in which its functions have other names where its own name is taken. */
function renamed({ source, own, name }: CKernelText): string {
  return own === name ? source : source.replaceAll(new RegExp(`\\b${own}(?=(?:_group)?\\b)`, 'g'), name);
}

function commonText(model: CModel, layout: bigint): string {
  const { prefix, memory, threads } = model;
  const code = (text: string): string => macro(prefix, text);
  const body = memory.bytes.weights + memory.storedState;
  const cases = errorsOf(model).map(([name, , about]) => `    case ${code(name)}: return ${literal(about)};`);
  const copied =
    memory.storedState > 0
      ? `  memcpy(ctx->state + ${stateHead}, from + ${headBytes + memory.bytes.weights}, ${memory.storedState});\n`
      : '';
  return `static uint64_t ${prefix}_hash(const unsigned char *bytes, size_t size)
{
  uint32_t low = 0x811c9dc5u, high = 0x9747b28cu;
  for (size_t i = 0; i < size; i += 8) {
    uint32_t word[2];
    memcpy(word, bytes + i, 8);
    low = (low ^ word[0]) * 0x01000193u;
    low ^= low >> 15;
    high = (high ^ word[1]) * 0x85ebca6bu;
    high ^= high >> 13;
  }
  return (uint64_t)high << 32 | low;
}

int ${prefix}_init(${prefix} *ctx, const void *weights, size_t bytes)
{
  static const unsigned char magic[8] = { ${[...magic].map((letter) => `'${letter}'`).join(', ')} };
  const unsigned char *from = weights;
  uint64_t head[4], expected;
  if (ctx == NULL || weights == NULL) return ${code('E_NULL')};
  if ((uintptr_t)(void *)ctx % ${alignment} != 0) return ${code('E_ALIGNMENT')};
  ctx->ready = 0;
  if ((uintptr_t)weights % ${alignment} != 0) return ${code('E_ALIGNMENT')};
  if (bytes != ${code('WEIGHTS_BYTES')}) return ${code('E_SIZE')};
  memcpy(head, from, sizeof head);
  memcpy(&expected, magic, 8);
  if (head[0] != expected || head[3] != ${body}u) return ${code('E_FORMAT')};
  if (head[1] != ${hex(layout)}) return ${code('E_MODEL')};
  if (head[2] != ${prefix}_hash(from + ${headBytes}, ${body})) return ${code('E_DAMAGED')};
  memset(ctx->state, 0, sizeof ctx->state);
${copied}  memset(ctx->arena, 0, sizeof ctx->arena);
  ctx->weights = from;
${threads === undefined ? '' : '  ctx->pool = NULL;\n'}  ctx->what = NULL;
  ctx->index = 0;
  ctx->ready = ${ready};
  return ${code('OK')};
}

const char *${prefix}_error(int code)
{
  switch (code) {
${cases.join('\n')}
    default: return "no code of this model";
  }
}

void *${prefix}_state(${prefix} *ctx)
{
  return ctx == NULL || ctx->ready != ${ready} ? NULL : ctx->state;
}

int ${prefix}_seed(${prefix} *ctx, uint64_t seed)
{
  if (ctx == NULL) return ${code('E_NULL')};
  if (ctx->ready != ${ready}) return ${code('E_STATE')};
  memcpy(ctx->state, &seed, 8);
  memset(ctx->state + 8, 0, 8);
  return ${code('OK')};
}
`;
}

function hex(value: bigint): string {
  return `0x${value.toString(16)}u`;
}

/** Hands the call on to the function for the best instruction set that the processor has. */
function choiceLines({ prefix, functions, variants }: CModel, place: number): string[] {
  const { open, inputs, outputs } = functions[place]!;
  const values = [...(open?.given ?? []), ...inputs, ...outputs];
  const called = ['ctx', ...values.map(({ name }) => name)].join(', ');
  return variants.flatMap((variant) => [
    `#ifdef ${macro(prefix, variant.isa)}`,
    `if (${prefix}_has_${variant.isa}()) return ${variant.functions[place]!.name}(${called});`,
    '#endif',
  ]);
}

/** One function of the model; `chosen` are lines before all others. */
function functionText(model: CModel, one: CFunction, chosen: readonly string[] = []): string {
  const { prefix } = model;
  const { inputs, outputs, programs, open, title } = one;
  const code = (text: string): string => macro(prefix, text);
  const pointers = [
    'ctx',
    ...[...inputs, ...outputs].flatMap((value) => ('dtype' in value ? [value.name] : [])),
  ];
  const lines = [
    ...chosen,
    `if (${pointers.map((name) => `${name} == NULL`).join(' || ')}) return ${code('E_NULL')};`,
    `if ((uintptr_t)(void *)ctx % ${alignment} != 0) return ${code('E_ALIGNMENT')};`,
    `if (ctx->ready != ${ready}) return ${code('E_STATE')};`,
    ...(open === undefined ? [] : rangeLines(title, open, code('E_SHAPE'))),
  ];
  const bodies = programs.flatMap((program) => {
    const within = open && withinText(open, program.upTo);
    const body = programLines(model, one, program);
    return within === undefined ? body : [`if (${within}) {`, ...indented(body), '}'];
  });
  for (const size of open?.derived ?? [])
    if (bodies.some((line) => new RegExp(`\\b${size.name}\\b`).test(line)))
      lines.push(derivedLine(size, open!, ownNames(prefix)));
  return `${signature(one, prefix)}\n{\n${indented([...lines, ...bodies]).join('\n')}\n}\n`;
}

/** Ends the call at sizes that were not built. */
function rangeLines(title: string, open: COpenSizes, code: string): string[] {
  const checks = open.given.flatMap((size) => [
    `if (${outsideText(size)}) {`,
    `  ctx->what = ${outsideMessage(title, size)};`,
    `  ctx->index = ${size.name};`,
    `  return ${code};`,
    '}',
  ]);
  return [...checks, 'ctx->what = NULL;'];
}

function indented(lines: readonly string[]): string[] {
  return lines.map((line) => `  ${line}`);
}

/** A call that one program serves, to its end. */
function programLines(model: CModel, one: CFunction, own: CProgram): string[] {
  const { inputs, outputs, open } = one;
  const { ported, memory } = own;
  const { program, ports } = ported;
  const code = (text: string): string => macro(model.prefix, text);
  const lines: string[] = [];
  ports.args.forEach((buffer, i) => {
    const input = inputs[i]!;
    if (buffer < 0 || input.kind !== 'tensor') return;
    // Kernels read truth as 0 or 1, and masks may say 255.
    const copy = input.dtype === 'bool' ? helperName(model.prefix, 'truth') : 'memcpy';
    lines.push(`${copy}(${address(memory.placeOf(buffer))}, ${input.name}, ${input.bytes});`);
  });
  const used = new Set(ports.scalars.flatMap((source) => ('argument' in source ? [source.argument] : [])));
  inputs.forEach((input, i) => {
    if (input.kind === 'number' && !used.has(i)) lines.push(`(void)${input.name};`);
  });
  const wholes = new Wholes(model.prefix, open);
  const hasScalars = program.scalars.length > 0;
  if (hasScalars) lines.push(...scalarLines(model.prefix, one, own, wholes));
  if (ports.draws !== 0) lines.push(...drawLines(wholes.unsigned(ports.draws)));
  lines.push(...memory.before.map(copyLine));
  program.scalars.forEach(({ input }, slot) => {
    if (input === undefined) return;
    lines.push(`memcpy(&scalars[${slot}], ${address(memory.placeOf(program.inputs[input]!))}, 4);`);
  });
  const scratch = model.memory.scratch;
  const place: StepPlace = {
    title: one.title,
    own,
    scratch: scratch && address(scratch),
    cuts: cutsOf(program, model.threads ?? 1),
    share: shareName(model),
  };
  lines.push(...stepLines(program.steps, place, 0));
  lines.push(...memory.after.map(copyLine));
  const checks = ports.checks ?? [];
  if (checks.length > 0) lines.push('ctx->what = NULL;');
  for (const check of checks) lines.push(...checkLines(check, one.title, own, wholes, code('E_INDEX')));
  ports.results.forEach((buffer, i) => {
    const { name, bytes } = outputs[i]!;
    lines.push(`memcpy(${name}, ${address(memory.placeOf(buffer))}, ${bytes});`);
  });
  return [...lines, `return ${code('OK')};`];
}

/** Whole numbers that may follow from sizes, as C. */
class Wholes {
  readonly #prefix: string;
  readonly #open: COpenSizes | undefined;

  constructor(prefix: string, open: COpenSizes | undefined) {
    this.#prefix = prefix;
    this.#open = open;
  }

  unsigned(formula: Formula): string {
    return typeof formula === 'number' ? `${formula}u` : `(uint64_t)${this.#double(formula)}`;
  }

  signed(formula: Formula): string {
    if (typeof formula !== 'number') return `(int64_t)${this.#double(formula)}`;
    return formula < 0 ? `(${formula})` : `${formula}`;
  }

  #double(formula: Formula): string {
    return formulaText(formula, this.#open!, ownNames(this.#prefix));
  }
}

/** The address of a place, which kernels may write where it is not one of the weights. */
function address({ region, offset }: CPlace): string {
  return region === 'weights'
    ? `(void *)(uintptr_t)(ctx->weights + ${headBytes + offset})`
    : `ctx->${region} + ${offset}`;
}

function copyLine({ from, to, bytes }: PlacedCopy): string {
  return `memcpy(${address(to)}, ${address(from)}, ${bytes});`;
}

function scalarLines(
  prefix: string,
  { inputs, open }: CFunction,
  { ported: { program, ports } }: CProgram,
  wholes: Wholes,
): string[] {
  const lines = [`uint32_t scalars[${program.scalars.length}];`];
  const usesRandom = ports.scalars.some((source) => 'seed' in source || 'counter' in source);
  if (usesRandom)
    lines.push(
      'uint64_t seed, counter;',
      'memcpy(&seed, ctx->state, 8);',
      'memcpy(&counter, ctx->state + 8, 8);',
    );
  const wordText = (source: Exclude<ScalarSource, { readonly argument: number }>): string => {
    if ('word' in source) return `${source.word >>> 0}u`;
    if ('size' in source) return wordOf(source, prefix, open!);
    const part = (value: string, high: 0 | 1): string =>
      high === 1 ? `(uint32_t)(${value} >> 32)` : `(uint32_t)(${value})`;
    if ('seed' in source) return part('seed', source.seed);
    return part(`(counter + ${wholes.unsigned(source.offset)})`, source.counter);
  };
  ports.scalars.forEach((source, i) => {
    if (!('argument' in source)) {
      lines.push(`scalars[${i}] = ${wordText(source)};`);
      return;
    }
    lines.push(`memcpy(&scalars[${i}], &${inputs[source.argument]!.name}, 4);`);
  });
  return usesRandom ? [...lines, '(void)seed;', '(void)counter;'] : lines;
}

/** Later calls draw other numbers. */
function drawLines(draws: string): string[] {
  return [
    '{',
    '  uint64_t drawn;',
    '  memcpy(&drawn, ctx->state + 8, 8);',
    `  drawn += ${draws};`,
    '  memcpy(ctx->state + 8, &drawn, 8);',
    '}',
  ];
}

interface StepPlace {
  /** Of the function. */
  readonly title: string;
  readonly own: CProgram;
  readonly scratch: string | undefined;
  /** How dispatches are cut that threads share. */
  readonly cuts: ReadonlyMap<ProgramStep, JobCut>;
  readonly share: string;
}

function stepLines(steps: readonly ProgramStep[], place: StepPlace, depth: number): string[] {
  return steps.flatMap((step) => linesOf(step, place, depth));
}

function linesOf(step: ProgramStep, place: StepPlace, depth: number): string[] {
  const { title, own, scratch } = place;
  const { memory, ported, kernels } = own;
  const { program } = ported;
  switch (step.kind) {
    case 'dispatch': {
      const groups = step.grid.reduce((product, count) => product * count, 1);
      if (groups === 0) return [];
      if (groups >= 2 ** 31)
        throw new SinterError(
          'E_LIMIT',
          `build: ${title} has a kernel of ${groups} workgroups: C has at most 2^31 - 1`,
        );
      const { usesScalars, sharedBytes = 0 } = program.kernels[step.kernel]!;
      const buffers = step.buffers.map((buffer) => address(memory.placeOf(buffer)));
      const list = buffers.length > 0 ? `(void *const[]){ ${buffers.join(', ')} }` : 'NULL';
      const [words, room] = [usesScalars ? 'scalars' : 'NULL', sharedBytes > 0 ? scratch! : 'NULL'];
      const kernel = kernels[step.kernel]!;
      const cut = place.cuts.get(step);
      if (cut === undefined) return [`${kernel}(0, ${groups}, ${list}, ${words}, ${room});`];
      const chunk = Math.ceil(groups / cut.pieces);
      return [`${place.share}(ctx->pool, ${kernel}, ${groups}, ${chunk}, ${list}, ${words}, ${room});`];
    }
    case 'copy': {
      const { bytes } = program.buffers[step.from]!;
      return [copyLine({ from: memory.placeOf(step.from), to: memory.placeOf(step.to), bytes })];
    }
    case 'clear':
      return [`memset(${address(memory.placeOf(step.buffer))}, 0, ${program.buffers[step.buffer]!.bytes});`];
    case 'repeat':
    case 'while': {
      const turn = `turn${depth}`;
      const guard = `guard${depth}`;
      const inner = stepLines(step.steps, place, depth + 1);
      const head =
        step.kind === 'repeat'
          ? []
          : [
              `int32_t ${guard};`,
              `memcpy(&${guard}, ${address(memory.placeOf(step.guard))}, 4);`,
              `if (${guard} == 0) break;`,
            ];
      return [
        `for (int64_t ${turn} = 0; ${turn} < INT64_C(${step.times}); ${turn}++) {`,
        ...[...head, ...inner].map((line) => `  ${line}`),
        '}',
      ];
    }
    case 'collective':
    case 'host':
      throw new SinterError('E_UNSUPPORTED', `build: ${title} has steps that no bundle runs`);
    default:
      return step satisfies never;
  }
}

/** Ends the call where an integer is outside: `far` counts from the first that is inside. */
function checkLines(
  { buffer, what, where, first, end, signed }: CheckPort,
  title: string,
  { ported, memory }: CProgram,
  wholes: Wholes,
  code: string,
): string[] {
  const wide = ported.program.buffers[buffer]!.dtype === 'u64';
  const type = wide ? 'uint64_t' : 'uint32_t';
  const found = `far + (${type})${wholes.signed(first)}`;
  const index = wide ? `(int64_t)(${found})` : signed ? `(int32_t)(${found})` : `(int64_t)(${found})`;
  const last: Formula = typeof end === 'number' ? end - 1 : ['+', end, -1];
  const inside = `${showFormula(first)} to ${showFormula(last)} are inside`;
  const count =
    typeof first === 'number' && typeof end === 'number'
      ? `${end - first}u`
      : `(${type})(${wholes.signed(end)} - ${wholes.signed(first)})`;
  return [
    '{',
    `  ${type} far;`,
    `  memcpy(&far, ${address(memory.placeOf(buffer))}, ${wide ? 8 : 4});`,
    `  if (far >= ${count}) {`,
    `    ctx->what = ${literal(`${title}: ${what} is outside ${where}: ${inside}`)};`,
    `    ctx->index = ${index};`,
    `    return ${code};`,
    '  }',
    '}',
  ];
}
