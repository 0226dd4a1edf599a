// A header for C++17 over that of C: a class that owns a context, results by value, codes as exceptions.

import { elementTypes, type CFunction, type CModel, type CTensor } from '../model.ts';
import { codesThatSay, inputText, openLines, tensorText } from '../header.ts';
import { cKeywords, literal, macro, memberNames, remark, type MemberNames } from '../names.ts';
import { derivedLine, libraryNames, outsideMessage, outsideText } from '../sizes.ts';

/** Names that no method may have: of other members, types, and keywords. */
const taken: ReadonlySet<string> = new Set([
  'model',
  'state',
  'seed',
  'check',
  'sized',
  'start',
  'stop',
  ...Object.values(elementTypes),
  ...cKeywords,
]);

/** `model.hpp`. */
export function cppText(model: CModel, embed: boolean): string {
  const { prefix, producer, title, functions, threads } = model;
  const names = memberNames(
    functions.map(({ word }) => word),
    taken,
    (method) => `${method}_results`,
  );
  const weights = embed
    ? `const void *weights = ${prefix}_weights, std::size_t bytes = sizeof ${prefix}_weights`
    : 'const void *weights, std::size_t bytes';
  return `// Made by ${producer}: ${remark(title)} for C++17. README.md shows how to use it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>
#include "${prefix}.h"

namespace ${prefix}_cpp {

// What a call reports that fails: its code is one of ${prefix}_code.
class error : public std::runtime_error {
 public:
  error(int code, const char *what)
      : std::runtime_error(what == nullptr ? std::string(::${prefix}_error(code)) : std::string(what)), code(code) {}
  int code;
};

// One model at work.
class model {
 public:
  // The weights have to stay where they are, at a multiple of 64 bytes.
  explicit model(${weights}) : context_(std::make_unique<::${prefix}>()) {
    check(::${prefix}_init(context_.get(), weights, bytes));
  }

  // The state, of ${macro(prefix, 'STATE_BYTES')} bytes.
  void *state() { return ::${prefix}_state(context_.get()); }

  void seed(std::uint64_t seed) { check(::${prefix}_seed(context_.get(), seed)); }

${threads === undefined ? '' : threadsText(prefix)}${functions.map((one, i) => methodText(one, names[i]!, prefix)).join('\n')}
 private:
  void check(int code) const {
    if (code == ${macro(prefix, 'OK')}) return;
    throw error(code, ${codesThatSay(model)
      .map((code) => `code == ${macro(prefix, code)}`)
      .join(' || ')} ? context_->what : nullptr);
  }

  template <typename T>
  static const T *sized(const std::vector<T> &values, std::size_t count, const char *name) {
    if (values.size() == count) return count == 0 ? reinterpret_cast<const T *>(&values) : values.data();
    throw std::invalid_argument(std::string(name) + ": expected " + std::to_string(count) + " elements, got " +
                                std::to_string(values.size()));
  }

  std::unique_ptr<::${prefix}> context_;${threads === undefined ? '' : '\n  std::unique_ptr<unsigned char[]> room_;'}
};

}  // namespace ${prefix}_cpp
`;
}

function threadsText(prefix: string): string {
  return `  ~model() { ::${prefix}_stop(context_.get()); }
  model(model &&) = default;
  model &operator=(model &&) = delete;

  // Lets so many threads share the work of each call, the one that calls among them.
  void start(int threads) {
    stop();
    if (threads < 1 || threads > ${macro(prefix, 'MOST_THREADS')}) throw error(${macro(prefix, 'E_THREADS')}, nullptr);
    const std::size_t bytes = ${macro(prefix, 'THREADS_BYTES')}(threads);
    room_ = std::make_unique<unsigned char[]>(bytes + 63);
    unsigned char *first = room_.get();
    check(::${prefix}_start(context_.get(), threads, first + (64 - reinterpret_cast<std::uintptr_t>(first) % 64) % 64, bytes));
  }

  // Ends the threads.
  void stop() { check(::${prefix}_stop(context_.get())); }

`;
}

function vectorType({ dtype }: CTensor): string {
  return `std::vector<${elementTypes[dtype]}>`;
}

function methodText(
  { name, title, open, inputs, outputs }: CFunction,
  { method, results: type }: MemberNames,
  prefix: string,
): string {
  const given = open?.given ?? [];
  const remarks = [
    ...openLines(open).map((line) => `  // ${remark(line)}`),
    ...inputs.map((input) => `  // takes ${inputText(input)}`),
    ...outputs.map((output) => `  // gives ${tensorText(output)}`),
  ];
  const parameters = [
    ...given.map((size) => `std::int64_t ${size.name}`),
    ...inputs.map((input) =>
      input.kind === 'number' ? `float ${input.name}` : `const ${vectorType(input)} &${input.name}`,
    ),
  ];
  const results = outputs.map((output) => {
    const type = vectorType(output);
    const filled = typeof output.count === 'string' ? '' : ` = ${type}(${Math.max(1, output.count)})`;
    return `    ${type} ${output.name}${filled};`;
  });
  const lines = [
    // Before memory is taken for such sizes.
    ...given.map(
      (size) =>
        `if (${outsideText(size)}) throw ${prefix}_cpp::error(${macro(prefix, 'E_SHAPE')}, ${outsideMessage(title, size)});`,
    ),
    ...(open?.derived ?? []).flatMap((size) => [
      derivedLine(size, open!, libraryNames('std::')),
      `(void)${size.name};`,
    ]),
    // Inputs may be called as types and members are.
    `model::${type} results_;`,
    ...outputs.flatMap(({ name: own, count }) =>
      typeof count === 'string' ? [`results_.${own}.resize(std::max<std::size_t>(1, ${count}));`] : [],
    ),
  ];
  const args = [
    'context_.get()',
    ...given.map((size) => size.name),
    ...inputs.map((input) =>
      input.kind === 'number'
        ? input.name
        : `this->sized(${input.name}, ${input.count}, ${literal(input.title)})`,
    ),
    ...outputs.map((output) => `results_.${output.name}.data()`),
  ];
  return `  struct ${type} {
${results.join('\n')}
  };
${remarks.join('\n')}
  ${type} ${method}(${parameters.join(', ')}) {
${lines
  .map(
    (line) => `    ${line}
`,
  )
  .join('')}    this->check(::${name}(${args.join(', ')}));
${outputs
  .filter(({ count }) => count === 0)
  .map((output) => `    results_.${output.name}.clear();\n`)
  .join('')}    return results_;
  }
`;
}
