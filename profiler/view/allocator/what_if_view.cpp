#include "profiler/view/allocator/what_if_view.h"

#include "profiler/allocator/settings_run.h"
#include "profiler/analysis/step/event_order.h"
#include "profiler/trace/units.h"
#include "profiler/view/quantity_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace profiler {
namespace {

using Trend = WhatIfView::Trend;
using Progress = std::function<bool(double)>;

/// One replay after the other, each an equal share of the whole.
class Runner {
public:
    Runner(const RequestStream& stream, std::size_t num_runs, const Progress& progress)
        : stream_(stream), num_runs_(static_cast<double>(num_runs)), progress_(progress) {}

    SettingsRun run(const WhatIfChoice& choice, Simulation* simulation = nullptr,
                    bool from_recorded_start = true) {
        const SimulationOptions options{.settings = choice.settings,
                                        .memory_limit_bytes = choice.memory_limit_bytes,
                                        .from_recorded_start = from_recorded_start,
                                        .keep_placements = simulation != nullptr,
                                        .progress = [this](double share) { return report(share); }};
        SettingsRun run = run_settings(stream_, options, simulation);
        done_ += 1;
        return run;
    }
    bool is_cancelled() const { return is_cancelled_; }

private:
    bool report(double share) {
        is_cancelled_ = is_cancelled_ || !progress_((done_ + share) / num_runs_);
        return !is_cancelled_;
    }

    const RequestStream& stream_;
    const double num_runs_;
    const Progress& progress_;
    double done_ = 0;
    bool is_cancelled_ = false;
};

/// The trace's own settings, from the recorded segments and from nothing: a run is compared with
/// the one that has its start.
struct Baseline {
    SettingsRun recorded;
    SettingsRun from_empty;

