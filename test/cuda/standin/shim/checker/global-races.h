// Races in device memory: between blocks, which nothing orders, and between threads of one block.
#pragma once

#include <cstdint>
#include <string>

#include "checker.h"

namespace standin {

/** Who touches what, and when: blocks are numbered over all launches, epochs lie between barriers of a block. */
struct GlobalAccess {
  uint64_t block;
  unsigned thread, epoch, step;
  Access access;
};

/** Blocks from this number on belong to the launch that begins. */
void begin_global_checks(uint64_t first_block);
/** What is wrong with an access to a live buffer; empty where nothing is. */
std::string global_race(uint64_t buffer, size_t buffer_bytes, uint64_t address, unsigned bytes, const GlobalAccess &now);

}  // namespace standin
