// IR text to a graph: the inverse of `print`. The grammar gives a syntax tree per line; this file
// resolves names, checks attributes and types, and names line and column in its errors.

import { TensorError } from '../../errors.ts';
import { attrProblem } from '../attrs.ts';
import { regionOf } from './region.ts';
import { Region } from '../region.ts';
import { integerRange, isComplex, isDType, isFloat, type DType } from '../dtype.ts';
import { GraphBuilder, type Graph, type Node, type NodeOf } from '../graph.ts';
import { showType } from '../infer.ts';
import { facts, isOp, type Attrs, type Op } from '../ops.ts';
import { firstColumn, listed, Notation, read, readNumber, word, type Word } from './notation.ts';
import { inType } from './print.ts';
import { sameShape, type Dim, type Shape } from '../shape.ts';
import { transforms } from '../fft/types.ts';
import { meshRules } from '../typing/collective.ts';
import { factors } from '../typing/factor.ts';
import { factorTypes, meshTypes, transformTypes } from '../typing/slots.ts';

factorTypes.fill(factors);
meshTypes.fill(meshRules);
transformTypes.fill(transforms);

// The grammar of IR text, in the notation of ohm-js (parsing expression grammars). The text is a
// sequence of lines and each line is matched on its own, by `Header`, then `Statement`s, then
// `Close`: a packrat parser keeps a table per character, so a line at a time keeps memory flat for
// graphs of any size. Character ranges are spelled out, because built-in rules such as `letter`
// would be memoised.

const irGrammar: string = String.raw`
  SinterGraph {
    Header    = "graph" "{"
    Statement = Open | Return | Node
    Close     = "}"

    Open       = region "=" "body" "{"
    Return     = "return" (ref ("," ref)*)?
    Node       = ref "=" name Inputs? Attributes? ":" Type
    Inputs     = "(" (ref ("," ref)*)? ")"
    Attributes = "{" (Attribute ("," Attribute)*)? "}"
    Attribute  = name ":" Value
    Type       = name "[" (Dim ("," Dim)*)? "]"
    Dim        = dimName ":" size ".." size  -- symbolic
               | size                        -- fixed

    Value (a value) = List | region | bigint | number | string | flag
    List  = "[" (Value ("," Value)*)? "]"

    ref    (a node such as %0)  = "%" "0".."9"+
    region (a body such as @0)  = "@" "0".."9"+
    name   (a name)             = first rest*
    dimName                     = name | string
    size   (a size)             = "0".."9"+
    bigint (an integer)         = "-"? "0".."9"+ "n"
    number (a number)           = "nan" | signed
    signed                      = "-"? magnitude
    magnitude                   = "inf" | digits
    digits                      = "0".."9"+ ("." "0".."9"+)? exponent?
    exponent                    = ("e" | "E") ("+" | "-")? "0".."9"+
    string (a string)           = "\"" character* "\""
    character                   = escape | " ".."!" | "#".."[" | "]".."\u{10FFFF}"
    escape                      = "\\" ("\"" | "\\" | "b" | "f" | "n" | "r" | "t" | code)
    code                        = "u" hexDigit hexDigit hexDigit hexDigit
    flag   (true or false)      = ("true" | "false") ~rest
    first                       = "a".."z" | "A".."Z" | "_"
    rest                        = first | "0".."9"

    space := " " | "\t" | "\r" | comment
    comment = "//" any*
  }
`;

interface AttributeTree {
  readonly name: Word;
  readonly value: unknown;
}

interface NodeTree {
  readonly kind: 'node';
  readonly name: Word;
  readonly op: Word;
  readonly inputs: readonly Word[];
  readonly attributes: readonly AttributeTree[];
  readonly dtype: Word;
  readonly shape: Shape;
}

interface OpenTree {
  readonly kind: 'open';
  readonly name: Word;
}

/** A region that an attribute names. */
class RegionName {
  readonly word: Word;

  constructor(name: Word) {
    this.word = name;
  }
}

interface ReturnTree {
  readonly kind: 'return';
  readonly outputs: readonly Word[];
}

/**
 * The graph that IR text describes. Throws ParseError (E_PARSE) with the line and column of the
 * first mistake.
 */
export function parse(text: string): Graph {
  const reader = new GraphReader();
  const lines = text.split('\n');
  lines.forEach((line, index) => {
    if (!/^\s*(\/\/.*)?$/.test(line)) reader.readLine(line, index + 1);
  });
  return reader.finish(lines.length);
}