    const SettingsRun& beside(const SettingsRun& run) const {
        return run.from_recorded_start ? recorded : from_empty;
    }
};

// ---- figures --------------------------------------------------------------------------------

Trend trend_of(int64_t recorded, int64_t chosen) {
    if (recorded == chosen) return Trend::kSame;
    return chosen < recorded ? Trend::kBetter : Trend::kWorse;
}

int64_t unused_bytes(const SettingsRun& run) {
    return run.at_reserved_peak.reserved_bytes - run.at_reserved_peak.allocated_bytes;
}

void add_figures(const SettingsRun& recorded, const SettingsRun& chosen, WhatIfView& view) {
    const auto add = [&](const char* id, const char* label, auto format, int64_t before,
                         int64_t after, const char* help) {
        view.figures.push_back({id, label, before, after, format(before), format(after),
                                trend_of(before, after), help});
    };
    add("peak_reserved_bytes", kPeakReserved, format_bytes, recorded.peak.reserved_bytes,
        chosen.peak.reserved_bytes, "The most that the allocator held of the device");
    add("peak_allocated_bytes", kPeakAllocated, format_bytes, recorded.peak.allocated_bytes,
        chosen.peak.allocated_bytes,
        "The most that blocks of tensors took, as rounded by the allocator");
    add("fragmentation_bytes", "Fragmentation", format_bytes, unused_bytes(recorded),
        unused_bytes(chosen), "Reserved but not allocated, when most was reserved");
    add("segments", "Segments", format_count, recorded.num_segments_at_reserved_peak,
        chosen.num_segments_at_reserved_peak,
        "When most was reserved; an expandable segment counts once");
    add("segment_calls", "cudaMalloc calls", format_count, recorded.num_segment_calls,
        chosen.num_segment_calls, "Each takes a segment, or maps more memory to an expandable one");
    if (recorded.num_retries > 0 || chosen.num_retries > 0) {
        add("retries", "Retries", format_count, recorded.num_retries, chosen.num_retries,
            "Allocations that were tried again after the cache was given back");
    }
}

// ---- out of memory --------------------------------------------------------------------------

/// What the warm-up allocates is recorded too.
bool is_in_step(const Trace& trace, Id<Allocation> allocation) {
    const int64_t event = trace.allocations.get<&Allocation::alloc_event>(allocation);
    for (std::size_t i = 0; i < trace.steps.size(); ++i) {
        const Step step = trace.steps[Id<Step>(i)];
        if (event >= step.first_event && event < step.last_event) return true;
    }
    return false;
}

/// Where memory ran out: an allocation of the trace, or the request that the program was refused.
std::string place_of_request(const StepIndex& step, Id<Allocation> row, WhatIfView& view) {
    const Trace& trace = step.trace();
    if (!row.valid()) {
        const Failure failure = trace.failures[fatal_failure(trace, profiled_device(trace))];
        view.out_of_memory_ns = static_cast<double>(failure.time_ns);
        return "the request that the program was refused";
    }
    view.out_of_memory_ns = static_cast<double>(trace.allocations.get<&Allocation::alloc_ns>(row));
    const bool is_outside = trace.steps.size() > 0 && !is_in_step(trace, row);
    return name_of_request(step, row) + (is_outside ? " outside the recorded steps" : "");
}

void add_fit(const SettingsRun& run, const WhatIfRequest& request,
             const std::vector<Id<Allocation>>& rows, WhatIfView& view) {
    if (!run.memory_limit_bytes) return;
    view.fits = !run.out_of_memory;
    if (view.fits) {
        view.fit_text =
            fmt::format("Fits in {}, with {} to spare.", format_bytes(*run.memory_limit_bytes),
                        format_bytes(*run.memory_limit_bytes -
                                     std::min(run.peak.reserved_bytes, *run.memory_limit_bytes)));
        return;
    }
    const OutOfMemory& detail = run.out_of_memory->detail;
    const std::string where =
        place_of_request(*request.step, rows[static_cast<std::size_t>(run.allocations_done)], view);
    view.fit_text = fmt::format(
        "Runs out of memory at {}: {} needed a segment of {}, but {} were free. {} of {} "
        "allocations were made.",
        where, format_bytes(detail.requested_bytes), format_bytes(detail.asked_bytes),
        format_bytes(detail.free_bytes), format_count(run.allocations_done),
        format_count(run.num_allocations));
}

// ---- the map ----------------------------------------------------------------------------------

/// A segment event happens during a request for memory, and takes its number and time.
struct RequestMoment {
    int64_t event = 0;
    int64_t time_ns = 0;
    Id<Stream> stream;
};

RequestMoment moment_of(const Trace& trace, Id<Allocation> row) {
    if (row.valid()) {
        const Allocation made = trace.allocations[row];
        return {made.alloc_event, made.alloc_ns, made.stream};
    }
    const Failure failure = trace.failures[fatal_failure(trace, profiled_device(trace))];
    return {.event = failure.event, .time_ns = failure.time_ns};
}

SegmentLayout layout_of(const Trace& trace, const RequestStream& stream,
                        const std::vector<Id<Allocation>>& rows, const Simulation& simulation) {
    SegmentLayout layout{.trace = &trace};
    layout.blocks.resize(trace.allocations.size());
    for (std::size_t i = 0; i < std::min(rows.size(), simulation.placements.size()); ++i) {
        if (!rows[i].valid()) continue;  // the refused request
        const Placement& place = simulation.placements[i];
        layout.blocks[rows[i].index()] = {place.address, place.block_bytes};
    }
    if (simulation.out_of_memory) {
        const std::size_t request = simulation.out_of_memory->request;
        layout.failed = rows[stream.requests[request].allocation];
    }
    for (const SegmentEvent& during : simulation.segment_events) {
        const bool is_segment = segment_bytes_of({.action = action_of(during.event.action),
                                                  .size_bytes = during.event.size_bytes}) != 0;
        if (!is_segment) continue;
        const RequestMoment moment =
            moment_of(trace, rows[stream.requests[during.request].allocation]);
        layout.events.push_back({.action = action_of(during.event.action),
                                 .event = moment.event,
                                 .time_ns = moment.time_ns,
                                 .stream = moment.stream,
                                 .pool = during.event.pool,
                                 .address = during.event.address,
                                 .size_bytes = during.event.size_bytes});
    }
    return layout;
}

// ---- all settings -----------------------------------------------------------------------------

std::vector<WhatIfView::Tried> try_all(Runner& runner, const WhatIfChoice& choice,
                                       const Baseline& own) {
    std::vector<SettingsRun> runs;
    for (const AllocatorSettings& settings :
         settings_to_try(choice.memory_limit_bytes.has_value())) {
        runs.push_back(runner.run({settings, choice.memory_limit_bytes}));
        if (runner.is_cancelled()) return {};
    }
    const auto more_bytes = [&](const SettingsRun& run) {
        return run.peak.reserved_bytes - own.beside(run).peak.reserved_bytes;
    };
    std::ranges::stable_sort(runs, [&](const SettingsRun& a, const SettingsRun& b) {
        return std::pair(!a.fits(), more_bytes(a)) < std::pair(!b.fits(), more_bytes(b));
    });
    std::vector<WhatIfView::Tried> tried;
    for (const SettingsRun& run : runs) {
        WhatIfView::Tried row{.settings = run.settings,
                              .settings_text = name_of(run.settings),
                              .reserved_text = format_bytes(run.peak.reserved_bytes),
                              .fits = run.fits(),
                              .is_chosen = run.settings == choice.settings};
        const int64_t more = more_bytes(run);
        if (row.fits) row.peak_reserved_bytes = run.peak.reserved_bytes;
        if (row.fits && own.beside(run).fits()) row.change_bytes = more;
        if (row.change_bytes.value_or(0) != 0) {
            row.trend = trend_of(0, more);
            row.change_text = change_in_bytes(more);
        }
        tried.push_back(std::move(row));
    }
    return tried;
}

/// The most that the trace's own segments held; 0 if it records none.
int64_t recorded_peak_bytes(const StepIndex& source) {
    const SegmentReader reader(source, nullptr);
    int64_t held = 0, peak = 0;
    for (const AllocatorEvent& event : reader.events()) {
        held += segment_bytes_of(event);
        peak = std::max(peak, held);
    }
    return peak;
}

void add_notes(const WhatIfRequest& request, const SettingsRun& recorded, WhatIfView& view) {
    const int64_t held = recorded_peak_bytes(*request.step);
    if (held == 0) {
        view.notes.emplace_back(
            "The trace has no segments: its requests are replayed as a CUDA device would get "
            "them.");
    } else if (held != recorded.peak.reserved_bytes) {
        view.notes.push_back(
            fmt::format("The recording itself held {} at its peak: {}.", format_bytes(held),
                        recorded.from_recorded_start
                            ? "the replay under its own settings differs from it"
                            : "it did not begin with an empty allocator, as both replays do"));
    }
    if (request.choice.settings.gc_threshold > 0 && !request.choice.memory_limit_bytes) {
        view.notes.emplace_back(
            "garbage_collection_threshold has no effect without a memory limit.");
    }
    if (request.choice.settings.memory_fraction < 1 && !request.choice.memory_limit_bytes) {
        view.notes.emplace_back(
            "per_process_memory_fraction is a share of the memory limit: choose one.");
    }
}

}  // namespace

