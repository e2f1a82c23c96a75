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
    uint32_t version = 0;  // as CUPTI_API_VERSION: 26 of CUDA 12.8, 130202 of CUDA 13.2

    decltype(&cuptiGetResultString) result_string = nullptr;
    decltype(&cuptiSubscribe) subscribe = nullptr;
    decltype(&cuptiSubscribe_v2) subscribe_with_name = nullptr;  // null in CUDA 12
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

/// Errors, one sentence each: libtorch mapped none, it is too old, a function is missing.
models::Result<CuptiApi> open_cupti();

/// Whether records of this version are known. In CUDA 12.6 to 13.5 each record begins as in 13.0;
/// newer ones only grew at their ends, so those that come are taken for longer ones.
models::Result<void> check_cupti_version(uint32_t version);

/// Whether records of events and waits of streams name what was recorded: since CUDA 12.8.
bool tells_order_of_streams(uint32_t cupti_version);

/// What one record occupies in a buffer; 0: not known.
std::size_t record_bytes(CUpti_ActivityKind kind, uint32_t cupti_version);

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
/// are added. `cupti_version` is that of the CUPTI that filled the buffer.
void parse_activity_buffer(std::span<uint8_t> buffer, NextActivityRecord next,
                           ActivityRecords& records, uint32_t cupti_version = CUPTI_API_VERSION);

/// Calls visit(text) for each text that a record of `buffer` points to. `visit` may replace it.
void visit_activity_texts(std::span<uint8_t> buffer, NextActivityRecord next,
                          const std::function<void(const char*& text)>& visit);

}  // namespace profiler
