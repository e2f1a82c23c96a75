#include "profiler/virtual_gpu/streams.h"

#include "profiler/virtual_gpu/card.h"
#include "profiler/virtual_gpu/value_copies.h"

#include <ctime>
#include <deque>
#include <mutex>
#include <unordered_set>

namespace profiler::virtual_gpu {
namespace {

/// CUPTI's number of the default stream; others follow.
constexpr uint32_t kDefaultStreamNumber = 7;

struct Streams {
    std::mutex mutex;
    std::deque<Stream> defaults;  // by device
    std::unordered_set<Stream*> made;
    uint32_t last_number = 0;
    uint64_t last_capture = 0;
    std::vector<std::shared_ptr<Graph>> captured;  // of the captures that go on
    std::atomic<std::size_t> num_captured = 0;     // of them: most processes capture none
    std::atomic<uint64_t> host_clock_ns = 0;       // virtual

    static Streams& instance() {
        static auto* const streams = new Streams;
        return *streams;
    }

private:
    Streams() {
        for (std::size_t device = 0; device < machine().cards.size(); ++device) {
            last_number = kDefaultStreamNumber + static_cast<uint32_t>(device);
            Stream& stream = defaults.emplace_back();
            stream.device = static_cast<int>(device);
            stream.number = last_number;
        }
    }
};

bool is_default(cudaStream_t handle) {
    return handle == nullptr || handle == cudaStreamLegacy || handle == cudaStreamPerThread;
}

void raise_to(std::atomic<uint64_t>& clock_ns, uint64_t least_ns) {
    uint64_t now_ns = clock_ns;
    while (now_ns < least_ns && !clock_ns.compare_exchange_weak(now_ns, least_ns)) {
    }
}

/// Every kernel takes the same time, because a launch does not tell how much work it is: of several
/// configurations of a kernel the first one wins, and one kernel wins over two. Moved bytes take
/// the time of the card's memory. The figures are of a small kernel, of a launch, and of an event.
constexpr uint64_t kKernelNs = 20'000, kLaunchNs = 2'000, kEventNs = 1'000;

uint64_t duration_ns(const Work& work) {
    if (work.kind == WorkKind::kKernel) return kKernelNs;
    const Card& card = machine().cards[static_cast<std::size_t>(work.device)];
    const double moving_ns = static_cast<double>(work.size_bytes) / bytes_per_ns(card);
    return kLaunchNs + static_cast<uint64_t>(moving_ns);
}

/// Something that takes so long follows what the stream was given before.
void move_clock(Stream& stream, uint64_t taken_ns) {
    raise_to(stream.clock_ns, Streams::instance().host_clock_ns);
    stream.clock_ns += taken_ns;
}

void wait_until(uint64_t end_ns) { raise_to(Streams::instance().host_clock_ns, end_ns); }

cudaError_t make_stream(cudaStream_t* handle, unsigned flags, int priority) {
    Streams& streams = Streams::instance();
    auto* const stream = new Stream;
    stream->device = current_device();
    stream->priority = priority;
    stream->flags = flags;
    {
        const std::lock_guard lock(streams.mutex);
        stream->number = ++streams.last_number;
        streams.made.insert(stream);
    }
    *handle = reinterpret_cast<cudaStream_t>(stream);
    cupti_stream_made(*handle);  // without the lock: a subscriber may use streams
    return cudaSuccess;
}

Event& event_of(cudaEvent_t handle) { return *reinterpret_cast<Event*>(handle); }

cudaError_t make_event(cudaEvent_t* handle) {
    *handle = reinterpret_cast<cudaEvent_t>(new Event);
    return cudaSuccess;
}

cudaError_t record_event(cudaEvent_t handle, cudaStream_t stream) {
    static std::atomic<uint64_t> last_recording = 0;
    Event& event = event_of(handle);
    Stream& recorded = stream_of(stream);
    move_clock(recorded, kEventNs);  // time never stands still: programs divide by it
    event.recorded_ns = recorded.clock_ns.load();
    event.recording = ++last_recording;
    event.capture = recorded.capture;
    if (!event.capture) cupti_event_recorded(recorded.number, event.recording);
    return cudaSuccess;
}

/// A graph and its runnable form share the captured work, which nobody changes any more.
using SharedGraph = std::shared_ptr<Graph>;

SharedGraph& graph_of(cudaGraph_t handle) { return *reinterpret_cast<SharedGraph*>(handle); }
SharedGraph& graph_of(cudaGraphExec_t handle) { return *reinterpret_cast<SharedGraph*>(handle); }

}  // namespace

uint64_t steady_now_ns() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<uint64_t>(now.tv_nsec);
}

Stream& stream_of(cudaStream_t handle) {
    if (!is_default(handle)) return *reinterpret_cast<Stream*>(handle);
    return Streams::instance().defaults[static_cast<std::size_t>(current_device())];
}

bool captures() { return Streams::instance().num_captured > 0; }

