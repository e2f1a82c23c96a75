#pragma once

#include "models/config/result.h"
#include "profiler/capture/torch_adapter/activity_records.h"

#include <cupti.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

/// libtorch's CUPTI, opened at run time, and the records in the buffers that CUPTI fills. No other
/// file knows CUPTI's functions and structs by name.
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

/// cuptiActivityGetNextRecord of the CUPTI that filled the buffer. It only reads the buffer, so it
/// works without a driver.
using NextActivityRecord = CUptiResult (*)(uint8_t* buffer, size_t valid_bytes,
                                           CUpti_Activity** record);

/// Kind of the external ids that are pushed for ops; Kineto uses CUSTOM0 and CUSTOM1.
inline constexpr CUpti_ExternalCorrelationKind kOpCorrelationKind =
    CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2;

/// Adds the records of `buffer` to `records`. `records` also counts what cannot be read: records of
/// kinds that are not enabled, and buffers that end inside a record. The records before such an end
/// are added.
void parse_activity_buffer(std::span<uint8_t> buffer, NextActivityRecord next,
                           ActivityRecords& records);

/// Calls visit(text) for each text that a record of `buffer` points to. `visit` may replace it.
void visit_activity_texts(std::span<uint8_t> buffer, NextActivityRecord next,
                          const std::function<void(const char*& text)>& visit);

/// Adds one record. Returns its size in the buffer in bytes; 0 for an unknown kind.
std::size_t parse_activity(const CUpti_Activity& activity, ActivityRecords& records);

}  // namespace profiler
