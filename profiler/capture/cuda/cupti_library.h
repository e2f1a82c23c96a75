#pragma once

#include "models/config/result.h"

#include <cupti.h>

#include <cstdint>
#include <string>

/// The CUPTI that libtorch brought into this process, opened at run time: the only file that knows
/// its functions by name.
namespace profiler {

/// What a capture calls. A copy of the library that nobody else maps would see none of the
/// process's CUDA calls, and a second copy beside libtorch's would fight with it.
struct CuptiApi {
    std::string path;      // of the library
    uint32_t version = 0;  // as CUPTI_API_VERSION

    decltype(&cuptiGetResultString) result_string = nullptr;
    decltype(&cuptiSubscribe_v2) subscribe = nullptr;
    decltype(&cuptiUnsubscribe) unsubscribe = nullptr;
    decltype(&cuptiEnableCallback) enable_callback = nullptr;
    decltype(&cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
    decltype(&cuptiActivityRegisterTimestampCallback) register_timestamp = nullptr;
    decltype(&cuptiGetTimestamp) timestamp = nullptr;
    decltype(&cuptiActivitySetAttribute) set_attribute = nullptr;
    decltype(&cuptiSetThreadIdType) set_thread_id_type = nullptr;
    decltype(&cuptiActivityEnable) enable = nullptr;
    decltype(&cuptiActivityDisable) disable = nullptr;
    decltype(&cuptiActivityEnableRuntimeApi) enable_runtime_call = nullptr;
    decltype(&cuptiActivityEnableDriverApi) enable_driver_call = nullptr;
    decltype(&cuptiActivityEnableAllocationSource) enable_allocation_source = nullptr;
    decltype(&cuptiActivityFlushAll) flush = nullptr;
    decltype(&cuptiActivityGetNextRecord) next_record = nullptr;
    decltype(&cuptiActivityGetNumDroppedRecords) dropped_records = nullptr;
    decltype(&cuptiActivityPushExternalCorrelationId) push_id = nullptr;
    decltype(&cuptiActivityPopExternalCorrelationId) pop_id = nullptr;
    decltype(&cuptiGetStreamIdEx) stream_id = nullptr;
    decltype(&cuptiGetCallbackName) callback_name = nullptr;

    /// "CUPTI_ERROR_NOT_INITIALIZED", as CUPTI spells it.
    std::string name_of(CUptiResult result) const;
};

/// Errors, one sentence each: libtorch mapped none, it is another version than this program was
/// built for, a function is missing.
models::Result<CuptiApi> open_cupti();

/// Whether records of this version have the layout that this program was built for: updates of one
/// toolkit have, another toolkit (13.1 beside 13.0) may not.
models::Result<void> check_cupti_version(uint32_t version);

/// One sentence on why CUPTI does not record, from what its first call answered. `other_client` is
/// whom CUPTI names as its user, empty when it names nobody.
std::string describe_cupti_refusal(CUptiResult result, const std::string& result_name,
                                   const std::string& other_client);

}  // namespace profiler
