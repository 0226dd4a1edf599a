// Joins the declarations of the package: those that no public name leads to are removed, and the others of a room (a folder of
// dist) become one file, `declarations.d.ts`. Nobody reads the others, and a package of many small files takes long to install and
// to check. Comments stay, since editors show them.
// Lines are indented by tabs.
//
// A joined file has one scope. A module therefore joins only where each of its names (declared, imported or global) means the
// same there; otherwise it keeps a file of its own. Entries, modules that are imported as a whole, and modules that add to others
// or to the platform keep their places and all that they say.

import { readdirSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseSync } from 'rolldown/experimental';

/** The name of a joined file. */
const joined = 'declarations.d.ts';

/** A name that a file exports; `*` stands for all of them, as one value. The file of a package is the package's name. */
interface Name {
  readonly file: string;
  readonly name: string;
  /** Whether it is taken as a type only, where it may be a class. */
  readonly type?: boolean;
}

/** What one file of declarations says. */
interface Module {
  readonly file: string;
  readonly text: string;
  readonly body: readonly Syntax[];
  readonly imports: ReadonlyMap<string, Name>;
  /** Statements by the names that they declare. */
  readonly declared: ReadonlyMap<string, readonly Syntax[]>;
  /** Names that other modules declare, and this one exports again. */
  readonly aliases: ReadonlyMap<string, Name>;
  /** Modules of which it exports all names. */
  readonly stars: readonly string[];
  /** Files that it names. */
  readonly sources: readonly string[];
  /** Modules that have to keep their places for this one: it adds to them, or takes them as a whole. */
  readonly pins: readonly string[];
  /** Whether it says more than declarations, imports and exports. */
  readonly special: boolean;
}

/** What is kept of a module that may join others. */
interface Part {
  readonly module: Module;
  readonly statements: readonly Syntax[];
  /** Names of other modules that the statements use, by what they are called here. */
  readonly imports: ReadonlyMap<string, Name>;
  /** All names of its scope: what they stand for is the same where these texts are. */
  readonly scope: ReadonlyMap<string, string>;
}

/** The file in which a module's declarations are at the end, by the module's file. */
type Places = ReadonlyMap<string, string>;

/** A node of a syntax tree, with its place in the text. */
export interface Syntax {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [field: string]: unknown;
}

/** What a type or module names as `from '…'`, `import('…')`. */
interface Reference {
  readonly start: number;
  readonly end: number;
  readonly name: Name;
}

/**
 * Joins the declarations below `folder` that the names of `entries` lead to, and removes the others. Entries keep their places;
 * paths are absolute.
 */
export function joinDeclarations(folder: string, entries: readonly string[]): void {
  const modules = reached(entries);
  const fixed = new Set([...entries, ...[...modules.values()].flatMap(({ pins }) => pins)]);
  for (const { file, special } of modules.values()) if (special) fixed.add(file);
  const all = { modules, fixed };
  const { kept, parts } = needed(all, entries);
  const places = new Map([...kept].map((file) => [file, file]));
  const groups = grouped(parts, (file) => roomOf(folder, file));
  for (const [place, members] of groups) for (const { module } of members) places.set(module.file, place);
  const texts = new Map(
    [...groups].map(([place, members]) => [place, together(all, place, members, places)]),
  );
  for (const file of kept) texts.set(file, redirected(all, modules.get(file)!, places));
  for (const file of filesOf(folder)) if (!texts.has(file)) unlinkSync(file);
  for (const [place, text] of texts)
    writeFileSync(
      place,
      text.replace(/^(?: {4})+/gm, (spaces) => '\t'.repeat(spaces.length / 4)),
    );
}

function filesOf(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.d.ts'))
    .map((name) => path.join(folder, name));
}

/** The joined file of a module's room. */
function roomOf(folder: string, file: string): string {
  const [room, ...rest] = path.relative(folder, file).split(path.sep);
  return path.join(folder, rest.length === 0 ? '' : room!, joined);
}

