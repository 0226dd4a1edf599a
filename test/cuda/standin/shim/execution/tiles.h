// mbarriers, and copies of tiles that complete on them.
#pragma once

#include <cstdint>

namespace standin {

void begin_tiles();
/** Lets one copy that is under way arrive; false where there is none. */
bool land_tile();
/** At the end of a block: nothing may be under way. */
bool tiles_are_done();
/** Where an element of tiled memory lies: pieces of 16 bytes of each line of 128 change places within eight lines. */
inline uint64_t swizzled(uint64_t address) { return address ^ ((address >> 7 & 7) << 4); }

}  // namespace standin
