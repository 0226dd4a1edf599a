// A class for Swift over a library of C: results by value, codes as errors. Swift imports C by a module map. It imports neither
// structures that begin at multiples of 64 bytes, nor arrays of more than 4,096 elements, nor macros with arguments: a header
// beside that of C has functions for what these say.

import type { ElementType } from '../../../runtime/program.ts';
import { codesThatSay, errorsOf, inputText, openLines, tensorText } from '../header.ts';
import { alignment } from '../memory.ts';
import type { CFunction, CInput, CModel, CTensor } from '../model.ts';
import { macro, memberNames, remark, type MemberNames } from '../names.ts';
import { derivedLine, libraryNames, rangeText, type COpenSizes, type CSize } from '../sizes.ts';

const swiftTypes: Readonly<Record<ElementType, string>> = {
  bool: 'UInt8',
  i8: 'Int8',
  u8: 'UInt8',
  i16: 'Int16',
  u16: 'UInt16',
  i32: 'Int32',
  u32: 'UInt32',
  i64: 'Int64',
  u64: 'UInt64',
  f16: 'UInt16',
  bf16: 'UInt16',
  f32: 'Float',
  f64: 'Double',
};

/** Keywords of Swift. Names of C's parameters are none of C's own, but functions may be called by any of these. */
const keywords: ReadonlySet<string> = new Set(
  (
    'Any Protocol Self Type as associatedtype await break case catch class continue default defer deinit do else enum extension ' +
    'fallthrough false fileprivate for func guard if import in init inout internal is let nil operator precedencegroup private ' +
    'protocol public repeat rethrows return self static struct subscript super switch throw throws true try typealias var where while'
  ).split(' '),
);

const spelled = (name: string): string => (keywords.has(name) ? `\`${name}\`` : name);

/** A name as the label of an argument that is given, and as a parameter: few keywords are any there. */
const label = (name: string): string => (name === 'inout' ? '`inout`' : name);
const parameter = (name: string): string => (name === 'var' ? '`var`' : label(name));

/** Members of the class that functions of the model must not be named as. */
const ownMembers: ReadonlySet<string> = new Set([
  'context',
  'weights',
  'state',
  'load',
  'seed',
  'start',
  'stop',
  'room',
  'check',
  'expect',
]);

/** Names of Swift that the class calls. */
const called: ReadonlySet<string> = new Set([
  ...'Swift Error CustomStringConvertible String OpaquePointer Int'.split(' '),
  ...'UnsafeRawPointer UnsafeMutableRawPointer UnsafeRawBufferPointer UnsafeMutableRawBufferPointer'.split(
    ' ',
  ),
  ...Object.values(swiftTypes),
]);

/** What the class is called: `MobileNet` for mobile_net; `MnistModel` for Mnist, which is a type of C, and `StringModel` for string. */
function className(prefix: string): string {
  const name = prefix
    .split('_')
    .map((part) => part.slice(0, 1).toUpperCase() + part.slice(1))
    .join('');
  return name === prefix || called.has(name) || keywords.has(name) ? `${name}Model` : name;
}

const moduleName = (prefix: string): string => `${prefix}_c`;

/** What a function of the header for Swift is called: two underscores keep it apart from those of the model. */
const helper = (prefix: string, own: string): string => `${prefix}__swift_${own}`;

/** The function that says how many elements a tensor has whose sizes the call gives. */
function counter({ word }: CFunction, tensor: CTensor, prefix: string): string {
  return helper(prefix, `${word}__${tensor.name}`);
}

/** `module.modulemap`. */
export function moduleMapText({ prefix, producer, title }: CModel): string {
  return `// Made by ${producer}: ${remark(title)} as a module for Swift.
module ${moduleName(prefix)} {
  header "${prefix}_swift.h"
  link "${prefix}"
  export *
}
`;
}

