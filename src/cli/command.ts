// What every command of `sinter` is made of: its options as data, from which parsing and help both
// follow, and where it writes. Results go to stdout, progress to stderr.

import { parseArgs, type ParseArgsConfig } from 'node:util';
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
  /** One letter that stands for it too. */
  readonly short?: string;
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
  /** What follows the operand goes by this name as a list, whatever it looks like: it is somebody else's. */
  readonly rest?: { readonly name: string; readonly value: string; readonly about: string };
  readonly examples: readonly string[];
  readonly run: (values: OptionValues, output: Output) => Promise<void>;
}

/** Options that every command has. */
export const commonOptions: Readonly<Record<string, Option>> = {
  json: { type: 'boolean', about: 'write the result as JSON on stdout' },
  debug: { type: 'boolean', about: 'show stack traces of errors' },
  help: { type: 'boolean', short: 'h', about: 'show this text' },
};

/**
 * The values of a command's options. Throws UsageError on an unknown one, a missing value or
 * anything else.
 */
export function parseOptions(command: Command, args: readonly string[]): OptionValues {
  const options = { ...command.options, ...commonOptions };
  const types = Object.fromEntries(
    Object.entries(options).map(([name, { type, multiple = false, short }]) => [
      name,
      { type, multiple, ...(short === undefined ? {} : { short }) },
    ]),
  );
  try {
    const end = command.rest === undefined ? args.length : endOfOwn(args, types);
    const { values, positionals } = parseArgs({
      args: args.slice(0, end),
      options: types,
      strict: true,
      allowPositionals: command.operand !== undefined,
    });
    const [operand, extra] = positionals;
    if (extra !== undefined) throw new Error(`Unexpected argument '${extra}'`);
    const { name = '' } = command.operand ?? {};
    const rest = command.rest === undefined ? {} : { [command.rest.name]: args.slice(end) };
    return (operand === undefined ? values : { ...values, ...rest, [name]: operand }) as OptionValues;
  } catch (error) {
    const first = (error as Error).message.split('. ')[0]!;
    throw new UsageError(`${command.name}: ${first}\n  try: sinter ${command.name} --help`);
  }
}

/** Where the operand ends: what follows is not the command's. */
function endOfOwn(args: readonly string[], options: NonNullable<ParseArgsConfig['options']>): number {
  const { tokens } = parseArgs({ args: [...args], options, strict: false, tokens: true });
  const operand = tokens.find(({ kind }) => kind === 'positional');
  return operand === undefined ? args.length : operand.index + 1;
}

/** The text of `sinter COMMAND --help`. */
export function commandHelp(command: Command): string {
  const { operand, rest } = command;
  const rows = [
    ...(operand === undefined ? [] : [[operand.value, operand.about] as const]),
    ...(rest === undefined ? [] : [[rest.value, rest.about] as const]),
    ...Object.entries({ ...command.options, ...commonOptions }).map(
      ([name, option]) =>
        [
          `--${name}${option.short === undefined || name === 'help' ? '' : `, -${option.short}`}${option.value === undefined ? '' : ` ${option.value}`}`,
          option.about,
        ] as const,
    ),
  ];
  const width = Math.max(...rows.map(([left]) => left.length));
  return [
    rest === undefined
      ? `usage: sinter ${command.name} ${operand === undefined ? '' : `[${operand.value}] `}[options]`
      : `usage: sinter ${command.name} [options] ${operand?.value} [${rest.value}]`,
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
