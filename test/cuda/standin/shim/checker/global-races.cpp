// Every byte of a buffer has a cell that says who wrote and who read it last in this launch. Buffers above 256 KiB are not
// followed: tests that look for races are small.

#include "global-races.h"

#include <map>
#include <vector>

namespace standin {

namespace {

const size_t largest = 1 << 18, most_cells = 4 << 20;

struct Touch {
  uint64_t block;
  unsigned thread, epoch, step;
};

struct GlobalCell {
  Touch written, read;
  bool atomic;
  /** Others have read since the last write, too: in other blocks, or at the same moment of this one. */
  bool blocks, threads;
};

std::map<uint64_t, std::vector<GlobalCell>> shadows;
size_t cells;
uint64_t first;
uint64_t last_buffer;
std::vector<GlobalCell> *last_shadow;

bool is_ordered(const Touch &then, const GlobalAccess &now) {
  if (then.block != now.block) return false;
  if (then.thread == now.thread || then.epoch < now.epoch) return true;
  return then.thread / 32 == now.thread / 32 && then.step < now.step;
}

std::string told(const char *what, const Touch &then, const GlobalAccess &now) {
  std::string where = then.block == now.block ? "thread " + std::to_string(then.thread) + " with no barrier between"
                                              : "another block";
  return std::string("race in device memory: ") + (now.access == reads ? "a read" : "a write") + " of what was " + what + " by " + where;
}

std::string touch(GlobalCell &cell, const GlobalAccess &now) {
  bool was_written = cell.written.block >= first, was_read = cell.read.block >= first;
  bool together = was_written && cell.atomic && now.access == updates;
  if (was_written && !together && !is_ordered(cell.written, now)) return told("written", cell.written, now);
  Touch mine = {now.block, now.thread, now.epoch, now.step};
  if (now.access == reads) {
    bool other_block = was_read && cell.read.block != now.block;
    bool same_moment = was_read && !other_block && cell.read.epoch == now.epoch && cell.read.thread != now.thread &&
                       !is_ordered(cell.read, now);
    if (!was_read) cell.blocks = cell.threads = false;
    cell.blocks = cell.blocks || other_block;
    cell.threads = same_moment || (cell.threads && !other_block && cell.read.epoch == now.epoch);
    cell.read = mine;
    return "";
  }
  if (was_read && !together) {
    if (cell.blocks || !is_ordered(cell.read, now)) return told("read", cell.blocks && cell.read.block == now.block ? Touch{} : cell.read, now);
    if (cell.threads && cell.read.epoch == now.epoch) return told("read", cell.read, now);
  }
  cell.written = mine;
  cell.atomic = now.access == updates;
  cell.read = Touch{};
  cell.blocks = cell.threads = false;
  return "";
}

}  // namespace

void begin_global_checks(uint64_t first_block) {
  first = first_block;
  last_buffer = 0;
  if (cells < most_cells) return;
  shadows.clear();
  cells = 0;
}

std::string global_race(uint64_t buffer, size_t buffer_bytes, uint64_t address, unsigned bytes, const GlobalAccess &now) {
  if (buffer_bytes > largest) return "";
  if (buffer != last_buffer) {
    std::vector<GlobalCell> &shadow = shadows[buffer];
    if (shadow.empty()) {
      shadow.resize(buffer_bytes);
      cells += shadow.size();
    }
    last_buffer = buffer;
    last_shadow = &shadow;
  }
  for (size_t i = address - buffer; i < address + bytes - buffer; i++) {
    std::string wrong = touch((*last_shadow)[i], now);
    if (!wrong.empty()) return wrong;
  }
  return "";
}

}  // namespace standin
