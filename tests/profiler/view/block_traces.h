#pragma once

#include "profiler/analysis/block_details.h"
#include "profiler/analysis/memory_curve.h"
#include "profiler/analysis/peak.h"
#include "profiler/analysis/storage_names.h"
#include "profiler/view/blocks_view.h"

#include <string>
#include <utility>
#include <vector>

/// A trace with what views of its blocks need.
namespace tests {

struct LoadedBlocks {
    explicit LoadedBlocks(profiler::Trace t)
        : trace(std::move(t)),
          curve(trace),
          peak(profiler::find_peak(trace)),
          history(trace),
          names(profiler::names_of_storages(trace)),
          details(trace, history, names) {}
    LoadedBlocks(const LoadedBlocks&) = delete;
    LoadedBlocks& operator=(const LoadedBlocks&) = delete;

    profiler::BlockSource blocks() const { return {&trace, &history, &details, &names}; }
    profiler::TimelineSource timeline(std::string name) const {
        return {&trace, &curve, &peak, std::move(name)};
    }
    /// The whole trace.
    profiler::BlocksRequest request(int width_px, int height_px) const {
        const auto start_ns = static_cast<double>(curve.start_ns());
        const auto end_ns = static_cast<double>(curve.end_ns());
        return {.time = {.sources = {timeline("A")},
                         .start_ns = start_ns,
                         .end_ns = end_ns,
                         .width_px = width_px},
                .sources = {blocks()},
                .height_px = height_px,
                .all = {start_ns, end_ns},
                .minimap_px = 100};
    }

    profiler::Trace trace;
    profiler::MemoryCurve curve;
    profiler::PeakReport peak;
    profiler::BlockHistory history;
    std::vector<profiler::StringId> names;
    profiler::BlockDetails details;
};

}  // namespace tests
