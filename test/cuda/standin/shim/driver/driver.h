// What the parts of the driver's stand-in share: handles, work on streams, the state of the context.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "../execution/executor.h"
#include "../compiler/program.h"

#define API extern "C" __attribute__((visibility("default"))) CUresult

typedef unsigned long long CUdeviceptr;

enum CUresult {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NOT_INITIALIZED = 3,
  CUDA_ERROR_DEINITIALIZED = 4,
  CUDA_ERROR_NO_DEVICE = 100,
  CUDA_ERROR_INVALID_DEVICE = 101,
  CUDA_ERROR_INVALID_IMAGE = 200,
  CUDA_ERROR_INVALID_CONTEXT = 201,
  CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
  CUDA_ERROR_INVALID_PTX = 218,
  CUDA_ERROR_INVALID_HANDLE = 400,
  CUDA_ERROR_NOT_FOUND = 500,
  CUDA_ERROR_NOT_READY = 600,
  CUDA_ERROR_ILLEGAL_ADDRESS = 700,
  CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
  CUDA_ERROR_LAUNCH_TIMEOUT = 702,
  CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712,
  CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED = 713,
  CUDA_ERROR_MISALIGNED_ADDRESS = 716,
  CUDA_ERROR_LAUNCH_FAILED = 719,
  CUDA_ERROR_NOT_SUPPORTED = 801,
  CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
  CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
  CUDA_ERROR_STREAM_CAPTURE_UNMATCHED = 903,
  CUDA_ERROR_STREAM_CAPTURE_UNJOINED = 904,
  CUDA_ERROR_STREAM_CAPTURE_IMPLICIT = 906,
  CUDA_ERROR_CAPTURED_EVENT = 907,
};

namespace standin {

/** Objects whose handles are known to be alive. */
template <class T>
struct Handles {
  static std::set<T *> live;
  static bool has(T *handle) { return live.count(handle) != 0; }
};
template <class T> std::set<T *> Handles<T>::live;

struct Module {
  std::unique_ptr<LoadedProgram> program;
};

struct Function {
  Kernel *kernel;
  Module *module;
  unsigned most_dynamic = 48 * 1024;
};

struct Stream;
struct Graph;

/** Work that other processes take part in. */
struct Encounter {
  virtual ~Encounter() = default;
  /** Brings what this process brings, the first time; whether the others have brought all that it takes. */
  virtual bool ready() = 0;
  virtual CUresult run() = 0;
};

/** One thing for the device to do: what streams queue and graphs hold. */
struct Work {
  enum Kind { nothing, kernel, copy, fill, host, release, encounter } kind = nothing;
  // kernel
  Function *function = nullptr;
  uint3 grid{}, block{};
  unsigned dynamic = 0;
  std::vector<std::vector<unsigned char>> parameters;
  // copy: from one address to another, host or device; `staged` holds what was read when it was queued
  unsigned long long to = 0, from = 0;
  bool to_device = false, from_device = false;
  std::shared_ptr<std::vector<unsigned char>> staged;
  // copy and fill
  size_t bytes = 0;
  unsigned value = 0, value_bytes = 0;
  // host
  void (*callback)(void *) = nullptr;
  void *data = nullptr;
  // encounter
  std::shared_ptr<Encounter> meeting;

  CUresult run() const;
};

struct Event {
  bool timed = true, recorded = false, done = true;
  std::chrono::steady_clock::time_point time;
  Stream *stream = nullptr;
  /** Counts recordings, and says up to which one the work before them is done: a wait is for the recording that was the last. */
  unsigned long long version = 0, passed = 0;
  /** Recorded while capturing: the graph, and the nodes it stands behind. */
  Graph *capture = nullptr;
  std::vector<size_t> tips;
};

struct Entry {
  std::vector<Work> work;
  Event *record = nullptr, *wait = nullptr;
  /** Where the event was recorded that is waited for. */
  Stream *recorded_on = nullptr;
  unsigned long long version = 0;
};

struct Stream {
  bool blocking = true;
  std::deque<Entry> queue;
  Graph *capture = nullptr;
  bool origin = false, invalidated = false;
  int mode = 0;
  std::vector<size_t> tips;
};

struct Node {
  Graph *graph;
  size_t place;
  Work work;
  std::vector<size_t> after;
};

struct Graph {
  std::vector<std::unique_ptr<Node>> nodes;
};

struct GraphExec {
  Graph *graph;
  std::vector<Work> work;
  std::vector<std::vector<size_t>> after;
};

extern Stream default_stream;
/** Error that every call gives from now on, as after an illegal address; 0: none. */
extern CUresult broken;

/** The stream of a handle; null where it is none. */
Stream *stream_of(Stream *handle);
/** Queues work, or adds it to the graph that the stream captures. */
CUresult submit(Stream *stream, Work work);
CUresult submit_all(Stream *stream, std::vector<Work> work);
/** Does what a stream has queued, or all streams. */
CUresult drain(Stream *stream);
CUresult drain_all();
/** Before an operation of the default stream: all streams that it waits for. */
CUresult drain_blocking();
/** Does the first thing of a stream's queue; gives CUDA_ERROR_NOT_READY where that waits for other processes. */
CUresult step(Stream *stream);
/** Adds a node to a graph; the handle of it. */
Node *add_node(Graph *graph, Work work, std::vector<size_t> after);
/** Whether any stream captures in a mode that forbids calls which wait or allocate. */
bool capture_forbids();

/** Checks a launch and copies its parameters. */
CUresult describe_launch(Function *function, uint3 grid, uint3 block, unsigned dynamic, void **parameters, void **extra, Work &work);

/** A call of the driver: one at a time, counted, refused where a test or the context's state asks for it. */
class Call {
 public:
  enum Needs { nothing, initialised, context };
  Call(const char *function, Needs needs);
  CUresult refused = CUDA_SUCCESS;

 private:
  std::unique_lock<std::recursive_mutex> lock;
};
#define ENTER(function, needs) \
  standin::Call call(#function, standin::Call::needs); \
  if (call.refused != CUDA_SUCCESS) return call.refused;
#define NEED(condition, otherwise) \
  if (!(condition)) return otherwise;

}  // namespace standin
