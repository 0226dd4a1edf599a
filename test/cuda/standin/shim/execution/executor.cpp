// The scheduler of a block's threads. A thread that never waits runs as a plain call on the fiber of the one before it; one that
// waits keeps its fiber, and others go on with the rest. Which runs next is what the orders differ in.

#include "executor.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>

#include "../checker/checker.h"
#include "../control.h"
#include "copies.h"
#include "fiber.h"
#include "products.h"
#include "tiles.h"
#include "traps.h"
#include "waiting.h"

extern "C" {
__attribute__((visibility("default"))) CudaMachine cuda_machine;
__attribute__((visibility("default"), aligned(1024))) unsigned char cuda_dynamic_shared[standin::dynamic_bytes];
}

namespace standin {

namespace {

const Launch *current_launch;
Outcome outcome;

std::vector<Fiber *> idle, waiting, every;
Fiber *current;
void *scheduler_top;
/** Threads to start, one after another. */
std::vector<unsigned> batch;
size_t batch_next;
unsigned threads, finished;
std::vector<unsigned long long> priorities;

void become(unsigned thread) {
  CudaMachine &m = cuda_machine;
  m.linear = thread;
  m.lane = thread % 32;
  m.warp = thread / 32;
  m.thread.x = thread % m.block_size.x;
  m.thread.y = thread / m.block_size.x % m.block_size.y;
  m.thread.z = thread / m.block_size.x / m.block_size.y;
}

void work() {
  for (;;) {
    while (batch_next < batch.size()) {
      become(batch[batch_next++]);
      current_launch->kernel->entry(current_launch->parameters);
      finish_copies(cuda_machine.linear);
      finished++;
    }
    Fiber *self = current;
    idle.push_back(self);
    standin_switch(&self->top, scheduler_top);
  }
}

void resume(Fiber *fiber) {
  current = fiber;
  counters.switches++;
  standin_switch(&scheduler_top, fiber->top);
}

/** Starts what `batch` lists; false when the launch was abandoned. */
bool start_batch() {
  batch_next = 0;
  while (batch_next < batch.size()) {
    if (idle.empty()) {
      idle.push_back(make_fiber(work));
      every.push_back(idle.back());
    }
    Fiber *fiber = idle.back();
    idle.pop_back();
    resume(fiber);
    if (outcome.code != 0) return false;
  }
  return true;
}

bool can_go_on(const Fiber *fiber) { return *fiber->word != fiber->seen; }

/** Lets those of `fibers` that can go on do so; the others wait on. Sets `moved` when one did. */
bool resume_ready(const std::vector<Fiber *> &fibers, bool &moved) {
  for (Fiber *fiber : fibers) {
    if (!can_go_on(fiber)) {
      waiting.push_back(fiber);
      continue;
    }
    moved = true;
    become(fiber->thread);
    resume(fiber);
    if (outcome.code != 0) return false;
  }
  return true;
}

template <class T>
void shuffle(std::vector<T> &list) {
  for (size_t i = list.size(); i > 1; i--) std::swap(list[i - 1], list[next_random() % i]);
}

std::string deadlock() {
  if (waiting.empty()) return "a thread waits for nothing";
  std::string lines;
  std::vector<int> seen;
  for (const Fiber *fiber : waiting) {
    if (std::find(seen.begin(), seen.end(), fiber->line) != seen.end()) continue;
    seen.push_back(fiber->line);
    size_t count = std::count_if(waiting.begin(), waiting.end(), [&](Fiber *f) { return f->line == fiber->line; });
    lines += (lines.empty() ? "" : ", ") + std::to_string(count) + " at line " + std::to_string(fiber->line);
  }
  const uint3 &block = cuda_machine.block;
  return "deadlock: of " + std::to_string(threads) + " threads, " + std::to_string(waiting.size()) +
         " wait at a barrier or a collective of the warp (" + lines + "), " + std::to_string(finished) +
         " have ended without reaching it (block " + std::to_string(block.x) + "," + std::to_string(block.y) + "," +
         std::to_string(block.z) + ")";
}

/** Every round, each thread that can run runs until it waits. */
bool run_in_rounds() {
  batch.resize(threads);
  for (unsigned i = 0; i < threads; i++) batch[i] = settings.order == reverse ? threads - 1 - i : i;
  if (settings.order == random_order) shuffle(batch);
  if (!start_batch()) return false;
  std::vector<Fiber *> round;
  while (finished < threads) {
    round.clear();
    round.swap(waiting);
    // Threads came to wait in the order they ran in: that order holds, but for random.
    if (settings.order == random_order) shuffle(round);
    bool moved = false;
    if (!resume_ready(round, moved)) return false;
    if (!moved && !land_tile()) return outcome = {702, deadlock()}, false;
    if (settings.order == random_order && next_random() % 8 == 0) land_tile();
  }
  return true;
}

/** The warp of the highest priority among those that can run does so, as far as it can. */
bool run_by_priority() {
  unsigned warps = (threads + 31) / 32;
  priorities.resize(warps);
  for (auto &priority : priorities) priority = next_random();
  std::vector<unsigned> unstarted(warps);
  for (unsigned i = 0; i < warps; i++) unstarted[i] = i;
  std::sort(unstarted.begin(), unstarted.end(), [](unsigned a, unsigned b) { return priorities[a] < priorities[b]; });
  std::vector<Fiber *> chosen;
  while (finished < threads) {
    Fiber *best = nullptr;
    for (Fiber *fiber : waiting)
      if (can_go_on(fiber) && (best == nullptr || priorities[fiber->thread / 32] > priorities[best->thread / 32])) best = fiber;
    if (!unstarted.empty() && (best == nullptr || priorities[unstarted.back()] > priorities[best->thread / 32])) {
      unsigned first = unstarted.back() * 32;
      unstarted.pop_back();
      batch.clear();
      for (unsigned thread = first; thread < std::min(first + 32, threads); thread++) batch.push_back(thread);
      shuffle(batch);
      if (!start_batch()) return false;
      continue;
    }
    if (best == nullptr && land_tile()) continue;
    if (best == nullptr) return outcome = {702, deadlock()}, false;
    unsigned warp = best->thread / 32;
    auto middle = std::stable_partition(waiting.begin(), waiting.end(), [&](Fiber *f) { return f->thread / 32 != warp; });
    chosen.assign(middle, waiting.end());
    waiting.erase(middle, waiting.end());
    bool moved = false;
    if (!resume_ready(chosen, moved)) return false;
  }
  return true;
}

bool run_block() {
  counters.blocks++;
  finished = 0;
  begin_waiting(threads);
  begin_copies(threads);
  begin_tiles();
  begin_products(threads);
  for (const SharedVariable &variable : current_launch->kernel->shared) std::memset(variable.start, 0xff, variable.bytes);
  std::memset(cuda_dynamic_shared + current_launch->kernel->dynamic_start, 0xff, current_launch->dynamic);
  begin_block_checks();
  if (!(settings.order == warp_priority ? run_by_priority() : run_in_rounds())) return false;
  if (tiles_are_done()) return true;
  outcome = {719, "the block ends while tiles are being copied"};
  return false;
}

/** Which block runs next: blocks have no order among each other, so that each order of threads has one of its own. */
class BlockOrder {
 public:
  explicit BlockOrder(uint64_t count) : count(count), step(1), start(0) {
    if (settings.order == forward) return;
    step = count - 1;
    start = count - 1;
    if (settings.order == reverse || count < 3) return;
    start = next_random() % count;
    do step = 1 + next_random() % (count - 1);
    while (std::gcd(step, count) != 1);
  }
  uint64_t of(uint64_t i) const { return static_cast<uint64_t>((static_cast<unsigned __int128>(i) * step + start) % count); }

