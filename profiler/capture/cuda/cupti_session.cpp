#include "profiler/capture/cuda/cupti_session.h"

#include "models/observer/callback_target.h"
#include "profiler/capture/cuda/activity_recording.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <new>
#include <span>
#include <utility>

namespace profiler {
namespace {

/// Whom CUPTI's callbacks reach.
models::CallbackTarget<CuptiSession> active_session;
models::CallbackTarget<ActivityCollector> active_collector;

void CUPTIAPI give_buffer(uint8_t** buffer, size_t* size, size_t* max_records) noexcept {
    std::span<uint8_t> bytes;
    active_collector.with([&](ActivityCollector& collector) { bytes = collector.request(); });
    *buffer = bytes.data();
    *size = bytes.size();
    *max_records = 0;  // as many as fit
}

void CUPTIAPI take_buffer(CUcontext, uint32_t, uint8_t* buffer, size_t,
                          size_t valid_bytes) noexcept {
    active_collector.with(
        [&](ActivityCollector& collector) { collector.complete(buffer, valid_bytes); });
}

/// std::chrono::steady_clock, as CUPTI calls it for each of its times.
uint64_t CUPTIAPI steady_now() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<uint64_t>(now.tv_nsec);
}

/// External ids of the ops that run on a thread, for modules that load meanwhile. Ops below the
/// deepest place count as the op above them.
class RunningOps {
public:
    void push(uint64_t external_id) {
        if (depth_ < ids_.size()) ids_[depth_] = external_id;
        ++depth_;
    }
    void pop() {
        if (depth_ > 0) --depth_;
    }
    uint64_t top() const { return depth_ == 0 ? 0 : ids_[std::min(depth_, ids_.size()) - 1]; }

private:
    std::array<uint64_t, 64> ids_{};
    std::size_t depth_ = 0;
};
thread_local RunningOps running_ops;

constexpr std::array kWorkKinds{CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                CUPTI_ACTIVITY_KIND_MEMCPY,
                                CUPTI_ACTIVITY_KIND_MEMCPY2,
                                CUPTI_ACTIVITY_KIND_MEMSET,
                                CUPTI_ACTIVITY_KIND_RUNTIME,
                                CUPTI_ACTIVITY_KIND_OVERHEAD,
                                CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION};

constexpr std::array kOrderKinds{CUPTI_ACTIVITY_KIND_CUDA_EVENT,
                                 CUPTI_ACTIVITY_KIND_SYNCHRONIZATION};

/// Calls that torch makes by the thousand, and that neither start work nor wait for any.
constexpr std::array kQuietRuntimeCalls{
    CUPTI_RUNTIME_TRACE_CBID_cudaGetDevice_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaSetDevice_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaGetLastError_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaPeekAtLastError_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaDeviceGetAttribute_v5000,
    CUPTI_RUNTIME_TRACE_CBID_cudaStreamIsCapturing_v10000,
    CUPTI_RUNTIME_TRACE_CBID_cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags_v7000,
    CUPTI_RUNTIME_TRACE_CBID_cudaFuncGetAttributes_v3020};
/// The driver's calls that start work by themselves. All others are parts of the runtime's calls.
constexpr std::array kDriverCalls{CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
                                  CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
                                  CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel,
                                  CUPTI_DRIVER_TRACE_CBID_cuMemcpyAsync,
                                  CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2,
                                  CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync_v2,
                                  CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoDAsync_v2,
                                  CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async,
                                  CUPTI_DRIVER_TRACE_CBID_cuMemsetD32Async};

/// Where the buffers are to be kept for tests; empty: nowhere.
std::filesystem::path recording_path() {
    const char* const path = std::getenv("TEMPOSCOPE_CUPTI_RECORDING");
    return path != nullptr ? path : "";
}

CollectorOptions collector_options(const CuptiApi& api) {
    if (recording_path().empty()) return {.cupti_version = api.version};
    const auto writer =
        std::make_shared<ActivityRecordingWriter>(recording_path(), api.next_record);
    return {.cupti_version = api.version,
            .observe = [writer](std::span<uint8_t> buffer) { writer->add(buffer); }};
}

}  // namespace

CuptiSession::CuptiSession(const CuptiApi& api)
    : api_(api), collector_(api.next_record, collector_options(api)) {}

models::Result<std::unique_ptr<CuptiSession>> CuptiSession::open() {
    const auto api = open_cupti();
    if (!api) return tl::unexpected(api.error());
    return start(*api);
}

models::Result<std::unique_ptr<CuptiSession>> CuptiSession::start(const CuptiApi& api) {
    std::unique_ptr<CuptiSession> session(new CuptiSession(api));
    if (auto ok = session->subscribe(); !ok) return tl::unexpected(ok.error());
    if (auto ok = session->set_up_clock_and_buffers(); !ok) return tl::unexpected(ok.error());
    return session;
}

