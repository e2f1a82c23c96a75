#pragma once

#include "profiler/view/allocator/segment_state.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace profiler {

/// Why the allocator asked the driver for memory, at one segment event.
struct SegmentCause {
    Id<Allocation> request;  // invalid if the recording does not say
    /// One sentence: the request, what was free in the same pool, and the largest piece of that.
    std::string text;
};

/// `event` is a position in reader.events().
SegmentCause cause_of_segment(const SegmentReader& reader, std::size_t event);

/// "aten::bmm in encoder.layer.3", or "attention_probs": what asked for a block.
std::string name_of_request(const StepIndex& source, Id<Allocation> allocation);

}  // namespace profiler
