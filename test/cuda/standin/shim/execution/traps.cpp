// Handlers for faults of the kernel that runs: an address outside every buffer, a vector that is not aligned, a division by zero.

#include "traps.h"

#include <csignal>
#include <cstdint>
#include <string>

#include "../driver/arena.h"
#include "executor.h"

namespace standin {

namespace {

const int signals[] = {SIGSEGV, SIGBUS, SIGFPE};
struct sigaction before[3];
int depth;

void handle(int number, siginfo_t *info, void *) {
  if (number == SIGFPE) abandon(719, "integer division by zero, or of the least number by -1");
  uint64_t address = reinterpret_cast<uint64_t>(info->si_addr);
  // The processor names no address where an aligned instruction met one that is not.
  if (address == 0) abandon(716, "misaligned vector access, or one through a wild pointer");
  if (in_arena(address)) abandon(700, "access " + describe_address(address));
  abandon(700, "access outside device memory, at address " + std::to_string(address));
}

}  // namespace

TrapScope::TrapScope() {
  if (depth++ > 0) return;
  struct sigaction action = {};
  action.sa_sigaction = handle;
  // The handler leaves by switching stacks, so the signal must not stay blocked.
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  for (int i = 0; i < 3; i++) sigaction(signals[i], &action, &before[i]);
}

TrapScope::~TrapScope() {
  if (--depth > 0) return;
  for (int i = 0; i < 3; i++) sigaction(signals[i], &before[i], nullptr);
}

}  // namespace standin
