#include "profiler/view/memory/timeline_view.h"

#include "profiler/analysis/step/describe_run.h"
#include "profiler/analysis/step/diagnostics.h"
#include "profiler/analysis/step/failure_words.h"
#include "profiler/analysis/step/origin.h"
#include "profiler/analysis/step/recorded_step.h"
#include "profiler/trace/units.h"
#include "profiler/view/theme.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string_view>

namespace profiler {
namespace {

/// The pixel columns of a window: column i is [(first + i) * width_ns, (first + i + 1) * width_ns).
/// Edges are whole nanoseconds and multiples of the width, so that a column shows the same events
/// wherever the window starts. Otherwise panning would flicker.
struct ColumnGrid {
    int64_t width_ns = 1;
    int64_t first = 0;
    int64_t count = 0;

    int64_t start_ns(int64_t column) const { return (first + column) * width_ns; }
};

ColumnGrid make_grid(const TimelineRequest& request) {
    if (!is_drawable(request.start_ns, request.end_ns, request.width_px)) return {};
    const double range_ns = request.end_ns - request.start_ns;
    ColumnGrid grid;
    grid.width_ns = std::max<int64_t>(1, std::llround(std::ceil(range_ns / request.width_px)));
    const auto width = static_cast<double>(grid.width_ns);
    grid.first = std::llround(std::floor(request.start_ns / width));
    grid.count = std::llround(std::ceil(request.end_ns / width)) - grid.first;
    return grid;
}

bool is_higher(const CurveBin& a, const CurveBin& b) {
    return a.allocated_bytes > b.allocated_bytes;
}

/// A piece of the shared axis on which the time map is linear.
struct Piece {
    double start_ns = 0;
    double end_ns = 0;
};

/// Samples the piece several times per column and assigns each sample to the column that holds its
/// middle. Every column gets at least one sample, and the error is at most an eighth of a pixel.
/// With one sample per column, matching changes of two aligned traces could fall into neighbouring
/// columns, and their difference would show spikes.
void sample_piece(const StepIndex& source, const TimeMap& map, const ColumnGrid& grid,
                  const Piece& piece, std::vector<CurveBin>& columns, std::vector<char>& filled) {
    constexpr double kSamplesPerColumn = 4;
    const auto width = static_cast<double>(grid.width_ns);
    const double length = piece.end_ns - piece.start_ns;
    const double count = std::max(1.0, std::ceil(length / width * kSamplesPerColumn));
    const std::vector<CurveBin> bins =
        source.curve().sample(std::llround(map.to_own(piece.start_ns)),
                              std::llround(map.to_own(piece.end_ns)), static_cast<int>(count));
    for (std::size_t i = 0; i < bins.size(); ++i) {
        const double middle = piece.start_ns + (static_cast<double>(i) + 0.5) / count * length;
        const auto column = static_cast<int64_t>(std::floor(middle / width)) - grid.first;
        const auto at = static_cast<std::size_t>(std::clamp<int64_t>(column, 0, grid.count - 1));
        if (!filled[at] || is_higher(bins[i], columns[at])) columns[at] = bins[i];
        filled[at] = 1;
    }
}

std::vector<CurveBin> sample_columns(const StepIndex& source, const TimeMap& map,
                                     const ColumnGrid& grid) {
    if (grid.count <= 0) return {};
    if (map.is_identity()) {
        return source.curve().sample(grid.start_ns(0), grid.start_ns(grid.count),
                                     static_cast<int>(grid.count));
    }
    std::vector<CurveBin> columns(static_cast<std::size_t>(grid.count));
    std::vector<char> filled(columns.size(), 0);
    const auto window_start = static_cast<double>(grid.start_ns(0));
    const auto window_end = static_cast<double>(grid.start_ns(grid.count));
    double piece_start = window_start;
    const auto sample_until = [&](double piece_end) {
        if (piece_end <= piece_start) return;
        sample_piece(source, map, grid, {piece_start, piece_end}, columns, filled);
        piece_start = piece_end;
    };
    for (const TimeMap::Point& point : map.points()) {
        sample_until(std::min(point.shared_ns, window_end));
    }
    sample_until(window_end);
    return columns;
}

void add_columns(const std::vector<CurveBin>& bins, const ColumnGrid& grid, TimelineTrace& trace) {
    for (int64_t i = 0; i <= grid.count; ++i) {
        trace.edge_ns.push_back(static_cast<double>(grid.start_ns(i)));
    }
    for (auto& tops : trace.top_bytes) tops.reserve(bins.size());
    for (const CurveBin& bin : bins) {
        double top = 0;
        for (const Category category : kCategoryStackOrder) {
            const auto r = static_cast<std::size_t>(category);
            top += static_cast<double>(bin.by_category[r]);
            trace.top_bytes[r].push_back(top);
        }
        trace.allocated_bytes.push_back(static_cast<double>(bin.allocated_bytes));
        trace.reserved_bytes.push_back(static_cast<double>(bin.reserved_bytes));
    }
}

/// When the request failed. A trace without it: right after the last allocation; what follows are
/// frees.
int64_t out_of_memory_ns(const Trace& trace) {
    const Id<Failure> failure = fatal_out_of_memory(trace);
    if (failure.valid()) return trace.failures.get<&Failure::time_ns>(failure);
    const auto times_ns = trace.allocations.column<&Allocation::alloc_ns>();
    return times_ns.empty() ? 0 : *std::ranges::max_element(times_ns);
}

void add_bands(const StepIndex& source, const TimeMap& map, const TimelineRequest& request,
               TimelineTrace& view) {
    const Trace& trace = source.trace();
    const auto is_seen = [&](double start_ns, double end_ns) {
        return end_ns >= request.start_ns && start_ns <= request.end_ns;
    };
    const auto to_shared = [&](int64_t ns) { return map.to_shared(static_cast<double>(ns)); };
    for (std::size_t i = 0; i < trace.phases.size(); ++i) {
        const Phase phase = trace.phases[Id<Phase>(i)];
        if (phase.start_ns == phase.end_ns) continue;  // a predicted warm-up has no duration
        PhaseBand band{phase.kind, to_shared(phase.start_ns), to_shared(phase.end_ns), {}};
        if (!is_seen(band.start_ns, band.end_ns)) continue;
        band.text = fmt::format("{} {}", name_of(phase.kind),
                                format_duration(phase.end_ns - phase.start_ns));
        view.phases.push_back(std::move(band));
    }
    for (std::size_t i = 0; i < trace.steps.size(); ++i) {
        const Step step = trace.steps[Id<Step>(i)];
        StepBand band{to_shared(step.start_ns), to_shared(step.end_ns), {}};
        if (!is_seen(band.start_ns, band.end_ns)) continue;
        band.text = fmt::format("step {}", i + 1);
        view.steps.push_back(std::move(band));
    }
}

/// The memory that the step had. A program of the user's says it where it failed.
int64_t limit_bytes_of(const Trace& trace) {
    const int64_t bytes = step_limit_bytes(trace);
    const Id<Failure> failure = fatal_out_of_memory(trace);
    if (bytes > 0 || !failure.valid()) return bytes;
    return trace.failures.get<&Failure::limit_bytes>(failure);
}

/// The request that ended the program; none: it did not end so, or nobody knows its size.
std::optional<Failure> failed_request_of(const Trace& trace) {
    const Id<Failure> id = fatal_out_of_memory(trace);
    if (!id.valid() || trace.failures.get<&Failure::requested_bytes>(id) < 0) return std::nullopt;
    return trace.failures[id];
}

std::string text_of_request(const Trace& trace, const Failure& failure) {
    const FailurePlace place = place_of(trace, failure);
    std::string where = place.line;
    const std::string_view op = place.op.substr(place.op.rfind(':') + 1);  // without "aten::"
    if (!op.empty()) where += fmt::format("{}{}", where.empty() ? "" : ", ", op);
    const std::string asked = "asked " + format_bytes(failure.requested_bytes);
    return where.empty() ? asked : fmt::format("{} ({})", asked, where);
}

void add_out_of_memory(const StepIndex& source, double time_ns, int64_t own_ns,
                       TimelineTrace& view) {
    const Trace& trace = source.trace();
    const int64_t bytes = source.curve().at(own_ns).allocated_bytes;
    view.out_of_memory =
        PeakMarker{.time_ns = time_ns,
                   .bytes = bytes,
                   .text = "out of memory at " + text_of_limit(bytes, limit_bytes_of(trace))};
    if (const auto failure = failed_request_of(trace)) {
        view.failed_request = FailedRequest{time_ns, bytes, failure->requested_bytes,
                                            text_of_request(trace, *failure)};
    }
}

/// The peak and, if the step did not fit, where memory ran out.
void add_markers(const StepIndex& source, const TimeMap& map, const TimelineRequest& request,
                 TimelineTrace& view) {
    if (source.peak().time_ns < 0) return;
    const Trace& trace = source.trace();
    const auto is_seen = [&](double time_ns) {
        return time_ns >= request.start_ns && time_ns <= request.end_ns;
    };
    const int64_t limit_bytes = limit_bytes_of(trace);
    const std::string peak = "peak " + format_bytes(source.peak().allocated_bytes);
    view.summary = "peak " + text_of_limit(source.peak().allocated_bytes, limit_bytes);
    // What the allocator may take; of a GPU, what the CUDA context leaves.
    if (limit_bytes > 0) view.summary += " for tensors";
    if (is_near_limit(source.peak().allocated_bytes, limit_bytes)) {
        view.limit_bytes = static_cast<double>(limit_bytes);
        view.limit_text = "limit " + format_bytes(limit_bytes);
    }
    if (ran_out_of_memory(trace)) {
        view.summary += ", out of memory";
        const int64_t own_ns = out_of_memory_ns(trace);
        const double time_ns = map.to_shared(static_cast<double>(own_ns));
        if (is_seen(time_ns)) add_out_of_memory(source, time_ns, own_ns, view);
    } else if (has_note(trace, kStepDoesNotFit)) {
        view.summary += ", does not fit";
    }
    const std::string where = phase_text_at(trace, source.peak().time_ns);
    const double time_ns = map.to_shared(static_cast<double>(source.peak().time_ns));
    if (!is_seen(time_ns)) return;
    PeakMarker marker{.time_ns = time_ns,
                      .bytes = source.peak().allocated_bytes,
                      .text = where.empty() ? peak : fmt::format("{}, {}", peak, where)};
    if (const int64_t bytes = trace.run().imbalanced_peak_bytes; bytes > marker.bytes) {
        marker.uneven_bytes = bytes;
        marker.text += fmt::format("; {} with uneven experts", format_bytes(bytes));
    }
    view.peaks.push_back(std::move(marker));
}

/// The highest value of the whole capture, so that the axis does not jump while zooming.
double highest_bytes(const MemoryCurve& curve) {
    const auto bins = curve.sample(curve.start_ns(), curve.end_ns(), 1);
    if (bins.empty()) return 0;
    return static_cast<double>(std::max(bins[0].allocated_bytes, bins[0].reserved_bytes));
}

/// A step of both traces may fall into neighbouring columns. Then one trace shows a column before
/// the step, and the other shows it after the step. This difference of one column is dropped.
void drop_shifted_steps(TimelineView& view) {
    const std::vector<double>& a = view.traces[0].allocated_bytes;
    const std::vector<double>& b = view.traces[1].allocated_bytes;
    const std::vector<double> all = view.difference_bytes;
    for (std::size_t i = 1; i + 1 < all.size(); ++i) {
        const auto [low, high] = std::minmax(all[i - 1], all[i + 1]);
        const double around = std::clamp(all[i], low, high);
        const double spike = std::abs(all[i] - around);
        const auto is_flat = [&](const std::vector<double>& bytes, std::size_t other) {
            return std::abs(bytes[i] - bytes[other]) < spike / 4;
        };
        const bool a_is_later = is_flat(a, i - 1) && is_flat(b, i + 1);
        const bool b_is_later = is_flat(b, i - 1) && is_flat(a, i + 1);
        if (a_is_later || b_is_later) view.difference_bytes[i] = around;
    }
}

void add_totals(TimelineView& view) {
    for (const TimelineTrace& trace : view.traces) {
        for (std::size_t i = 0; i < trace.column_count(); ++i) {
            view.max_bytes = std::max(view.max_bytes, trace.reserved_bytes[i]);
        }
    }
    std::vector<const TimelineTrace*> traces;
    for (const TimelineTrace& trace : view.traces) traces.push_back(&trace);
    view.categories = categories_in(traces);
    if (view.traces.size() < 2) return;
    for (std::size_t i = 0; i < view.traces[0].column_count(); ++i) {
        // Where only one capture is running, the difference would be all of its memory.
        const bool is_common = view.traces[0].covers(i) && view.traces[1].covers(i);
        view.difference_bytes.push_back(
            is_common ? view.traces[1].allocated_bytes[i] - view.traces[0].allocated_bytes[i] : 0);
    }
    drop_shifted_steps(view);
    for (const double difference : view.difference_bytes) {
        view.max_difference_bytes = std::max(view.max_difference_bytes, std::abs(difference));
    }
}

void add_notes(const Trace& trace, const std::string& name, TimelineView& view) {
    if (trace.run().state == RunState::kIncomplete) {
        const std::size_t count = trace.steps.size();
        view.notes.push_back(fmt::format("{} is incomplete: {} {} recorded", name, count,
                                         count == 1 ? "step was" : "steps were"));
    }
    if (has_note(trace, kMachineBusy)) {
        view.notes.push_back(
            fmt::format("the times of {} are not its own: the machine was busy", name));
    }
}

/// The workload and where it ran.
void add_run(const Trace& trace, TimelineView& view) {
    const std::string workload = describe_workload(trace);
    if (view.workload.empty()) {
        view.workload = workload;
    } else if (view.workload != workload && !workload.empty()) {
        view.workload += " and " + workload;
    }
    const std::string origin = describe_source(trace);
    if (std::ranges::find(view.origin, origin) == view.origin.end()) view.origin.push_back(origin);
}

/// The annotations around a time, the outermost first; of many the innermost.
std::string annotation_text_at(const Trace& trace, int64_t time_ns) {
    constexpr std::ptrdiff_t kMost = 3;
    std::vector<Annotation> around;
    for (std::size_t i = 0; i < trace.annotations.size(); ++i) {
        const Annotation row = trace.annotations[Id<Annotation>(i)];
        if (row.start_ns <= time_ns && time_ns < row.end_ns) around.push_back(row);
    }
    std::ranges::stable_sort(around, std::greater(),
                             [](const Annotation& row) { return row.end_ns - row.start_ns; });
    std::string text;
    for (auto row = around.end() - std::min(std::ssize(around), kMost); row != around.end();
         ++row) {
        text += fmt::format("{}{}", text.empty() ? "" : " > ", trace.text(row->text));
    }
    return text;
}

}  // namespace

std::string phase_text_at(const Trace& trace, int64_t time_ns) {
    for (std::size_t i = 0; i < trace.phases.size(); ++i) {
        const Phase phase = trace.phases[Id<Phase>(i)];
        if (time_ns < phase.start_ns || time_ns >= phase.end_ns) continue;
        if (!phase.step.valid()) return std::string(name_of(phase.kind));
        return fmt::format("{} of step {}", name_of(phase.kind), phase.step.index() + 1);
    }
    return {};
}

TimelineTrace build_timeline_trace(const StepIndex& source, const TimeMap& map,
                                   const TimelineRequest& window) {
    const ColumnGrid grid = make_grid(window);
    TimelineTrace trace;
    trace.start_ns = map.to_shared(static_cast<double>(source.curve().start_ns()));
    trace.end_ns = map.to_shared(static_cast<double>(source.curve().end_ns()));
    add_columns(sample_columns(source, map, grid), grid, trace);
    add_bands(source, map, window, trace);
    add_markers(source, map, window, trace);
    for (std::size_t c = 0; c < trace.column_count(); ++c) {
        trace.has_reserved |= trace.reserved_bytes[c] != trace.allocated_bytes[c];
    }
    return trace;
}

std::vector<Category> categories_in(std::span<const TimelineTrace* const> traces) {
    std::array<bool, kCategoryNames.size()> occurs{};
    for (const TimelineTrace* trace : traces) {
        for (std::size_t i = 0; i < trace->column_count(); ++i) {
            double below = 0;
            for (const Category category : kCategoryStackOrder) {
                const auto c = static_cast<std::size_t>(category);
                occurs[c] |= trace->top_bytes[c][i] > below;
                below = trace->top_bytes[c][i];
            }
        }
    }
    return categories_where(
        [&](Category category) { return occurs[static_cast<std::size_t>(category)]; });
}

TimelineView build_timeline_view(const TimelineRequest& request) {
    TimelineView view;
    if (request.alignment) {
        view.alignment = request.alignment->used;
        view.alignment_note = request.alignment->note;
    }
    for (std::size_t i = 0; i < request.steps.size(); ++i) {
        const StepIndex& source = request.steps[i];
        add_run(source.trace(), view);
        add_notes(source.trace(), request.names[i], view);
        TimelineTrace trace = build_timeline_trace(source, map_of(request.alignment, i), request);
        trace.name = request.names[i];
        const auto failed = failed_request_of(source.trace());
        const int64_t asked_for =
            failed ? failed->requested_bytes + source.curve().at(failed->time_ns).allocated_bytes
                   : 0;
        view.max_bytes =
            std::max({view.max_bytes, highest_bytes(source.curve()), trace.limit_bytes,
                      static_cast<double>(asked_for),
                      static_cast<double>(source.trace().run().imbalanced_peak_bytes)});
        view.traces.push_back(std::move(trace));
    }
    add_totals(view);
    return view;
}

TimeRange fit_timeline(const TimelineRequest& request) {
    constexpr double kRoomForRequest = 0.09;
    const Steps& steps = request.steps;
    TimeRange range;
    bool has_failed_request = false;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const TimeMap& map = map_of(request.alignment, i);
        const double start_ns = map.to_shared(static_cast<double>(steps[i].curve().start_ns()));
        const double end_ns = map.to_shared(static_cast<double>(steps[i].curve().end_ns()));
        range.start_ns = i == 0 ? start_ns : std::min(range.start_ns, start_ns);
        range.end_ns = i == 0 ? end_ns : std::max(range.end_ns, end_ns);
        has_failed_request |= failed_request_of(steps[i].trace()).has_value();
    }
    if (has_failed_request) range.end_ns += kRoomForRequest * (range.end_ns - range.start_ns);
    return range;
}

