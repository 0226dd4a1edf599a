// Stacks and the switch between them, for x86-64 and aarch64.

#include "fiber.h"

#include <cstdint>
#include <cstring>
#include <new>
#include <sys/mman.h>

namespace standin {

namespace {
const size_t stack_bytes = 256 * 1024, guard_bytes = 64 * 1024;
}

// Callee-saved registers go onto the stack that is left; the other stack's are taken back.
#if defined(__x86_64__)
asm(R"(
.text
.globl standin_switch
.hidden standin_switch
standin_switch:
  push %rbp
  push %rbx
  push %r12
  push %r13
  push %r14
  push %r15
  mov %rsp, (%rdi)
  mov %rsi, %rsp
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbx
  pop %rbp
  ret
)");
static void *first_frame(char *top, void (*body)()) {
  void **frame = reinterpret_cast<void **>(top);
  *--frame = nullptr;  // what would be the caller: keeps the stack aligned as after a call
  *--frame = reinterpret_cast<void *>(body);
  for (int i = 0; i < 6; i++) *--frame = nullptr;
  return frame;
}
#elif defined(__aarch64__)
asm(R"(
.text
.globl standin_switch
.hidden standin_switch
standin_switch:
  sub sp, sp, #160
  stp x19, x20, [sp]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
)");
static void *first_frame(char *top, void (*body)()) {
  char *frame = top - 160;
  std::memset(frame, 0, 160);
  reinterpret_cast<void **>(frame)[11] = reinterpret_cast<void *>(body);
  return frame;
}
#else
#error "fibers are written for x86-64 and aarch64"
#endif

void restart_fiber(Fiber *fiber, void (*body)()) {
  // Tops at equal places in every stack would compete for the same lines of the cache: they are staggered.
  size_t stagger = reinterpret_cast<uintptr_t>(fiber->stack) / (stack_bytes + guard_bytes) % 61 * 1088;
  uintptr_t top = reinterpret_cast<uintptr_t>(fiber->stack + stack_bytes) - stagger;
  fiber->top = first_frame(reinterpret_cast<char *>(top & ~uintptr_t{15}), body);
  fiber->word = nullptr;
}

Fiber *make_fiber(void (*body)()) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void *space = mmap(nullptr, guard_bytes + stack_bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (space == MAP_FAILED) throw std::bad_alloc();
  mprotect(space, guard_bytes, PROT_NONE);
  Fiber *fiber = new Fiber{};
  fiber->stack = static_cast<char *>(space) + guard_bytes;
  restart_fiber(fiber, body);
  return fiber;
}

}  // namespace standin
