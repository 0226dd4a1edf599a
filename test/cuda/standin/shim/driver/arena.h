// Device memory: every buffer ends (up to the 256 bytes of its alignment) at a page that nobody may touch, freed buffers are such
// pages, and no address is given twice. So an access outside every buffer is found, with or without the checker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace standin {

/** Bytes from address, poisoned with NaN; 0 where memory has run out. */
uint64_t take_memory(size_t bytes);
/** False where no buffer starts at the address. */
bool give_memory(uint64_t address);
void give_all_memory();
bool in_arena(uint64_t address);
/** Whether the bytes lie in one live buffer. */
bool is_live(uint64_t address, size_t bytes);
/** Start and size of the live buffer around the address; false without one. */
bool buffer_around(uint64_t address, uint64_t *start, size_t *bytes);
/** `28 bytes behind a buffer of 400 bytes`, as far as that can be said. */
std::string describe_address(uint64_t address);

/** Page-locked host memory. */
void *take_pinned(size_t bytes);
bool give_pinned(void *memory);
bool is_pinned(const void *memory, size_t bytes);
bool pin(void *memory, size_t bytes);
bool unpin(void *memory);

}  // namespace standin