/** The entries and what they lead to, sorted by path. */
function reached(entries: readonly string[]): ReadonlyMap<string, Module> {
  const found = new Map<string, Module>();
  const pending = [...entries];
  for (let file = pending.pop(); file !== undefined; file = pending.pop()) {
    if (found.has(file)) continue;
    const module = readModule(file);
    found.set(file, module);
    pending.push(...module.sources);
  }
  return new Map([...found].toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/** Parts by the file that they become: those of a room together, but for those whose names mean something else. */
function grouped(
  parts: readonly Part[],
  roomOf: (file: string) => string,
): ReadonlyMap<string, readonly Part[]> {
  const groups = new Map<string, Part[]>();
  const scopes = new Map<string, Map<string, string>>();
  for (const part of parts) {
    const room = roomOf(part.module.file);
    const scope = scopes.get(room) ?? new Map<string, string>();
    scopes.set(room, scope);
    const names = [...part.scope];
    const agrees = names.every(([name, meaning]) => (scope.get(name) ?? meaning) === meaning);
    if (agrees) for (const [name, meaning] of names) scope.set(name, meaning);
    const place = agrees ? room : part.module.file;
    groups.set(place, [...(groups.get(place) ?? []), part]);
  }
  return groups;
}

/** All modules by file, and the files that keep their places. */
interface Package {
  readonly modules: ReadonlyMap<string, Module>;
  readonly fixed: ReadonlySet<string>;
}

/** Where a name is declared, through the modules that export it again. */
function originOf(all: Package, { file, name }: Name): Name {
  const module = all.modules.get(file);
  if (module === undefined || name === '*' || module.declared.has(name)) return { file, name };
  const alias = module.aliases.get(name);
  if (alias !== undefined) return typed(originOf(all, alias), alias.type);
  const star = module.stars.find((other) => namesIn(all, other).includes(name));
  if (star === undefined) throw new Error(`${file} exports no ${name}`);
  return originOf(all, { file: star, name });
}

/** The names that a file exports. */
function namesIn(all: Package, file: string): readonly string[] {
  const { aliases, declared, stars } = all.modules.get(file)!;
  const own = [...declared].filter(([, statements]) => statements.some(isExport)).map(([name]) => name);
  return [...new Set([...own, ...aliases.keys(), ...stars.flatMap((other) => namesIn(all, other))])];
}

/** Modules that are kept as they are, and what is kept of the others, for the names of `entries`. */
function needed(
  all: Package,
  entries: readonly string[],
): {
  readonly kept: ReadonlySet<string>;
  readonly parts: readonly Part[];
} {
  const kept = new Set<string>();
  const statements = new Set<Syntax>();
  const pending: Name[] = entries.map((file) => ({ file, name: '*' }));
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const { file, name } = originOf(all, next);
    const module = all.modules.get(file);
    if (module === undefined) continue;
    if (all.fixed.has(file)) {
      if (kept.has(file)) continue;
      kept.add(file);
      const { aliases, body, imports, sources, stars } = module;
      pending.push(...imports.values(), ...aliases.values(), ...referredBy(module, body));
      for (const other of stars)
        pending.push(...namesIn(all, other).map((one) => ({ file: other, name: one })));
      // Modules that are imported for what they add to others.
      for (const other of sources) if (all.fixed.has(other)) pending.push({ file: other, name: '*' });
      continue;
    }
    for (const statement of module.declared.get(name) ?? []) {
      if (statements.has(statement)) continue;
      statements.add(statement);
      pending.push(...referredBy(module, [statement]));
    }
  }
  const parts = [...all.modules.values()].flatMap((module) => {
    const own = module.body.filter((one) => statements.has(one));
    return own.length === 0 ? [] : [partOf(all, module, own)];
  });
  return { kept, parts };
}

function partOf(all: Package, module: Module, statements: readonly Syntax[]): Part {
  const names = new Set([...lookedUpIn(statements), ...statements.flatMap(declaredBy)]);
  const imports = new Map<string, Name>();
  const scope = new Map<string, string>();
  for (const name of names) {
    const from = module.imports.get(name);
    if (from !== undefined && !module.declared.has(name)) imports.set(name, originOf(all, from));
    // What is not of the module is global, or a parameter of a type.
    const own = module.declared.has(name) ? { file: module.file, name } : imports.get(name);
    scope.set(name, `${own?.name ?? name} of ${own?.file ?? 'nobody'}`);
  }
  return { module, statements, imports, scope };
}

/** The text of a joined file. */
function together(all: Package, place: string, members: readonly Part[], places: Places): string {
  const lists = new Map<string, Set<string>>();
  for (const { imports } of members)
    for (const [local, { file, name }] of imports) {
      const target = places.get(file) ?? file;
      if (target === place && local === name) continue;
      const key = `${name === '*' ? `* as ${local}` : ''} from ${specifier(place, target)}`;
      lists.set(key, (lists.get(key) ?? new Set()).add(renamed(name, local)));
    }
  const imports = [...lists].map(([key, names]) =>
    key.startsWith('*') ? `import ${key};\n` : `import { ${[...names].join(', ')} }${key};\n`,
  );
  const texts = members.flatMap(({ module, statements }) =>
    statements.map(({ end, start }) => {
      const before = /(?:\/\*\*(?:(?!\*\/)[^])*\*\/\s*)*$/.exec(module.text.slice(0, start))!;
      return `${rewritten(all, module, places, place, [before.index, end])}\n`;
    }),
  );
  return `${imports.join('')}${texts.join('')}export {};\n`;
}

/** The text of a module that keeps its place. */
function redirected(all: Package, module: Module, places: Places): string {
  return rewritten(all, module, places, module.file, [0, module.text.length]);
}

/** What stands in a module from `start` to `end`, for the file `place`, with the places of other files as they are now. */
function rewritten(
  all: Package,
  module: Module,
  places: Places,
  place: string,
  [start, end]: readonly [number, number],
): string {
  const placeOf = (file: string): string => specifier(place, places.get(file) ?? file);
  const edits = module.body
    .filter((one) => fileNamedBy(module.file, one) !== undefined)
    .map((one) => ({ start: one.start, end: one.end, text: statementOf(all, module, one, placeOf) }));
  for (const one of importTypes(module.file, module.body)) {
    const { file, name } = originOf(all, one.name);
    if (name !== one.name.name)
      throw new Error(`${module.file}: ${one.name.name} has another name in ${file}`);
    edits.push({ start: one.start, end: one.end, text: placeOf(file) });
  }
  let [written, at] = ['', start];
  for (const edit of edits.toSorted((a, b) => a.start - b.start)) {
    if (edit.start < start || edit.end > end) continue;
    written += module.text.slice(at, edit.start) + edit.text;
    at = edit.end;
  }
  return written + module.text.slice(at, end);
}

/** An import or export from another file, as one from each of the files that have the names. */
function statementOf(
  all: Package,
  module: Module,
  statement: Syntax,
  placeOf: (file: string) => string,
): string {
  const file = fileNamedBy(module.file, statement)!;
  const as = nameOf(statement['exported']);
  const star = statement.type === 'ExportAllDeclaration';
  if (!all.modules.has(file) || (star && (as !== undefined || all.fixed.has(file))))
    return module.text.slice(statement.start, statement.end);
  const specifiers = (statement['specifiers'] ?? []) as readonly Syntax[];
  if (!star && specifiers.length === 0) return all.fixed.has(file) ? `import ${placeOf(file)};` : '';
  const kind = isType(statement) ? 'type' : '';
  const head = `${star || statement.type === 'ExportNamedDeclaration' ? 'export' : 'import'}${kind && ' type'}`;
  const lists = new Map<string, string[]>();
  const add = (key: string, text: string): void => void lists.set(key, [...(lists.get(key) ?? []), text]);
  if (star)
    for (const name of namesIn(all, file)) {
      const from = originOf(all, { file, name });
      add(placeOf(from.file), `${from.type === true ? 'type ' : ''}${renamed(from.name, name)}`);
    }
  for (const one of specifiers) {
    if (one.type === 'ImportNamespaceSpecifier')
      return `${head} * as ${nameOf(one['local'])!} from ${placeOf(file)};`;
    const [name, local] = namesOf(one);
    const from = originOf(all, { file, name });
    const type = kind !== 'type' && (from.type === true || isType(one));
    add(placeOf(from.file), `${type ? 'type ' : ''}${renamed(from.name, local)}`);
  }
  return [...lists].map(([from, names]) => `${head} { ${names.join(', ')} } from ${from};`).join('\n');
}

function typed(name: Name, type: boolean | undefined): Name {
  return type === true ? { ...name, type } : name;
}

/** Whether a statement or specifier says `type`. */
function isType({ exportKind, importKind }: Syntax): boolean {
  return exportKind === 'type' || importKind === 'type';
}

function renamed(name: string, local: string): string {
  return name === local ? name : `${name} as ${local}`;
}

/** What a specifier takes, and what it calls it. */
function namesOf(specifier: Syntax): readonly [name: string, local: string] {
  if (specifier.type === 'ExportSpecifier')
    return [nameOf(specifier['local'])!, nameOf(specifier['exported'])!];
  const local = nameOf(specifier['local'])!;
  if (specifier.type === 'ImportNamespaceSpecifier') return ['*', local];
  return [nameOf(specifier['imported']) ?? 'default', local];
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
  const imports = new Map<string, Name>();
  const declared = new Map<string, Syntax[]>();
  const aliases = new Map<string, Name>();
  const [stars, pins, sources]: string[][] = [[], [], []];
  let special = text.includes('/// <');
  for (const statement of body) {
    const names = declaredBy(statement);
    for (const name of names) declared.set(name, [...(declared.get(name) ?? []), statement]);
    if (names.length > 0) continue;
    const specifiers = (statement['specifiers'] ?? []) as readonly Syntax[];
    const from = fileNamedBy(file, statement);
    if (from?.startsWith('/') === true) sources!.push(from);
    if (statement.type === 'ExportAllDeclaration' && statement['exported'] === null) stars!.push(from!);
    else if (statement.type === 'ImportDeclaration')
      for (const one of specifiers) {
        const [name, local] = namesOf(one);
        imports.set(local, typed({ file: from!, name }, isType(statement) || isType(one)));
      }
    else if (statement.type === 'ExportNamedDeclaration' && statement['declaration'] === null)
      for (const one of specifiers) {
        const [name, exported] = namesOf(one);
        const other = from === undefined ? imports.get(name) : { file: from, name };
        // What it declares is exported under another name, or before its import.
        if (other === undefined) special = true;
        else aliases.set(exported, typed(other, isType(statement) || isType(one)));
      }
    else {
      special = true;
      const added = /^declare module '(\.[^']+)'/.exec(text.slice(statement.start));
      if (added !== null) pins!.push(fileOf(file, added[1]!));
      if (statement.type === 'ExportAllDeclaration') pins!.push(from!);
    }
  }
  for (const one of importTypes(file, body)) {
    sources!.push(one.name.file);
    if (one.name.name === '*') pins!.push(one.name.file);
  }
  pins!.push(...[...imports.values()].flatMap((one) => (one.name === '*' ? [one.file] : [])));
  const all = { imports, declared, aliases, stars: stars!, sources: sources!, pins: pins! };
  return { file, text, body, special, ...all };
}