 private:
  uint64_t count, step, start;
};

/** After an abandoned launch no fiber goes on where it was. */
void reset_fibers() {
  waiting.clear();
  idle = every;
  for (Fiber *fiber : every) restart_fiber(fiber, work);
}

}  // namespace

const Launch *running() { return current_launch; }

std::string place() {
  const uint3 &b = cuda_machine.block, &t = cuda_machine.thread;
  auto list = [](const uint3 &v) { return std::to_string(v.x) + "," + std::to_string(v.y) + "," + std::to_string(v.z); };
  return "block " + list(b) + " thread " + list(t);
}

void abandon(int code, const std::string &story) {
  outcome = {code, story + " (" + place() + ")"};
  void *nowhere;
  standin_switch(&nowhere, scheduler_top);
  __builtin_unreachable();
}

void wait_until_changed(const unsigned long long *word, unsigned long long seen, int line) {
  Fiber *self = current;
  self->thread = cuda_machine.linear;
  self->word = word;
  self->seen = seen;
  self->line = line;
  waiting.push_back(self);
  standin_switch(&self->top, scheduler_top);
}

Outcome execute(const Launch &launch) {
  TrapScope traps;
  current_launch = &launch;
  outcome = {0, ""};
  threads = launch.block.x * launch.block.y * launch.block.z;
  cuda_machine.block_size = dim3(launch.block.x, launch.block.y, launch.block.z);
  cuda_machine.grid_size = dim3(launch.grid.x, launch.grid.y, launch.grid.z);
  begin_launch_checks(launch);
  uint64_t blocks = static_cast<uint64_t>(launch.grid.x) * launch.grid.y * launch.grid.z;
  BlockOrder place(blocks);
  bool whole = true;
  for (uint64_t i = 0; whole && i < blocks; i++) {
    uint64_t number = place.of(i), row = number / launch.grid.x;
    cuda_machine.block.x = static_cast<unsigned>(number % launch.grid.x);
    cuda_machine.block.y = static_cast<unsigned>(row % launch.grid.y);
    cuda_machine.block.z = static_cast<unsigned>(row / launch.grid.y);
    whole = run_block();
  }
  if (!whole) reset_fibers();
  end_launch_checks();
  current_launch = nullptr;
  return outcome;
}

}  // namespace standin

extern "C" __attribute__((visibility("default"))) void cuda_fail(const char *message) { standin::abandon(719, message); }
