// Sizes that calls of C give, within ranges: their checks, and numbers that follow from them as C.

import { SinterError } from '../../errors.ts';
import type { BundleEntry, Formula, ScalarSource, Sizes } from '../../bundle-runtime/manifest.ts';
import { showFormula } from '../formula.ts';
import { literal } from './names.ts';

/** A size that a call gives. */
export interface CSize {
  readonly title: string;
  /** The parameter. */
  readonly name: string;
  readonly min: number;
  readonly max: number;
  readonly multipleOf: number;
}

/** A size that follows from those. */
export interface CDerivedSize {
  readonly title: string;
  /** A variable. */
  readonly name: string;
  readonly formula: Formula;
}

/** The sizes of a function that each call gives. */
export interface COpenSizes {
  readonly given: readonly CSize[];
  readonly derived: readonly CDerivedSize[];
}

/** What the sizes of an entry with ranges are called: those that calls give, then those that follow. */
export function openTitles({
  ranges = {},
  derived = {},
}: Pick<BundleEntry, 'ranges' | 'derived'>): readonly string[] {
  return [...Object.keys(ranges), ...Object.keys(derived)];
}

/** With a name in C for each title. */
export function openSizesOf(
  { ranges = {}, derived = {} }: Pick<BundleEntry, 'ranges' | 'derived'>,
  nameOf: (title: string) => string,
): COpenSizes {
  return {
    given: Object.entries(ranges).map(([title, [min, max, multipleOf]]) => {
      return { title, name: nameOf(title), min, max, multipleOf };
    }),
    derived: Object.entries(derived).map(([title, formula]) => ({ title, name: nameOf(title), formula })),
  };
}

/** `1 to 64`. */
export function rangeText({ min, max, multipleOf }: CSize): string {
  return `${min} to ${max}${multipleOf === 1 ? '' : `, a multiple of ${multipleOf}`}`;
}

/** A size in words. */
export function sizeText(size: CSize): string {
  const own = size.name === size.title ? '' : ` (${size.title})`;
  return `${size.name}${own}: a size, ${rangeText(size)}`;
}

/** `size1 = floor(length / 2)`. */
export function derivedText({ name, formula }: CDerivedSize): string {
  return `${name} = ${showFormula(formula)}`;
}

/** The condition that a size is none of those that were built. */
export function outsideText({ name, min, max, multipleOf }: CSize): string {
  const rest = multipleOf === 1 ? '' : ` || ${name} % ${multipleOf} != 0`;
  return `${name} < ${min} || ${name} > ${max}${rest}`;
}

/** What a function says about such a size, as a literal. */
export function outsideMessage(title: string, size: CSize): string {
  return literal(`${title}: ${size.title}: expected ${rangeText(size)}`);
}

/** The condition that sizes are within those that a program goes up to; undefined where all of them are. */
export function withinText({ given }: COpenSizes, upTo: Sizes): string | undefined {
  const parts = given.flatMap(({ title, name, max }) => {
    const most = upTo[title];
    return most === undefined || most >= max ? [] : [`${name} <= ${most}`];
  });
  return parts.length > 0 ? parts.join(' && ') : undefined;
}

/** How a language calls the functions of formulas. */
export type FormulaNames = Readonly<Record<'floor' | 'min' | 'max' | 'sqrt' | 'log', string>>;

/** By `math.h`, or by `cmath` with `std::` before each. */
export function libraryNames(space: string = ''): FormulaNames {
  return {
    floor: `${space}floor`,
    min: `${space}fmin`,
    max: `${space}fmax`,
    sqrt: `${space}sqrt`,
    log: `${space}log`,
  };
}

/** A formula as a double in C, in arithmetic that is rounded as JavaScript's. */
export function formulaText(formula: Formula, { given, derived }: COpenSizes, spell: FormulaNames): string {
  const text = (part: Formula): string => {
    if (typeof part === 'number') {
      const digits = Number.isInteger(part) && Math.abs(part) < 1e21 ? `${part}.0` : String(part);
      return part < 0 ? `(${digits})` : digits;
    }
    if (typeof part === 'string') {
      const size = given.find(({ title }) => title === part);
      // A size that follows is put in by its formula.
      return size === undefined
        ? text(derived.find(({ title }) => title === part)!.formula)
        : `(double)${size.name}`;
    }
    const [op, ...of] = part;
    const parts = of.map(text);
    switch (op) {
      case '+':
      case '*':
      case '/':
        return `(${parts.join(` ${op} `)})`;
      case 'fround':
        return `(double)(float)${parts[0]!.startsWith('(') ? parts[0]! : `(${parts[0]!})`}`;
      default:
        return `${spell[op]}(${parts.join(', ')})`;
    }
  };
  return text(formula);
}

