#pragma once

#include "profiler/analysis/step_index.h"
#include "profiler/tables/columns.h"
#include "profiler/trace/trace.h"
#include "profiler/view/kernels/call_group.h"
#include "profiler/view/time_map.h"

#include <cstdint>
#include <memory>
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

struct CallBlock {
    double start_ns = 0;  // on the shared axis
    double end_ns = 0;
    CallId id;          // of the first span in the block
    int64_t count = 1;  // number of merged spans; the op is that of the first one
    double busy = 1;    // share of the block's time in which one of its spans ran
    CallClass call_class = CallClass::kOther;  // of merged spans: with the most time
    Id<Op> op;              // the op that the span belongs to; invalid if unknown
    Id<Op> forward;         // the forward op of `op`; invalid if `op` is not a backward op
    bool is_marked = true;  // one of its spans is, or nothing is marked in its trace
    std::string label;      // of a single span: its short_name, in backward after the module's name
};

struct CallBlockRow {
    std::vector<CallBlock> blocks;  // in the order of time
};

struct KernelsLane {
    std::string name;  // "main thread", "stream 7"
    bool is_stream = false;
    std::vector<CallBlockRow> rows;
    int64_t left_out = 0;  // number of spans for which there were not enough rows
};

struct KernelsTrace {
    std::vector<KernelsLane> lanes;
};

struct KernelsView {
    std::vector<KernelsTrace> traces;
    std::vector<CallClass> classes;                  // classes that occur in the window
    TimeAlignment alignment = TimeAlignment::kTime;  // the alignment that was used
    bool has_kernels = false;  // some trace records kernels, whether in the window or not
};

struct KernelsRequest {
    Steps steps;
    double start_ns = 0;  // window, on the first trace's clock
    double end_ns = 0;
    int width_px = 0;
    std::shared_ptr<const Alignment> alignment;  // of A and B
    std::shared_ptr<const MarksView> marks;      // of the same traces; null: nothing is marked

    friend bool operator==(const KernelsRequest&, const KernelsRequest&) = default;
};

KernelsView build_kernels_view(const KernelsRequest& request);

/// The part of a demangled kernel name that tells kernels apart: "MulFunctor" for "void
/// at::native:: vectorized_elementwise_kernel<4, at::native::BinaryFunctor<float, float, float,
/// at::native::binary_internal::MulFunctor<float> >, ...>(...)". Names of ops stay as they are,
/// without the autograd engine's prefix.
std::string short_name(std::string_view name);

/// Everything known about one span, for a tooltip.
struct KernelsReadout {
    std::string title;                                      // the whole name
    std::vector<std::pair<std::string, std::string>> rows;  // "layer", "encoder.layer.1.output"
};
KernelsReadout read_kernels(const StepIndex& source, CallId id);

// ---- tables for other programs ------------------------------------------------------------------

/// Calls, kernels and copies that run at some time in [start_ns, end_ns) of their trace's clock, at
/// most `most` of them.
DataTable kernels_data(const StepIndex& step, int64_t start_ns, int64_t end_ns, std::size_t most);

}  // namespace profiler
