#pragma once

#include "app/commands/console/outcome.h"
#include "models/config/workload.h"
#include "profiler/layouts/layout_run.h"

#include <cstdint>
#include <string>
#include <vector>

/// Measurements of an encoder layer in the worker. Both show their progress.
namespace app {

struct LayoutWork {
    models::Workload workload;  // its sizes
    std::string device = "cpu";
    int64_t num_rounds = 5;
};

/// The time of each op in every dimension order.
tl::expected<profiler::LayoutGraph, Failure> measure_layouts(const LayoutWork& work);

struct LayoutTimes {
    std::vector<double> whole_ns;  // medians, by run
    std::string note;              // that the machine was busy; else empty
};

/// The times of whole layers that run in turn.
tl::expected<LayoutTimes, Failure> time_layout_runs(const LayoutWork& work,
                                                    const std::vector<profiler::LayoutRun>& runs);

}  // namespace app
