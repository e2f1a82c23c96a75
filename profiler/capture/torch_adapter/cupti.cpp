#include "profiler/capture/torch_adapter/cupti.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <iterator>

namespace profiler {
namespace {

constexpr const char* kLibraries[] = {"libcupti.so.13", "libcupti.so.12"};
/// How a capture goes on without CUPTI.
constexpr std::string_view kWithoutCupti =
    "allocations are recorded, kernels and copies are missing";

std::string path_of(void* symbol) {
    Dl_info info{};
    return dladdr(symbol, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
}

/// The record as its kind says; CUPTI's buffers keep records at multiples of 8 bytes.
template <typename Record>
const Record& as(const CUpti_Activity& activity) {
    return reinterpret_cast<const Record&>(activity);
}

std::string_view text_of(const char* text) {
    return text != nullptr ? std::string_view(text) : std::string_view();
}

int64_t signed_of(uint64_t value) { return static_cast<int64_t>(value); }

/// Lengths of the records that grew, from a version of CUPTI on, by the headers of CUDA 12.6 to
/// 13.5. All other records kept theirs.
struct RecordBytes {
    uint32_t since = 0;
    std::size_t kernel, copy, memset, event, synchronization;
};
constexpr RecordBytes kRecordBytes[] = {{24, 208, 88, 88, 24, 40},       // CUDA 12.6
                                        {26, 208, 96, 88, 56, 56},       // 12.8
                                        {130'000, 216, 96, 88, 56, 56},  // 13.0
                                        {130'100, 224, 96, 88, 56, 56},  // 13.1
                                        {130'300, 232, 96, 88, 56, 56},  // 13.3
                                        {130'400, 248, 112, 104, 56, 56},
                                        {130'500, 248, 112, 104, 80, 56}};
constexpr uint32_t kNewestKnown = 130'599;
constexpr uint32_t kFirstWithOrder = 26;

/// The last row that holds for the version. Precondition: the version is known.
const RecordBytes& record_bytes_of(uint32_t version) {
    const auto after = std::ranges::upper_bound(kRecordBytes, version, {}, &RecordBytes::since);
    return *std::prev(after);
}

KernelRecord parse_kernel(const CUpti_ActivityKernel10& kernel) {
    return {.name = text_of(kernel.name),
            .start_ns = kernel.start,
            .end_ns = kernel.end,
            .device = kernel.deviceId,
            .context = kernel.contextId,
            .stream = kernel.streamId,
            .correlation = kernel.correlationId,
            .grid = {kernel.gridX, kernel.gridY, kernel.gridZ},
            .block = {kernel.blockX, kernel.blockY, kernel.blockZ},
            .registers_per_thread = kernel.registersPerThread,
            .shared_memory_bytes =
                int64_t{kernel.staticSharedMemory} + int64_t{kernel.dynamicSharedMemory},
            .local_memory_bytes = signed_of(kernel.localMemoryTotal_v2)};
}

/// Arrays are device memory in another order.
CopyKind copy_kind(uint8_t kind) {
    switch (kind) {
        case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
        case CUPTI_ACTIVITY_MEMCPY_KIND_HTOA:
            return CopyKind::kHostToDevice;
        case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
        case CUPTI_ACTIVITY_MEMCPY_KIND_ATOH:
            return CopyKind::kDeviceToHost;
        case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD:
        case CUPTI_ACTIVITY_MEMCPY_KIND_ATOA:
        case CUPTI_ACTIVITY_MEMCPY_KIND_ATOD:
        case CUPTI_ACTIVITY_MEMCPY_KIND_DTOA:
            return CopyKind::kDeviceToDevice;
        case CUPTI_ACTIVITY_MEMCPY_KIND_HTOH:
            return CopyKind::kHostToHost;
        case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP:
            return CopyKind::kPeerToPeer;
        default:
            return CopyKind::kUnknown;
    }
}

template <typename Copy>
CopyRecord parse_copy(const Copy& copy, CopyKind kind) {
    return {.kind = kind,
            .start_ns = copy.start,
            .end_ns = copy.end,
            .device = copy.deviceId,
            .context = copy.contextId,
            .stream = copy.streamId,
            .correlation = copy.correlationId,
            .size_bytes = signed_of(copy.bytes)};
}

ApiRecord parse_api(const CUpti_ActivityAPI& api, ApiDomain domain) {
    return {.domain = domain,
            .function = api.cbid,
            .thread = api.threadId,
            .correlation = api.correlationId,
            .start_ns = api.start,
            .end_ns = api.end};
}

MemoryRecord parse_memory(const CUpti_ActivityMemory4& memory) {
    return {
        .is_release = memory.memoryOperationType == CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE,
        .is_device_memory = memory.memoryKind == CUPTI_ACTIVITY_MEMORY_KIND_DEVICE ||
                            memory.memoryKind == CUPTI_ACTIVITY_MEMORY_KIND_DEVICE_STATIC,
        .address = signed_of(memory.address),
        .size_bytes = signed_of(memory.bytes),
        .time_ns = memory.timestamp,
        .library = text_of(memory.source)};
}

std::string_view overhead_name(CUpti_ActivityOverheadKind kind) {
    switch (kind) {
        case CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER:
            return "driver compiles a kernel";
        case CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH:
            return "CUPTI buffer flush";
        case CUPTI_ACTIVITY_OVERHEAD_CUPTI_INSTRUMENTATION:
            return "CUPTI instrumentation";
        case CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE:
            return "CUPTI resources";
        case CUPTI_ACTIVITY_OVERHEAD_RUNTIME_TRIGGERED_MODULE_LOADING:
            return "module loading";
        case CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING:
            return "lazy function loading";
        case CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL:
            return "command buffer full";
        case CUPTI_ACTIVITY_OVERHEAD_ACTIVITY_BUFFER_REQUEST:
            return "CUPTI buffer request";
        default:
            return "profiling overhead";
    }
}

}  // namespace

// ---- the library -----------------------------------------------------------------------------

std::string CuptiApi::name_of(CUptiResult result) const {
    const char* text = nullptr;
    if (result_string(result, &text) == CUPTI_SUCCESS && text != nullptr) return text;
    return fmt::format("error {}", static_cast<int>(result));
}

models::Result<void> check_cupti_version(uint32_t version) {
    if (version >= kRecordBytes[0].since) return {};
    return models::fail(
        "libtorch's CUPTI is version {}, which is older than CUDA 12.6: {}; use a torch "
        "for CUDA 12.6 or newer.",
        version, kWithoutCupti);
}

bool tells_order_of_streams(uint32_t cupti_version) { return cupti_version >= kFirstWithOrder; }

std::size_t record_bytes(CUpti_ActivityKind kind, uint32_t cupti_version) {
    if (cupti_version > kNewestKnown) return 0;
    const RecordBytes& bytes = record_bytes_of(cupti_version);
    switch (kind) {
        case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        case CUPTI_ACTIVITY_KIND_KERNEL:
            return bytes.kernel;
        case CUPTI_ACTIVITY_KIND_MEMCPY:
            return bytes.copy;
        case CUPTI_ACTIVITY_KIND_MEMCPY2:
            return sizeof(CUpti_ActivityMemcpyPtoP4);
        case CUPTI_ACTIVITY_KIND_MEMSET:
            return bytes.memset;
        case CUPTI_ACTIVITY_KIND_RUNTIME:
        case CUPTI_ACTIVITY_KIND_DRIVER:
            return sizeof(CUpti_ActivityAPI);
        case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
            return sizeof(CUpti_ActivityExternalCorrelation);
        case CUPTI_ACTIVITY_KIND_CUDA_EVENT:
            return bytes.event;
        case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
            return bytes.synchronization;
        case CUPTI_ACTIVITY_KIND_MEMORY2:
            return sizeof(CUpti_ActivityMemory4);
        case CUPTI_ACTIVITY_KIND_OVERHEAD:
            return sizeof(CUpti_ActivityOverhead3);
        default:
            return 0;
    }
}

std::string describe_cupti_refusal(CUptiResult result, const std::string& result_name,
                                   const std::string& other_client) {
    switch (result) {
        case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
            return fmt::format(
                "CUPTI serves {} already, and only one client at a time: {}; run without Nsight, "
                "cuda-gdb or another profiler.",
                other_client.empty() ? "another profiler" : other_client, kWithoutCupti);
        case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
            return fmt::format(
                "The driver lets only administrators profile: {}; set its option "
                "NVreg_RestrictProfilingToAdminUsers=0, or run as root.",
                kWithoutCupti);
        case CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED:
        case CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
            return fmt::format(
                "CUPTI cannot profile this virtualized GPU ({}): {}; ask for profiling to be "
                "allowed "
                "in the hypervisor.",
                result_name, kWithoutCupti);
        default:
            return fmt::format("CUPTI refuses to record ({}): {}.", result_name, kWithoutCupti);
    }
}

models::Result<CuptiApi> open_cupti() {
    // Never a copy from elsewhere: see CuptiApi.
    void* library = nullptr;
    for (const char* const name : kLibraries) {
        if (library == nullptr) library = dlopen(name, RTLD_NOW | RTLD_NOLOAD);
    }
    if (library == nullptr) {
        return models::fail("libtorch brought no {} into the process: {}; install torch again.",
                            fmt::join(kLibraries, " or "), kWithoutCupti);
    }
    CuptiApi api;
    const char* missing = nullptr;
    const auto find_if_there = [&]<typename Function>(const char* name, Function& function) {
        function = reinterpret_cast<Function>(dlsym(library, name));
    };
    const auto find = [&](const char* name, auto& function) {
        find_if_there(name, function);
        if (function == nullptr && missing == nullptr) missing = name;
    };
    decltype(&cuptiGetVersion) get_version = nullptr;
    find("cuptiGetVersion", get_version);
    find("cuptiGetResultString", api.result_string);
    find("cuptiSubscribe", api.subscribe);
    find_if_there("cuptiSubscribe_v2", api.subscribe_with_name);
    find("cuptiUnsubscribe", api.unsubscribe);
    find("cuptiEnableCallback", api.enable_callback);
    find("cuptiActivityRegisterCallbacks", api.register_callbacks);
    find("cuptiActivityRegisterTimestampCallback", api.register_timestamp);
    find("cuptiGetTimestamp", api.timestamp);
    find("cuptiActivitySetAttribute", api.set_attribute);
    find("cuptiSetThreadIdType", api.set_thread_id_type);
    find("cuptiActivityEnable", api.enable);
    find("cuptiActivityDisable", api.disable);
    find("cuptiActivityEnableRuntimeApi", api.enable_runtime_call);
    find("cuptiActivityEnableDriverApi", api.enable_driver_call);
    find("cuptiActivityEnableAllocationSource", api.enable_allocation_source);
    find("cuptiActivityFlushAll", api.flush);
    find("cuptiActivityGetNextRecord", api.next_record);
    find("cuptiActivityGetNumDroppedRecords", api.dropped_records);
    find("cuptiActivityPushExternalCorrelationId", api.push_id);
    find("cuptiActivityPopExternalCorrelationId", api.pop_id);
    find("cuptiGetStreamIdEx", api.stream_id);
    find("cuptiGetCallbackName", api.callback_name);
    if (get_version != nullptr) {
        get_version(&api.version);
        api.path = path_of(reinterpret_cast<void*>(get_version));
    }
    // An older library lacks functions; its version is the better reason.
    if (auto ok = check_cupti_version(api.version); !ok) return tl::unexpected(ok.error());
    if (missing != nullptr) {
        return models::fail("{} has no function {}: {}.", api.path, missing, kWithoutCupti);
    }
    return api;
}

// ---- records ---------------------------------------------------------------------------------

namespace {

void parse_activity(const CUpti_Activity& activity, ActivityRecords& records) {
    switch (activity.kind) {
        case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        case CUPTI_ACTIVITY_KIND_KERNEL:
            records.kernels.push_back(parse_kernel(as<CUpti_ActivityKernel10>(activity)));
            return;
        case CUPTI_ACTIVITY_KIND_MEMCPY: {
            const auto& copy = as<CUpti_ActivityMemcpy6>(activity);
            records.copies.push_back(parse_copy(copy, copy_kind(copy.copyKind)));
            return;
        }
        case CUPTI_ACTIVITY_KIND_MEMCPY2: {
            const auto& copy = as<CUpti_ActivityMemcpyPtoP4>(activity);
            records.copies.push_back(parse_copy(copy, CopyKind::kPeerToPeer));
            return;
        }
        case CUPTI_ACTIVITY_KIND_MEMSET: {
            const auto& memset = as<CUpti_ActivityMemset4>(activity);
            records.copies.push_back(parse_copy(memset, CopyKind::kMemset));
            return;
        }
        case CUPTI_ACTIVITY_KIND_RUNTIME:
        case CUPTI_ACTIVITY_KIND_DRIVER: {
            const bool runtime = activity.kind == CUPTI_ACTIVITY_KIND_RUNTIME;
            records.apis.push_back(parse_api(as<CUpti_ActivityAPI>(activity),
                                             runtime ? ApiDomain::kRuntime : ApiDomain::kDriver));
            return;
        }
        case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
            const auto& external = as<CUpti_ActivityExternalCorrelation>(activity);
            if (external.externalKind == kOpCorrelationKind) {  // else: another user's
                records.op_correlations.push_back(
                    {.correlation = external.correlationId, .external_id = external.externalId});
            }
            return;
        }
        case CUPTI_ACTIVITY_KIND_CUDA_EVENT: {
            const auto& event = as<CUpti_ActivityCudaEvent2>(activity);
            records.events.push_back({.stream = event.streamId,
                                      .correlation = event.correlationId,
                                      .recording = event.cudaEventSyncId});
            return;
        }
        case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: {
            const auto& sync = as<CUpti_ActivitySynchronization2>(activity);
            // The host waits for the others.
            if (sync.type == CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT) {
                records.stream_waits.push_back({.stream = sync.streamId,
                                                .correlation = sync.correlationId,
                                                .recording = sync.cudaEventSyncId});
            }
            return;
        }
        case CUPTI_ACTIVITY_KIND_MEMORY2:
            records.memory.push_back(parse_memory(as<CUpti_ActivityMemory4>(activity)));
            return;
        case CUPTI_ACTIVITY_KIND_OVERHEAD: {
            const auto& overhead = as<CUpti_ActivityOverhead3>(activity);
            records.overheads.push_back({.name = overhead_name(overhead.overheadKind),
                                         .start_ns = overhead.start,
                                         .end_ns = overhead.end});
            return;
        }
        default:
            ++records.unknown_records;
    }
}

}  // namespace

void parse_activity_buffer(std::span<uint8_t> buffer, NextActivityRecord next,
                           ActivityRecords& records, uint32_t cupti_version) {
    CUpti_Activity* record = nullptr;
    std::size_t read_bytes = 0;  // up to the end of the last record
    bool size_known = true;
    while (true) {
        const CUptiResult result = next(buffer.data(), buffer.size(), &record);
        if (result != CUPTI_SUCCESS) {
            // CUPTI stops without a word before a record that the buffer cuts off.
            const bool cut = size_known && read_bytes < buffer.size();
            if (result != CUPTI_ERROR_MAX_LIMIT_REACHED || cut) ++records.broken_buffers;
            return;
        }
        parse_activity(*record, records);
        const std::size_t bytes = record_bytes(record->kind, cupti_version);
        size_known = bytes > 0;
        read_bytes =
            static_cast<std::size_t>(reinterpret_cast<uint8_t*>(record) - buffer.data()) + bytes;
    }
}

void visit_activity_texts(std::span<uint8_t> buffer, NextActivityRecord next,
                          const std::function<void(const char*& text)>& visit) {
    // The structs are packed: a pointer in them has no alignment to bind a reference to.
    const auto visit_field = [&](uint8_t* field) {
        const char* text = nullptr;
        std::memcpy(&text, field, sizeof text);
        visit(text);
        std::memcpy(field, &text, sizeof text);
    };
    CUpti_Activity* record = nullptr;
    while (next(buffer.data(), buffer.size(), &record) == CUPTI_SUCCESS) {
        auto* const bytes = reinterpret_cast<uint8_t*>(record);
        if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL ||
            record->kind == CUPTI_ACTIVITY_KIND_KERNEL) {
            visit_field(bytes + offsetof(CUpti_ActivityKernel10, name));
        } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMORY2) {
            visit_field(bytes + offsetof(CUpti_ActivityMemory4, name));
            visit_field(bytes + offsetof(CUpti_ActivityMemory4, source));
        }
    }
}

}  // namespace profiler