/** The line that computes a size that follows. */
export function derivedLine({ name, formula }: CDerivedSize, open: COpenSizes, spell: FormulaNames): string {
  return `const size_t ${name} = (size_t)${formulaText(formula, open, spell)};`;
}

/** Functions of `model.c` that formulas, words and inputs need, by what comes behind the prefix. */
const helpers: Readonly<Record<string, readonly [parameters: string, result: string, body: string]>> = {
  floor: [
    'double x',
    'double',
    '  double whole = (double)(int64_t)x;\n  return whole > x ? whole - 1.0 : whole;',
  ],
  min: ['double x, double y', 'double', '  return y < x ? y : x;'],
  max: ['double x, double y', 'double', '  return y > x ? y : x;'],
  float: [
    'double x',
    'uint32_t',
    '  float value = (float)x;\n  uint32_t word;\n  memcpy(&word, &value, 4);\n  return word;',
  ],
  half: [
    'double x, int which',
    'uint32_t',
    '  uint32_t words[2];\n  memcpy(words, &x, 8);\n  return words[which];',
  ],
  truth: [
    'unsigned char *to, const uint8_t *from, size_t bytes',
    'void',
    '  for (size_t i = 0; i < bytes; i++) to[i] = from[i] != 0;',
  ],
};

export function helperName(prefix: string, own: string): string {
  return `${prefix}__${own}`;
}

/** Those functions that a text calls. */
export function helpersText(prefix: string, text: string): string {
  return Object.entries(helpers)
    .filter(([own]) => text.includes(`${helperName(prefix, own)}(`))
    .map(([own, [parameters, result, body]]) => {
      return `static ${result} ${helperName(prefix, own)}(${parameters})\n{\n${body}\n}\n\n`;
    })
    .join('');
}

/** How `model.c` calls the functions of formulas: freestanding models have no library of them. */
export function ownNames(prefix: string): FormulaNames {
  return {
    floor: helperName(prefix, 'floor'),
    min: helperName(prefix, 'min'),
    max: helperName(prefix, 'max'),
    sqrt: '__builtin_sqrt',
    log: '__builtin_log',
  };
}

/** A number that follows from sizes, as the word that kernels read. */
export function wordOf(
  { size, as }: Extract<ScalarSource, { readonly size: Formula }>,
  prefix: string,
  open: COpenSizes,
): string {
  const value = formulaText(size, open, ownNames(prefix));
  switch (as) {
    case 'f':
      return `${helperName(prefix, 'float')}(${value})`;
    case 'i':
      return `(uint32_t)(int64_t)${value}`;
    case 'ih':
      return `(uint32_t)((uint64_t)(int64_t)${value} >> 32)`;
    case 'd':
    case 'dh':
      return `${helperName(prefix, 'half')}(${value}, ${as === 'd' ? 0 : 1})`;
    default:
      return as satisfies never;
  }
}

/** Throws E_UNSUPPORTED where a program has numbers that need a library, which a freestanding model lacks. */
export function expectNoLibrary(title: string, scalars: readonly ScalarSource[]): void {
  const takesLog = (formula: Formula): boolean =>
    typeof formula === 'object' &&
    (formula[0] === 'log' || formula.slice(1).some((part) => takesLog(part as Formula)));
  const found = scalars.find((source) => 'size' in source && takesLog(source.size));
  if (found === undefined || !('size' in found)) return;
  throw new SinterError(
    'E_UNSUPPORTED',
    `build: ${title} computes ${showFormula(found.size)} of its sizes, and a freestanding model has no logarithm\n` +
      '  try: no --freestanding, or a list of sizes, as in --dim batch=1,8',
  );
}