std::string alloc_conf_line(const AllocatorSettings& settings) {
    return "PYTORCH_CUDA_ALLOC_CONF=" + to_text(settings);
}

models::Result<WhatIfView> build_what_if_view(const WhatIfRequest& request,
                                              const Progress& progress) {
    const Trace& trace = request.step->trace();
    std::vector<Id<Allocation>> rows;
    const auto stream = stream_to_failure(trace, profiled_device(trace), &rows);
    if (!stream) return tl::unexpected(stream.error());
    if (stream->requests.empty()) return models::fail("The trace holds no allocations to replay.");
    const auto own_settings = parse_alloc_conf(trace.text(trace.run().allocator_settings));
    const WhatIfChoice own{.settings = own_settings.value_or(AllocatorSettings{})};
    WhatIfRequest asked = request;
    if (!asked.choice.memory_limit_bytes) {
        asked.choice.memory_limit_bytes = stream->recorded_limit_bytes;
    }

    const bool has_limit = asked.choice.memory_limit_bytes.has_value();
    const std::size_t more_runs = asked.tries_all ? settings_to_try(has_limit).size() : 0;
    const bool has_start = !stream->start.segments.empty();
    Runner runner(*stream, (has_start ? 3 : 2) + more_runs, progress);
    WhatIfView view{.recorded_settings = name_of(own.settings)};
    const SettingsRun first = runner.run(own);
    const Baseline baseline{first, has_start ? runner.run(own, nullptr, false) : first};
    Simulation simulation;
    const SettingsRun chosen = runner.run(asked.choice, &simulation);
    const SettingsRun& recorded = baseline.beside(chosen);
    add_figures(recorded, chosen, view);
    if (!chosen.fits() || !recorded.fits()) {  // less, because it ended early: not better
        for (WhatIfView::Figure& figure : view.figures) figure.trend = Trend::kSame;
    }
    add_fit(chosen, asked, rows, view);
    add_notes(asked, recorded, view);
    view.layout =
        std::make_shared<const SegmentLayout>(layout_of(trace, *stream, rows, simulation));
    if (asked.tries_all) view.tried = try_all(runner, asked.choice, baseline);
    if (runner.is_cancelled()) return models::fail("Cancelled.");
    return view;
}

DataTable what_if_data(const WhatIfView& view) {
    DataTable table{.columns = {"figure", "recorded", "chosen"}};
    for (const WhatIfView::Figure& figure : view.figures) {
        table.rows.push_back({figure.id, figure.recorded, figure.chosen});
    }
    return table;
}

DataTable tried_data(const WhatIfView& view) {
    DataTable table{.columns = {"settings", "peak_reserved_bytes", "change_bytes", "fits"}};
    for (const WhatIfView::Tried& tried : view.tried) {
        table.rows.push_back(
            {tried.settings_text, tried.peak_reserved_bytes, tried.change_bytes, tried.fits});
    }
    return table;
}

}  // namespace profiler
