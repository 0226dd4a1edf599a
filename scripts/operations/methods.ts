// The methods of tensors as a module, made of the signatures of the functions: `x.cumsum(axis)` for `cumsum(x, axis)`, with the types that
// the function gives when its first operand is the tensor.

import { relative, posix } from 'node:path';
import type { Declaration, Operation, OperationFile } from './declared.ts';

/** Types that the module of tensors knows. */
const everywhere = new Set([
  'Tensor',
  'Promise',
  'NoInfer',
  'Exclude',
  'Extract',
  'Omit',
  'Pick',
  'Readonly',
  'Record',
  'NonNullable',
]);

/** A node of a syntax tree, as far as this file looks into it. */
interface Syntax {
  readonly type: string;
  readonly start: number;
  readonly end: number;
}

/** A function as far as a signature goes. */
interface Signature {
  readonly generics: readonly { readonly name: string; readonly text: string; readonly syntax: Syntax }[];
  readonly parameters: readonly {
    readonly name: string;
    readonly isOptional: boolean;
    readonly isRest: boolean;
    readonly type: string;
    readonly syntax: Syntax | undefined;
  }[];
  readonly result: string;
  readonly resultSyntax: Syntax;
  /** Names that are parameters of the type that it is declared with. */
  readonly known: ReadonlySet<string>;
  /** The file that its types are named in. */
  readonly file: OperationFile;
}

const text = (file: OperationFile, { start, end }: Syntax): string => file.text.slice(start, end);

const field = (node: unknown, name: string): unknown => (node as Readonly<Record<string, unknown>>)[name];

/** The type that a default value without a type has. */
function typeOfDefault(value: Syntax, where: string): string {
  const literal = field(value, 'value');
  if (value.type === 'Literal' && ['number', 'boolean', 'string'].includes(typeof literal))
    return typeof literal;
  if (value.type === 'UnaryExpression') return 'number';
  throw new Error(`${where}: a parameter with a default needs a type`);
}

/** `words` are what the parameters of a type of functions stand for. */
function signatureOf(
  node: Syntax,
  file: OperationFile,
  where: string,
  words: ReadonlyMap<string, string> = new Map(),
): Signature {
  const generics = ((field(field(node, 'typeParameters') ?? {}, 'params') ?? []) as readonly Syntax[]).map(
    (syntax) => ({
      name: field(field(syntax, 'name'), 'name') as string,
      text: text(file, syntax),
      syntax,
    }),
  );
  const given = (field(node, 'params') ?? field(node, 'parameters')) as readonly Syntax[];
  const parameters = given.map((syntax) => {
    const isRest = syntax.type === 'RestElement';
    const isDefault = syntax.type === 'AssignmentPattern';
    const inner = (isRest ? field(syntax, 'argument') : isDefault ? field(syntax, 'left') : syntax) as Syntax;
    const annotation = (field(inner, 'typeAnnotation') ?? field(syntax, 'typeAnnotation')) as Syntax | null;
    const type = annotation === null ? undefined : (field(annotation, 'typeAnnotation') as Syntax);
    const name = field(inner, 'name');
    if (typeof name !== 'string') throw new Error(`${where}: parameters of methods need names`);
    return {
      name,
      isRest,
      isOptional: isDefault || field(inner, 'optional') === true,
      type:
        type === undefined
          ? typeOfDefault(field(syntax, 'right') as Syntax, where)
          : replaced(text(file, type), words),
      syntax: type,
    };
  });
  const result = field(node, 'returnType') as Syntax | null;
  if (result === null) throw new Error(`${where}: a method needs a type of its result`);
  const resultSyntax = field(result, 'typeAnnotation') as Syntax;
  const known = new Set(words.keys());
  return {
    generics,
    parameters,
    result: replaced(text(file, resultSyntax), words),
    resultSyntax,
    file,
    known,
  };
}

/** Where a type is declared, and its name there. */
interface Origin {
  readonly path: string;
  readonly name: string;
}

