#pragma once

#include "profiler/analysis/step_index.h"
#include "profiler/trace/trace.h"
#include "profiler/view/time_map.h"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

/// The ribbon of modules below the memory of a trace: layers, and the modules in them, for one time
/// window and pixel width. Spans narrower than two pixels are merged with their neighbours in the
/// same pixel, so that a million spans cost as much as the window has pixels.
namespace profiler {

struct RibbonBlock {
    double start_ns = 0;  // on the shared axis
    double end_ns = 0;
    std::size_t span = 0;  // the first one, in the track of its level
    int64_t count = 1;     // number of merged spans
    PhaseKind phase = PhaseKind::kForward;
    int shade = 0;            // 0 or 1; differs between neighbours that look alike otherwise
    int64_t layer = -1;       // its number, if it is one
    std::string label;        // "layer 12", "attention"; empty for merged spans
    std::string short_label;  // "12"; else as the label
};

struct RibbonTrace {
    std::array<std::vector<RibbonBlock>, 2> levels;  // by ModuleLevel, in the order of time

    bool empty() const { return levels[0].empty(); }
};

struct RibbonView {
    std::vector<RibbonTrace> traces;
    bool has_modules = false;  // some trace has modules, whether in the window or not
};

struct RibbonRequest {
    Steps steps;
    double start_ns = 0;  // window, on the first trace's clock
    double end_ns = 0;
    int width_px = 0;
    std::shared_ptr<const Alignment> alignment;  // of A and B

    friend bool operator==(const RibbonRequest&, const RibbonRequest&) = default;
};

RibbonView build_ribbon_view(const RibbonRequest& request);

/// Everything known about one span, for a tooltip. Empty for a span that the track does not have.
struct RibbonReadout {
    std::string title;                                      // "encoder.layer.12.attention"
    std::vector<std::pair<std::string, std::string>> rows;  // "kept", "96.0 MiB"
    int64_t layer = -1;
};
RibbonReadout read_ribbon(const StepIndex& source, ModuleLevel level, std::size_t span);

}  // namespace profiler
