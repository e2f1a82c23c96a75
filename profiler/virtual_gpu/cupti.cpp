#include "profiler/virtual_gpu/work.h"

#include "profiler/virtual_gpu/device_memory.h"
#include "profiler/virtual_gpu/streams.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

/// CUPTI's activity interface: the records that clients asked for, in buffers that they give. Calls
/// have the host's times. Work has no time of its own: it lies within the call that started it.
namespace profiler::virtual_gpu {
namespace {

struct CallbackName {
    CUpti_CallbackDomain domain;
    CUpti_CallbackId id;
    const char* name;
};
constexpr CallbackName kCallbackNames[] = {
#include "generated/callback_names.inc"
};

constexpr std::size_t kMaxKinds = 256;
constexpr std::size_t kMaxIdKinds = 16;

/// What the records of each kind occupy. CUPTI aligns each to 8 bytes.
constexpr std::pair<CUpti_ActivityKind, std::size_t> kRecordBytes[]{
    {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, sizeof(CUpti_ActivityKernel10)},
    {CUPTI_ACTIVITY_KIND_MEMCPY, sizeof(CUpti_ActivityMemcpy6)},
    {CUPTI_ACTIVITY_KIND_MEMSET, sizeof(CUpti_ActivityMemset4)},
    {CUPTI_ACTIVITY_KIND_RUNTIME, sizeof(CUpti_ActivityAPI)},
    {CUPTI_ACTIVITY_KIND_DRIVER, sizeof(CUpti_ActivityAPI)},
    {CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, sizeof(CUpti_ActivityExternalCorrelation)},
    {CUPTI_ACTIVITY_KIND_MEMORY2, sizeof(CUpti_ActivityMemory4)},
    {CUPTI_ACTIVITY_KIND_CUDA_EVENT, sizeof(CUpti_ActivityCudaEvent2)},
    {CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, sizeof(CUpti_ActivitySynchronization2)},
};

/// 0: no such record is made here.
std::size_t record_bytes(const CUpti_Activity& record) {
    const std::size_t* const bytes = find_value(kRecordBytes, record.kind);
    return bytes == nullptr ? 0 : *bytes;
}

constexpr std::size_t aligned(std::size_t size) { return (size + 7) & ~std::size_t{7}; }

struct Client {
    std::recursive_mutex mutex;             // a client may ask CUPTI while it takes a buffer
    CUpti_CallbackFunc callback = nullptr;  // of the subscriber; null: nobody subscribed
    void* callback_data = nullptr;
    std::set<std::pair<CUpti_CallbackDomain, CUpti_CallbackId>> callbacks;
    CUpti_BuffersCallbackRequestFunc request_buffer = nullptr;
    CUpti_BuffersCallbackCompleteFunc complete_buffer = nullptr;
    std::atomic<CUpti_TimestampCallbackFunc> clock = nullptr;
    std::array<std::atomic<bool>, kMaxKinds> kinds{};
    /// Calls that were switched by themselves, whatever their kind.
    std::map<std::pair<CUpti_ActivityKind, CUpti_CallbackId>, bool> switched_calls;
    uint8_t* buffer = nullptr;
    std::size_t buffer_bytes = 0;
    std::size_t used_bytes = 0;
    std::size_t dropped = 0;
    std::unordered_map<uint32_t, uint64_t> stream_end_ns;  // by stream number
    std::set<std::string> loaded;                          // kernels whose module was loaded

    static Client& instance() {
        static auto* const client = new Client;
        return *client;
    }

    bool wants(CUpti_ActivityKind kind) const { return kinds[static_cast<std::size_t>(kind)]; }
    bool wants_call(CUpti_ActivityKind domain, CUpti_CallbackId call) const {
        const auto found = switched_calls.find({domain, call});
        return found != switched_calls.end() ? found->second : wants(domain);
    }
    uint64_t now_ns() const {
        const CUpti_TimestampCallbackFunc now = clock;
        return now != nullptr ? now() : steady_now_ns();
    }

