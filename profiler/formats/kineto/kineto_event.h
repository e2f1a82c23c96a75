#pragma once

#include "profiler/trace/enumerations.h"
#include "profiler/trace/trace.h"

#include <simdjson.h>

#include <array>
#include <cstdint>
#include <string_view>

namespace profiler::kineto {

/// The metadata that Temposcope writes for a frame of call stacks.
inline constexpr std::string_view kStackFrameName = "stack_frame";

/// What torch writes about a collective, on `record_param_comms` and on NCCL's kernel.
struct CollectiveArguments {
    std::string_view name, group, description, ranks, dtype;
    int64_t in_elements = 0, out_elements = 0, num_ranks = -1, peer = -1;
};

/// One event of the file: the fields that any dialect uses. Texts live until the next event.
struct Event {
    std::string_view name, category, process, thread, call_stack, metadata_name;
    char phase = 0;
    int64_t time_ns = 0, duration_ns = -1;
    bool has_time = false;
    int64_t id = -1;
    int64_t external_id = -1, correlation = -1, stream = -1, device = -1;
    int64_t sequence = -1, forward_thread = 0;
    int64_t stack_id = -1, parent_stack_id = -1;
    std::array<int64_t, 3> grid{}, block{};
    int64_t registers_per_thread = 0, shared_memory_bytes = 0, copied_bytes = 0;
    int64_t address = -1, changed_bytes = 0, allocated_bytes = -1, reserved_bytes = -1;
    int64_t memory_device = -1, memory_device_type = -1;
    bool has_changed_bytes = false;
    CollectiveArguments collective;  // without a name: none
};

/// Reads one object. Unknown fields are skipped, and a field of another type counts as missing.
/// Returns simdjson's error where the JSON is damaged.
simdjson::error_code read_event(simdjson::ondemand::object object, Event& event);

/// Microseconds as the file writes them, exact to the nanosecond: "1419247332972.313", in quotes or
/// not. False for anything else, or a time outside of +-2^62 ns.
bool parse_microseconds(std::string_view token, int64_t& nanoseconds);

/// Names of scalar types in profiler traces, which are those of c10. By DType.
inline constexpr std::array<std::string_view, kDTypeNames.size()> kScalarTypeNames{
    "Float",  "Half",   "BFloat16",      "Double",      "Bool",         "Byte",
    "Char",   "Short",  "Int",           "Long",        "Undefined",    "UInt16",
    "UInt32", "UInt64", "Float8_e4m3fn", "Float8_e5m2", "ComplexFloat", "ComplexDouble"};

constexpr DType dtype_of_scalar_type(std::string_view name) {
    for (std::size_t i = 0; i < kScalarTypeNames.size(); ++i) {
        if (kScalarTypeNames[i] == name) return static_cast<DType>(i);
    }
    return DType::kOther;
}
static_assert(dtype_of_scalar_type("Long") == DType::kInt64 &&
              dtype_of_scalar_type("Float8_e8m0fnu") == DType::kOther);

/// Bytes of one element, also of types that DType does not have; 0: not known.
constexpr int64_t element_bytes_of_scalar_type(std::string_view name) {
    if (name.starts_with("Float8")) return 1;
    if (name == "ComplexHalf") return 4;
    return element_bytes(dtype_of_scalar_type(name));
}

}  // namespace profiler::kineto