function fail(line: number, column: number, problem: string): never {
  return notation.fail(line, column, problem);
}

class GraphReader {
  #expects: 'Header' | 'Statement' | 'Close' | 'end';
  readonly #nodes = new Map<string, Node>();
  readonly #parameters: { readonly node: NodeOf<'parameter'>; readonly line: number }[] = [];
  #outputs: readonly Node[] = [];
  readonly #regions = new Map<string, Region>();
  /** The region whose lines are being read. */
  #inner: { readonly name: string; readonly reader: GraphReader } | undefined = undefined;

  constructor(expects: 'Header' | 'Statement' = 'Header') {
    this.#expects = expects;
  }

  get isComplete(): boolean {
    return this.#expects === 'end';
  }

  readLine(line: string, number: number): void {
    if (this.#inner !== undefined) {
      const { name, reader } = this.#inner;
      reader.readLine(line, number);
      if (!reader.isComplete) return;
      this.#regions.set(name, regionOf(reader.finish(number)));
      this.#inner = undefined;
      return;
    }
    if (this.#expects === 'end') fail(number, firstColumn(line), 'expected nothing after the graph');
    const tree = notation.readLine(line, number, this.#expects);
    if (this.#expects === 'Header') this.#expects = 'Statement';
    else if (this.#expects === 'Close') this.#expects = 'end';
    else this.#state(tree as OpenTree | NodeTree | ReturnTree, number);
  }

  #state(tree: OpenTree | NodeTree | ReturnTree, number: number): void {
    if (tree.kind === 'node') this.#define(tree, number);
    else if (tree.kind === 'open') {
      const { text, column } = tree.name;
      if (this.#regions.has(text)) fail(number, column, `${text} is defined twice`);
      this.#inner = { name: text, reader: new GraphReader('Statement') };
    } else {
      this.#outputs = tree.outputs.map((output) => this.#find(output, number));
      this.#expects = 'Close';
    }
  }

  finish(lastLine: number): Graph {
    if (this.#expects !== 'end') {
      if (this.#inner !== undefined) this.#inner.reader.finish(lastLine);
      const missing = { Header: '"graph {"', Statement: 'a node or "return"', Close: '"}"' }[this.#expects];
      fail(lastLine, 1, `expected ${missing}, but the text ends`);
    }
    const sorted = this.#parameters.toSorted((a, b) => a.node.attrs.index - b.node.attrs.index);
    sorted.forEach(({ node, line }, index) => {
      if (node.attrs.index !== index) {
        fail(line, 1, `parameters must count 0, 1, 2…: index ${node.attrs.index} stands where ${index} must`);
      }
    });
    return { parameters: sorted.map(({ node }) => node), outputs: this.#outputs };
  }

  #find(name: Word, line: number): Node {
    return this.#nodes.get(name.text) ?? fail(line, name.column, `${name.text} is not defined above`);
  }

  /** Names of regions give way to the regions. */
  #withRegions(tree: NodeTree, line: number): NodeTree {
    const attributes = tree.attributes.map((attribute) => {
      if (!(attribute.value instanceof RegionName)) return attribute;
      const { text, column } = attribute.value.word;
      const value = this.#regions.get(text) ?? fail(line, column, `${text} is not defined above`);
      return { ...attribute, value };
    });
    return { ...tree, attributes };
  }

  #define(tree: NodeTree, line: number): void {
    const { name, op, dtype, shape } = tree;
    if (this.#nodes.has(name.text)) fail(line, name.column, `${name.text} is defined twice`);
    if (!isOp(op.text)) fail(line, op.column, `${op.text} is no operation`);
    const inputs = tree.inputs.map((input) => this.#find(input, line));
    if (!isDType(dtype.text)) fail(line, dtype.column, `${dtype.text} is no dtype`);
    const attrs = readAttrs(this.#withRegions(tree, line), op.text, dtype.text, line);
    const node = addNode(op.text, inputs, attrs, line, op.column);
    if (node.dtype !== dtype.text || !sameShape(node.shape, shape)) {
      const stated = showType({ dtype: dtype.text, shape });
      fail(line, dtype.column, `${name.text} has type ${showType(node)}, not ${stated}`);
    }
    this.#nodes.set(name.text, node);
    if (node.op === 'parameter') this.#parameters.push({ node, line });
  }
}

function readAttrs(tree: NodeTree, op: Op, dtype: DType, line: number): Attrs {
  const attrs: Record<string, unknown> = {};
  for (const { name, value } of tree.attributes) {
    if (Object.hasOwn(attrs, name.text)) fail(line, name.column, `attribute ${name.text} is given twice`);
    if (inType(name.text)) fail(line, name.column, `${name.text} belongs in the type, after the colon`);
    attrs[name.text] = value;
  }
  // In the table's order whatever the text's: attributes are compared and hashed in order.
  const ordered: Record<string, unknown> = {};
  for (const name of facts(op).attrs) {
    if (inType(name)) ordered[name] = name === 'dtype' ? dtype : tree.shape;
    else if (Object.hasOwn(attrs, name)) ordered[name] = attrs[name];
  }
  const wrong = attrProblem(op, { ...attrs, ...ordered });
  if (wrong !== undefined) {
    const at = tree.attributes.find(({ name }) => name.text === wrong.name)?.name ?? tree.op;
    fail(line, at.column, wrong.problem);
  }
  if (op === 'constant' && !holds(dtype, ordered['value'] as number | bigint)) {
    const at = tree.attributes.find(({ name }) => name.text === 'value')!.name;
    fail(line, at.column, `${dtype} does not hold ${String(ordered['value'])}`);
  }
  return ordered;
}

/** Whether a constant of a dtype may have this value: integers are exact and within the range. */
function holds(dtype: DType, value: number | bigint): boolean {
  if (isFloat(dtype) || isComplex(dtype)) return true;
  if (typeof value === 'number' && !Number.isSafeInteger(value)) return false;
  const [least, most] = integerRange(dtype);
  return value >= least && value <= most;
}

/** Each node gets a builder of its own, so that equal nodes with different names are not merged. */
function addNode(op: Op, inputs: readonly Node[], attrs: Attrs, line: number, column: number): Node {
  const add = GraphBuilder.prototype.add as (op: Op, inputs: readonly Node[], attrs: Attrs) => Node;
  try {
    return add.call(new GraphBuilder(), op, inputs, attrs);
  } catch (error) {
    if (!(error instanceof TensorError)) throw error;
    // The first line only: the rest names a place in the program, and this mistake is in the text.
    return fail(line, column, error.message.split('\n')[0]!);
  }
}

const notation = new Notation('IR text', irGrammar, {
  Header: (_graph, _open) => undefined,
  Close: (_close) => undefined,
  Statement: (statement) => read(statement),
  Open: (name, _equals, _body, _open): OpenTree => ({ kind: 'open', name: word(name) }),
  region(_at, _digits) {
    return new RegionName(word(this));
  },
  Return: (_return, first, _commas, rest): ReturnTree => ({
    kind: 'return',
    outputs: listed(first, rest, word),
  }),
  Node: (name, _equals, op, inputs, attributes, _colon, type): NodeTree => ({
    kind: 'node',
    name: word(name),
    op: word(op),
    inputs: inputs.children.flatMap((list) => read<Word[]>(list)),
    attributes: attributes.children.flatMap((list) => read<AttributeTree[]>(list)),
    ...read<{ dtype: Word; shape: Dim[] }>(type),
  }),
  Inputs: (_open, first, _commas, rest, _close) => listed(first, rest, word),
  Attributes: (_open, first, _commas, rest, _close) => listed(first, rest, read),
  Attribute: (name, _colon, value): AttributeTree => ({ name: word(name), value: read(value) }),
  Type: (dtype, _open, first, _commas, rest, _close) => ({
    dtype: word(dtype),
    shape: listed(first, rest, read<Dim>),
  }),
  Dim_symbolic: (name, _colon, min, _dots, max): Dim => ({
    name: read(name),
    min: Number(min.sourceString),
    max: Number(max.sourceString),
  }),
  Dim_fixed: (size): Dim => Number(size.sourceString),
  dimName: (name) => (name.ctorName === 'string' ? read(name) : name.sourceString),
  Value: (value) => read(value),
  List: (_open, first, _commas, rest, _close) => listed(first, rest, read),
  bigint: (sign, digits, _n) => BigInt(sign.sourceString + digits.sourceString),
  number: (number) => readNumber(number.sourceString),
  string(_open, _characters, _close) {
    return JSON.parse(this.sourceString) as string;
  },
  flag: (flag) => flag.sourceString === 'true',
});
