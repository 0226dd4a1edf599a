// Runs a launch: block after block, the threads of each in the order that settings ask for.
#pragma once

#include <string>
#include <vector>

#define __align__(n) __attribute__((aligned(n)))
#include "../device/vectors.h"

#include "../device/machine.h"

namespace standin {

/** A shared variable, where its program was loaded. */
struct SharedVariable {
  std::string name;
  unsigned char *start;
  size_t bytes;
};

struct Kernel {
  std::string name;
  void (*entry)(void **);
  /** The most threads a block may have. */
  unsigned threads;
  /** Bytes of each parameter. */
  std::vector<unsigned> parameters;
  std::vector<SharedVariable> shared;
  size_t static_bytes;
  /** Bytes of cuda_dynamic_shared before the dynamic shared memory of its blocks. */
  unsigned dynamic_start;
  /** Built with the checker's hooks. */
  bool checked;
  /** The file it was loaded from, for lines of its source. */
  std::string file;
};

struct Launch {
  const Kernel *kernel;
  uint3 grid, block;
  unsigned dynamic;
  void **parameters;
};

/** How a launch ended: 0, or the driver's error, and the story. */
struct Outcome {
  int code;
  std::string story;
};

Outcome execute(const Launch &launch);

/** The launch that runs now; null between launches. */
const Launch *running();
/** Ends the running launch, from one of its threads: never returns. */
[[noreturn]] void abandon(int code, const std::string &story);
/** `block 1,0,0 thread 5,0,0`. */
std::string place();

const size_t dynamic_bytes = 227 * 1024 + 1024;
/** Where memory of this alignment begins: at no larger power of two than that. */
inline unsigned start_of_dynamic(unsigned alignment) { return alignment < 1024 ? alignment : 0; }

}  // namespace standin