models::Result<void> CuptiSession::record_memory() {
    // A refusal of these shows: libraries without names, growth that stays unexplained, streams
    // that bear numbers instead of handles.
    note("cuptiActivityEnableAllocationSource", api_.enable_allocation_source(1));
    for (const CUpti_CallbackId event :
         {CUPTI_CBID_RESOURCE_MODULE_LOADED, CUPTI_CBID_RESOURCE_STREAM_CREATED,
          CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING}) {
        note(fmt::format("cuptiEnableCallback of resource event {}", event),
             api_.enable_callback(1, subscriber_, CUPTI_CB_DOMAIN_RESOURCE, event));
    }
    const CUptiResult result = api_.enable(CUPTI_ACTIVITY_KIND_MEMORY2);
    if (result == CUPTI_SUCCESS) return {};
    return models::fail("{}", describe_cupti_refusal(result, api_.name_of(result), {}));
}

models::Result<void> CuptiSession::subscribe() {
    std::array<char, CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN> other_client{};
    CUpti_SubscriberParams params{.structSize = CUpti_SubscriberParams_STRUCT_SIZE,
                                  .subscriberName = "temposcope",
                                  .oldSubscriberName = other_client.data(),
                                  .oldSubscriberSize = other_client.size()};
    const CUptiResult result =
        api_.subscribe_with_name != nullptr
            ? api_.subscribe_with_name(&subscriber_, &on_callback, nullptr, &params)
            : api_.subscribe(&subscriber_, &on_callback, nullptr);
    if (result == CUPTI_SUCCESS) return {};
    subscriber_ = nullptr;
    other_client.back() = '\0';
    return models::fail("{}",
                        describe_cupti_refusal(result, api_.name_of(result), other_client.data()));
}

models::Result<void> CuptiSession::set_up_clock_and_buffers() {
    // CUPTI's own buffers would otherwise lie in device memory and count as CUPTI's share of it.
    set_flag("host buffers", CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED);
    // The collector gives zeroed buffers: CUPTI would zero them on the workload's thread.
    set_flag("zeroed buffers", CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER);
    note("cuptiSetThreadIdType", api_.set_thread_id_type(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM));
    uses_steady_clock_ =
        note("cuptiActivityRegisterTimestampCallback", api_.register_timestamp(&steady_now));
    active_collector.set(&collector_);
    active_session.set(this);
    const CUptiResult result = api_.register_callbacks(&give_buffer, &take_buffer);
    if (result == CUPTI_SUCCESS) return {};
    return models::fail("{}", describe_cupti_refusal(result, api_.name_of(result), {}));
}

void CuptiSession::set_flag(std::string_view name, CUpti_ActivityAttribute attribute) {
    uint8_t on = 1;
    size_t size = sizeof on;
    note(fmt::format("cuptiActivitySetAttribute of {}", name),
         api_.set_attribute(attribute, &size, &on));
}

bool CuptiSession::note(std::string_view call, CUptiResult result) {
    if (result == CUPTI_SUCCESS) return true;
    refusals_.push_back(fmt::format("{}: {}", call, api_.name_of(result)));
    return false;
}

models::Result<void> CuptiSession::record_work() {
    for (const CUpti_ActivityKind kind : kWorkKinds) {
        const CUptiResult result = api_.enable(kind);
        if (result == CUPTI_SUCCESS) continue;
        for (const CUpti_ActivityKind enabled : kWorkKinds) api_.disable(enabled);
        return models::fail("{}", describe_cupti_refusal(result, api_.name_of(result), {}));
    }
    // Only fewer records are at stake: a refusal is none of the user's concern.
    for (const auto call : kQuietRuntimeCalls) api_.enable_runtime_call(call, 0);
    for (const auto call : kDriverCalls) api_.enable_driver_call(call, 1);
    records_work_ = true;
    return {};
}

void CuptiSession::record_order() {
    if (!tells_order_of_streams(api_.version)) {
        refusals_.emplace_back("the order of streams: CUPTI tells it since CUDA 12.8");
        return;
    }
    for (const CUpti_ActivityKind kind : kOrderKinds) {
        note("cuptiActivityEnable of the order of streams", api_.enable(kind));
    }
}

CuptiSession::~CuptiSession() {
    if (subscriber_ == nullptr) return;
    end_work();
    api_.disable(CUPTI_ACTIVITY_KIND_MEMORY2);
    // Buffers that CUPTI still holds come back now: later there is nobody to take them.
    api_.flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    active_collector.set(nullptr);
    api_.unsubscribe(subscriber_);
    active_session.set(nullptr);
}

void CuptiSession::push_op(uint64_t external_id) noexcept {
    running_ops.push(external_id);
    if (records_work_) api_.push_id(kOpCorrelationKind, external_id);
}

void CuptiSession::pop_op() noexcept {
    running_ops.pop();
    uint64_t popped = 0;
    if (records_work_) api_.pop_id(kOpCorrelationKind, &popped);
}

ActivityRecords CuptiSession::flush() { return hand_over(0); }