void add_captured_write(const void* address, std::size_t size) {
    if (!captures()) return;
    Streams& streams = Streams::instance();
    const std::lock_guard lock(streams.mutex);
    for (const std::shared_ptr<Graph>& graph : streams.captured) {
        graph->writes.emplace_back(address, size);
    }
}

void submit(cudaStream_t handle, Work work) {
    Stream& stream = stream_of(handle);
    work.device = stream.device;
    work.stream_number = stream.number;
    if (stream.capture) {
        stream.capture->work.push_back(work);
    } else {
        move_clock(stream, duration_ns(work));
        cupti_work_done(work);
    }
}

void synchronize_device(int device) {
    Streams& streams = Streams::instance();
    const std::lock_guard lock(streams.mutex);
    wait_until(streams.defaults[static_cast<std::size_t>(device)].clock_ns);
    for (const Stream* const stream : streams.made) {
        if (stream->device == device) wait_until(stream->clock_ns);
    }
}

// ---- streams ------------------------------------------------------------------------------------

VIRTUAL_GPU_API cudaError_t cudaStreamCreate(cudaStream_t* stream) {
    const ApiCall call(CUPTI_RUNTIME_TRACE_CBID_cudaStreamCreate_v3020);
    return make_stream(stream, cudaStreamDefault, 0);
}

VIRTUAL_GPU_API cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
    const ApiCall call(CUPTI_RUNTIME_TRACE_CBID_cudaStreamCreateWithFlags_v5000);
    return make_stream(stream, flags, 0);
}

VIRTUAL_GPU_API cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags,
                                                         int priority) {
    const ApiCall call(CUPTI_RUNTIME_TRACE_CBID_cudaStreamCreateWithPriority_v5050);
    return make_stream(stream, flags, priority);
}

VIRTUAL_GPU_API cudaError_t cudaStreamDestroy(cudaStream_t handle) {
    const ApiCall call(CUPTI_RUNTIME_TRACE_CBID_cudaStreamDestroy_v5050);
    Streams& streams = Streams::instance();
    auto* const stream = reinterpret_cast<Stream*>(handle);
    {
        const std::lock_guard lock(streams.mutex);
        if (streams.made.erase(stream) == 0) return report(cudaErrorInvalidResourceHandle);
    }
    cupti_stream_ends(handle);
    delete stream;
    return cudaSuccess;
}

VIRTUAL_GPU_API cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
    *priority = stream_of(stream).priority;
    return cudaSuccess;
}

VIRTUAL_GPU_API cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
    *flags = stream_of(stream).flags;
    return cudaSuccess;
}

VIRTUAL_GPU_API cudaError_t cudaStreamQuery(cudaStream_t stream) {
    wait_until(stream_of(stream).clock_ns);
    return cudaSuccess;
}

VIRTUAL_GPU_API cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    const ApiCall call(CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_v3020);
    if (stream_of(stream).capture) return report(cudaErrorStreamCaptureUnsupported);
    wait_until(stream_of(stream).clock_ns);
    return cudaSuccess;
}

/// A stream that waits for a captured event is captured too.
VIRTUAL_GPU_API cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
    const ApiCall call(CUPTI_RUNTIME_TRACE_CBID_cudaStreamWaitEvent_v3020);
    const std::shared_ptr<Graph>& capture = event_of(event).capture;
    if (!capture) {
        Stream& waiting = stream_of(stream);
        raise_to(waiting.clock_ns, event_of(event).recorded_ns);
        cupti_stream_waits(waiting.number, event_of(event).recording);
        return cudaSuccess;
    }
    if (capture->has_ended) return report(cudaErrorCapturedEvent);
    stream_of(stream).capture = capture;
    return cudaSuccess;
}

VIRTUAL_GPU_API cudaError_t cudaStreamAddCallback(cudaStream_t stream,
                                                  cudaStreamCallback_t callback, void* data,
                                                  unsigned) {
    if (stream_of(stream).capture) return report(cudaErrorStreamCaptureUnsupported);
    callback(stream, cudaSuccess, data);
    return cudaSuccess;
}

VIRTUAL_GPU_API cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function,
                                               void* data) {
    if (stream_of(stream).capture) {
        return refuse_by_error("cudaLaunchHostFunc while a graph is captured");
    }
    function(data);
    return cudaSuccess;
}

// ---- events -------------------------------------------------------------------------------------

