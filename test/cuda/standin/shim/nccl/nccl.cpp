// A stand-in for NCCL, on the streams of the driver's stand-in. Ranks are processes that leave each other files in a folder, which a
// communicator's id names. Calls are checked as NCCL's manual asks for; where ranks do not call the same, they wait for ever, as NCCL
// does at its worst, and the story says why. What NCCL rounds or orders in ways of its own is not there: sums of f16, bf16, min of floats.

#include <cstdlib>
#include <cstring>
#include <map>
#include <sys/stat.h>
#include <unistd.h>

#include "../control.h"
#include "../driver/arena.h"
#include "../driver/driver.h"
#include "files.h"
#include "folding.h"

namespace standin {

enum Result { nccl_success, nccl_cuda_error, nccl_system_error, nccl_internal_error, nccl_bad_argument, nccl_bad_usage, nccl_remote_error, nccl_in_progress };

namespace {

struct Id {
  char name[128];
};

/** NCCL 2.14's; later ones have more behind it. */
struct Config {
  size_t size;
  unsigned magic, version;
  int blocking;
};

struct Communicator {
  std::string folder;
  int ranks, rank;
  bool blocking = true, made = false, ended = false, finalised = false;
  Result state = nccl_success;
  /** Calls of `ncclCommGetAsyncError` until a call that has returned takes effect. */
  int unasked = 0;
  /** What is done when it takes effect. */
  std::vector<std::function<void()>> later;
  unsigned long long turn = 0;
  std::map<int, unsigned long long> sent, taken;
  /** The stream that it works on, and how many calls of it are under way there. */
  Stream *stream = nullptr;
  int open = 0;
};

std::string last_error;
thread_local int groups = 0;

Result refuse(Result result, const std::string &story) {
  last_error = story;
  tell("NCCL: " + story);
  return result;
}

#define NCCL extern "C" __attribute__((visibility("default"))) standin::Result
#define ENTER_NCCL(function) \
  standin::Call call(#function, standin::Call::context); \
  if (call.refused != CUDA_SUCCESS) return standin::injected_result(call.refused);
#define ASK(condition, result, story) \
  if (!(condition)) return refuse(result, story);

Result injected_result(CUresult refused) { return refused < 8 ? static_cast<Result>(refused) : nccl_cuda_error; }

/** What a rank brings to a collective: how it calls it, and its block. */
struct Brought {
  int kind, type, op, root;
  unsigned long long count;
};

bool same(const Brought &a, const Brought &b) {
  return a.kind == b.kind && a.type == b.type && a.op == b.op && a.root == b.root && a.count == b.count;
}

std::string words(const Brought &one) {
  static const char *kinds[] = {"ncclAllReduce", "ncclBroadcast", "ncclAllGather", "ncclReduceScatter"};
  return std::string(kinds[one.kind]) + " of " + std::to_string(one.count) + " elements of type " + std::to_string(one.type) + " by " +
         std::to_string(one.op) + " from " + std::to_string(one.root);
}

enum Kind { all_reduce, broadcast, all_gather, reduce_scatter };

struct Collective : Encounter {
  Communicator *communicator;
  Brought own;
  unsigned long long from, to, turn;
  bool posted = false, told = false;

  size_t bytes() const { return own.count * bytes_of(own.type); }
  size_t brings() const { return own.kind == reduce_scatter ? bytes() * static_cast<size_t>(communicator->ranks) : bytes(); }
  size_t takes() const { return own.kind == all_gather ? bytes() * static_cast<size_t>(communicator->ranks) : bytes(); }
  std::string file(unsigned long long when, int rank) const {
    return communicator->folder + "/turn-" + std::to_string(when) + "-" + std::to_string(rank);
  }

  bool ready() override {
    if (communicator->ended) return true;
    if (!posted) {
      posted = true;
      std::string block(reinterpret_cast<const char *>(&own), sizeof own);
      if (is_live(from, brings())) block.append(reinterpret_cast<const char *>(from), brings());
      write_file(file(turn, communicator->rank), block);
    }
    for (int rank = 0; rank < communicator->ranks; rank++) {
      Brought other;
      if (!read_start(file(turn, rank), &other, sizeof other)) return false;
      if (same(own, other)) continue;
      if (!told) tell("NCCL: rank " + std::to_string(communicator->rank) + " calls " + words(own) + ", rank " + std::to_string(rank) + " " + words(other));
      told = true;
      return false;
    }
    return true;
  }

  CUresult run() override {
    communicator->open--;
    if (communicator->ended) return CUDA_SUCCESS;
    if (!is_live(from, brings()) || !is_live(to, takes())) return tell("NCCL: a collective of memory that was freed"), CUDA_ERROR_ILLEGAL_ADDRESS;
    std::vector<std::string> blocks;
    for (int rank = 0; rank < communicator->ranks; rank++) blocks.push_back(read_file(file(turn, rank)).substr(sizeof own));
    char *target = reinterpret_cast<char *>(to);
    if (own.kind == broadcast) std::memcpy(target, blocks[static_cast<size_t>(own.root)].data(), bytes());
    else if (own.kind == all_gather)
      for (size_t rank = 0; rank < blocks.size(); rank++) std::memcpy(target + rank * bytes(), blocks[rank].data(), bytes());
    else fold(own.type, own.op, blocks, own.kind == all_reduce ? 0 : static_cast<size_t>(communicator->rank) * bytes(), target, own.count);
    // All have come here, so all are done with the turn before.
    if (turn > 0) unlink(file(turn - 1, communicator->rank).c_str());
    return CUDA_SUCCESS;
  }
};

struct Message {
  bool sends;
  unsigned long long at;
  size_t bytes;
  int type;
  std::string file;
};

/** Sends and receipts of a group, which go on together. A sender waits until what it sends is taken. */
struct Exchanges : Encounter {
  Communicator *communicator;
  std::vector<Message> messages;
  bool posted = false;

  bool ready() override {
    if (communicator->ended) return true;
    if (!posted)
      for (const Message &one : messages)
        if (one.sends && is_live(one.at, one.bytes))
          write_file(one.file, std::to_string(one.bytes) + ":" + std::to_string(one.type) + ";" + std::string(reinterpret_cast<const char *>(one.at), one.bytes));
    posted = true;
    bool all = true;
    for (Message &one : messages) {
      if (one.file.empty()) continue;
      bool there = exists(one.file);
      if (there == one.sends) {
        all = false;
        continue;
      }
      if (!one.sends && !take(one)) {
        all = false;
        continue;
      }
      one.file.clear();
    }
    return all;
  }

  bool take(const Message &one) {
    std::string block = read_file(one.file);
    std::string head = std::to_string(one.bytes) + ":" + std::to_string(one.type) + ";";
    if (block.compare(0, head.size(), head) != 0)
      return tell("NCCL: a rank takes " + head + " where " + block.substr(0, block.find(';') + 1) + " was sent"), false;
    if (!is_live(one.at, one.bytes)) return tell("NCCL: a message to memory that was freed"), false;
    std::memcpy(reinterpret_cast<void *>(one.at), block.data() + head.size(), one.bytes);
    unlink(one.file.c_str());
    return true;
  }

  CUresult run() override {
    communicator->open--;
    return CUDA_SUCCESS;
  }
};

bool overlap(unsigned long long a, size_t bytes_a, unsigned long long b, size_t bytes_b) { return a < b + bytes_b && b < a + bytes_a; }

/** What is to happen now, or when somebody has asked for the state often enough. */
Result begin(Communicator *communicator, std::function<void()> work) {
  if (communicator->blocking) return work(), nccl_success;
  communicator->later.push_back(std::move(work));
  communicator->state = nccl_in_progress;
  communicator->unasked = 2;
  return nccl_in_progress;
}

Result check_use(Communicator *communicator, Stream *stream) {
  ASK(Handles<Communicator>::has(communicator) && !communicator->ended && !communicator->finalised, nccl_bad_argument, "a communicator that is none")
  ASK(communicator->made && communicator->state == nccl_success, nccl_bad_usage, "a call while the one before it is in progress")
  ASK(stream_of(stream) != nullptr, nccl_bad_argument, "a stream that is none")
  ASK(stream_of(stream)->capture == nullptr, nccl_bad_usage, "a call on a stream that is captured, which is not modelled")
  ASK(communicator->open == 0 || communicator->stream == stream, nccl_bad_usage, "one communicator on two streams at once")
  communicator->stream = stream;
  return nccl_success;
}

Result queue(Communicator *communicator, std::shared_ptr<Encounter> meeting) {
  communicator->open++;
  Stream *stream = stream_of(communicator->stream);
  return begin(communicator, [stream, meeting] {
    Work work;
    work.kind = Work::encounter;
    work.meeting = meeting;
    submit(stream, std::move(work));
  });
}

Result collect(Brought own, const void *from, void *to, Communicator *communicator, Stream *stream) {
  if (Result result = check_use(communicator, stream)) return result;
  size_t unit = bytes_of(own.type);
  ASK(unit != 0, nccl_bad_argument, "a type that is none, or is not modelled")
  bool folds = own.kind == all_reduce || own.kind == reduce_scatter;
  ASK(!folds || can_fold(own.type, own.op), nccl_bad_argument, "an operation that is not modelled on its type")
  ASK(own.root >= 0 && own.root < communicator->ranks, nccl_bad_argument, "a root that is no rank")
  auto meeting = std::make_shared<Collective>();
  meeting->communicator = communicator;
  meeting->own = own;
  meeting->from = reinterpret_cast<unsigned long long>(from);
  meeting->to = reinterpret_cast<unsigned long long>(to);
  meeting->turn = communicator->turn++;
  ASK(is_live(meeting->from, meeting->brings()) && is_live(meeting->to, meeting->takes()), nccl_bad_argument, "memory that is not the device's")
  ASK(meeting->from % unit == 0 && meeting->to % unit == 0, nccl_bad_argument, "memory that is not aligned")
  unsigned long long place = static_cast<unsigned long long>(communicator->rank) * meeting->bytes();
  bool in_place = own.kind == all_gather       ? meeting->from == meeting->to + place
                  : own.kind == reduce_scatter ? meeting->to == meeting->from + place
                                               : meeting->from == meeting->to;
  ASK(in_place || !overlap(meeting->from, meeting->brings(), meeting->to, meeting->takes()), nccl_bad_argument, "memory that overlaps")
  return queue(communicator, meeting);
}

Result exchange_all(Communicator *communicator, std::vector<Message> messages) {
  for (const Message &one : messages)
    for (const Message &other : messages)
      ASK(&one == &other || one.sends == other.sends || !overlap(one.at, one.bytes, other.at, other.bytes), nccl_bad_argument, "messages from and to the same memory")
  auto meeting = std::make_shared<Exchanges>();
  meeting->communicator = communicator;
  meeting->messages = std::move(messages);
  return queue(communicator, meeting);
}

thread_local std::map<Communicator *, std::vector<Message>> exchanged;

Result message(bool sends, unsigned long long at, size_t count, int type, int peer, Communicator *communicator, Stream *stream) {
  if (Result result = check_use(communicator, stream)) return result;
  ASK(bytes_of(type) != 0, nccl_bad_argument, "a type that is none")
  ASK(peer >= 0 && peer < communicator->ranks, nccl_bad_argument, "a peer that is no rank")
  size_t bytes = count * bytes_of(type);
  ASK(is_live(at, bytes), nccl_bad_argument, "memory that is not the device's")
  int from = sends ? communicator->rank : peer, to = sends ? peer : communicator->rank;
  unsigned long long number = sends ? communicator->sent[peer]++ : communicator->taken[peer]++;
  std::string file = communicator->folder + "/message-" + std::to_string(from) + "-" + std::to_string(to) + "-" + std::to_string(number);
  Message one = {sends, at, bytes, type, file};
  if (groups == 0) return exchange_all(communicator, {one});
  exchanged[communicator].push_back(one);
  return nccl_success;
}

/** Whether all ranks have come, each with a device of its own. */
bool all_joined(Communicator *communicator) {
  std::set<std::string> devices;
  for (int rank = 0; rank < communicator->ranks; rank++) {
    std::string file = communicator->folder + "/rank-" + std::to_string(rank);
    if (!exists(file)) return false;
    if (!devices.insert(read_file(file)).second) {
      communicator->state = refuse(nccl_bad_usage, "two ranks have one device");
      return false;
    }
  }
  return true;
}

/** Removes the folder once all ranks have ended. */
void part(Communicator *communicator) {
  communicator->ended = true;
  write_file(communicator->folder + "/gone-" + std::to_string(communicator->rank), "");
  for (int rank = 0; rank < communicator->ranks; rank++)
    if (!exists(communicator->folder + "/gone-" + std::to_string(rank))) return;
  remove_folder(communicator->folder);
}

}  // namespace
}  // namespace standin

using namespace standin;

NCCL ncclGetVersion(int *version) {
  ASK(version != nullptr, nccl_bad_argument, "nowhere to write the version")
  return *version = 22304, nccl_success;
}

extern "C" __attribute__((visibility("default"))) const char *ncclGetErrorString(int result) {
  static const char *texts[] = {"no error", "unhandled cuda error", "unhandled system error", "internal error", "invalid argument", "invalid usage", "remote process exited or there was a network error", "NCCL operation in progress"};
  return result >= 0 && result < 8 ? texts[result] : "unknown result code";
}

extern "C" __attribute__((visibility("default"))) const char *ncclGetLastError(Communicator *) { return last_error.c_str(); }

NCCL ncclGetUniqueId(Id *id) {
  ASK(id != nullptr, nccl_bad_argument, "nowhere to write the id")
  const char *folder = std::getenv("STANDIN_NCCL");
  std::string name = std::string(folder == nullptr ? "/dev/shm" : folder) + "/standin-nccl-XXXXXX";
  std::memset(id, 0, sizeof *id);
  ASK(name.size() < sizeof id->name && mkdtemp(&name[0]) != nullptr, nccl_system_error, "no folder for the ranks")
  std::memcpy(id->name, name.data(), name.size());
  return nccl_success;
}

NCCL ncclCommInitRankConfig(Communicator **out, int ranks, Id id, int rank, Config *config) {
  ENTER_NCCL(ncclCommInitRankConfig)
  ASK(out != nullptr && ranks > 0 && rank >= 0 && rank < ranks, nccl_bad_argument, "a rank that is none")
  ASK(config != nullptr && config->magic == 0xcafebeef && config->size >= sizeof(Config), nccl_bad_argument, "a configuration that is none")
  ASK(groups == 0, nccl_bad_usage, "a communicator made in a group, which is not modelled")
  ASK(exists(id.name), nccl_bad_argument, "an id that is none")
  Communicator *made = new Communicator;
  made->folder = id.name;
  made->ranks = ranks;
  made->rank = rank;
  made->blocking = config->blocking != 0;
  Handles<Communicator>::live.insert(made);
  *out = made;
  int device = -1;
  cuCtxGetDevice(&device);
  write_file(made->folder + "/rank-" + std::to_string(rank), std::to_string(device));
  if (!made->blocking) return made->state = nccl_in_progress;
  while (made->state == nccl_success && !all_joined(made)) usleep(200);
  return made->made = true, made->state;
}

NCCL ncclCommGetAsyncError(Communicator *communicator, Result *result) {
  ENTER_NCCL(ncclCommGetAsyncError)
  ASK(Handles<Communicator>::has(communicator) && result != nullptr, nccl_bad_argument, "a communicator that is none")
  if (communicator->state == nccl_in_progress) {
    if (!communicator->made) {
      if (all_joined(communicator)) communicator->made = true, communicator->state = nccl_success;
    } else if (communicator->finalised) {
      if (communicator->open > 0 && !communicator->stream->queue.empty()) step(communicator->stream);
      if (communicator->open == 0) communicator->state = nccl_success;
    } else if (--communicator->unasked == 0) {
      communicator->state = nccl_success;
      std::vector<std::function<void()>> later;
      later.swap(communicator->later);
      for (auto &work : later) work();
    }
  }
  return *result = communicator->state, nccl_success;
}

NCCL ncclCommFinalize(Communicator *communicator) {
  ENTER_NCCL(ncclCommFinalize)
  ASK(Handles<Communicator>::has(communicator) && communicator->state == nccl_success, nccl_bad_usage, "an end of a communicator in use")
  communicator->finalised = true;
  return communicator->state = nccl_in_progress;
}

NCCL ncclCommDestroy(Communicator *communicator) {
  ENTER_NCCL(ncclCommDestroy)
  ASK(Handles<Communicator>::has(communicator) && !communicator->ended, nccl_bad_argument, "a communicator that is none")
  ASK(communicator->open == 0, nccl_bad_usage, "the end of a communicator that has work")
  part(communicator);
  Handles<Communicator>::live.erase(communicator);
  return nccl_success;
}

/** What is queued ends without effect. The memory stays: streams still have its work. */
NCCL ncclCommAbort(Communicator *communicator) {
  ENTER_NCCL(ncclCommAbort)
  ASK(Handles<Communicator>::has(communicator) && !communicator->ended, nccl_bad_argument, "a communicator that is none")
  part(communicator);
  Handles<Communicator>::live.erase(communicator);
  return nccl_success;
}

NCCL ncclGroupStart() {
  ENTER_NCCL(ncclGroupStart)
  return groups++, nccl_success;
}

NCCL ncclGroupEnd() {
  ENTER_NCCL(ncclGroupEnd)
  ASK(groups > 0, nccl_bad_usage, "the end of a group that has not begun")
  if (--groups > 0) return nccl_success;
  std::map<Communicator *, std::vector<Message>> all;
  all.swap(exchanged);
  Result last = nccl_success;
  for (auto &one : all) {
    Result result = exchange_all(one.first, std::move(one.second));
    if (result != nccl_success) last = result;
  }
  return last;
}

NCCL ncclAllReduce(const void *from, void *to, size_t count, int type, int op, Communicator *communicator, Stream *stream) {
  ENTER_NCCL(ncclAllReduce)
  return collect({all_reduce, type, op, 0, count}, from, to, communicator, stream);
}

NCCL ncclBroadcast(const void *from, void *to, size_t count, int type, int root, Communicator *communicator, Stream *stream) {
  ENTER_NCCL(ncclBroadcast)
  return collect({broadcast, type, 0, root, count}, from, to, communicator, stream);
}

NCCL ncclAllGather(const void *from, void *to, size_t count, int type, Communicator *communicator, Stream *stream) {
  ENTER_NCCL(ncclAllGather)
  return collect({all_gather, type, 0, 0, count}, from, to, communicator, stream);
}

NCCL ncclReduceScatter(const void *from, void *to, size_t count, int type, int op, Communicator *communicator, Stream *stream) {
  ENTER_NCCL(ncclReduceScatter)
  return collect({reduce_scatter, type, op, 0, count}, from, to, communicator, stream);
}

NCCL ncclSend(const void *from, size_t count, int type, int peer, Communicator *communicator, Stream *stream) {
  ENTER_NCCL(ncclSend)
  return message(true, reinterpret_cast<unsigned long long>(from), count, type, peer, communicator, stream);
}

NCCL ncclRecv(void *to, size_t count, int type, int peer, Communicator *communicator, Stream *stream) {
  ENTER_NCCL(ncclRecv)
  return message(false, reinterpret_cast<unsigned long long>(to), count, type, peer, communicator, stream);
}