/** `model_swift.h`. */
export function swiftHeaderText(model: CModel, embed: boolean): string {
  const { prefix, producer, title, functions, threads } = model;
  const guard = macro(prefix, 'SWIFT_H');
  const takesFormulas = functions.some(({ open }) => (open?.derived.length ?? 0) > 0);
  const line = (result: string, own: string, parameters: string, body: string): string =>
    `static inline ${result}${helper(prefix, own)}(${parameters}) { return ${body}; }\n`;
  const counters = functions.flatMap((one) =>
    tensorsOf(one)
      .filter(({ count }) => typeof count === 'string')
      .map((tensor) => counterText(one, tensor, one.open!, prefix)),
  );
  return `/* Made by ${producer}: ${remark(title)}, what Swift does not import from ${prefix}.h. */
#ifndef ${guard}
#define ${guard}

${takesFormulas ? '#include <math.h>\n' : ''}#include "${prefix}.h"

${line('size_t ', 'bytes', 'void', `sizeof(${prefix})`)}${line('const char *', 'what', `const ${prefix} *ctx`, 'ctx->what')}${
    embed ? line('const void *', 'weights', 'void', `${prefix}_weights`) : ''
  }${threads === undefined ? '' : line('size_t ', 'threads_bytes', 'int threads', `${macro(prefix, 'THREADS_BYTES')}(threads)`)}
${counters.join('\n')}
#endif
`;
}

function counterText(one: CFunction, tensor: CTensor, open: COpenSizes, prefix: string): string {
  const { given, derived } = open;
  const lines = [
    ...given.map(({ name }) => `(void)${name};`),
    ...derived.flatMap((size) => [derivedLine(size, open, libraryNames()), `(void)${size.name};`]),
    `return ${tensor.count};`,
  ];
  return `static inline size_t ${counter(one, tensor, prefix)}(${given.map(({ name }) => `int64_t ${name}`).join(', ')})
{
${lines.map((text) => `  ${text}\n`).join('')}}
`;
}

const tensorsOf = ({ inputs, outputs }: CFunction): CTensor[] => [
  ...inputs.filter((input): input is Extract<CInput, { kind: 'tensor' }> => input.kind === 'tensor'),
  ...outputs,
];

