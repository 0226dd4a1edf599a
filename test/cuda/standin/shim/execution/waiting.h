// Barriers and exchanges of the block that runs.
#pragma once

namespace standin {

void begin_waiting(unsigned threads);
/** Leaves the processor to others until *word is no longer `seen`. */
void wait_until_changed(const unsigned long long *word, unsigned long long seen, int line);

}  // namespace standin
