// The driver's calls about graphs: captured from a stream or made node by node, instantiated, updated, launched. The order in which
// independent nodes run is as free as their dependencies leave it.

#include <cstring>

#include "arena.h"
#include "../control.h"
#include "driver.h"

namespace standin {

Node *add_node(Graph *graph, Work work, std::vector<size_t> after) {
  auto node = std::make_unique<Node>();
  node->graph = graph;
  node->place = graph->nodes.size();
  node->work = std::move(work);
  node->after = std::move(after);
  Handles<Node>::live.insert(node.get());
  graph->nodes.push_back(std::move(node));
  return graph->nodes.back().get();
}

namespace {

struct KernelParameters {
  Function *function;
  unsigned grid[3], block[3], dynamic;
  void **parameters;
  void **extra;
  void *kernel, *context;
};

struct FillParameters {
  CUdeviceptr to;
  size_t pitch;
  unsigned value, element;
  size_t width, height;
};

enum MemoryType { host_memory = 1, device_memory = 2, unified_memory = 4 };

struct Side {
  size_t x, y, z, level;
  unsigned type;
  void *host;
  CUdeviceptr device;
  void *array, *reserved;
  size_t pitch, height;
};

struct CopyParameters {
  Side from, to;
  size_t width, height, depth;
};

CUresult read_fill(const FillParameters *given, Work &work) {
  NEED(given != nullptr && (given->element == 1 || given->element == 2 || given->element == 4), CUDA_ERROR_INVALID_VALUE)
  NEED(given->height == 1 && given->to % given->element == 0, CUDA_ERROR_INVALID_VALUE)
  NEED(is_live(given->to, given->width * given->element), CUDA_ERROR_INVALID_VALUE)
  work = Work{};
  work.kind = Work::fill;
  work.to = given->to;
  work.value = given->value;
  work.value_bytes = given->element;
  work.bytes = given->width * given->element;
  return CUDA_SUCCESS;
}

/** The most bytes from one row to the next. */
const size_t most_pitch = 2147483647;

CUresult read_side(const Side &side, const CopyParameters &copy, unsigned long long &address, bool &device) {
  NEED(side.y == 0 && side.z == 0, CUDA_ERROR_INVALID_VALUE)
  NEED(side.pitch >= side.x + copy.width && side.pitch <= most_pitch && side.height >= copy.height, CUDA_ERROR_INVALID_VALUE)
  // Rows apart are not modelled.
  NEED(copy.height == 1 || side.pitch == copy.width, CUDA_ERROR_INVALID_VALUE)
  size_t bytes = copy.width * copy.height;
  device = side.type == device_memory;
  NEED(device || side.type == host_memory, CUDA_ERROR_INVALID_VALUE)
  address = (device ? side.device : reinterpret_cast<unsigned long long>(side.host)) + side.x;
  NEED(!device || is_live(address, bytes), CUDA_ERROR_INVALID_VALUE)
  return CUDA_SUCCESS;
}

CUresult read_copy(const CopyParameters *given, Work &work) {
  NEED(given != nullptr && given->width > 0 && given->height > 0 && given->depth == 1, CUDA_ERROR_INVALID_VALUE)
  work = Work{};
  work.kind = Work::copy;
  work.bytes = given->width * given->height;
  if (CUresult result = read_side(given->from, *given, work.from, work.from_device)) return result;
  return read_side(given->to, *given, work.to, work.to_device);
}

CUresult read_kernel(const KernelParameters *given, Work &work) {
  NEED(given != nullptr, CUDA_ERROR_INVALID_VALUE)
  uint3 grid = {given->grid[0], given->grid[1], given->grid[2]}, block = {given->block[0], given->block[1], given->block[2]};
  work = Work{};
  return describe_launch(given->function, grid, block, given->dynamic, given->parameters, given->extra, work);
}

/** Adds a node behind those listed. */
CUresult add(Node **out, Graph *graph, Node *const *after, size_t count, Work work) {
  NEED(out != nullptr, CUDA_ERROR_INVALID_VALUE)
  std::vector<size_t> places;
  for (size_t i = 0; i < count; i++) {
    NEED(Handles<Node>::has(after[i]) && after[i]->graph == graph, CUDA_ERROR_INVALID_VALUE)
    places.push_back(after[i]->place);
  }
  *out = add_node(graph, std::move(work), std::move(places));
  return CUDA_SUCCESS;
}

/** The work of a node in an instantiated graph; null where the node is not of that graph or of another kind. */
Work *work_of(GraphExec *exec, Node *node, Work::Kind kind) {
  if (!Handles<Node>::has(node) || node->graph != exec->graph) return nullptr;
  Work *work = &exec->work[node->place];
  return work->kind == kind ? work : nullptr;
}

CUresult instantiate(GraphExec **exec, Graph *graph) {
  NEED(exec != nullptr, CUDA_ERROR_INVALID_VALUE)
  NEED(Handles<Graph>::has(graph), CUDA_ERROR_INVALID_VALUE)
  *exec = new GraphExec{graph, {}, {}};
  for (const auto &node : graph->nodes) {
    (*exec)->work.push_back(node->work);
    (*exec)->after.push_back(node->after);
  }
  Handles<GraphExec>::live.insert(*exec);
  return CUDA_SUCCESS;
}

/** Work in an order that the dependencies allow: as added, or the newest ready one, or any ready one. */
std::vector<Work> in_order(const GraphExec &exec) {
  if (settings.order == forward) return exec.work;
  std::vector<Work> sorted;
  std::vector<bool> done(exec.work.size());
  while (sorted.size() < exec.work.size()) {
    std::vector<size_t> ready;
    for (size_t i = 0; i < exec.work.size(); i++) {
      bool free = !done[i];
      for (size_t before : exec.after[i]) free = free && done[before];
      if (free) ready.push_back(i);
    }
    size_t next = settings.order == reverse ? ready.back() : ready[next_random() % ready.size()];
    done[next] = true;
    sorted.push_back(exec.work[next]);
  }
  return sorted;
}

}  // namespace
}  // namespace standin

