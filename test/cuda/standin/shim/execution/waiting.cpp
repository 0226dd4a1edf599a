// Where threads of a block meet: sixteen named barriers, and for each warp the exchanges of its collectives.

#include "waiting.h"

#include <cstring>
#include <string>
#include <vector>

#include "../checker/checker.h"
#include "executor.h"

namespace standin {

namespace {

struct Barrier {
  unsigned long long generation;
  unsigned arrived;
  int count, line;
  unsigned first;
};

/** One group of lanes that meet. Results of two generations are kept: a lane may still read the last while the next is made. */
struct Exchange {
  unsigned mask, arrived;
  unsigned long long generation;
  int line;
  unsigned char bytes[2][32 * 64];
};

Barrier barriers[16];
std::vector<std::vector<Exchange *>> exchanges;
unsigned present;

Exchange &exchange_of(unsigned warp, unsigned mask) {
  for (Exchange *one : exchanges[warp])
    if (one->mask == mask) return *one;
  for (Exchange *one : exchanges[warp])
    if (one->arrived != 0 && (one->mask & mask) != 0)
      abandon(719, "lanes of a warp meet with masks that overlap: " + std::to_string(one->mask) + " and " + std::to_string(mask));
  Exchange *fresh = new Exchange{};
  fresh->mask = mask;
  exchanges[warp].push_back(fresh);
  return *fresh;
}

/** True for the thread that makes the barrier whole. */
bool arrive(int id, int count, int line) {
  if (id < 0 || id > 15) abandon(719, "there are barriers 0 to 15, not " + std::to_string(id));
  if (count % 32 != 0 || count < 0) abandon(719, "a barrier takes whole warps, not " + std::to_string(count) + " threads");
  Barrier &barrier = barriers[id];
  if (barrier.arrived == 0) {
    barrier.count = count;
    barrier.line = line;
    barrier.first = cuda_machine.linear;
  } else if (barrier.count != count) {
    abandon(719, "threads expect " + std::to_string(barrier.count) + " and " + std::to_string(count) + " at one barrier");
  } else if (count == 0 && barrier.line != line) {
    abandon(719, "threads of one block wait at different barriers: thread " + std::to_string(barrier.first) + " at line " +
                     std::to_string(barrier.line) + ", this one at line " + std::to_string(line));
  }
  barrier.arrived++;
  if (barrier.arrived < (count == 0 ? present : static_cast<unsigned>(count))) return false;
  barrier.arrived = 0;
  barrier.generation++;
  return true;
}

}  // namespace

void begin_waiting(unsigned count) {
  present = count;
  for (Barrier &barrier : barriers) barrier = Barrier{};
  exchanges.resize((count + 31) / 32);
  for (auto &warp : exchanges)
    for (Exchange *one : warp) one->arrived = 0;
}

}  // namespace standin

using namespace standin;
#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT void cuda_barrier(int id, int count, int line) {
  note_release(id);
  unsigned thread = cuda_machine.linear;
  unsigned long long generation = barriers[id & 15].generation;
  if (!arrive(id, count, line)) wait_until_changed(&barriers[id].generation, generation, line);
  note_barrier(thread, id, count == 0);
}

EXPORT void cuda_barrier_arrive(int id, int count) {
  note_release(id);
  arrive(id, count, 0);
}

EXPORT const unsigned char *cuda_exchange(unsigned mask, const void *value, unsigned bytes, int line) {
  unsigned lane = cuda_machine.lane, warp = cuda_machine.warp, here = present - warp * 32;
  if (!(mask >> lane & 1)) abandon(719, "a lane takes part in a collective whose mask leaves it out");
  unsigned present = here >= 32 ? mask : mask & ((1u << here) - 1);
  Exchange &exchange = exchange_of(warp, present);
  if (exchange.arrived == 0) exchange.line = line;
  if (exchange.line != line)
    abandon(719, "lanes of one warp meet at different lines: " + std::to_string(exchange.line) + " and " + std::to_string(line));
  unsigned long long generation = exchange.generation;
  unsigned char *results = exchange.bytes[generation & 1];
  std::memcpy(results + 64 * lane, value, bytes);
  exchange.arrived |= 1u << lane;
  if (exchange.arrived == present) {
    exchange.arrived = 0;
    exchange.generation++;
  } else {
    wait_until_changed(&exchange.generation, generation, line);
  }
  note_exchange(warp * 32 + lane, present == (here >= 32 ? ~0u : (1u << here) - 1));
  return results;
}

EXPORT void cuda_wait_word(const unsigned long long *word, unsigned long long seen, int line) {
  wait_until_changed(word, seen, line);
}