ActivityRecords CuptiSession::finish() {
    end_work();
    return hand_over(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
}

void CuptiSession::end_work() {
    if (!records_work_) return;
    for (const CUpti_ActivityKind kind : kWorkKinds) api_.disable(kind);
    for (const CUpti_ActivityKind kind : kOrderKinds) api_.disable(kind);
    for (const auto call : kDriverCalls) api_.enable_driver_call(call, 0);
    records_work_ = false;
}

ActivityRecords CuptiSession::hand_over(uint32_t flush_flag) {
    note("cuptiActivityFlushAll", api_.flush(flush_flag));
    ActivityRecords records = collector_.take();
    size_t dropped = 0;
    if (api_.dropped_records(nullptr, 0, &dropped) == CUPTI_SUCCESS) {
        records.dropped_records = static_cast<int64_t>(dropped);
    }
    return records;
}

int64_t CuptiSession::steady_clock_offset_ns() const {
    if (uses_steady_clock_) return 0;
    // CUPTI's own clock, read between two readings of ours: the closest pair of several.
    constexpr int kReadings = 16;
    uint64_t best_gap = UINT64_MAX;
    int64_t offset_ns = 0;
    for (int i = 0; i < kReadings; ++i) {
        uint64_t cupti = 0;
        const uint64_t before = steady_now();
        api_.timestamp(&cupti);
        const uint64_t after = steady_now();
        if (after - before >= best_gap) continue;
        best_gap = after - before;
        offset_ns = static_cast<int64_t>(before + best_gap / 2) - static_cast<int64_t>(cupti);
    }
    return offset_ns;
}

std::optional<uint32_t> CuptiSession::ask_stream_number(CUcontext context, CUstream stream) const {
    uint32_t number = 0;
    if (api_.stream_id(context, stream, 0, &number) != CUPTI_SUCCESS) return std::nullopt;
    return number;
}

std::optional<uint32_t> CuptiSession::number_of_stream(int64_t handle) {
    auto* const stream = reinterpret_cast<CUstream>(handle);
    {
        const std::lock_guard lock(streams_mutex_);
        if (destroyed_streams_.contains(stream)) return std::nullopt;
    }
    // Not under the lock, which callbacks take while the driver holds its own; streams that are
    // asked for outlive the call.
    return ask_stream_number(nullptr, stream);
}

std::vector<NumberedStream> CuptiSession::new_streams() {
    const std::lock_guard lock(streams_mutex_);
    return std::exchange(new_streams_, {});
}

std::string CuptiSession::api_name(ApiDomain domain, uint32_t function) const {
    const bool runtime = domain == ApiDomain::kRuntime;
    const char* name = nullptr;
    const CUptiResult result = api_.callback_name(
        runtime ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API, function, &name);
    if (result == CUPTI_SUCCESS && name != nullptr) return name;
    return fmt::format("{} call {}", runtime ? "runtime" : "driver", function);
}

void CUPTIAPI CuptiSession::on_callback(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                                        const void* data) {
    if (domain != CUPTI_CB_DOMAIN_RESOURCE) return;
    active_session.with([&](CuptiSession& session) {
        session.on_resource(id, *static_cast<const CUpti_ResourceData*>(data));
    });
}

void CuptiSession::on_resource(CUpti_CallbackId id, const CUpti_ResourceData& resource) noexcept
    try {
    if (id == CUPTI_CBID_RESOURCE_MODULE_LOADED) on_module_loaded(resource);
    if (id == CUPTI_CBID_RESOURCE_STREAM_CREATED) on_stream_made(resource);
    if (id == CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING) {
        on_stream_ends(resource.resourceHandle.stream);
    }
} catch (const std::bad_alloc&) {  // what could not be noted is missing
}

/// Nothing is asked of the driver or of NVML here: the driver holds its locks.
void CuptiSession::on_module_loaded(const CUpti_ResourceData& resource) {
    const auto* const module =
        static_cast<const CUpti_ModuleResourceData*>(resource.resourceDescriptor);
    if (module == nullptr) return;
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    const std::lock_guard lock(modules_mutex_);
    modules_.push_back(
        {.time_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count(),
         .image_bytes = static_cast<int64_t>(module->cubinSize),
         .external_id = running_ops.top()});
}

std::vector<LoadedModule> CuptiSession::modules() const {
    const std::lock_guard lock(modules_mutex_);
    return modules_;
}

int64_t CuptiSession::module_image_bytes() const {
    int64_t bytes = 0;
    for (const LoadedModule& module : modules()) bytes += module.image_bytes;
    return bytes;
}

/// Its number is asked for while the stream surely lives: later another thread may destroy it, and
/// a freed handle must not be shown to CUPTI.
void CuptiSession::on_stream_made(const CUpti_ResourceData& resource) {
    CUstream const stream = resource.resourceHandle.stream;
    const auto number = ask_stream_number(resource.context, stream);
    const std::lock_guard lock(streams_mutex_);
    destroyed_streams_.erase(stream);
    if (number) new_streams_.push_back({reinterpret_cast<int64_t>(stream), *number});
}

void CuptiSession::on_stream_ends(CUstream stream) {
    const std::lock_guard lock(streams_mutex_);
    destroyed_streams_.insert(stream);
}

}  // namespace profiler