    void hand_over() {
        if (buffer == nullptr) return;
        complete_buffer(nullptr, 0, std::exchange(buffer, nullptr), buffer_bytes, used_bytes);
    }
    template <typename Record>
    void add(const Record& record) {
        constexpr std::size_t kBytes = aligned(sizeof(Record));
        if (buffer != nullptr && used_bytes + kBytes > buffer_bytes) hand_over();
        if (buffer == nullptr && !take_buffer(kBytes)) {
            ++dropped;
            return;
        }
        std::memcpy(buffer + used_bytes, &record, sizeof record);
        used_bytes += kBytes;
    }

private:
    bool take_buffer(std::size_t needed_bytes) {
        if (request_buffer == nullptr) return false;
        std::size_t max_records = 0;
        request_buffer(&buffer, &buffer_bytes, &max_records);
        used_bytes = 0;
        if (buffer == nullptr || buffer_bytes < needed_bytes) return false;
        std::memset(buffer, 0, buffer_bytes);
        return true;
    }
};

thread_local std::array<std::vector<uint64_t>, kMaxIdKinds> external_ids;
thread_local const ApiCall* innermost_call = nullptr;
std::atomic<uint32_t> last_correlation = 0;

/// Of the call that starts the work; work without a call has one of its own.
uint32_t correlation_of_work() {
    return innermost_call != nullptr ? innermost_call->correlation() : ++last_correlation;
}

uint32_t context_number(int device) { return static_cast<uint32_t>(device) + 1; }

void add_external_ids(Client& client, uint32_t correlation) {
    if (!client.wants(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION)) return;
    for (std::size_t kind = 0; kind < kMaxIdKinds; ++kind) {
        if (external_ids[kind].empty()) continue;
        CUpti_ActivityExternalCorrelation record{};
        record.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
        record.externalKind = static_cast<CUpti_ExternalCorrelationKind>(kind);
        record.externalId = external_ids[kind].back();
        record.correlationId = correlation;
        client.add(record);
    }
}

/// Work follows the earlier work of its stream, and takes at least a nanosecond.
struct Span {
    uint64_t start_ns = 0;
    uint64_t end_ns = 0;
};
Span span_of(Client& client, const Work& work) {
    uint64_t& end_ns = client.stream_end_ns[work.stream_number];
    const uint64_t start_ns = std::max(client.now_ns(), end_ns);
    end_ns = start_ns + 1;
    return {start_ns, end_ns};
}

CUpti_ActivityKind record_kind(WorkKind kind) {
    switch (kind) {
        case WorkKind::kKernel:
            return CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
        case WorkKind::kCopy:
            return CUPTI_ACTIVITY_KIND_MEMCPY;
        case WorkKind::kSet:
            return CUPTI_ACTIVITY_KIND_MEMSET;
    }
    return CUPTI_ACTIVITY_KIND_INVALID;
}

/// A record of work on a device: the fields that those of kernels, copies and sets share.
template <typename Record>
Record record_of(Client& client, const Work& work, uint32_t correlation) {
    const Span span = span_of(client, work);
    Record record{};
    record.kind = record_kind(work.kind);
    record.start = span.start_ns;
    record.end = span.end_ns;
    record.deviceId = static_cast<uint32_t>(work.device);
    record.contextId = context_number(work.device);
    record.streamId = work.stream_number;
    record.correlationId = correlation;
    return record;
}

void add_kernel_record(Client& client, const Work& work, uint32_t correlation) {
    auto record = record_of<CUpti_ActivityKernel10>(client, work, correlation);
    record.gridX = static_cast<int32_t>(work.grid.x);
    record.gridY = static_cast<int32_t>(work.grid.y);
    record.gridZ = static_cast<int32_t>(work.grid.z);
    record.blockX = static_cast<int32_t>(work.block.x);
    record.blockY = static_cast<int32_t>(work.block.y);
    record.blockZ = static_cast<int32_t>(work.block.z);
    record.dynamicSharedMemory = static_cast<int32_t>(work.shared_bytes);
    record.staticSharedMemory = static_cast<int32_t>(work.static_shared_bytes);
    record.registersPerThread = static_cast<uint16_t>(work.registers);
    record.localMemoryPerThread = static_cast<uint32_t>(work.local_bytes);
    record.name = work.name;
    client.add(record);
}

void add_copy_record(Client& client, const Work& work, uint32_t correlation) {
    auto record = record_of<CUpti_ActivityMemcpy6>(client, work, correlation);
    record.copyKind = static_cast<uint8_t>(work.copy_kind);
    record.bytes = static_cast<uint64_t>(work.size_bytes);
    client.add(record);
}

void add_set_record(Client& client, const Work& work, uint32_t correlation) {
    auto record = record_of<CUpti_ActivityMemset4>(client, work, correlation);
    record.bytes = static_cast<uint64_t>(work.size_bytes);
    client.add(record);
}

/// Calls the subscriber outside the lock: it may ask CUPTI in turn.
void tell(CUpti_CallbackIdResource event, const CUpti_ResourceData& resource) {
    Client& client = Client::instance();
    CUpti_CallbackFunc callback = nullptr;
    void* data = nullptr;
    {
        const std::lock_guard lock(client.mutex);
        if (!client.callbacks.contains({CUPTI_CB_DOMAIN_RESOURCE, event})) return;
        callback = client.callback;
        data = client.callback_data;
    }
    if (callback != nullptr) callback(data, CUPTI_CB_DOMAIN_RESOURCE, event, &resource);
}

void tell_of_stream(cudaStream_t stream, CUpti_CallbackIdResource event) {
    CUpti_ResourceData resource{};
    resource.resourceHandle.stream = stream;
    tell(event, resource);
}

/// CUDA loads a kernel's machine code when it is first launched. Here it has no bytes.
void load_module_of(const Work& kernel) {
    Client& client = Client::instance();
    {
        const std::lock_guard lock(client.mutex);
        if (client.callback == nullptr || !client.loaded.insert(std::string(kernel.name)).second) {
            return;
        }
    }
    CUpti_ModuleResourceData module{};
    CUpti_ResourceData resource{};
    resource.resourceDescriptor = &module;
    tell(CUPTI_CBID_RESOURCE_MODULE_LOADED, resource);
}

CUptiResult subscribe(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc callback, void* data) {
    Client& client = Client::instance();
    const std::lock_guard lock(client.mutex);
    if (client.callback != nullptr) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    client.callback = callback;
    client.callback_data = data;
    *subscriber = reinterpret_cast<CUpti_SubscriberHandle>(&client);
    return CUPTI_SUCCESS;
}

CUptiResult switch_kind(CUpti_ActivityKind kind, bool on) {
    if (static_cast<std::size_t>(kind) >= kMaxKinds) return CUPTI_ERROR_INVALID_KIND;
    Client::instance().kinds[static_cast<std::size_t>(kind)] = on;
    return CUPTI_SUCCESS;
}

CUptiResult switch_call(CUpti_ActivityKind domain, CUpti_CallbackId call, bool on) {
    Client& client = Client::instance();
    const std::lock_guard lock(client.mutex);
    client.switched_calls[{domain, call}] = on;
    return CUPTI_SUCCESS;
}

}  // namespace

const char* intern(std::string_view name) {
    static std::mutex mutex;
    static auto* const names = new std::set<std::string, std::less<>>;
    const std::lock_guard lock(mutex);
    const auto found = names->find(name);
    return (found != names->end() ? *found : *names->emplace(name).first).c_str();
}

// ---- calls and work -----------------------------------------------------------------------------

ApiCall::ApiCall(CUpti_ActivityKind domain, uint32_t function)
    : domain_(domain),
      function_(function),
      correlation_(++last_correlation),
      start_ns_(Client::instance().now_ns()),
      outer_(std::exchange(innermost_call, this)) {}

ApiCall::~ApiCall() {
    innermost_call = outer_;
    Client& client = Client::instance();
    const std::lock_guard lock(client.mutex);
    if (!client.wants_call(domain_, function_)) return;
    CUpti_ActivityAPI record{};
    record.kind = domain_;
    record.cbid = function_;
    record.start = start_ns_;
    record.end = std::max(client.now_ns(), start_ns_ + 1);
    record.processId = static_cast<uint32_t>(getpid());
    record.threadId = static_cast<uint32_t>(syscall(SYS_gettid));
    record.correlationId = correlation_;
    client.add(record);
}

const ApiCall* ApiCall::current() { return innermost_call; }

void cupti_work_done(const Work& work) {
    if (work.kind == WorkKind::kKernel) load_module_of(work);
    Client& client = Client::instance();
    const CUpti_ActivityKind kind = record_kind(work.kind);
    if (!client.wants(kind)) return;
    const uint32_t correlation = correlation_of_work();
    const std::lock_guard lock(client.mutex);
    add_external_ids(client, correlation);
    if (work.kind == WorkKind::kKernel) add_kernel_record(client, work, correlation);
    if (work.kind == WorkKind::kCopy) add_copy_record(client, work, correlation);
    if (work.kind == WorkKind::kSet) add_set_record(client, work, correlation);
}

void cupti_event_recorded(uint32_t stream_number, uint64_t recording) {
    Client& client = Client::instance();
    if (!client.wants(CUPTI_ACTIVITY_KIND_CUDA_EVENT)) return;
    const std::lock_guard lock(client.mutex);
    CUpti_ActivityCudaEvent2 record{};
    record.kind = CUPTI_ACTIVITY_KIND_CUDA_EVENT;
    record.correlationId = correlation_of_work();
    record.streamId = stream_number;
    record.cudaEventSyncId = recording;
    client.add(record);
}

void cupti_stream_waits(uint32_t stream_number, uint64_t recording) {
    Client& client = Client::instance();
    if (!client.wants(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION)) return;
    const std::lock_guard lock(client.mutex);
    CUpti_ActivitySynchronization2 record{};
    record.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
    record.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT;
    record.correlationId = correlation_of_work();
    record.streamId = stream_number;
    record.cudaEventSyncId = recording;
    client.add(record);
}

void cupti_memory(bool is_release, const void* address, uint64_t size_bytes) {
    Client& client = Client::instance();
    if (!client.wants(CUPTI_ACTIVITY_KIND_MEMORY2)) return;
    const std::lock_guard lock(client.mutex);
    CUpti_ActivityMemory4 record{};
    record.kind = CUPTI_ACTIVITY_KIND_MEMORY2;
    record.memoryOperationType = is_release ? CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE
                                            : CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION;
    record.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
    record.address = reinterpret_cast<uint64_t>(address);
    record.bytes = size_bytes;
    record.timestamp = client.now_ns();
    record.processId = static_cast<uint32_t>(getpid());
    record.deviceId = static_cast<uint32_t>(Memories::instance().device_of(address));
    record.contextId = context_number(static_cast<int>(record.deviceId));
    client.add(record);
}

void cupti_stream_made(cudaStream_t stream) {
    tell_of_stream(stream, CUPTI_CBID_RESOURCE_STREAM_CREATED);
}
void cupti_stream_ends(cudaStream_t stream) {
    tell_of_stream(stream, CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING);
}

// ---- CUPTI's functions --------------------------------------------------------------------------

VIRTUAL_GPU_API CUptiResult cuptiGetVersion(uint32_t* version) {
    *version = CUPTI_API_VERSION;
    return CUPTI_SUCCESS;
}
VIRTUAL_GPU_API CUptiResult cuptiGetResultString(CUptiResult result, const char** text) {
    static constexpr std::pair<CUptiResult, const char*> kTexts[]{
        {CUPTI_SUCCESS, "CUPTI_SUCCESS"},
        {CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED,
         "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"},
        {CUPTI_ERROR_INVALID_KIND, "CUPTI_ERROR_INVALID_KIND"},
        {CUPTI_ERROR_MAX_LIMIT_REACHED, "CUPTI_ERROR_MAX_LIMIT_REACHED"},
    };
    const char* const* const known = find_value(kTexts, result);
    *text = known != nullptr ? *known : "an error that the simulated GPU does not know";
    return CUPTI_SUCCESS;
}
VIRTUAL_GPU_API CUptiResult cuptiSubscribe_v2(CUpti_SubscriberHandle* subscriber,
                                              CUpti_CallbackFunc callback, void* data,
                                              CUpti_SubscriberParams*) {
    return subscribe(subscriber, callback, data);
}
VIRTUAL_GPU_API CUptiResult cuptiSubscribe(CUpti_SubscriberHandle* subscriber,
                                           CUpti_CallbackFunc callback, void* data) {
    return subscribe(subscriber, callback, data);
}
VIRTUAL_GPU_API CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle) {
    Client& client = Client::instance();
    const std::lock_guard lock(client.mutex);
    client.hand_over();
    client.callback = nullptr;
    client.callbacks.clear();
    return CUPTI_SUCCESS;
}
VIRTUAL_GPU_API CUptiResult cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle,
                                                CUpti_CallbackDomain domain, CUpti_CallbackId id) {
    Client& client = Client::instance();
    const std::lock_guard lock(client.mutex);
    if (enable != 0) {
        client.callbacks.insert({domain, id});
    } else {
        client.callbacks.erase({domain, id});
    }
    return CUPTI_SUCCESS;
}
/// Of all domains only streams are told, one by one; a client of whole domains hears nothing.
VIRTUAL_GPU_API CUptiResult cuptiEnableDomain(uint32_t, CUpti_SubscriberHandle,
                                              CUpti_CallbackDomain) {
    return CUPTI_SUCCESS;
}
VIRTUAL_GPU_API CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t id,
                                                 const char** name) {
    const auto* const found =
        std::find_if(std::begin(kCallbackNames), std::end(kCallbackNames),
                     [&](const CallbackName& row) { return row.domain == domain && row.id == id; });
    if (found == std::end(kCallbackNames)) return CUPTI_ERROR_INVALID_PARAMETER;
    *name = found->name;
    return CUPTI_SUCCESS;
}
VIRTUAL_GPU_API CUptiResult cuptiActivityRegisterCallbacks(
    CUpti_BuffersCallbackRequestFunc request, CUpti_BuffersCallbackCompleteFunc complete) {
    Client& client = Client::instance();
    const std::lock_guard lock(client.mutex);
    client.request_buffer = request;
    client.complete_buffer = complete;
    return CUPTI_SUCCESS;
}
VIRTUAL_GPU_API CUptiResult
cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc clock) {
    Client::instance().clock = clock;
    return CUPTI_SUCCESS;
}
VIRTUAL_GPU_API CUptiResult cuptiGetTimestamp(uint64_t* now_ns) {
    *now_ns = Client::instance().now_ns();
    return CUPTI_SUCCESS;
}
VIRTUAL_GPU_API CUptiResult cuptiActivitySetAttribute(CUpti_ActivityAttribute, std::size_t*,
                                                      void*) {
    return CUPTI_SUCCESS;  // attributes say how CUPTI keeps its buffers
}
VIRTUAL_GPU_API CUptiResult cuptiSetThreadIdType(CUpti_ActivityThreadIdType) {
    return CUPTI_SUCCESS;  // threads have the system's numbers, as all clients here ask
}
VIRTUAL_GPU_API CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
    return switch_kind(kind, true);
}
VIRTUAL_GPU_API CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
    return switch_kind(kind, false);
}
VIRTUAL_GPU_API CUptiResult cuptiActivityEnableRuntimeApi(CUpti_CallbackId call, uint8_t enable) {
    return switch_call(CUPTI_ACTIVITY_KIND_RUNTIME, call, enable != 0);
}
VIRTUAL_GPU_API CUptiResult cuptiActivityEnableDriverApi(CUpti_CallbackId call, uint8_t enable) {
    return switch_call(CUPTI_ACTIVITY_KIND_DRIVER, call, enable != 0);
}
VIRTUAL_GPU_API CUptiResult cuptiActivityEnableAllocationSource(uint8_t) { return CUPTI_SUCCESS; }
VIRTUAL_GPU_API CUptiResult cuptiActivityEnableCudaEventDeviceTimestamps(uint8_t) {
    return CUPTI_SUCCESS;
}
VIRTUAL_GPU_API CUptiResult cuptiActivityFlushAll(uint32_t) {
    Client& client = Client::instance();
    const std::lock_guard lock(client.mutex);
    client.hand_over();
    return CUPTI_SUCCESS;
}
VIRTUAL_GPU_API CUptiResult cuptiActivityGetNextRecord(uint8_t* buffer, std::size_t valid_bytes,
                                                       CUpti_Activity** record) {
    uint8_t* next = buffer;
    if (*record != nullptr) {
        next = reinterpret_cast<uint8_t*>(*record) + aligned(record_bytes(**record));
    }
    if (next >= buffer + valid_bytes) return CUPTI_ERROR_MAX_LIMIT_REACHED;
    auto* const found = reinterpret_cast<CUpti_Activity*>(next);
    if (record_bytes(*found) == 0) return CUPTI_ERROR_INVALID_KIND;
    *record = found;
    return CUPTI_SUCCESS;
}
VIRTUAL_GPU_API CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, uint32_t,
                                                              std::size_t* dropped) {
    Client& client = Client::instance();
    const std::lock_guard lock(client.mutex);
    *dropped = std::exchange(client.dropped, 0);
    return CUPTI_SUCCESS;
}
VIRTUAL_GPU_API CUptiResult
cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind, uint64_t id) {
    if (static_cast<std::size_t>(kind) >= kMaxIdKinds) return CUPTI_ERROR_INVALID_PARAMETER;
    external_ids[static_cast<std::size_t>(kind)].push_back(id);
    return CUPTI_SUCCESS;
}
VIRTUAL_GPU_API CUptiResult
cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind, uint64_t* id) {
    if (static_cast<std::size_t>(kind) >= kMaxIdKinds) return CUPTI_ERROR_INVALID_PARAMETER;
    auto& ids = external_ids[static_cast<std::size_t>(kind)];
    if (ids.empty()) return CUPTI_ERROR_QUEUE_EMPTY;
    if (id != nullptr) *id = ids.back();
    ids.pop_back();
    return CUPTI_SUCCESS;
}
VIRTUAL_GPU_API CUptiResult cuptiGetStreamIdEx(CUcontext, CUstream stream, uint8_t,
                                               uint32_t* number) {
    *number = stream_of(stream).number;
    return CUPTI_SUCCESS;
}
VIRTUAL_GPU_API CUptiResult cuptiFinalize() { return CUPTI_SUCCESS; }

}  // namespace profiler::virtual_gpu