/** `model.swift`. */
export function swiftText(model: CModel, weightsBytes: number, embed: boolean): string {
  const { prefix, producer, title, functions, memory, threads } = model;
  const name = className(prefix);
  const names = methodNames(model, name);
  const saying = codesThatSay(model).map((code) => codeOf(model, code));
  return `// Made by ${producer}: ${remark(title)} for Swift 5.5 and newer. README.md shows how to use it.
//   swiftc -I . -L . main.swift ${prefix}.swift -lm${threads === undefined ? '' : ' -lpthread'}

import ${moduleName(prefix)}

/// What a call throws that fails.
public struct ${name}Error: Error, CustomStringConvertible {
    /// One of those that \`${prefix}.h\` lists.
    public let code: Int32
    public let description: String
}

/// The bytes of weights, which several models may share.
public final class ${name}Weights {
    fileprivate let first: UnsafeRawPointer
    fileprivate let count: Int
    private let room: UnsafeMutableRawPointer?

    /// The bytes of \`${prefix}.bin\`, ${weightsBytes} of them.
    public init(_ bytes: [UInt8]) {
        let room = UnsafeMutableRawPointer.allocate(byteCount: max(1, bytes.count), alignment: ${alignment})
        bytes.withUnsafeBytes { room.copyMemory(from: $0.baseAddress ?? UnsafeRawPointer(room), byteCount: bytes.count) }
        (self.room, first, count) = (room, UnsafeRawPointer(room), bytes.count)
    }
${embed ? embeddedText(model, weightsBytes) : ''}
    deinit { room?.deallocate() }
}

/// One model at work. Each thread may use one of its own.
public final class ${name} {
    private let context: OpaquePointer
    private let weights: ${name}Weights
${threads === undefined ? '' : '    private var room: UnsafeMutableRawPointer?\n'}
    public init(_ weights: ${name}Weights${embed ? ' = .built' : ''}) throws {
        let bytes = ${helper(prefix, 'bytes')}()
        let memory = UnsafeMutableRawPointer.allocate(byteCount: bytes, alignment: ${alignment})
        memory.initializeMemory(as: UInt8.self, repeating: 0, count: bytes)
        (context, self.weights) = (OpaquePointer(memory), weights)
        try check(${prefix}_init(context, weights.first, weights.count))
    }

    deinit {
${threads === undefined ? '' : `        _ = ${prefix}_stop(context)\n        room?.deallocate()\n`}        UnsafeMutableRawPointer(context).deallocate()
    }

    /// What calls have learned and the sequence of random numbers: ${memory.bytes.state} bytes, for \`load\`.
    public var state: [UInt8] {
        [UInt8](UnsafeRawBufferPointer(start: ${prefix}_state(context), count: ${memory.bytes.state}))
    }

    /// Goes on from a state that was kept.
    public func load(state bytes: [UInt8]) throws {
        try expect(bytes.count, ${memory.bytes.state}, "state")
        bytes.withUnsafeBytes { UnsafeMutableRawBufferPointer(start: ${prefix}_state(context), count: $0.count).copyMemory(from: $0) }
    }

    /// Sets the seed of random numbers, and begins their sequence.
    public func seed(_ seed: UInt64) throws { try check(${prefix}_seed(context, seed)) }

${threads === undefined ? '' : threadsText(model, name, threads)}${functions.map((one, i) => methodText(one, names[i]!, model, name)).join('\n')}
    private func check(_ code: Int32) throws {
        if code == 0 { return }
        if [${saying.join(', ')}].contains(code), let what = ${helper(prefix, 'what')}(context) {
            throw ${name}Error(code: code, description: String(cString: what))
        }
        throw ${name}Error(code: code, description: String(cString: ${prefix}_error(code)))
    }

    private func expect(_ count: Int, _ expected: Int, _ what: String) throws {
        if count == expected { return }
        throw ${name}Error(code: ${codeOf(model, 'E_SIZE')}, description: "\\(what): expected \\(expected) elements, got \\(count)")
    }
}
`;
}

function codeOf(model: CModel, name: string): number {
  return errorsOf(model).find(([code]) => code === name)![1];
}

function embeddedText({ prefix }: CModel, bytes: number): string {
  return `
    /// Those that the library has.
    public static var built: Self { Self(first: ${helper(prefix, 'weights')}(), count: ${bytes}) }

    private init(first: UnsafeRawPointer, count: Int) { (room, self.first, self.count) = (nil, first, count) }
`;
}

function threadsText(model: CModel, name: string, most: number): string {
  const { prefix } = model;
  return `    /// Lets so many threads, the one that calls among them, share the work of each call.
    public func start(threads: Int) throws {
        try stop()
        guard (1...${most}).contains(threads) else {
            throw ${name}Error(code: ${codeOf(model, 'E_THREADS')}, description: "threads: expected 1 to ${most}, got \\(threads)")
        }
        let bytes = ${helper(prefix, 'threads_bytes')}(Int32(threads))
        let memory = UnsafeMutableRawPointer.allocate(byteCount: bytes, alignment: ${alignment})
        room = memory
        try check(${prefix}_start(context, Int32(threads), memory, bytes))
    }

    /// Ends the threads.
    public func stop() throws {
        try check(${prefix}_stop(context))
        room?.deallocate()
        room = nil
    }

`;
}

