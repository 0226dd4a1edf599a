// From the text of a CUDA C program to kernels that can be called: found in the text, built by the host's compiler, loaded.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "../execution/executor.h"

namespace standin {

struct FoundKernel {
  /** With its namespaces: `k_module::k`. */
  std::string path, name;
  /** The most threads a block may have, as written; empty without launch bounds. */
  std::string threads;
  /** Bytes that the start of its dynamic shared memory is a multiple of, as far as the program says. */
  unsigned alignment;
};

/** The text with its dynamic shared arrays rewritten, line for line, and the kernels in it. */
struct Source {
  std::string text;
  std::vector<FoundKernel> kernels;
};
Source read_source(const std::string &text);

struct Built {
  /** The shared object; empty where the compiler refused. */
  std::string file;
  std::string log;
};
/** Builds a program, or finds it built before. `options` are macros (-DNAME=VALUE). */
Built build(const std::string &text, const std::string &name, const std::vector<std::string> &options, bool checked);

struct LoadedProgram {
  void *library;
  std::map<std::string, std::unique_ptr<Kernel>> kernels;
};
/** Null, with the reason in `why`, where it cannot be loaded. */
LoadedProgram *load(const std::string &file, bool checked, std::string &why);
/** Where the object that holds this address was loaded. */
uint64_t load_address(const void *inside);

}  // namespace standin
