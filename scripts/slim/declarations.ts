// Joins the declarations of the package: those that no public entry leads to are removed, and the modules of a folder become one
// file, `declarations.d.ts`, with what they import from elsewhere written once. Nobody reads the others, and a package of
// 1,200 small files takes long to install and to check. Comments stay, since editors show them.
//
// A joined file has one scope. A module therefore joins only where each of its names (declared, imported or global) means the
// same there; one that exports again what another module has, and one that somebody imports as a whole, stays as it is.

import { existsSync, readdirSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseSync } from 'rolldown/experimental';

/** The name of a joined file. */
const joined = 'declarations.d.ts';

/** A name of the scope of a module that comes from another module. */
interface Import {
  /** The name there. */
  readonly name: string;
  readonly from: string;
}

/** What one file of declarations says. */
interface Module {
  readonly file: string;
  readonly text: string;
  /** Where the text names other files, quotes included. */
  readonly sources: readonly Source[];
  /** Names of its scope: what they stand for is the same where these texts are. */
  readonly scope: ReadonlyMap<string, string>;
  readonly imports: ReadonlyMap<string, Import>;
  /** The declarations, without imports; undefined where there is more than declarations. */
  readonly body: readonly Syntax[] | undefined;
}

interface Source {
  readonly start: number;
  readonly end: number;
  readonly file: string;
  /** Whether that file is taken as a whole, under one name. */
  readonly whole: boolean;
  /** Where `export * from` starts, which exports all names of that file. */
  readonly all: number | undefined;
}

/** Where the modules that are joined went, and what each exports. */
type Places = ReadonlyMap<string, { readonly place: string; readonly names: readonly string[] }>;

interface Syntax {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [field: string]: unknown;
}

/**
 * Joins the declarations below `folder` that the files `entries` lead to, and removes the others. Entries keep their places;
 * paths are absolute.
 */
export function joinDeclarations(folder: string, entries: readonly string[]): void {
  const modules = reached(entries);
  for (const file of filesOf(folder)) if (!modules.has(file)) unlinkSync(file);
  const fixed = new Set(entries);
  for (const { body, file, sources } of modules.values()) {
    if (body === undefined) fixed.add(file);
    for (const { all, file: other, whole } of sources)
      if (whole || (all !== undefined && modules.get(other)!.body === undefined)) fixed.add(other);
  }
  const groups = grouped([...modules.values()].filter(({ file }) => !fixed.has(file)));
  const places: Places = new Map(
    [...groups].flatMap(([place, members]) =>
      members.map((one) => [one.file, { place, names: exportsOf(one) }] as const),
    ),
  );
  for (const module of modules.values()) {
    if (places.has(module.file)) unlinkSync(module.file);
    else writeFileSync(module.file, redirected(module, places));
  }
  for (const [place, members] of groups) writeFileSync(place, together(place, members, places));
}

function filesOf(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.d.ts'))
    .map((name) => path.join(folder, name));
}