/** A string of Swift. */
function quoted(text: string): string {
  const letters = Array.from(text, (letter) =>
    /[\p{Cc}\u2028\u2029"\\]/u.test(letter) ? `\\u{${letter.codePointAt(0)!.toString(16)}}` : letter,
  );
  return `"${letters.join('')}"`;
}

/** The lines that refuse a size which the model was not built for. */
function refusal(one: CFunction, size: CSize, model: CModel, name: string): string {
  const { min, max, multipleOf, title } = size;
  const rest = multipleOf === 1 ? '' : `, ${spelled(size.name)} % ${multipleOf} == 0`;
  const what = quoted(`${one.title}: ${title}: expected ${rangeText(size)}`);
  return `        guard (${min}...${max}).contains(${spelled(size.name)})${rest} else {
            throw ${name}Error(code: ${codeOf(model, 'E_SHAPE')}, description: ${what})
        }
`;
}

/** Of all functions: a method hides functions of C and types of the same name from the others. */
function methodNames({ prefix, functions }: CModel, name: string): MemberNames[] {
  const ofC = ['init', 'error', 'state', 'seed', 'start', 'stop'].map((own) => `${prefix}_${own}`);
  return memberNames(
    functions.map(({ word }) => word),
    new Set([
      ...ownMembers,
      ...called,
      name,
      `${name}Weights`,
      `${name}Error`,
      ...ofC,
      ...functions.map((one) => one.name),
    ]),
    (method) => `${method.slice(0, 1).toUpperCase()}${method.slice(1)}Results`,
  );
}

function methodText(
  one: CFunction,
  { method: own, results }: MemberNames,
  model: CModel,
  name: string,
): string {
  const { inputs, outputs, open } = one;
  const { prefix } = model;
  const given = open?.given ?? [];
  const count = (tensor: CTensor): string =>
    typeof tensor.count === 'number'
      ? String(tensor.count)
      : `${counter(one, tensor, prefix)}(${given.map((size) => `Int64(${spelled(size.name)})`).join(', ')})`;
  const remarks = [
    ...openLines(open),
    ...inputs.map((input) => `takes ${inputText(input)}`),
    ...outputs.map((output) => `gives ${tensorText(output)}`),
  ];
  const parameters = [
    ...given.map((size) => `${parameter(size.name)}: Int`),
    ...inputs.map((input) =>
      input.kind === 'number'
        ? `${parameter(input.name)}: Float`
        : `${parameter(input.name)}: [${swiftTypes[input.dtype]}]`,
    ),
  ];
  const args = [
    'self.context',
    ...given.map((size) => `Int64(${spelled(size.name)})`),
    ...inputs.map((input) => {
      const mayBeEmpty = input.kind === 'tensor' && (typeof input.count === 'string' || input.count === 0);
      return mayBeEmpty
        ? `${spelled(input.name)}.isEmpty ? [0] : ${spelled(input.name)}`
        : spelled(input.name);
    }),
    ...outputs.map((output) => `&${spelled(output.name)}`),
  ];
  const checks = inputs.flatMap((input) =>
    input.kind === 'number'
      ? []
      : [`        try self.expect(${spelled(input.name)}.count, ${count(input)}, ${quoted(input.title)})\n`],
  );
  const rooms = outputs.map(
    (output) =>
      `        var ${spelled(output.name)} = [${swiftTypes[output.dtype]}](repeating: 0, count: Swift.max(1, ${count(output)}))\n`,
  );
  const fields = outputs.map(
    (output) => `        public let ${spelled(output.name)}: [${swiftTypes[output.dtype]}]\n`,
  );
  // C has no array without elements, and writes none to what it is given for one.
  const values = outputs.map(
    ({ name: own, count: of }) => `${label(own)}: ${of === 0 ? '[]' : spelled(own)}`,
  );
  return `    public struct ${results} {
${fields.join('')}    }

${remarks.map((text) => `    /// ${remark(text)}\n`).join('')}    public func ${spelled(own)}(${parameters.join(', ')}) throws -> ${results} {
${given.map((size) => refusal(one, size, model, name)).join('')}${checks.join('')}${rooms.join('')}        try self.check(${one.name}(${args.join(', ')}))
        return Self.${results}(${values.join(', ')})
    }
`;
}