TimelineReadout read_timeline(const TimelineRequest& request, std::size_t index, double time_ns) {
    if (index >= request.steps.size()) return {};
    const StepIndex& source = request.steps[index];
    const TimeMap& map = map_of(request.alignment, index);
    const int64_t own_ns = std::llround(map.to_own(time_ns));
    const CurveBin bin = source.curve().at(own_ns);
    TimelineReadout readout;
    readout.time_text = format_duration(own_ns);
    readout.total_text = format_bytes(bin.allocated_bytes);
    readout.phase_text = phase_text_at(source.trace(), own_ns);
    readout.annotation_text = annotation_text_at(source.trace(), own_ns);
    for (auto category = kCategoryStackOrder.rbegin(); category != kCategoryStackOrder.rend();
         ++category) {
        const int64_t bytes = bin.by_category[static_cast<std::size_t>(*category)];
        if (bytes <= 0) continue;
        const double share = static_cast<double>(bytes) / static_cast<double>(bin.allocated_bytes);
        readout.rows.push_back({*category, bytes, format_bytes(bytes), format_percent(share)});
    }
    return readout;
}

namespace {

Cell whole(double value) { return static_cast<int64_t>(std::llround(value)); }

}  // namespace

DataTable timeline_data(const TimelineTrace& trace) {
    DataTable table{.columns = {"start_ns", "end_ns", "allocated_bytes", "reserved_bytes"}};
    for (const Category category : kCategoryStackOrder) {
        table.columns.push_back(fmt::format("{}_bytes", name_of(category)));
    }
    for (std::size_t i = 0; i < trace.column_count(); ++i) {
        std::vector<Cell> row{whole(trace.edge_ns[i]), whole(trace.edge_ns[i + 1]),
                              whole(trace.allocated_bytes[i]), whole(trace.reserved_bytes[i])};
        double below = 0;
        for (const Category category : kCategoryStackOrder) {
            const auto& tops = trace.top_bytes[static_cast<std::size_t>(category)];
            const double top = i < tops.size() ? tops[i] : below;
            row.push_back(whole(top - below));
            below = top;
        }
        table.rows.push_back(std::move(row));
    }
    return table;
}

namespace {

class TrackLayout {
public:
    TrackLayout(const TimelineRequest& request, const StepIndex& source, const TimeMap& map,
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
            module.parent.valid() ? path_of_module(trace_, module.parent) : std::string_view();
        block.label = path_below(path, around);
        block.short_label = path.substr(path.rfind('.') + 1);
    }

    const TimelineRequest& request_;
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
    if (!is_drawable(request.start_ns, request.end_ns, request.width_px)) return view;
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
                    {"left at its end", format_bytes(span.left_bytes)}};
    return readout;
}

}  // namespace profiler
