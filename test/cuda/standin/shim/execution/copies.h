// Asynchronous copies into shared memory.
#pragma once

namespace standin {

void begin_copies(unsigned threads);
/** Does what a thread that ends has not waited for. */
void finish_copies(unsigned thread);

}  // namespace standin
