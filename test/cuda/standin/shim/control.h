// What tests turn and read: settings, counters, injected errors. All of it is reached by name through exported functions.
#pragma once

#include <string>

namespace standin {

/** In which order the threads of a block run. */
enum Order { forward, reverse, random_order, warp_priority };

struct Settings {
  long long order = forward;
  long long seed = 1;
  /** Programs are built with the checks of the checker. */
  long long check = 0;
  /** Work is done when it is queued, not when it is waited for. */
  long long eager = 0;
  long long devices = 1;
  /** 90 for compute capability 9.0. */
  long long capability = 90;
  /** CUDA version of the driver, and of NVRTC: one that there is not, so that nobody mistakes its images for machine code. */
  long long driver_version = 13000, nvrtc_version = 13990;
  /** The least compute capability that NVRTC compiles for: NVRTC 13 begins with 7.5. */
  long long oldest_architecture = 75;
  long long device_bytes = 2ll << 30;
};

struct Counters {
  long long calls, compiles, built, launches, graph_launches, blocks, switches;
  /** Bytes of device memory that the checked kernels read and wrote. */
  long long bytes_read, bytes_written;
  long long live_buffers, live_bytes, pinned_buffers, modules, streams, events, graphs;
};

extern Settings settings;
extern Counters counters;

/** The result that a test asked this call to give instead; 0: none. */
int injected(const char *function);
/** Keeps the story of the last failure, and tells it on the error stream unless tests asked for silence. */
void tell(const std::string &story);
/** A pseudo-random word, from the seed on. */
unsigned long long next_random();

}  // namespace standin