/** Whether a statement exports what it declares. */
function isExport(statement: Syntax): boolean {
  return statement.type === 'ExportNamedDeclaration';
}

/** The names that a statement declares in the file's scope; of a pattern, and of what is added to other scopes, none. */
function declaredBy(statement: Syntax): readonly string[] {
  if (statement.type === 'ImportDeclaration') return [];
  const declaration = (statement['declaration'] ?? statement) as Syntax;
  if (declaration['global'] === true || (declaration['id'] as Syntax | undefined)?.type === 'Literal')
    return [];
  const named =
    declaration.type === 'VariableDeclaration'
      ? (declaration['declarations'] as readonly Syntax[])
      : [declaration];
  return named.flatMap((one) => nameOf(one['id']) ?? []);
}

function nameOf(syntax: unknown): string | undefined {
  const { name, type, value } = (syntax ?? {}) as { name?: string; type?: string; value?: string };
  return type === 'Identifier' ? name : value;
}

/** The file that an import or export names, or the package. */
function fileNamedBy(file: string, statement: Syntax): string | undefined {
  const source = statement['source'] as { readonly value: string } | null | undefined;
  return source === undefined || source === null ? undefined : fileOf(file, source.value);
}

/** The file that `specifier` means in `file`; that of a package is its name. */
function fileOf(file: string, specifier: string): string {
  if (!specifier.startsWith('.')) return specifier;
  return path.join(path.dirname(file), specifier.replace(/\.[jt]s$/, '.d.ts'));
}

