// Fibers: stacks of their own on one thread of the host, switched without system calls.
#pragma once

#include <cstddef>

namespace standin {

struct Fiber {
  void *top;
  /** Number of the CUDA thread that runs on it. */
  unsigned thread;
  /** It waits until *word differs from seen. */
  const unsigned long long *word;
  unsigned long long seen;
  /** Line of the source at which it waits. */
  int line;
  char *stack;
};

/** A fiber that starts at `body`, which never returns. */
Fiber *make_fiber(void (*body)());
/** Forgets what the fiber was doing: it starts at `body` again. */
void restart_fiber(Fiber *fiber, void (*body)());
/** Keeps the running stack's top in *from and goes on at `to`. */
extern "C" void standin_switch(void **from, void *to);

}  // namespace standin
