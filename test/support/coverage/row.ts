// What the table of operations is made of: a family has inputs by name, and a row an operation, called as its documents show it. The text
// of a call is what is printed and what is run, so that the two cannot differ.

/** JavaScript over `sn`: the text that a document shows. */
export type Code = string;

export interface Entry {
  /** The call, over `sn` and the names of inputs. */
  readonly call: Code;
  /** Inputs of its own, by name, in place of the family's. */
  readonly given?: Readonly<Record<string, Code>>;
  /** Inputs that keep their dtype though they are what others vary. */
  readonly keep?: readonly string[];
  /** What is compared of the result `y` where it is not determined: bases, signs. */
  readonly compared?: Code;
  /** The same with a size that is known: inside `compile`, what the data decides cannot have one. */
  readonly sized?: Code;
  /** Why it cannot be recorded inside `compile`. */
  readonly eager?: string;
}

export interface Family {
  /** The file of its document: `docs/ops/NAME.md`. */
  readonly name: string;
  readonly title: string;
  /** What all of them have in common, first of all about shapes. */
  readonly about: string;
  /** Inputs by name. */
  readonly inputs: Readonly<Record<string, Code>>;
  /**
   * Operations by public name, those of namespaces with it: `linalg.svd`; of several calls the others have a word more: `sum/i64`. A string is
   * a call alone.
   */
  readonly rows: Readonly<Record<string, Code | Entry>>;
}

/** An operation with the inputs that its call reads. */
export interface Row extends Entry {
  readonly name: string;
  readonly given: Readonly<Record<string, Code>>;
}

/** The names in a piece of code that are among these, in their order. */
function mentioned(code: Code, names: readonly string[]): string[] {
  const words = new Set(code.replaceAll(/'[^']*'|\.\w+/g, ' ').match(/[A-Za-z_]\w*/g));
  return names.filter((name) => words.has(name));
}

/** The rows of a family. */
export function rowsOf({ inputs, rows }: Family): Row[] {
  return Object.entries(rows).map(([name, row]): Row => {
    const entry = typeof row === 'string' ? { call: row } : row;
    const all = { ...inputs, ...entry.given };
    const used = mentioned(`${entry.call} ${entry.sized ?? ''}`, Object.keys(all));
    return { ...entry, name, given: Object.fromEntries(used.map((key) => [key, all[key]!])) };
  });
}

/** Rows that are called alike, for each name, which may have something before it. */
export function alike(
  names: string,
  call: (name: string) => Code | Entry,
  before = '',
): Readonly<Record<string, Code | Entry>> {
  return Object.fromEntries(names.split(/\s+/).map((name) => [`${before}${name}`, call(name)]));
}
