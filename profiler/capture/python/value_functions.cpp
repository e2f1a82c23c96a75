#include "models/config/routing.h"
#include "profiler/capture/python/c_functions.h"
#include "profiler/capture/values/rank_messages.h"
#include "profiler/capture/values/shadow.h"
#include "profiler/capture/values/tensor_values.h"
#include "profiler/capture/values/value_reads.h"

#include <ATen/record_function.h>
#include <nlohmann/json.hpp>

#include <cstddef>
#include <stdexcept>
#include <string>

/// Follows the values on the virtual GPU of this process from now on. `options`: JSON with "mode",
/// "routing", "package", "torch", "folder", "rank" and "world_size", as ValueOptions.
TEMPOSCOPE_EXPORT int temposcope_follow_values(const char* options) {
    return profiler::guarded([&] {
        const auto json = nlohmann::json::parse(options);
        const auto routing = models::parse_routing(json.at("routing").get<std::string>());
        if (!routing) throw std::invalid_argument(routing.error().message);
        profiler::follow_values({.mode = json.at("mode") == "zeros"
                                             ? profiler::ValueMode::kZeros
                                             : profiler::ValueMode::kComputed,
                                 .routing = *routing,
                                 .hidden = json.at("package"),
                                 .torch = json.at("torch"),
                                 .folder = json.at("folder"),
                                 .rank = json.at("rank"),
                                 .world_size = json.at("world_size")});
    });
}

/// JSON: the ranks that this one sent to or received from, one to one.
TEMPOSCOPE_EXPORT const char* temposcope_partners() {
    return profiler::guarded_text([] { return nlohmann::json(profiler::partners()); });
}

/// A step of the program ends, recorded or not.
TEMPOSCOPE_EXPORT void temposcope_begin_value_step() { profiler::begin_rounds(); }

/// A model is called.
TEMPOSCOPE_EXPORT void temposcope_renew_value_budget() { profiler::renew_value_budget(); }

/// 1: all bytes of the virtual GPU at `address` are known, and copied to `target`.
TEMPOSCOPE_EXPORT int temposcope_read_values(const void* address, void* target, std::size_t size) {
    const auto* const values = profiler::device_values();
    return static_cast<int>(values != nullptr && values->read(address, target, size));
}

TEMPOSCOPE_EXPORT void temposcope_write_values(const void* address, const void* source,
                                               std::size_t size) {
    const auto* const values = profiler::device_values();
    if (values != nullptr) values->write(address, source, size);
}

/// Whether ops of this thread are hidden from all that follow ops. Returns what was so before.
TEMPOSCOPE_EXPORT int temposcope_hide_ops(int hidden) {
    const bool were_seen = at::isRecordFunctionEnabled();
    at::enableRecordFunction(hidden == 0);
    return static_cast<int>(!were_seen);
}

TEMPOSCOPE_EXPORT void temposcope_rest_unless_read() { profiler::rest_unless_read(); }

/// 1: profiler::has_balanced_experts().
TEMPOSCOPE_EXPORT int temposcope_has_balanced_experts() {
    return static_cast<int>(profiler::has_balanced_experts());
}

TEMPOSCOPE_EXPORT void temposcope_set_imbalanced(int wanted) {
    profiler::set_imbalanced(wanted != 0);
}