/** Where a type that a file names comes from; throws where it is neither exported nor imported there. */
function originOf(file: OperationFile, name: string): Origin {
  for (const statement of file.body) {
    if (statement.type !== 'ImportDeclaration') continue;
    for (const specifier of statement.specifiers) {
      if (specifier.type !== 'ImportSpecifier' || specifier.local.name !== name) continue;
      const { imported } = specifier;
      const own = imported.type === 'Identifier' ? imported.name : imported.value;
      return { path: posix.join(posix.dirname(file.path), statement.source.value), name: own };
    }
  }
  if (file.operations.some(({ own }) => own === name)) return { path: file.path, name };
  throw new Error(`${file.path}: the type ${name} of a method must be exported`);
}

/** The names of types in a piece of syntax. */
function namesIn(node: unknown, found: Set<string> = new Set()): Set<string> {
  if (Array.isArray(node)) for (const each of node) namesIn(each, found);
  else if (typeof node === 'object' && node !== null) {
    if (field(node, 'type') === 'TSTypeReference') {
      const name: unknown = field(field(node, 'typeName'), 'name');
      if (typeof name === 'string') found.add(name);
    }
    for (const each of Object.values(node)) namesIn(each, found);
  }
  return found;
}

/** A type of functions, and the names of its own parameters. */
interface Alias {
  readonly type: Syntax;
  readonly names: readonly string[];
}

/** The type of functions that a file declares under a name. */
function aliasIn(file: OperationFile, name: string): Alias | undefined {
  for (const statement of file.body) {
    const declared = statement.type === 'ExportNamedDeclaration' ? statement.declaration : statement;
    if (declared?.type !== 'TSTypeAliasDeclaration' || declared.id.name !== name) continue;
    const { typeAnnotation, typeParameters } = declared;
    const names = typeParameters?.params.map((each) => each.name.name) ?? [];
    return typeAnnotation.type === 'TSFunctionType' ? { type: typeAnnotation, names } : undefined;
  }
  return undefined;
}

/** The signatures of an operation: its own, or those of the type that it is declared with. */
function signaturesOf(operation: Operation, files: ReadonlyMap<string, OperationFile>): Signature[] {
  const file = files.get(operation.path)!;
  const where = `${operation.path}: ${operation.own}`;
  const ways = operation.declarations.filter(({ type }) => type === 'TSDeclareFunction');
  const declarations: readonly Declaration[] = ways.length > 0 ? ways : operation.declarations;
  return declarations.map((declaration) => {
    if (declaration.type !== 'VariableDeclaration') return signatureOf(declaration, file, where);
    const annotation = declaration.declarations[0]!.id.typeAnnotation?.typeAnnotation;
    if (annotation?.type === 'TSFunctionType') return signatureOf(annotation, file, where);
    const name = annotation?.type === 'TSTypeReference' && field(annotation.typeName, 'name');
    if (typeof name !== 'string') throw new Error(`${where}: a method needs a type that can be read`);
    const home = aliasIn(file, name) === undefined ? files.get(originOf(file, name).path) : file;
    const alias = home && aliasIn(home, name);
    if (home === undefined || alias === undefined)
      throw new Error(`${where}: ${name} is no type of functions`);
    const given =
      (annotation as { typeArguments?: { params: readonly Syntax[] } | null }).typeArguments?.params ?? [];
    const words = new Map(alias.names.map((each, i) => [each, text(file, given[i]!)]));
    return signatureOf(alias.type, home, where, words);
  });
}

/** A text with words replaced. */
function replaced(code: string, words: ReadonlyMap<string, string>): string {
  return code.replaceAll(/\b[A-Za-z_]\w*\b/g, (word) => words.get(word) ?? word);
}

