#pragma once

#include "profiler/analysis/activity.h"
#include "profiler/trace/trace.h"
#include "profiler/view/call_group.h"
#include "profiler/view/time_map.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// What the Kernels panel draws for one time window and pixel width: for each trace its threads and
/// streams, for each row blocks that are at least a pixel wide. Narrower spans are merged with
/// their neighbours in the same pixel, so that drawing a million kernels costs as much as the panel
/// has pixels.
///
/// The time axis is that of the Memory timeline: the clock of the first trace, with the second
/// trace stretched onto it (time_map.h).
namespace profiler {

struct ActivityBlock {
    double start_ns = 0;  // on the shared axis
    double end_ns = 0;
    ActivityId id;      // of the first span in the block
    int64_t count = 1;  // number of merged spans; the op is that of the first one
    double busy = 1;    // share of the block's time in which one of its spans ran
    ActivityClass activity_class = ActivityClass::kOther;  // of merged spans: with the most time
    Id<Op> op;              // the op that the span belongs to; invalid if unknown
    Id<Op> forward;         // the forward op of `op`; invalid if `op` is not a backward op
    bool is_marked = true;  // one of its spans is, or nothing is marked in its trace
    std::string label;      // of a single span: its short_name, in backward after the module's name
};

struct ActivityBlockRow {
    std::vector<ActivityBlock> blocks;  // in the order of time
};

struct ActivityViewLane {
    std::string name;  // "main thread", "stream 7"
    bool is_stream = false;
    std::vector<ActivityBlockRow> rows;
    int64_t left_out = 0;  // number of spans for which there were not enough rows
};

struct ActivityViewTrace {
    std::vector<ActivityViewLane> lanes;
};

struct ActivityView {
    std::vector<ActivityViewTrace> traces;
    std::vector<ActivityClass> classes;              // classes that occur in the window
    TimeAlignment alignment = TimeAlignment::kTime;  // the alignment that was used
    bool has_kernels = false;  // some trace records kernels, whether in the window or not
};

/// One trace to draw. Everything is borrowed for the call.
struct ActivitySource {
    const Trace* trace = nullptr;
    const Activity* activity = nullptr;

    friend bool operator==(const ActivitySource&, const ActivitySource&) = default;
};

struct ActivityRequest {
    std::vector<ActivitySource> sources;  // one or two
    double start_ns = 0;                  // window, on the first trace's clock
    double end_ns = 0;
    int width_px = 0;
    std::shared_ptr<const Alignment> alignment;  // needed for two sources
    std::shared_ptr<const MarksView> marks;      // of the same traces; null: nothing is marked

    friend bool operator==(const ActivityRequest&, const ActivityRequest&) = default;
};

ActivityView build_activity_view(const ActivityRequest& request);

/// The part of a demangled kernel name that tells kernels apart: "MulFunctor" for "void
/// at::native:: vectorized_elementwise_kernel<4, at::native::BinaryFunctor<float, float, float,
/// at::native::binary_internal::MulFunctor<float> >, ...>(...)". Names of ops stay as they are,
/// without the autograd engine's prefix.
std::string short_name(std::string_view name);

/// Everything known about one span, for a tooltip.
struct ActivityReadout {
    std::string title;                                      // the whole name
    std::vector<std::pair<std::string, std::string>> rows;  // "layer", "encoder.layer.1.output"
};
ActivityReadout read_activity(const ActivitySource& source, ActivityId id);

}  // namespace profiler
