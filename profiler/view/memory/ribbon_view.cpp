#include "profiler/view/memory/ribbon_view.h"

#include "profiler/analysis/step/layer_path.h"
#include "profiler/trace/units.h"
#include "profiler/view/memory/timeline_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string_view>

namespace profiler {
namespace {

class TrackLayout {
public:
    TrackLayout(const RibbonRequest& request, const StepIndex& source, const TimeMap& map,
                ModuleLevel level)
        : request_(request),
          trace_(source.trace()),
          track_(source.modules().track(level)),
          map_(map),
          level_(level),
          pixel_ns_((request.end_ns - request.start_ns) / request.width_px) {}

    std::vector<RibbonBlock> build() {
        std::size_t i = track_.first_ending_after(own(request_.start_ns));
        const std::size_t end = track_.first_starting_at(own(request_.end_ns));
        while (i < end) {
            const std::size_t last = is_wide(i) ? i + 1 : end_of_narrow(i, end);
            add(i, last);
            i = last;
        }
        return std::move(blocks_);
    }

private:
    int64_t own(double shared_ns) const { return std::llround(map_.to_own(shared_ns)); }
    double shared(int64_t own_ns) const { return map_.to_shared(static_cast<double>(own_ns)); }
    bool is_wide(std::size_t i) const {
        const ModuleSpan& span = track_.spans[i];
        return shared(span.end_ns) - shared(span.start_ns) >= 2 * pixel_ns_;
    }

    /// The index after the last narrow span that begins in the same pixel as span `i`. Pixels start
    /// on multiples of their width, so that blocks do not change while the window pans.
    std::size_t end_of_narrow(std::size_t i, std::size_t end) const {
        const double start_ns = shared(track_.spans[i].start_ns);
        const double pixel_end_ns = (std::floor(start_ns / pixel_ns_) + 1) * pixel_ns_;
        std::size_t last = std::clamp(track_.first_starting_at(own(pixel_end_ns)), i + 1, end);
        if (last > i + 1 && is_wide(last - 1)) --last;
        return last;
    }

    void add(std::size_t first, std::size_t end) {
        const ModuleSpan& span = track_.spans[first];
        RibbonBlock block{.start_ns = shared(span.start_ns),
                          .end_ns = shared(track_.spans[end - 1].end_ns),
                          .span = first,
                          .count = static_cast<int64_t>(end - first)};
        if (span.phase.valid()) block.phase = trace_.phases.get<&Phase::kind>(span.phase);
        block.shade = span.ordinal % 2;  // siblings alternate, in the same way in every phase
        if (block.count == 1) name(block, span);
        blocks_.push_back(std::move(block));
    }

    void name(RibbonBlock& block, const ModuleSpan& span) const {
        if (!span.module.valid()) {
            block.label = block.short_label = name_of(block.phase);
            return;
        }
        const ModulePath module = trace_.module_paths[span.module];
        const std::string_view path = trace_.text(module.path);
        if (level_ == ModuleLevel::kOuter && module.layer >= 0) {
            block.layer = module.layer;
            block.short_label = fmt::format("{}", module.layer);
            block.label = "layer " + block.short_label;
            return;
        }
        const std::string_view around =
            module.parent.valid()
                ? trace_.text(trace_.module_paths.get<&ModulePath::path>(module.parent))
                : std::string_view();
        block.label = path_below(path, around);
        block.short_label = path.substr(path.rfind('.') + 1);
    }

    const RibbonRequest& request_;
    const Trace& trace_;
    const ModuleTrack& track_;
    const TimeMap& map_;
    const ModuleLevel level_;
    const double pixel_ns_;
    std::vector<RibbonBlock> blocks_;
};

}  // namespace

RibbonView build_ribbon_view(const RibbonRequest& request) {
    RibbonView view;
    const bool is_drawable = request.end_ns > request.start_ns && request.width_px > 0 &&
                             std::abs(request.start_ns) < 0x1p62 &&
                             std::abs(request.end_ns) < 0x1p62;
    if (!is_drawable) return view;
    for (const StepIndex& source : request.steps.all()) {
        const TimeMap& map = map_of(request.alignment, view.traces.size());
        RibbonTrace& trace = view.traces.emplace_back();
        for (const ModuleLevel level : {ModuleLevel::kOuter, ModuleLevel::kInner}) {
            trace.levels[static_cast<std::size_t>(level)] =
                TrackLayout(request, source, map, level).build();
        }
        view.has_modules |= !source.modules().empty();
    }
    return view;
}

RibbonReadout read_ribbon(const StepIndex& source, ModuleLevel level, std::size_t index) {
    RibbonReadout readout;
    const ModuleTrack& track = source.modules().track(level);
    if (index >= track.spans.size()) return readout;
    const Trace& trace = source.trace();
    const ModuleSpan& span = track.spans[index];
    if (span.module.valid()) {
        const ModulePath module = trace.module_paths[span.module];
        readout.title = trace.text(module.path);
        readout.layer = module.layer;
    }
    const std::string phase = phase_text_at(trace, span.start_ns);
    if (readout.title.empty()) readout.title = phase.empty() ? "outside of modules" : phase;
    readout.rows = {{"phase", phase},
                    {"begins at", format_duration(span.start_ns)},
                    {"time", format_duration(span.end_ns - span.start_ns)},
                    {"allocated", format_bytes(span.allocated_bytes)},
                    {"freed", format_bytes(span.freed_bytes)},
                    {"left at its end", format_bytes(span.kept_bytes)}};
    return readout;
}

}  // namespace profiler
