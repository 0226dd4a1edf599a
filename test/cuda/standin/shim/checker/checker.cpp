// Bounds, alignment and shared-memory races. Every two bytes of shared memory have a cell that says who wrote and who read them
// last, and when: in which block, between which two barriers of the block (epoch), between which two collectives of the warp
// (step). Where only some warps wait for each other (named barriers, mbarriers), each warp keeps how far it has seen the others.

#include "checker.h"

#include <cstdio>
#include <map>
#include <unordered_map>

#include "../driver/arena.h"
#include "../control.h"
#include "global-races.h"
#include "../compiler/program.h"

namespace standin {

namespace {

const unsigned nobody = 0;

struct Moment {
  /** Thread + 1. */
  unsigned who;
  unsigned epoch, step, clock;
};

/** The last reader of a warp. */
struct Read {
  unsigned who, step, clock;
  /** Other lanes read at the same step. */
  bool lanes;
};

struct Cell {
  unsigned long long block;
  Moment written;
  /** Warps that have read since, all in this epoch. */
  unsigned readers, read_epoch;
  /** An asynchronous copy into it has not been waited for. */
  bool pending;
  bool atomic;
};

struct ThreadTime {
  unsigned epoch, step;
};

struct Region {
  const unsigned char *start;
  size_t bytes;
  std::string name;
  std::vector<Cell> cells;
  /** Where its cells' reads begin: 32 for each, as far as the cell's readers say. */
  size_t reads;
};

bool checking;
unsigned long long block_number;
std::vector<Region> regions;
std::vector<Read> all_reads;
std::vector<ThreadTime> times;
/** How far warp a has seen warp b, at [a * 32 + b]; its own place is its clock. */
unsigned seen[32 * 32];
std::unordered_map<unsigned long long, std::vector<unsigned>> released;
/** The buffer that was accessed last. */
uint64_t buffer_start;
size_t buffer_bytes;

bool is_ordered(const Moment &then, unsigned thread) {
  if (then.who == thread + 1) return true;
  const ThreadTime &now = times[thread];
  if (then.epoch < now.epoch) return true;
  unsigned warp = thread / 32, other = (then.who - 1) / 32;
  if (other == warp) return then.step < now.step;
  return then.clock < seen[warp * 32 + other];
}

std::string line_of(const void *caller) {
  if (caller == nullptr || running() == nullptr) return "";
  char command[600], text[400] = "";
  uint64_t offset = reinterpret_cast<uint64_t>(caller) - load_address(caller) - 1;
  std::snprintf(command, sizeof command, "addr2line -e '%s' 0x%llx 2>/dev/null", running()->kernel->file.c_str(),
                static_cast<unsigned long long>(offset));
  FILE *pipe = popen(command, "r");
  if (pipe == nullptr) return "";
  size_t length = std::fread(text, 1, sizeof text - 1, pipe);
  pclose(pipe);
  std::string line(text, length);
  size_t colon = line.rfind(':');
  if (colon == std::string::npos || line.compare(colon + 1, 1, "?") == 0 || line.compare(colon + 1, 1, "0") == 0) return "";
  size_t end = line.find_first_not_of("0123456789", colon + 1);
  return " at line " + line.substr(colon + 1, end - colon - 1);
}

std::string who(unsigned mark) { return "thread " + std::to_string(mark - 1); }

[[noreturn]] void complain(int code, const std::string &what, const void *caller) { abandon(code, what + line_of(caller)); }

std::string element(const Region &region, const void *address) {
  size_t offset = static_cast<const unsigned char *>(address) - region.start;
  return region.name + " + " + std::to_string(offset) + " bytes";
}

void note_read(Cell &cell, Read *reads, unsigned thread) {
  const ThreadTime &time = times[thread];
  unsigned warp = thread / 32;
  if (cell.read_epoch != time.epoch) cell.readers = 0;
  cell.read_epoch = time.epoch;
  Read &read = reads[warp];
  bool again = (cell.readers >> warp & 1) != 0 && read.step == time.step;
  bool lanes = again && (read.lanes || read.who != thread + 1);
  read = {thread + 1, time.step, seen[warp * 33], lanes};
  cell.readers |= 1u << warp;
}

/** A reader that a write by this thread would race with; null without one. */
const Read *unordered_read(const Cell &cell, const Read *reads, unsigned thread) {
  const ThreadTime &time = times[thread];
  if (cell.readers == 0 || cell.read_epoch < time.epoch) return nullptr;
  for (unsigned warp = 0; warp < 32; warp++) {
    if ((cell.readers >> warp & 1) == 0) continue;
    const Read &read = reads[warp];
    bool ordered = warp == thread / 32 ? read.step < time.step || (read.who == thread + 1 && !read.lanes) : read.clock < seen[thread / 32 * 32 + warp];
    if (!ordered) return &read;
  }
  return nullptr;
}

void touch_cell(Region &region, size_t place, const void *address, Access access, const void *caller) {
  unsigned thread = cuda_machine.linear, warp = thread / 32;
  const ThreadTime &time = times[thread];
  Cell &cell = region.cells[place];
  Read *cell_reads = &all_reads[region.reads + 32 * place];
  if (cell.block != block_number) cell = Cell{block_number, {}, 0, 0, false, false};
  bool together = access == updates && cell.atomic;
  if (cell.written.who != nobody && !together && !is_ordered(cell.written, thread))
    complain(719, "shared-memory race on " + element(region, address) + ": a " + (access == reads ? "read" : "write") +
                      " after a write by " + who(cell.written.who) + " with no barrier between", caller);
  if (access != writes && cell.pending)
    complain(719, "read of " + element(region, address) + ", into which an asynchronous copy was not waited for", caller);
  if (access != writes && cell.written.who == nobody)
    complain(719, "read of shared memory that nothing wrote in this block: " + element(region, address), caller);
  if (access == reads) return note_read(cell, cell_reads, thread);
  const Read *other = together ? nullptr : unordered_read(cell, cell_reads, thread);
  if (other != nullptr)
    complain(719, "shared-memory race on " + element(region, address) + ": a write after a read by " + who(other->who) +
                      (other->lanes ? " and others" : "") + " with no barrier between", caller);
  cell.written = {thread + 1, time.epoch, time.step, seen[warp * 33]};
  cell.readers = 0;
  cell.atomic = access == updates;
}

Region *region_of(const unsigned char *address) {
  for (Region &region : regions)
    if (address >= region.start && address < region.start + region.bytes) return &region;
  return nullptr;
}

void touch_shared(Region &region, const unsigned char *address, unsigned bytes, Access access, const void *caller) {
  size_t first = address - region.start, last = first + bytes - 1;
  if (last >= region.bytes)
    complain(700, "access past the end of " + region.name + ", of " + std::to_string(region.bytes) + " bytes", caller);
  for (size_t i = first / 2; i <= last / 2; i++) touch_cell(region, i, address, access, caller);
}

void touch_global(uint64_t address, unsigned bytes, Access access, const void *caller) {
  if (address < buffer_start || address + bytes > buffer_start + buffer_bytes) {
    const char *verb = access == reads ? "read of " : "write of ";
    if (!buffer_around(address, &buffer_start, &buffer_bytes))
      complain(700, std::string("global ") + verb + std::to_string(bytes) + " bytes " + describe_address(address), caller);
    if (address + bytes > buffer_start + buffer_bytes)
      complain(700, std::string("global ") + verb + std::to_string(bytes) + " bytes past the end " + describe_address(address), caller);
  }
  if (access != writes) counters.bytes_read += bytes;
  if (access != reads) counters.bytes_written += bytes;
  unsigned thread = cuda_machine.linear;
  GlobalAccess now = {block_number, thread, times[thread].epoch, times[thread].step, access};
  std::string race = global_race(buffer_start, buffer_bytes, address, bytes, now);
  if (!race.empty()) complain(719, race + ", " + describe_address(address), caller);
}

}  // namespace

void begin_launch_checks(const Launch &launch) {
  checking = launch.kernel->checked;
  if (!checking) return;
  buffer_bytes = 0;
  begin_global_checks(block_number + 1);
  regions.clear();
  size_t cells = 0;
  auto add = [&](const unsigned char *start, size_t bytes, const std::string &name) {
    regions.push_back({start, bytes, name, std::vector<Cell>(bytes / 2 + 1), 32 * cells});
    cells += bytes / 2 + 1;
  };
  for (const SharedVariable &variable : launch.kernel->shared) add(variable.start, variable.bytes, variable.name);
  if (launch.dynamic > 0) add(cuda_dynamic_shared + launch.kernel->dynamic_start, launch.dynamic, "dynamic shared memory");
  if (all_reads.size() < 32 * cells) all_reads.resize(32 * cells);
  times.resize(launch.block.x * launch.block.y * launch.block.z);
}

void end_launch_checks() { checking = false; }

void begin_block_checks() {
  if (!checking) return;
  block_number++;
  for (ThreadTime &time : times) time = ThreadTime{};
  for (unsigned &clock : seen) clock = 0;
  for (unsigned warp = 0; warp < 32; warp++) seen[warp * 33] = 1;
  released.clear();
}

void note_release(unsigned long long object) {
  if (!checking) return;
  unsigned warp = cuda_machine.warp;
  auto &clocks = released[object];
  clocks.resize(32);
  for (unsigned other = 0; other < 32; other++)
    if (seen[warp * 32 + other] + (other == warp) > clocks[other]) clocks[other] = seen[warp * 32 + other] + (other == warp);
  seen[warp * 33]++;
}

void note_acquire(unsigned long long object) {
  if (!checking) return;
  unsigned warp = cuda_machine.warp;
  auto found = released.find(object);
  if (found == released.end()) return;
  for (unsigned other = 0; other < 32; other++)
    if (other != warp && found->second[other] > seen[warp * 32 + other]) seen[warp * 32 + other] = found->second[other];
}

void note_barrier(unsigned thread, int id, bool whole) {
  if (!checking) return;
  times[thread].step++;
  if (whole)
    times[thread].epoch++;
  else
    note_acquire(id);
}

void note_exchange(unsigned thread, bool whole) {
  if (checking && whole) times[thread].step++;
}

void note_copy(const void *shared, unsigned bytes, bool arrived) {
  if (!checking) return;
  auto address = static_cast<const unsigned char *>(shared);
  Region *region = region_of(address);
  if (region == nullptr) return;
  touch_shared(*region, address, bytes, writes, nullptr);
  size_t first = (address - region->start) / 2;
  for (size_t i = first; i <= first + (bytes - 1) / 2; i++) region->cells[i].pending = !arrived;
}

void note_tile(const void *shared, unsigned bytes, unsigned long long barrier, unsigned thread) {
  if (!checking) return;
  auto address = static_cast<const unsigned char *>(shared);
  unsigned warp = thread / 32;
  if (Region *region = region_of(address)) {
    Moment now = {thread + 1, times[thread].epoch, times[thread].step, seen[warp * 33]};
    size_t first = (address - region->start) / 2;
    for (size_t i = first; i <= first + (bytes - 1) / 2; i++) region->cells[i] = Cell{block_number, now, 0, 0, false, false};
  }
  auto &clocks = released[barrier];
  clocks.resize(32);
  clocks[warp] = ++seen[warp * 33];
}

void check_copy(const void *shared, const void *source, unsigned bytes, unsigned valid) {
  if (!checking) return;
  if (region_of(static_cast<const unsigned char *>(shared)) == nullptr) complain(700, "cp.async to what is no shared memory", nullptr);
  if (valid > 0) check_access(source, valid, reads, nullptr);
  (void)bytes;
}

void check_access(const void *address, unsigned bytes, Access access, const void *caller) {
  if (!checking) return;
  auto place = static_cast<const unsigned char *>(address);
  uint64_t number = reinterpret_cast<uint64_t>(address);
  if (in_arena(number)) {
    if (bytes <= 16 && (bytes & (bytes - 1)) == 0 && number % bytes != 0)
      complain(716, "misaligned access of " + std::to_string(bytes) + " bytes " + describe_address(number), caller);
    touch_global(number, bytes, access, caller);
    return;
  }
  if (Region *region = region_of(place)) {
    if (bytes <= 16 && (bytes & (bytes - 1)) == 0 && number % bytes != 0)
      complain(716, "misaligned access of " + std::to_string(bytes) + " bytes to " + element(*region, address), caller);
    touch_shared(*region, place, bytes, access, caller);
    return;
  }
  unsigned dynamic = running()->dynamic;
  if (place >= cuda_dynamic_shared && place < cuda_dynamic_shared + dynamic_bytes)
    complain(700, "access outside dynamic shared memory, of " + std::to_string(dynamic) + " bytes", caller);
}

void check_failed(const std::string &what, const void *caller) {
  if (running() != nullptr) complain(719, what, caller);
}

}  // namespace standin
