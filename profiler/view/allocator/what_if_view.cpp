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

    SettingsRun run(const WhatIfChoice& choice, Simulation* simulation = nullptr) {
        const SimulationOptions options{.settings = choice.settings,
                                        .memory_limit_bytes = choice.memory_limit_bytes,
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

// ---- figures --------------------------------------------------------------------------------

Trend trend_of(int64_t recorded, int64_t chosen) {
    if (recorded == chosen) return Trend::kSame;
    return chosen < recorded ? Trend::kBetter : Trend::kWorse;
}

int64_t unused_bytes(const SettingsRun& run) {
    return run.at_reserved_peak.reserved_bytes - run.at_reserved_peak.allocated_bytes;
}

void add_figures(const SettingsRun& recorded, const SettingsRun& chosen, WhatIfView& view) {
    const auto add = [&](const char* label, auto format, int64_t before, int64_t after,
                         const char* help) {
        view.figures.push_back(
            {label, format(before), format(after), trend_of(before, after), help});
    };
    add(kPeakReserved, format_bytes, recorded.peak.reserved_bytes, chosen.peak.reserved_bytes,
        "The most that the allocator held of the device");
    add(kPeakAllocated, format_bytes, recorded.peak.allocated_bytes, chosen.peak.allocated_bytes,
        "The most that blocks of tensors took, as rounded by the allocator");
    add("Fragmentation", format_bytes, unused_bytes(recorded), unused_bytes(chosen),
        "Reserved but not allocated, when most was reserved");
    add("Segments", format_count, recorded.num_segments_at_reserved_peak,
        chosen.num_segments_at_reserved_peak,
        "When most was reserved; an expandable segment counts once");
    add("cudaMalloc calls", format_count, recorded.num_segment_calls, chosen.num_segment_calls,
        "Each takes a segment, or maps more memory to an expandable one");
    if (recorded.num_retries > 0 || chosen.num_retries > 0) {
        add("Retries", format_count, recorded.num_retries, chosen.num_retries,
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
    const auto number = static_cast<std::size_t>(run.allocations_done);
    std::string where = "a request";
    if (number < rows.size()) {
        const Trace& trace = request.step->trace();
        where = name_of_request(*request.step, rows[number]);
        if (trace.steps.size() > 0 && !is_in_step(trace, rows[number])) {
            where += " outside the recorded steps";
        }
        view.out_of_memory_ns =
            static_cast<double>(trace.allocations.get<&Allocation::alloc_ns>(rows[number]));
    }
    view.fit_text = fmt::format(
        "Runs out of memory at {}: {} needed a segment of {}, but {} were free. {} of {} "
        "allocations were made.",
        where, format_bytes(detail.requested_bytes), format_bytes(detail.asked_bytes),
        format_bytes(detail.free_bytes), format_count(run.allocations_done),
        format_count(run.num_allocations));
}

// ---- the map ----------------------------------------------------------------------------------

/// A segment event happens during a request for memory, and takes its number and time.
SegmentLayout layout_of(const Trace& trace, const RequestStream& stream,
                        const std::vector<Id<Allocation>>& rows, const Simulation& simulation) {
    SegmentLayout layout{.trace = &trace};
    layout.blocks.resize(trace.allocations.size());
    for (std::size_t i = 0; i < std::min(rows.size(), simulation.placements.size()); ++i) {
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
        const Id<Allocation> row = rows[stream.requests[during.request].allocation];
        layout.events.push_back({.action = action_of(during.event.action),
                                 .event = trace.allocations.get<&Allocation::alloc_event>(row),
                                 .time_ns = trace.allocations.get<&Allocation::alloc_ns>(row),
                                 .stream = trace.allocations.get<&Allocation::stream>(row),
                                 .pool = during.event.pool,
                                 .address = during.event.address,
                                 .size_bytes = during.event.size_bytes});
    }
    return layout;
}

// ---- all settings -----------------------------------------------------------------------------

std::vector<WhatIfView::Tried> try_all(Runner& runner, const WhatIfChoice& choice,
                                       const SettingsRun& recorded) {
    std::vector<SettingsRun> runs;
    for (const AllocatorSettings& settings :
         settings_to_try(choice.memory_limit_bytes.has_value())) {
        runs.push_back(runner.run({settings, choice.memory_limit_bytes}));
        if (runner.is_cancelled()) return {};
    }
    std::ranges::stable_sort(runs, [](const SettingsRun& a, const SettingsRun& b) {
        if (a.out_of_memory.has_value() != b.out_of_memory.has_value()) return !a.out_of_memory;
        return a.peak.reserved_bytes < b.peak.reserved_bytes;
    });
    std::vector<WhatIfView::Tried> tried;
    for (const SettingsRun& run : runs) {
        WhatIfView::Tried row{.settings = run.settings,
                              .settings_text = name_of(run.settings),
                              .reserved_text = format_bytes(run.peak.reserved_bytes),
                              .fits = !run.out_of_memory,
                              .is_chosen = run.settings == choice.settings};
        const int64_t more = run.peak.reserved_bytes - recorded.peak.reserved_bytes;
        if (row.fits && more != 0) {
            row.trend = trend_of(0, more);
            row.change_text = change_in_bytes(more);
        }
        if (!row.fits) row.reserved_text = "out of memory";
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
        view.notes.push_back(fmt::format(
            "The recording itself held {} at its peak: it did not begin with an empty allocator, "
            "as both replays do.",
            format_bytes(held)));
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
    const auto stream = request_stream_of(trace, profiled_device(trace), &rows);
    if (!stream) return tl::unexpected(stream.error());
    if (stream->requests.empty()) return models::fail("The trace holds no allocations to replay.");
    const auto own = parse_alloc_conf(trace.text(trace.run().allocator_settings));
    const AllocatorSettings own_settings = own.value_or(AllocatorSettings{});

    const bool has_limit = request.choice.memory_limit_bytes.has_value();
    const std::size_t more_runs = request.tries_all ? settings_to_try(has_limit).size() : 0;
    Runner runner(*stream, 2 + more_runs, progress);
    WhatIfView view{.recorded_settings = name_of(own_settings)};
    const SettingsRun recorded = runner.run({.settings = own_settings});
    Simulation simulation;
    const SettingsRun chosen = runner.run(request.choice, &simulation);
    add_figures(recorded, chosen, view);
    if (chosen.out_of_memory) {  // less, because it ended early: not better
        for (WhatIfView::Figure& figure : view.figures) figure.trend = Trend::kSame;
    }
    add_fit(chosen, request, rows, view);
    add_notes(request, recorded, view);
    view.layout =
        std::make_shared<const SegmentLayout>(layout_of(trace, *stream, rows, simulation));
    if (request.tries_all) view.tried = try_all(runner, request.choice, recorded);
    if (runner.is_cancelled()) return models::fail("Cancelled.");
    return view;
}

DataTable what_if_data(const WhatIfView& view) {
    DataTable table{.columns = {"figure", "recorded", "chosen"}};
    for (const WhatIfView::Figure& figure : view.figures) {
        table.rows.push_back({figure.label, figure.recorded_text, figure.chosen_text});
    }
    return table;
}

DataTable tried_data(const WhatIfView& view) {
    DataTable table{.columns = {"settings", "peak_reserved", "change", "fits"}};
    for (const WhatIfView::Tried& tried : view.tried) {
        table.rows.push_back({tried.settings_text, tried.reserved_text, tried.change_text,
                              tried.fits ? "yes" : "no"});
    }
    return table;
}

}  // namespace profiler
