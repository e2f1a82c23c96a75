#pragma once

#include "profiler/analysis/activity.h"
#include "profiler/trace/trace.h"
#include "profiler/view/time_map.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// What the Kernels panel draws for one time window and pixel width: per trace its threads and
/// streams, per row blocks that are at least a pixel wide. What is narrower is merged with its
/// neighbours in the same pixel, so that a million kernels cost as much as the panel has pixels.
///
/// The time axis is that of the Memory timeline: the first trace's, with the second one stretched
/// onto it (time_map.h).
namespace profiler {

struct ActivityBlock {
    double start_ns = 0;  // on the shared axis
    double end_ns = 0;
    ActivityId id;      // of the first span in it
    int64_t count = 1;  // spans in it; of more than one, colour and name are the first one's
    double busy = 1;    // share of the block's time in which one of them ran
    ActivityClass activity_class = ActivityClass::kOther;
    std::string_view name;  // as in the trace, which must outlive the view
};

struct ActivityBlockRow {
    std::vector<ActivityBlock> blocks;  // in the order of time
};

struct ActivityViewLane {
    std::string name;  // "main thread", "stream 7"
    bool is_stream = false;
    std::vector<ActivityBlockRow> rows;
    int64_t left_out = 0;  // spans that had no room
};

struct ActivityViewTrace {
    std::vector<ActivityViewLane> lanes;
};

struct ActivityView {
    std::vector<ActivityViewTrace> traces;
    std::vector<ActivityClass> classes;              // that occur in the window
    TimeAlignment alignment = TimeAlignment::kTime;  // what was used
    bool has_kernels = false;                        // in any trace, in the window or not
};

/// One trace to draw. Everything is borrowed for the call.
struct ActivitySource {
    const Trace* trace = nullptr;
    const Activity* activity = nullptr;
};

struct ActivityRequest {
    std::vector<ActivitySource> sources;  // one or two
    double start_ns = 0;                  // window, on the first trace's clock
    double end_ns = 0;
    int width_px = 0;
    std::shared_ptr<const Alignment> alignment;  // of two sources; needed then
};

ActivityView build_activity_view(const ActivityRequest& request);

/// What of a demangled kernel's name says which one it is: "MulFunctor" of "void at::native::
/// vectorized_elementwise_kernel<4, at::native::BinaryFunctor<float, float, float,
/// at::native::binary_internal::MulFunctor<float> >, ...>(...)". Names of ops as they are.
std::string short_name(std::string_view name);

/// All that is known of one span, for a tooltip and for the selection.
struct ActivityReadout {
    std::string title;                                      // the whole name
    std::vector<std::pair<std::string, std::string>> rows;  // "layer", "encoder.layer.1.output"
};
ActivityReadout read_activity(const ActivitySource& source, ActivityId id);

}  // namespace profiler