/** Visits what stands in `syntax`, itself included. */
export function visit(syntax: unknown, see: (one: Syntax) => void): void {
  if (Array.isArray(syntax)) {
    for (const one of syntax) visit(one, see);
  } else if (typeof syntax === 'object' && syntax !== null) {
    if ('type' in syntax) see(syntax as Syntax);
    for (const one of Object.values(syntax)) visit(one, see);
  }
}

/** Types `import('./file').Name`, at what they have in quotes. */
function importTypes(file: string, body: readonly Syntax[]): Reference[] {
  const found: Reference[] = [];
  visit(body, (one) => {
    if (one.type !== 'TSImportType') return;
    const { end, start, value } = one['source'] as Syntax & { readonly value: string };
    if (!value.startsWith('.')) return;
    let first = one['qualifier'] as Syntax | null;
    while (first?.type === 'TSQualifiedName') first = first['left'] as Syntax;
    found.push({ start, end, name: { file: fileOf(file, value), name: nameOf(first) ?? '*' } });
  });
  return found;
}

/** What statements of a module refer to, in it and in others. */
function referredBy(module: Module, statements: readonly Syntax[]): Name[] {
  const names = [...lookedUpIn(statements), ...statements.flatMap(declaredBy)];
  return [
    ...importTypes(module.file, statements).map(({ name }) => name),
    ...names.flatMap((name) =>
      module.declared.has(name) ? [{ file: module.file, name }] : (module.imports.get(name) ?? []),
    ),
  ];
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
function lookedUpIn(statements: readonly Syntax[]): ReadonlySet<string> {
  const found = new Set<string>();
  visit(statements, (one) => {
    const name = nameOf(one[one['computed'] === true && 'key' in one ? 'key' : (lookups[one.type] ?? '')]);
    if (name !== undefined) found.add(name);
  });
  return found;
}