using namespace standin;

API cuStreamBeginCapture_v2(Stream *stream, int mode) {
  ENTER(cuStreamBeginCapture_v2, context)
  NEED(mode >= 0 && mode <= 2, CUDA_ERROR_INVALID_VALUE)
  // The default stream cannot be captured.
  NEED(stream_of(stream) != &default_stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
  NEED(Handles<Stream>::has(stream), CUDA_ERROR_INVALID_HANDLE)
  NEED(stream->capture == nullptr, CUDA_ERROR_INVALID_VALUE)
  stream->capture = new Graph;
  stream->origin = true;
  stream->invalidated = false;
  stream->mode = mode;
  stream->tips.clear();
  return CUDA_SUCCESS;
}

API cuStreamEndCapture(Stream *stream, Graph **out) {
  ENTER(cuStreamEndCapture, context)
  NEED(out != nullptr, CUDA_ERROR_INVALID_VALUE)
  NEED(Handles<Stream>::has(stream), CUDA_ERROR_INVALID_HANDLE)
  NEED(stream->capture != nullptr && stream->origin, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED)
  Graph *graph = stream->capture;
  *out = nullptr;
  CUresult result = stream->invalidated ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
  for (Stream *other : Handles<Stream>::live) {
    if (other == stream || other->capture != graph) continue;
    // Joined means that a later node of the origin stands behind the other stream's last.
    for (size_t tip : other->tips) {
      bool joined = false;
      for (size_t mine : stream->tips) joined = joined || mine == tip;
      for (const auto &node : graph->nodes)
        for (size_t before : node->after) joined = joined || before == tip;
      if (!joined) result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    }
    other->capture = nullptr;
    other->tips.clear();
  }
  stream->capture = nullptr;
  stream->origin = false;
  if (result == CUDA_SUCCESS) {
    Handles<Graph>::live.insert(graph);
    counters.graphs++;
    *out = graph;
  }
  return result;
}

API cuStreamIsCapturing(Stream *handle, int *status) {
  ENTER(cuStreamIsCapturing, context)
  Stream *stream = stream_of(handle);
  NEED(status != nullptr, CUDA_ERROR_INVALID_VALUE)
  NEED(stream != nullptr, CUDA_ERROR_INVALID_HANDLE)
  *status = stream->capture == nullptr ? 0 : stream->invalidated ? 2 : 1;
  return CUDA_SUCCESS;
}

API cuThreadExchangeStreamCaptureMode(int *mode) {
  ENTER(cuThreadExchangeStreamCaptureMode, initialised)
  static thread_local int current = 0;
  NEED(mode != nullptr && *mode >= 0 && *mode <= 2, CUDA_ERROR_INVALID_VALUE)
  std::swap(*mode, current);
  return CUDA_SUCCESS;
}

API cuGraphCreate(Graph **graph, unsigned flags) {
  ENTER(cuGraphCreate, context)
  NEED(graph != nullptr && flags == 0, CUDA_ERROR_INVALID_VALUE)
  *graph = new Graph;
  Handles<Graph>::live.insert(*graph);
  counters.graphs++;
  return CUDA_SUCCESS;
}

API cuGraphDestroy(Graph *graph) {
  ENTER(cuGraphDestroy, context)
  NEED(Handles<Graph>::live.erase(graph) != 0, CUDA_ERROR_INVALID_VALUE)
  // Instantiated graphs are still updated through the handles of its nodes: they stay, as the graph's memory does.
  counters.graphs--;
  return CUDA_SUCCESS;
}

API cuGraphAddKernelNode_v2(Node **node, Graph *graph, Node *const *after, size_t count, const KernelParameters *given) {
  ENTER(cuGraphAddKernelNode_v2, context)
  NEED(Handles<Graph>::has(graph), CUDA_ERROR_INVALID_VALUE)
  Work work;
  if (CUresult result = read_kernel(given, work)) return result;
  return add(node, graph, after, count, std::move(work));
}

API cuGraphAddMemcpyNode(Node **node, Graph *graph, Node *const *after, size_t count, const CopyParameters *given, void *) {
  ENTER(cuGraphAddMemcpyNode, context)
  NEED(Handles<Graph>::has(graph), CUDA_ERROR_INVALID_VALUE)
  Work work;
  if (CUresult result = read_copy(given, work)) return result;
  return add(node, graph, after, count, std::move(work));
}

API cuGraphAddMemsetNode(Node **node, Graph *graph, Node *const *after, size_t count, const FillParameters *given, void *) {
  ENTER(cuGraphAddMemsetNode, context)
  NEED(Handles<Graph>::has(graph), CUDA_ERROR_INVALID_VALUE)
  Work work;
  if (CUresult result = read_fill(given, work)) return result;
  return add(node, graph, after, count, std::move(work));
}

API cuGraphAddEmptyNode(Node **node, Graph *graph, Node *const *after, size_t count) {
  ENTER(cuGraphAddEmptyNode, context)
  NEED(Handles<Graph>::has(graph), CUDA_ERROR_INVALID_VALUE)
  return add(node, graph, after, count, Work{});
}

API cuGraphGetNodes(Graph *graph, Node **nodes, size_t *count) {
  ENTER(cuGraphGetNodes, context)
  NEED(Handles<Graph>::has(graph) && count != nullptr, CUDA_ERROR_INVALID_VALUE)
  for (size_t i = 0; nodes != nullptr && i < *count; i++) nodes[i] = i < graph->nodes.size() ? graph->nodes[i].get() : nullptr;
  *count = graph->nodes.size();
  return CUDA_SUCCESS;
}

API cuGraphNodeGetType(Node *node, int *type) {
  ENTER(cuGraphNodeGetType, context)
  NEED(Handles<Node>::has(node) && type != nullptr, CUDA_ERROR_INVALID_VALUE)
  switch (node->work.kind) {
    case Work::kernel: *type = 0; break;
    case Work::copy: *type = 1; break;
    case Work::fill: *type = 2; break;
    case Work::host: *type = 3; break;
    case Work::nothing:
    case Work::encounter:
    case Work::release: *type = 5;
  }
  return CUDA_SUCCESS;
}

API cuGraphInstantiateWithFlags(GraphExec **exec, Graph *graph, unsigned long long) {
  ENTER(cuGraphInstantiateWithFlags, context)
  return instantiate(exec, graph);
}

API cuGraphUpload(GraphExec *exec, Stream *stream) {
  ENTER(cuGraphUpload, context)
  NEED(Handles<GraphExec>::has(exec), CUDA_ERROR_INVALID_VALUE)
  NEED(stream_of(stream) != nullptr, CUDA_ERROR_INVALID_HANDLE)
  return CUDA_SUCCESS;
}

API cuGraphLaunch(GraphExec *exec, Stream *handle) {
  ENTER(cuGraphLaunch, context)
  NEED(Handles<GraphExec>::has(exec), CUDA_ERROR_INVALID_VALUE)
  Stream *stream = stream_of(handle);
  NEED(stream != nullptr, CUDA_ERROR_INVALID_HANDLE)
  counters.graph_launches++;
  for (const Work &work : exec->work)
    NEED(work.kind != Work::kernel || Handles<Function>::has(work.function), CUDA_ERROR_INVALID_VALUE)
  return submit_all(stream, in_order(*exec));
}

API cuGraphExecDestroy(GraphExec *exec) {
  ENTER(cuGraphExecDestroy, context)
  NEED(Handles<GraphExec>::live.erase(exec) != 0, CUDA_ERROR_INVALID_VALUE)
  delete exec;
  return CUDA_SUCCESS;
}

API cuGraphExecKernelNodeSetParams_v2(GraphExec *exec, Node *node, const KernelParameters *given) {
  ENTER(cuGraphExecKernelNodeSetParams_v2, context)
  NEED(Handles<GraphExec>::has(exec), CUDA_ERROR_INVALID_VALUE)
  Work *work = work_of(exec, node, Work::kernel);
  NEED(work != nullptr, CUDA_ERROR_INVALID_VALUE)
  Work changed;
  if (CUresult result = read_kernel(given, changed)) return result;
  *work = std::move(changed);
  return CUDA_SUCCESS;
}

API cuGraphExecMemcpyNodeSetParams(GraphExec *exec, Node *node, const CopyParameters *given, void *) {
  ENTER(cuGraphExecMemcpyNodeSetParams, context)
  NEED(Handles<GraphExec>::has(exec), CUDA_ERROR_INVALID_VALUE)
  Work *work = work_of(exec, node, Work::copy);
  NEED(work != nullptr, CUDA_ERROR_INVALID_VALUE)
  Work changed;
  if (CUresult result = read_copy(given, changed)) return result;
  // Which sides are the device's cannot change.
  NEED(changed.to_device == work->to_device && changed.from_device == work->from_device, CUDA_ERROR_INVALID_VALUE)
  *work = std::move(changed);
  return CUDA_SUCCESS;
}

API cuGraphExecMemsetNodeSetParams(GraphExec *exec, Node *node, const FillParameters *given, void *) {
  ENTER(cuGraphExecMemsetNodeSetParams, context)
  NEED(Handles<GraphExec>::has(exec), CUDA_ERROR_INVALID_VALUE)
  Work *work = work_of(exec, node, Work::fill);
  NEED(work != nullptr, CUDA_ERROR_INVALID_VALUE)
  return read_fill(given, *work);
}
