#include "profiler/capture/cuda/cupti_library.h"

#include <dlfcn.h>

namespace profiler {
namespace {

constexpr const char* kLibrary = "libcupti.so.13";
/// How a capture goes on without CUPTI.
constexpr std::string_view kWithoutCupti =
    "allocations are recorded, kernels and copies are missing";

std::string path_of(void* symbol) {
    Dl_info info{};
    return dladdr(symbol, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : kLibrary;
}

}  // namespace

std::string CuptiApi::name_of(CUptiResult result) const {
    const char* text = nullptr;
    if (result_string(result, &text) == CUPTI_SUCCESS && text != nullptr) return text;
    return fmt::format("error {}", static_cast<int>(result));
}

models::Result<void> check_cupti_version(uint32_t version) {
    // xxyyzz since CUDA 13.0: toolkit xx.yy, update zz. A toolkit may bring longer records.
    if (version / 100 == CUPTI_API_VERSION / 100) return {};
    return models::fail(
        "libtorch's CUPTI is version {}, and this program was built for {}: {}; use the torch that "
        "it was built with, or build it again.",
        version, CUPTI_API_VERSION, kWithoutCupti);
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
                "CUPTI cannot profile this virtual GPU ({}): {}; ask for profiling to be allowed "
                "in the hypervisor.",
                result_name, kWithoutCupti);
        default:
            return fmt::format("CUPTI refuses to record ({}): {}.", result_name, kWithoutCupti);
    }
}

models::Result<CuptiApi> open_cupti() {
    // Never a copy from elsewhere: see CuptiApi.
    void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_NOLOAD);
    if (library == nullptr) {
        return models::fail("libtorch brought no {} into the process: {}; run scripts/setup again.",
                            kLibrary, kWithoutCupti);
    }
    CuptiApi api;
    const char* missing = nullptr;
    const auto find = [&]<typename Function>(const char* name, Function& function) {
        function = reinterpret_cast<Function>(dlsym(library, name));
        if (function == nullptr && missing == nullptr) missing = name;
    };
    decltype(&cuptiGetVersion) get_version = nullptr;
    find("cuptiGetVersion", get_version);
    find("cuptiGetResultString", api.result_string);
    find("cuptiSubscribe_v2", api.subscribe);
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

}  // namespace profiler