/** The entries and what they lead to, sorted by path. */
function reached(entries: readonly string[]): ReadonlyMap<string, Module> {
  const found = new Map<string, Module>();
  const pending = [...entries];
  for (let file = pending.pop(); file !== undefined; file = pending.pop()) {
    if (found.has(file)) continue;
    const module = readModule(file);
    found.set(file, module);
    pending.push(...module.sources.map((source) => source.file));
  }
  return new Map([...found].toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/** Modules of the same folder whose names agree, by the file that they become. */
function grouped(modules: readonly Module[]): ReadonlyMap<string, readonly Module[]> {
  const groups = new Map<string, { readonly members: Module[]; readonly scope: Map<string, string> }>();
  for (const module of modules) {
    const place = path.join(path.dirname(module.file), joined);
    if (existsSync(place)) throw new Error(`${place} is there already`);
    const group = groups.get(place) ?? { members: [], scope: new Map<string, string>() };
    groups.set(place, group);
    const names = [...module.scope];
    if (names.some(([name, meaning]) => (group.scope.get(name) ?? meaning) !== meaning)) continue;
    group.members.push(module);
    for (const [name, meaning] of names) group.scope.set(name, meaning);
  }
  return new Map(
    [...groups].flatMap(([place, { members }]) => (members.length > 1 ? [[place, members]] : [])),
  );
}

/** What stands in a module from `start` to `end`, with the places of other files as they are now. */
function redirected(
  { file, sources, text }: Module,
  places: Places,
  [start, end]: readonly [number, number] = [0, text.length],
): string {
  let [written, at] = ['', start];
  for (const source of sources) {
    if (source.start < start || source.end > end) continue;
    const joinedTo = places.get(source.file);
    const from = specifier(file, joinedTo?.place ?? source.file);
    written +=
      source.all === undefined || joinedTo === undefined
        ? text.slice(at, source.start) + from
        : `${text.slice(at, source.all)}export { ${joinedTo.names.join(', ')} } from ${from}`;
    at = source.end;
  }
  return written + text.slice(at, end);
}

/** The text of a joined file. */
function together(place: string, members: readonly Module[], places: Places): string {
  const lists = new Map<string, Set<string>>();
  for (const { imports } of members)
    for (const [local, { from, name }] of imports) {
      const target = places.get(from)?.place ?? from;
      if (target === place) continue;
      const list = name === '*' ? `* as ${local}` : '';
      const key = `${list} from ${specifier(place, target)}`;
      lists.set(key, (lists.get(key) ?? new Set()).add(name === local ? name : `${name} as ${local}`));
    }
  const imports = [...lists].map(([key, names]) =>
    key.startsWith('*') ? `import ${key};\n` : `import { ${[...names].join(', ')} }${key};\n`,
  );
  return `${imports.join('')}${members.map((one) => declarationsOf(one, places)).join('')}export {};\n`;
}

/** The declarations of a module with their comments, which stand before them. */
function declarationsOf(module: Module, places: Places): string {
  const texts = module.body!.map(({ end, start }) => {
    const before = /(?:\/\*\*(?:(?!\*\/)[^])*\*\/\s*)*$/.exec(module.text.slice(0, start))!;
    return `${redirected(module, places, [before.index, end])}\n`;
  });
  return texts.join('');
}

/** How `file` names `other`, in quotes. */
function specifier(file: string, other: string): string {
  if (!path.isAbsolute(other)) return `'${other}'`;
  const way = path.relative(path.dirname(file), other).replaceAll(path.sep, '/');
  return `'${way.startsWith('.') ? '' : './'}${way.replace(/\.d\.ts$/, '.js')}'`;
}

function readModule(file: string): Module {
  const text = readFileSync(file, 'utf8');
  const { errors, program } = parseSync(file, text);
  if (errors.length > 0) throw new Error(`${file}: ${errors[0]!.message}`);
  const body = program.body as unknown as readonly Syntax[];
  const imports = importsOf(file, body);
  const scope = new Map(
    [...imports].map(([local, { from, name }]) => [local, `${name} of ${from}`] as const),
  );
  for (const statement of body)
    for (const name of declaredBy(statement)) scope.set(name, `${name} of ${file}`);
  // What is not of the module is global, or a parameter of a type.
  for (const name of referencesIn(body)) if (!scope.has(name)) scope.set(name, `${name} of nobody`);
  const sources = sourcesIn(file, body).toSorted((a, b) => a.start - b.start);
  const plain = !text.includes('/// <') && body.every(isPlain);
  return { file, text, sources, scope, imports, body: plain ? body.filter(isDeclaration) : undefined };
}

/** Whether a statement is an import, a declaration, or says that the file is a module. */
function isPlain(statement: Syntax): boolean {
  if (statement.type === 'ImportDeclaration' || isDeclaration(statement)) return true;
  return (
    statement.type === 'ExportNamedDeclaration' &&
    statement['source'] === null &&
    (statement['specifiers'] as readonly Syntax[]).length === 0
  );
}

/** Whether a statement declares names of the file's scope. */
function isDeclaration(statement: Syntax): boolean {
  return declaredBy(statement).length > 0;
}

/** The names that a statement declares; of a pattern or of `declare global` none. */
function declaredBy(statement: Syntax): readonly string[] {
  const declaration = (statement['declaration'] ?? statement) as Syntax;
  if (statement.type === 'ImportDeclaration' || declaration['global'] === true) return [];
  const named =
    declaration.type === 'VariableDeclaration'
      ? (declaration['declarations'] as readonly Syntax[])
      : [declaration];
  return named.flatMap((one) => nameOf(one['id']) ?? []);
}

/** The names that a module of declarations exports. */
function exportsOf({ body }: Module): readonly string[] {
  const exported = body!.filter(({ type }) => type === 'ExportNamedDeclaration').flatMap(declaredBy);
  return [...new Set(exported)];
}

function nameOf(syntax: unknown): string | undefined {
  const { name, type, value } = (syntax ?? {}) as { name?: string; type?: string; value?: string };
  return type === 'Identifier' ? name : value;
}

function importsOf(file: string, body: readonly Syntax[]): ReadonlyMap<string, Import> {
  const found = new Map<string, Import>();
  for (const { source, specifiers, type } of body as readonly (Syntax & Record<string, unknown>)[]) {
    if (type !== 'ImportDeclaration') continue;
    const from = fileOf(file, (source as { readonly value: string }).value);
    for (const specifier of specifiers as readonly Syntax[]) {
      const whole = specifier.type === 'ImportNamespaceSpecifier' ? '*' : 'default';
      found.set(nameOf(specifier['local'])!, { name: nameOf(specifier['imported']) ?? whole, from });
    }
  }
  return found;
}

/** The file that `specifier` means in `file`; that of a package is its name. */
function fileOf(file: string, specifier: string): string {
  if (!specifier.startsWith('.')) return specifier;
  return path.join(path.dirname(file), specifier.replace(/\.[jt]s$/, '.d.ts'));
}

/** Visits what stands in `syntax`, itself included. */
function visit(syntax: unknown, see: (one: Syntax) => void): void {
  if (Array.isArray(syntax)) {
    for (const one of syntax) visit(one, see);
  } else if (typeof syntax === 'object' && syntax !== null) {
    if ('type' in syntax) see(syntax as Syntax);
    for (const one of Object.values(syntax)) visit(one, see);
  }
}

/** Where statements name other files of the package. */
function sourcesIn(file: string, body: readonly Syntax[]): Source[] {
  const found: Source[] = [];
  visit(body, (one) => {
    const source = one['source'] as (Syntax & { readonly value: string }) | null | undefined;
    if (source?.type !== 'Literal' || !source.value.startsWith('.')) return;
    const { end, start } = source;
    const specifiers = (one['specifiers'] ?? []) as readonly Syntax[];
    const star = one.type === 'ExportAllDeclaration';
    const whole =
      (star && one['exported'] !== null) ||
      specifiers.some(({ type }) => type === 'ImportNamespaceSpecifier') ||
      (one.type === 'TSImportType' && one['qualifier'] === null);
    const all = star && !whole ? one.start : undefined;
    found.push({ start, end, file: fileOf(file, source.value), whole, all });
  });
  return found;
}

/** Where the name of a type or value is looked up in the scope. */
const lookups: Readonly<Record<string, string>> = {
  ClassDeclaration: 'superClass',
  MemberExpression: 'object',
  TSClassImplements: 'expression',
  TSInterfaceHeritage: 'expression',
  TSQualifiedName: 'left',
  TSTypeQuery: 'exprName',
  TSTypeReference: 'typeName',
};

/** Names that statements look up. */
function referencesIn(body: readonly Syntax[]): ReadonlySet<string> {
  const found = new Set<string>();
  visit(body, (one) => {
    const name = nameOf(one[one['computed'] === true && 'key' in one ? 'key' : (lookups[one.type] ?? '')]);
    if (name !== undefined) found.add(name);
  });
  return found;
}
