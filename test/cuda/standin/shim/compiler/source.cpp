// Reads CUDA C as far as needed: kernels with their namespaces and launch bounds, and dynamic shared arrays.

#include <cctype>

#include "program.h"

namespace standin {

namespace {

struct Token {
  std::string text;
  size_t start, end;
};

/** Words and single characters; comments, strings and lines of the preprocessor are left out. */
std::vector<Token> tokens_of(const std::string &text) {
  std::vector<Token> tokens;
  size_t at = 0, size = text.size();
  bool line_start = true;
  auto word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  while (at < size) {
    char c = text[at];
    if (c == '\n') {
      line_start = true;
      at++;
    } else if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      at++;
    } else if (c == '#' && line_start) {
      while (at < size && text[at] != '\n') at += text[at] == '\\' ? 2 : 1;
    } else if (text.compare(at, 2, "//") == 0) {
      while (at < size && text[at] != '\n') at++;
    } else if (text.compare(at, 2, "/*") == 0) {
      size_t end = text.find("*/", at + 2);
      at = end == std::string::npos ? size : end + 2;
    } else if (c == '"' || c == '\'') {
      size_t start = at++;
      while (at < size && text[at] != c) at += text[at] == '\\' ? 2 : 1;
      at++;
      tokens.push_back({text.substr(start, at - start), start, at});
      line_start = false;
    } else {
      size_t start = at++;
      if (word(c))
        while (at < size && word(text[at])) at++;
      tokens.push_back({text.substr(start, at - start), start, at});
      line_start = false;
    }
  }
  return tokens;
}

/** The place behind the bracket that closes the one at `open`. */
size_t past_bracket(const std::vector<Token> &tokens, size_t open) {
  int depth = 0;
  for (size_t i = open; i < tokens.size(); i++) {
    if (tokens[i].text == "(") depth++;
    if (tokens[i].text == ")" && --depth == 0) return i + 1;
  }
  return tokens.size();
}

bool is_name(const std::string &text) { return std::isalpha(static_cast<unsigned char>(text[0])) != 0 || text[0] == '_'; }

/** By name: the alignment of dynamic shared arrays. Declarations of one name are one symbol, which has that of the first. */
using Alignments = std::map<std::string, unsigned>;

/** `extern __shared__ T name[];` becomes a pointer to where dynamic shared memory lies. */
std::string rewritten(const std::vector<Token> &tokens, size_t first, size_t last, Alignments &alignments, unsigned &alignment) {
  std::string type, name;
  alignment = 16;
  for (size_t i = first; i < last; i++) {
    const std::string &text = tokens[i].text;
    if (text == "__align__" || text == "alignas") {
      alignment = static_cast<unsigned>(std::stoul(tokens[i + 2].text));
      i = past_bracket(tokens, i + 1) - 1;
    } else if (text == "[") {
      break;
    } else {
      if (!name.empty()) type += name + " ";
      name = text;
    }
  }
  alignment = alignments.emplace(name, alignment).first->second;
  std::string start = std::to_string(start_of_dynamic(alignment));
  return "static " + type + "*const " + name + " = reinterpret_cast<" + type + "*>(cuda_dynamic_shared + " + start + ")";
}

}  // namespace

Source read_source(const std::string &text) {
  std::vector<Token> tokens = tokens_of(text);
  Source source;
  Alignments alignments;
  unsigned everywhere = 16;
  size_t copied = 0;
  std::vector<std::string> scopes;
  std::string pending;
  for (size_t i = 0; i < tokens.size(); i++) {
    const std::string &token = tokens[i].text;
    auto next = [&](size_t by) { return i + by < tokens.size() ? tokens[i + by].text : std::string(); };
    if (token == "namespace" && is_name(next(1)) && next(2) == "{") pending = next(1);
    if (token == "{") scopes.push_back(pending), pending.clear();
    if (token == "}" && !scopes.empty()) scopes.pop_back();
    if (token == "extern" && next(1) == "__shared__") {
      size_t end = i;
      while (end < tokens.size() && tokens[end].text != ";") end++;
      unsigned alignment = 0;
      source.text += text.substr(copied, tokens[i].start - copied) + rewritten(tokens, i + 2, end, alignments, alignment);
      // In a kernel it is that kernel's; before all of them, everybody's.
      if (source.kernels.empty()) everywhere = alignment;
      else source.kernels.back().alignment = alignment;
      copied = end < tokens.size() ? tokens[end].start : text.size();
      i = end;
    }
    if (token != "__global__") continue;
    FoundKernel kernel = {};
    kernel.alignment = everywhere;
    size_t at = i + 1;
    while (at < tokens.size() && tokens[at].text != ";" && tokens[at].text != "{") {
      bool called = at + 1 < tokens.size() && tokens[at + 1].text == "(";
      if (!called) {
        at++;
      } else if (tokens[at].text == "__launch_bounds__") {
        size_t comma = at + 2;
        while (comma < tokens.size() && tokens[comma].text != "," && tokens[comma].text != ")") comma++;
        kernel.threads = text.substr(tokens[at + 2].start, tokens[comma].start - tokens[at + 2].start);
        at = past_bracket(tokens, at + 1);
      } else if (tokens[at].text.compare(0, 2, "__") == 0) {
        at = past_bracket(tokens, at + 1);
      } else {
        kernel.name = tokens[at].text;
        at = past_bracket(tokens, at + 1);
        break;
      }
    }
    if (kernel.name.empty() || at >= tokens.size() || tokens[at].text != "{") continue;
    for (const std::string &scope : scopes)
      if (!scope.empty()) kernel.path += scope + "::";
    kernel.path += kernel.name;
    source.kernels.push_back(kernel);
  }
  source.text += text.substr(copied);
  return source;
}

}  // namespace standin