/** The signature as that of a method: the first operand is the tensor, of dtype `D`. */
function methodType(
  signature: Signature,
  where: string,
): { readonly text: string; readonly names: ReadonlySet<string> } {
  const [first, ...rest] = signature.parameters;
  if (first === undefined) throw new Error(`${where}: a method needs an operand`);
  const words = new Map<string, string>();
  let generics = signature.generics;
  const own = /^Tensor<(\w+)>$/.exec(first.type)?.[1] ?? first.type;
  if (generics.some(({ name }) => name === own)) {
    generics = generics.filter(({ name }) => name !== own);
    words.set(own, own === first.type ? 'Tensor<D>' : 'D');
  } else if (first.type !== 'Tensor' && first.type !== 'TensorLike')
    throw new Error(`${where}: the first operand of a method is a tensor, not ${first.type}`);
  if (generics.some(({ name }) => name === 'D')) throw new Error(`${where}: D is the dtype of the tensor`);
  const parameters = rest.map(
    ({ name, isOptional, isRest, type }) => `${isRest ? '...' : ''}${name}${isOptional ? '?' : ''}: ${type}`,
  );
  const head = generics.length === 0 ? '' : `<${generics.map((each) => each.text).join(', ')}>`;
  const names = namesIn([
    ...rest.map(({ syntax }) => syntax),
    ...generics.map(({ syntax }) => syntax),
    signature.resultSyntax,
  ]);
  for (const name of [...signature.known, ...signature.generics.map((each) => each.name)]) names.delete(name);
  return { text: replaced(`${head}(${parameters.join(', ')}): ${signature.result}`, words), names };
}

/** The module of methods for a file in `folder`. */
export function methodsOf(all: readonly OperationFile[], folder: string): string {
  const files = new Map(all.map((file) => [file.path, file]));
  const values = new Map<string, string[]>();
  const types = new Map<string, Origin>([
    ['DType', { path: 'src/ir/dtype.ts', name: 'DType' }],
    ['Unknown', { path: 'src/tensor/inferred.ts', name: 'Unknown' }],
  ]);
  const members: (readonly [name: string, text: string])[] = [];
  const [methods, getters]: [string[], string[]] = [[], []];
  for (const operation of all.flatMap((file) => file.operations)) {
    const name = operation.method ?? operation.getter;
    if (name === undefined) continue;
    const where = `${operation.path}: ${operation.own}`;
    const lines = [`/**`, ...operation.meaning.split('\n').map((line) => ` * ${line}`.trimEnd()), ' */'];
    const comment = lines.length === 3 ? `/** ${operation.meaning} */` : lines.join('\n');
    const texts = signaturesOf(operation, files).map((signature) => {
      const { text: type, names } = methodType(signature, where);
      for (const each of names) {
        if (everywhere.has(each)) continue;
        const origin = originOf(signature.file, each);
        const other = types.get(each);
        if (other !== undefined && (other.path !== origin.path || other.name !== origin.name))
          throw new Error(
            `${where}: two types of methods are called ${each}, in ${other.path} and ${origin.path}`,
          );
        types.set(each, origin);
      }
      return operation.getter === undefined
        ? `${name}${type};`
        : `readonly ${name}: ${type.replace(/^\(\): /, '')};`;
    });
    members.push([name, [comment, ...texts].join('\n')]);
    const item = operation.own === name ? name : `${name}: ${operation.own}`;
    (operation.getter === undefined ? methods : getters).push(item);
    values.set(operation.path, [...(values.get(operation.path) ?? []), operation.own]);
  }
  const from = (path: string): string => relative(folder, path);
  const typesFrom = new Map<string, string[]>();
  for (const [name, { path, name: own }] of types)
    typesFrom.set(path, [...(typesFrom.get(path) ?? []), own === name ? name : `${own} as ${name}`]);
  const imports = [
    ...[...typesFrom].map(
      ([path, names]) => `import type { ${names.toSorted().join(', ')} } from '${from(path)}';`,
    ),
    ...[...values].map(([path, names]) => `import { ${names.toSorted().join(', ')} } from '${from(path)}';`),
  ];
  const order = (a: readonly [string, string], b: readonly [string, string]): number =>
    a[0] < b[0] ? -1 : 1;
  return `// The methods of tensors: the everyday operations, called on their first operand, \`x.add(y)\` for \`add(x, y)\`.
// Made by \`npm run operations\` of the comments and signatures in src/tensor/ops.

${imports.join('\n')}
import { installMethods } from '../tensor/install.ts';

declare module '../tensor/tensor.ts' {
  interface Tensor<out D extends DType = Unknown> {
${members
  .toSorted(order)
  .map(([, member]) => member)
  .join('\n')}
  }
}

installMethods({ ${methods.toSorted().join(', ')} }, { ${getters.toSorted().join(', ')} });
`;
}
