#pragma once

#include "profiler/capture/cuda/activity_records.h"

#include <cupti.h>

#include <cstddef>
#include <cstdint>
#include <span>

/// Reads a buffer that CUPTI filled into plain records.
namespace profiler {

/// cuptiActivityGetNextRecord of the CUPTI that filled the buffer. It only reads the buffer, so it
/// works without a driver.
using NextActivityRecord = CUptiResult (*)(uint8_t* buffer, size_t valid_bytes,
                                           CUpti_Activity** record);

/// Kind of the external ids that are pushed for ops; Kineto uses CUSTOM0 and CUSTOM1.
inline constexpr CUpti_ExternalCorrelationKind kOpCorrelationKind =
    CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2;

/// Adds the records of `buffer` to `records`, which also counts what cannot be read: records of
/// kinds that are not enabled, and buffers that end inside a record (the records before it are
/// added).
void parse_activity_buffer(std::span<uint8_t> buffer, NextActivityRecord next,
                           ActivityRecords& records);

/// Adds one record. Returns its size in the buffer in bytes; 0 for an unknown kind.
std::size_t parse_activity(const CUpti_Activity& activity, ActivityRecords& records);

}  // namespace profiler
