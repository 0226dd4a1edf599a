// What every command of `sinter` is made of: its options as data, from which parsing and help both
// follow, and where it writes. Results go to stdout, progress to stderr.

import { parseArgs } from 'node:util';
import { SinterError } from '../errors.ts';

/** A command line that asks for something that is not there: exit code 2. */
export class UsageError extends SinterError {
  constructor(message: string) {
    super('E_VALUE', message);
  }
}

export interface Option {
  readonly type: 'string' | 'boolean';
  readonly about: string;
  /** What stands for the value in help, e.g. `FILE`. */
  readonly value?: string;
  /** It may be given several times. */
  readonly multiple?: true;
}

/**
 * What the user gave: strings by option name, lists of them where options repeat, true for flags.
 */
export type OptionValues = Readonly<Record<string, string | boolean | readonly string[] | undefined>>;

export interface Output {
  /** How wide the terminal is that results are shown on; undefined when they go elsewhere. */
  readonly columns: number | undefined;
  /** A result, on a line of its own. */
  line(text: string): void;
  /** A part of a result, behind the last part; a line ends them. */
  part(text: string): void;
  /** Progress, on a line of its own. */
  note(text: string): void;
  /** Progress that replaces the last such text, where stderr is a terminal. */
  live(text: string): void;
  /** Progress for where `live` shows nothing. */
  mark(text: string): void;
}

export interface Command {
  readonly name: string;
  /** One line for the list of commands. */
  readonly about: string;
  /** Paragraphs for `--help`, after the usage line. */
  readonly details: string;
  readonly options: Readonly<Record<string, Option>>;
  /** What may stand beside the options; its value goes by this name. */
  readonly operand?: { readonly name: string; readonly value: string; readonly about: string };
  readonly examples: readonly string[];
  readonly run: (values: OptionValues, output: Output) => Promise<void>;
}

/** Options that every command has. */
export const commonOptions: Readonly<Record<string, Option>> = {
  json: { type: 'boolean', about: 'write the result as JSON on stdout' },
  debug: { type: 'boolean', about: 'show stack traces of errors' },
  help: { type: 'boolean', about: 'show this text' },
};

/**
 * The values of a command's options. Throws UsageError on an unknown one, a missing value or
 * anything else.
 */
export function parseOptions(command: Command, args: readonly string[]): OptionValues {
  const options = { ...command.options, ...commonOptions };
  const types = Object.fromEntries(
    Object.entries(options).map(([name, { type, multiple = false }]) => [
      name,
      { type, multiple, ...(name === 'help' ? { short: 'h' } : {}) },
    ]),
  );
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      options: types,
      strict: true,
      allowPositionals: command.operand !== undefined,
    });
    const [operand, extra] = positionals;
    if (extra !== undefined) throw new Error(`Unexpected argument '${extra}'`);
    const { name = '' } = command.operand ?? {};
    return (operand === undefined ? values : { ...values, [name]: operand }) as OptionValues;
  } catch (error) {
    const first = (error as Error).message.split('. ')[0]!;
    throw new UsageError(`${command.name}: ${first}\n  try: sinter ${command.name} --help`);
  }
}

/** The text of `sinter COMMAND --help`. */
export function commandHelp(command: Command): string {
  const { operand } = command;
  const rows = [
    ...(operand === undefined ? [] : [[operand.value, operand.about] as const]),
    ...Object.entries({ ...command.options, ...commonOptions }).map(
      ([name, option]) =>
        [`--${name}${option.value === undefined ? '' : ` ${option.value}`}`, option.about] as const,
    ),
  ];
  const width = Math.max(...rows.map(([left]) => left.length));
  return [
    `usage: sinter ${command.name} ${operand === undefined ? '' : `[${operand.value}] `}[options]`,
    '',
    command.details,
    '',
    'options:',
    ...rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`),
    '',
    'examples:',
    ...command.examples.map((example) => `  ${example}`),
  ].join('\n');
}

/** The value of a string option, or undefined. */
export function text(values: OptionValues, name: string): string | undefined {
  const value = values[name];
  return typeof value === 'string' ? value : undefined;
}

/** The values of an option that repeats. */
export function texts(values: OptionValues, name: string): readonly string[] {
  const value = values[name];
  return Array.isArray(value) ? (value as readonly string[]) : [];
}

/**
 * The value of a string option that is a whole number of at least `least`. Throws UsageError
 * otherwise.
 */
export function wholeNumber(values: OptionValues, name: string, fallback: number, least: number): number {
  const given = text(values, name);
  if (given === undefined) return fallback;
  const value = Number(given);
  if (given.trim() !== '' && Number.isSafeInteger(value) && value >= least) return value;
  throw new UsageError(`--${name}: expects a whole number of at least ${least}, got '${given}'`);
}
