#include "profiler/allocator/settings_run.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace profiler {
namespace {

bool takes_memory(const SegmentEvent& event) {
    return event.event.action == RecordedAction::kSegmentAlloc ||
           event.event.action == RecordedAction::kSegmentMap;
}

RefusedRequest refused_request(const RequestStream& stream, const SimulationOptions& options,
                               const Simulation& done) {
    RefusedRequest refused{.requested_bytes = stream.requests.back().size_bytes,
                           .is_served = !done.out_of_memory,
                           .cached = cached_pieces(done.segments)};
    if (done.out_of_memory) {
        refused.free_bytes = done.out_of_memory->detail.free_bytes;
    } else if (options.memory_limit_bytes) {
        refused.free_bytes = *options.memory_limit_bytes;
        for (const auto& segment : done.segments) *refused.free_bytes -= segment.size_bytes;
    }
    return refused;
}

}  // namespace

SettingsRun run_settings(const RequestStream& stream, SimulationOptions options,
                         Simulation* simulation) {
    if (!options.memory_limit_bytes) options.memory_limit_bytes = stream.recorded_limit_bytes;
    Simulation done = simulate(stream, options);
    SettingsRun run{.settings = options.settings,
                    .from_recorded_start = done.from_recorded_start,
                    .memory_limit_bytes = options.memory_limit_bytes,
                    .peak = done.peak,
                    .at_peak = done.at_peak,
                    .at_reserved_peak = done.at_reserved_peak,
                    .num_segments = done.num_segments_at_peak,
                    .num_segments_at_reserved_peak = done.num_segments_at_reserved_peak,
                    .num_segment_calls = std::count_if(done.segment_events.begin(),
                                                       done.segment_events.end(), takes_memory),
                    .num_retries = done.num_retries,
                    .num_allocations = stream.num_allocations,
                    .out_of_memory = done.out_of_memory};
    if (run.out_of_memory) {
        run.allocations_done = stream.requests[run.out_of_memory->request].allocation;
    }
    if (stream.ends_refused) run.refused = refused_request(stream, options, done);
    if (simulation != nullptr) *simulation = std::move(done);
    return run;
}

std::vector<AllocatorSettings> settings_to_try(bool has_limit) {
    constexpr std::array<std::string_view, 8> kTexts{
        "",
        "expandable_segments:True",
        "max_split_size_mb:64",
        "max_split_size_mb:128",
        "max_split_size_mb:256",
        "max_split_size_mb:512",
        "roundup_power2_divisions:8",
        "expandable_segments:True,roundup_power2_divisions:8"};
    constexpr std::array<std::string_view, 2> kWithLimit{
        "garbage_collection_threshold:0.8",
        "max_split_size_mb:128,garbage_collection_threshold:0.8"};
    std::vector<AllocatorSettings> settings;
    for (const auto text : kTexts) settings.push_back(parse_alloc_conf(text).value());
    if (!has_limit) return settings;
    for (const auto text : kWithLimit) settings.push_back(parse_alloc_conf(text).value());
    return settings;
}

}  // namespace profiler