VIRTUAL_GPU_API cudaError_t cudaEventCreate(cudaEvent_t* event) { return make_event(event); }
VIRTUAL_GPU_API cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
    return make_event(event);
}
VIRTUAL_GPU_API cudaError_t cudaEventDestroy(cudaEvent_t event) {
    delete &event_of(event);
    return cudaSuccess;
}
VIRTUAL_GPU_API cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    const ApiCall call(CUPTI_RUNTIME_TRACE_CBID_cudaEventRecord_v3020);
    return record_event(event, stream);
}
VIRTUAL_GPU_API cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream,
                                                     unsigned) {
    const ApiCall call(CUPTI_RUNTIME_TRACE_CBID_cudaEventRecordWithFlags_v11010);
    return record_event(event, stream);
}
VIRTUAL_GPU_API cudaError_t cudaEventQuery(cudaEvent_t event) {
    wait_until(event_of(event).recorded_ns);
    return cudaSuccess;
}
VIRTUAL_GPU_API cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    const ApiCall call(CUPTI_RUNTIME_TRACE_CBID_cudaEventSynchronize_v3020);
    wait_until(event_of(event).recorded_ns);
    return cudaSuccess;
}
VIRTUAL_GPU_API cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start,
                                                 cudaEvent_t end) {
    const uint64_t from = event_of(start).recorded_ns;
    const uint64_t to = event_of(end).recorded_ns;
    if (from == 0 || to == 0) return report(cudaErrorInvalidResourceHandle);
    *milliseconds = static_cast<float>(static_cast<double>(static_cast<int64_t>(to - from)) * 1e-6);
    return cudaSuccess;
}

// ---- graphs -------------------------------------------------------------------------------------

VIRTUAL_GPU_API cudaError_t cudaStreamIsCapturing(cudaStream_t stream,
                                                  cudaStreamCaptureStatus* status) {
    *status =
        stream_of(stream).capture ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return cudaSuccess;
}

VIRTUAL_GPU_API cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream,
                                                     cudaStreamCaptureStatus* status,
                                                     unsigned long long* id, cudaGraph_t* graph,
                                                     const cudaGraphNode_t** dependencies,
                                                     const cudaGraphEdgeData** edges,
                                                     std::size_t* num_dependencies) {
    std::shared_ptr<Graph>& capture = stream_of(stream).capture;
    *status = capture ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    if (id != nullptr) *id = capture ? capture->capture_id : 0;
    if (graph != nullptr) *graph = capture ? reinterpret_cast<cudaGraph_t>(&capture) : nullptr;
    if (dependencies != nullptr) *dependencies = nullptr;
    if (edges != nullptr) *edges = nullptr;
    if (num_dependencies != nullptr) *num_dependencies = 0;
    return cudaSuccess;
}

VIRTUAL_GPU_API cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode) {
    if (is_default(handle)) return report(cudaErrorStreamCaptureUnsupported);
    Stream& stream = stream_of(handle);
    if (stream.capture) return report(cudaErrorIllegalState);
    Streams& streams = Streams::instance();
    const std::lock_guard lock(streams.mutex);
    stream.capture = std::make_shared<Graph>();
    stream.capture->capture_id = ++streams.last_capture;
    streams.captured.push_back(stream.capture);
    ++streams.num_captured;
    return cudaSuccess;
}

VIRTUAL_GPU_API cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
    const std::shared_ptr<Graph> captured = stream_of(handle).capture;
    if (!captured) return report(cudaErrorStreamCaptureInvalidated);
    Streams& streams = Streams::instance();
    const std::lock_guard lock(streams.mutex);
    for (Stream* const stream : streams.made) {
        if (stream->capture == captured) stream->capture = nullptr;
    }
    for (Stream& stream : streams.defaults) {
        if (stream.capture == captured) stream.capture = nullptr;
    }
    captured->has_ended = true;
    streams.num_captured -= std::erase(streams.captured, captured);
    *graph = reinterpret_cast<cudaGraph_t>(new SharedGraph(captured));
    return cudaSuccess;
}

VIRTUAL_GPU_API cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
    thread_local cudaStreamCaptureMode of_thread = cudaStreamCaptureModeGlobal;
    std::swap(*mode, of_thread);
    return cudaSuccess;
}

VIRTUAL_GPU_API cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes,
                                              std::size_t* count) {
    if (nodes != nullptr) return refuse_by_error("cudaGraphGetNodes with a list of nodes");
    *count = graph_of(graph)->work.size();
    return cudaSuccess;
}

VIRTUAL_GPU_API cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* runnable,
                                                          cudaGraph_t graph, unsigned long long) {
    *runnable = reinterpret_cast<cudaGraphExec_t>(new SharedGraph(graph_of(graph)));
    return cudaSuccess;
}

VIRTUAL_GPU_API cudaError_t cudaGraphLaunch(cudaGraphExec_t runnable, cudaStream_t stream) {
    const ApiCall call(CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000);
    const Graph& graph = *graph_of(runnable);
    for (const Work& work : graph.work) submit(stream, work);
    for (const auto& [address, size] : graph.writes) forget_on_device(address, size);
    return cudaSuccess;
}

VIRTUAL_GPU_API cudaError_t cudaGraphExecDestroy(cudaGraphExec_t runnable) {
    delete &graph_of(runnable);
    return cudaSuccess;
}

VIRTUAL_GPU_API cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    delete &graph_of(graph);
    return cudaSuccess;
}

}  // namespace profiler::virtual_gpu
