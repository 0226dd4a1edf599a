// Streams and events. Work waits in its stream until something waits for it: a missing synchronisation shows, since what is read
// too early is not there yet. Streams that do not wait for each other run in the order they are asked for.

#include <algorithm>
#include <cstring>
#include <thread>

#include "arena.h"
#include "../control.h"
#include "driver.h"

namespace standin {

Stream default_stream;

namespace {

const int capture_relaxed = 2;

struct alignas(64) Parameter {
  unsigned char bytes[64];
};

CUresult finish(Entry &entry) {
  for (const Work &work : entry.work)
    if (CUresult result = work.run()) return broken = result;
  if (entry.record != nullptr && Handles<Event>::has(entry.record)) {
    Event *event = entry.record;
    event->passed = std::max(event->passed, entry.version);
    if (event->version == entry.version) {
      event->done = true;
      event->time = std::chrono::steady_clock::now();
    }
  }
  return CUDA_SUCCESS;
}

std::vector<Stream *> all_streams() {
  std::vector<Stream *> all(Handles<Stream>::live.begin(), Handles<Stream>::live.end());
  all.push_back(&default_stream);
  return all;
}

/** Work of the default stream and of a blocking stream keeps the order in which it was queued. */
CUresult before_queueing(Stream *stream) {
  if (stream == &default_stream) return drain_blocking();
  if (stream->blocking && !default_stream.queue.empty()) return drain(&default_stream);
  return CUDA_SUCCESS;
}

CUresult enqueue(Stream *stream, Entry entry) {
  if (CUresult result = before_queueing(stream)) return result;
  stream->queue.push_back(std::move(entry));
  return settings.eager != 0 ? drain(stream) : CUDA_SUCCESS;
}

}  // namespace

Stream *stream_of(Stream *handle) {
  // 0 and 1 are names of the default stream.
  if (handle == nullptr || handle == reinterpret_cast<Stream *>(1)) return &default_stream;
  return Handles<Stream>::has(handle) ? handle : nullptr;
}

CUresult Work::run() const {
  switch (kind) {
    case nothing: return CUDA_SUCCESS;
    case host: return callback(data), CUDA_SUCCESS;
    case encounter: return meeting->run();
    case release: return give_memory(to) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case fill:
      if (!is_live(to, bytes)) return tell("fill of memory that was freed"), CUDA_ERROR_ILLEGAL_ADDRESS;
      for (size_t at = 0; at < bytes; at += value_bytes) std::memcpy(reinterpret_cast<char *>(to) + at, &value, value_bytes);
      return CUDA_SUCCESS;
    case copy: {
      if ((to_device && !is_live(to, bytes)) || (from_device && !is_live(from, bytes)))
        return tell("copy to or from memory that was freed"), CUDA_ERROR_ILLEGAL_ADDRESS;
      const void *source = staged == nullptr ? reinterpret_cast<const void *>(from) : staged->data();
      std::memmove(reinterpret_cast<void *>(to), source, bytes);
      return CUDA_SUCCESS;
    }
    case kernel: break;
  }
  counters.launches++;
  if (int result = injected("kernel")) return static_cast<CUresult>(result);
  // Each where any type may begin.
  std::vector<Parameter> copies;
  for (const auto &parameter : parameters)
    for (size_t at = 0; at < parameter.size(); at += sizeof(Parameter)) {
      copies.emplace_back();
      std::memcpy(copies.back().bytes, parameter.data() + at, std::min(sizeof(Parameter), parameter.size() - at));
    }
  std::vector<void *> addresses;
  size_t next = 0;
  for (const auto &parameter : parameters) {
    addresses.push_back(copies[next].bytes);
    next += (parameter.size() + sizeof(Parameter) - 1) / sizeof(Parameter);
  }
  Outcome outcome = execute({function->kernel, grid, block, dynamic, addresses.data()});
  if (outcome.code != 0) tell("kernel " + function->kernel->name + ": " + outcome.story);
  return static_cast<CUresult>(outcome.code);
}

CUresult submit(Stream *stream, Work work) {
  if (stream->capture == nullptr) {
    Entry entry;
    entry.work.push_back(std::move(work));
    return enqueue(stream, std::move(entry));
  }
  NEED(!stream->invalidated, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED)
  Node *node = add_node(stream->capture, std::move(work), stream->tips);
  stream->tips = {node->place};
  return CUDA_SUCCESS;
}

CUresult submit_all(Stream *stream, std::vector<Work> work) {
  NEED(stream->capture == nullptr, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
  Entry entry;
  entry.work = std::move(work);
  return enqueue(stream, std::move(entry));
}

CUresult step(Stream *stream) {
  if (broken != CUDA_SUCCESS) return broken;
  const Entry &first = stream->queue.front();
  auto waits = [&first] { return first.wait != nullptr && Handles<Event>::has(first.wait) && first.wait->passed < first.version; };
  Stream *other = first.recorded_on;
  while (waits() && (other == &default_stream || Handles<Stream>::has(other)) && !other->queue.empty())
    if (CUresult result = step(other)) return result;
  for (const Work &work : first.work)
    if (work.meeting != nullptr && !work.meeting->ready()) return CUDA_ERROR_NOT_READY;
  Entry entry = std::move(stream->queue.front());
  stream->queue.pop_front();
  return finish(entry);
}

/** As `step`, and waits for other processes. */
static CUresult patient_step(Stream *stream) {
  for (;;) {
    CUresult result = step(stream);
    if (result != CUDA_ERROR_NOT_READY) return result;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

CUresult drain(Stream *stream) {
  while (!stream->queue.empty())
    if (CUresult result = patient_step(stream)) return result;
  return broken;
}

CUresult drain_all() {
  for (Stream *stream : all_streams())
    if (CUresult result = drain(stream)) return result;
  return broken;
}

CUresult drain_blocking() {
  for (Stream *stream : all_streams())
    if (stream->blocking)
      if (CUresult result = drain(stream)) return result;
  return broken;
}

bool capture_forbids() {
  for (Stream *stream : Handles<Stream>::live)
    if (stream->capture != nullptr && stream->mode != capture_relaxed) return stream->invalidated = true;
  return false;
}

}  // namespace standin

using namespace standin;

namespace {

CUresult create_stream(Stream **stream, unsigned flags) {
  NEED(stream != nullptr && flags <= 1, CUDA_ERROR_INVALID_VALUE)
  *stream = new Stream;
  (*stream)->blocking = flags == 0;
  Handles<Stream>::live.insert(*stream);
  counters.streams++;
  return CUDA_SUCCESS;
}

}  // namespace

API cuStreamCreate(Stream **stream, unsigned flags) {
  ENTER(cuStreamCreate, context)
  return create_stream(stream, flags);
}

API cuStreamCreateWithPriority(Stream **stream, unsigned flags, int) {
  ENTER(cuStreamCreateWithPriority, context)
  return create_stream(stream, flags);
}

API cuStreamDestroy_v2(Stream *stream) {
  ENTER(cuStreamDestroy_v2, context)
  NEED(Handles<Stream>::has(stream), CUDA_ERROR_INVALID_HANDLE)
  CUresult result = drain(stream);
  Handles<Stream>::live.erase(stream);
  counters.streams--;
  delete stream;
  return result;
}

API cuStreamSynchronize(Stream *handle) {
  ENTER(cuStreamSynchronize, context)
  Stream *stream = stream_of(handle);
  NEED(stream != nullptr, CUDA_ERROR_INVALID_HANDLE)
  if (stream->capture != nullptr || capture_forbids()) return stream->invalidated = true, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return stream == &default_stream ? drain_blocking() : drain(stream);
}

// A question about unfinished work lets one piece of it happen, so that who asks again and again gets there.
API cuStreamQuery(Stream *handle) {
  ENTER(cuStreamQuery, context)
  Stream *stream = stream_of(handle);
  NEED(stream != nullptr, CUDA_ERROR_INVALID_HANDLE)
  NEED(stream->capture == nullptr, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
  if (stream->queue.empty()) return CUDA_SUCCESS;
  if (CUresult result = step(stream)) return result;
  return CUDA_ERROR_NOT_READY;
}

API cuStreamWaitEvent(Stream *handle, Event *event, unsigned) {
  ENTER(cuStreamWaitEvent, context)
  Stream *stream = stream_of(handle);
  NEED(stream != nullptr && Handles<Event>::has(event), CUDA_ERROR_INVALID_HANDLE)
  if (event->capture != nullptr) {
    NEED(stream->capture == nullptr || stream->capture == event->capture, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED)
    if (stream->capture == nullptr) stream->capture = event->capture, stream->tips.clear();
    stream->tips.insert(stream->tips.end(), event->tips.begin(), event->tips.end());
    return CUDA_SUCCESS;
  }
  NEED(stream->capture == nullptr, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
  if (event->done) return CUDA_SUCCESS;
  Entry entry;
  entry.wait = event;
  entry.recorded_on = event->stream;
  entry.version = event->version;
  return enqueue(stream, std::move(entry));
}

API cuLaunchHostFunc(Stream *handle, void (*callback)(void *), void *data) {
  ENTER(cuLaunchHostFunc, context)
  Stream *stream = stream_of(handle);
  NEED(stream != nullptr, CUDA_ERROR_INVALID_HANDLE)
  NEED(callback != nullptr, CUDA_ERROR_INVALID_VALUE)
  Work work;
  work.kind = Work::host;
  work.callback = callback;
  work.data = data;
  return submit(stream, work);
}

API cuEventCreate(Event **event, unsigned flags) {
  ENTER(cuEventCreate, context)
  NEED(event != nullptr && flags < 8, CUDA_ERROR_INVALID_VALUE)
  *event = new Event;
  (*event)->timed = (flags & 2) == 0;
  Handles<Event>::live.insert(*event);
  counters.events++;
  return CUDA_SUCCESS;
}

API cuEventDestroy_v2(Event *event) {
  ENTER(cuEventDestroy_v2, context)
  NEED(Handles<Event>::live.erase(event) != 0, CUDA_ERROR_INVALID_HANDLE)
  counters.events--;
  delete event;
  return CUDA_SUCCESS;
}

API cuEventRecord(Event *event, Stream *handle) {
  ENTER(cuEventRecord, context)
  Stream *stream = stream_of(handle);
  NEED(stream != nullptr && Handles<Event>::has(event), CUDA_ERROR_INVALID_HANDLE)
  event->version++;
  event->capture = stream->capture;
  if (stream->capture != nullptr) {
    event->tips = stream->tips;
    return CUDA_SUCCESS;
  }
  event->recorded = true;
  event->done = false;
  event->stream = stream;
  Entry entry;
  entry.record = event;
  entry.version = event->version;
  return enqueue(stream, std::move(entry));
}

API cuEventQuery(Event *event) {
  ENTER(cuEventQuery, context)
  NEED(Handles<Event>::has(event), CUDA_ERROR_INVALID_HANDLE)
  NEED(event->capture == nullptr, CUDA_ERROR_CAPTURED_EVENT)
  if (event->done) return CUDA_SUCCESS;
  if (CUresult result = step(event->stream)) return result;
  return CUDA_ERROR_NOT_READY;
}

API cuEventSynchronize(Event *event) {
  ENTER(cuEventSynchronize, context)
  NEED(Handles<Event>::has(event), CUDA_ERROR_INVALID_HANDLE)
  NEED(event->capture == nullptr, CUDA_ERROR_CAPTURED_EVENT)
  while (!event->done)
    if (CUresult result = patient_step(event->stream)) return result;
  return CUDA_SUCCESS;
}

static CUresult elapsed(float *milliseconds, Event *start, Event *end) {
  NEED(milliseconds != nullptr, CUDA_ERROR_INVALID_VALUE)
  NEED(Handles<Event>::has(start) && Handles<Event>::has(end), CUDA_ERROR_INVALID_HANDLE)
  NEED(start->timed && end->timed && start->recorded && end->recorded, CUDA_ERROR_INVALID_HANDLE)
  NEED(start->done && end->done, CUDA_ERROR_NOT_READY)
  *milliseconds = std::chrono::duration<float, std::milli>(end->time - start->time).count();
  return CUDA_SUCCESS;
}

API cuEventElapsedTime(float *milliseconds, Event *start, Event *end) {
  ENTER(cuEventElapsedTime, context)
  return elapsed(milliseconds, start, end);
}

API cuEventElapsedTime_v2(float *milliseconds, Event *start, Event *end) {
  ENTER(cuEventElapsedTime_v2, context)
  return elapsed(milliseconds, start, end);
}
