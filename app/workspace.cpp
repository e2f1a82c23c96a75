#include "app/workspace.h"

#include "profiler/trace/trace_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

namespace app {
namespace {

namespace fs = std::filesystem;

bool is_baseline(const DocumentPtr& document) { return document->recipe == "original"; }

profiler::TimelineSource source_of(const DocumentPtr& document, const char* letter) {
    return {document->trace.get(), &document->curve, &document->peak,
            fmt::format("{}  {}", letter, document->recipe)};
}

profiler::TimelineRequest make_request(const Selection& selection, const TimeWindow& window) {
    profiler::TimelineRequest request{.start_ns = window.start_ns,
                                      .end_ns = window.end_ns,
                                      .width_px = window.width_px,
                                      .alignment = window.alignment};
    if (selection.a) request.sources.push_back(source_of(selection.a, "A"));
    if (selection.b) request.sources.push_back(source_of(selection.b, "B"));
    return request;
}

/// Half a window more on both sides: what panning uncovers is already there while the next view
/// is built.
TimeWindow with_margins(TimeWindow window) {
    const double margin_ns = (window.end_ns - window.start_ns) / 2;
    window.start_ns -= margin_ns;
    window.end_ns += margin_ns;
    window.width_px *= 2;
    return window;
}

profiler::LedgerSource ledger_source(const DocumentPtr& document) {
    if (!document) return {};
    return {&document->ledger, document->closed_form ? &*document->closed_form : nullptr,
            document->trace->run().num_layers};
}

}  // namespace

// ---- files ----------------------------------------------------------------------------------

void Workspace::open(const std::vector<fs::path>& files) {
    for (const fs::path& file : files) {
        std::error_code error;
        if (!fs::is_directory(file, error)) {
            loader_.load(file);
            continue;
        }
        const auto inside = profiler::traces_in(file);
        if (!inside) {
            notify(profiler::Severity::kError, inside.error().message);
            continue;
        }
        if (inside->empty()) {
            notify(profiler::Severity::kWarning,
                   fmt::format("{} holds no .tscope files; open a folder that `temposcope capture` "
                               "has written.",
                               file.string()));
        }
        for (const fs::path& trace : *inside) loader_.load(trace);
    }
}

void Workspace::add(DocumentPtr document) {
    const auto same_file = [&](const DocumentPtr& d) { return d->file == document->file; };
    const auto old = std::find_if(documents_.begin(), documents_.end(), same_file);
    if (old != documents_.end()) {
        if (selection_.a == *old) selection_.a = document;
        if (selection_.b == *old) selection_.b = document;
        *old = std::move(document);
    } else {
        documents_.push_back(std::move(document));
    }
    documents_changed();
}

void Workspace::close(const DocumentPtr& document) {
    std::erase(documents_, document);
    if (selection_.a == document) selection_.a = nullptr;
    if (selection_.b == document) selection_.b = nullptr;
    documents_changed();
}

void Workspace::take_loaded() {
    for (auto& loaded : loader_.take()) {
        if (!loaded) {
            notify(profiler::Severity::kError, loaded.error().message);
            continue;
        }
        opened_.push_back((*loaded)->file);
        add(std::move(*loaded));
    }
}

void Workspace::take_captured() {
    open(capture_.take_finished());
    if (const auto end = capture_.take_end()) notify(end->severity, end->text);
}

void Workspace::notify(profiler::Severity severity, std::string text) {
    notices_.push_back({severity, std::move(text)});
}

// ---- selection ------------------------------------------------------------------------------

void Workspace::set_a(DocumentPtr document) {
    if (document == selection_.a) return;
    if (document && document == selection_.b) selection_.b = selection_.a;
    selection_.a = std::move(document);
    selection_changed();
}

void Workspace::set_b(DocumentPtr document) {
    if (document == selection_.b) return;
    if (document && document == selection_.a) return swap_a_and_b();
    selection_.b = std::move(document);
    selection_changed();
}

void Workspace::swap_a_and_b() {
    if (!selection_.a || !selection_.b) return;
    std::swap(selection_.a, selection_.b);
    selection_changed();
}

void Workspace::clear_selection() {
    selection_.role.reset();
    selection_.range.reset();
    selection_.tensor.reset();
}

void Workspace::fit_time() {
    time_window_.start_ns = time_limits_.start_ns;
    time_window_.end_ns = time_limits_.end_ns;
    timeline_stale_ = true;
}

void Workspace::choose_defaults() {
    const auto with_step = [](const DocumentPtr& d) { return d->has_step; };
    if (!selection_.a) {
        auto best = std::find_if(documents_.begin(), documents_.end(), [&](const DocumentPtr& d) {
            return with_step(d) && is_baseline(d) && d != selection_.b;
        });
        if (best == documents_.end()) {
            best = std::find_if(documents_.begin(), documents_.end(), [&](const DocumentPtr& d) {
                return with_step(d) && d != selection_.b;
            });
        }
        if (best != documents_.end()) selection_.a = *best;
    } else if (!selection_.chosen && !is_baseline(selection_.a)) {
        // The baseline was opened after another recipe.
        const auto base = std::find_if(documents_.begin(), documents_.end(), is_baseline);
        if (base != documents_.end() && with_step(*base)) {
            selection_.b = std::exchange(selection_.a, *base);
        }
    }
    if (!selection_.a) selection_.a = std::exchange(selection_.b, nullptr);
    if (!selection_.b && !selection_.chosen) {
        const auto other =
            std::find_if(documents_.begin(), documents_.end(),
                         [&](const DocumentPtr& d) { return with_step(d) && d != selection_.a; });
        if (other != documents_.end()) selection_.b = *other;
    }
}

void Workspace::documents_changed() {
    if (documents_.empty()) selection_.chosen = false;
    choose_defaults();
    compare_stale_ = true;
    selection_changed();
}

void Workspace::selection_changed() {
    selection_.range.reset();
    selection_.tensor.reset();
    timeline_stale_ = ledger_stale_ = true;
    if (!selection_.a) {
        timeline_view_.reset();
        ledger_view_.reset();
        return;
    }
    time_limits_ = profiler::fit_timeline(timeline_request().sources, time_window_.alignment);
    fit_time();
}

profiler::TimeMap Workspace::map_of_b() const {
    const profiler::Trace& a = *selection_.a->trace;
    const profiler::Trace& b = *selection_.b->trace;
    std::string note;
    return time_window_.alignment == profiler::TimeAlignment::kPhases
               ? profiler::align_phases(a, b, note)
               : profiler::align_starts(a, b);
}

void Workspace::select_row(const profiler::LedgerViewRow& row) {
    const bool in_b = row.presence == profiler::Presence::kAdded;
    const DocumentPtr& document = in_b ? selection_.b : selection_.a;
    if (!document) return;
    SelectedTensor tensor{.name = row.tensor,
                          .scope = row.scope,
                          .size_bytes = in_b ? row.other_bytes : row.size_bytes,
                          .in_b = in_b};
    if (row.allocation.valid()) {
        const auto& allocations = document->trace->allocations;
        const auto alloc_ns = allocations.get<&profiler::Allocation::alloc_ns>(row.allocation);
        const auto free_ns =
            allocations.get<&profiler::Allocation::free_requested_ns>(row.allocation);
        const profiler::TimeMap map = in_b ? map_of_b() : profiler::TimeMap();
        tensor.alloc_ns = map.to_shared(static_cast<double>(alloc_ns));
        if (free_ns >= 0) tensor.free_ns = map.to_shared(static_cast<double>(free_ns));
    }
    reveal(tensor);
    selection_.tensor = tensor;
}

void Workspace::reveal(const SelectedTensor& tensor) {
    if (!tensor.alloc_ns) return;
    const double end_ns = tensor.free_ns.value_or(time_limits_.end_ns);
    if (*tensor.alloc_ns < time_window_.end_ns && end_ns > time_window_.start_ns) return;
    const double shown_ns = time_window_.end_ns - time_window_.start_ns;
    time_window_.start_ns = (*tensor.alloc_ns + end_ns - shown_ns) / 2;
    time_window_.end_ns = time_window_.start_ns + shown_ns;
    timeline_stale_ = true;
}

// ---- views ----------------------------------------------------------------------------------

profiler::TimelineRequest Workspace::timeline_request() const {
    return make_request(selection_, time_window_);
}

profiler::TimelineReadout Workspace::read_timeline(size_t source, double time_ns) const {
    return profiler::read_timeline(timeline_request(), source, time_ns);
}

DocumentPtr Workspace::document_of_column(size_t column) const {
    if (!comparison_ || column >= comparison_->columns.size()) return nullptr;
    const auto& trace = comparison_->columns[column].step_trace;
    const auto found = std::find_if(documents_.begin(), documents_.end(),
                                    [&](const DocumentPtr& d) { return d->trace == trace; });
    return trace && found != documents_.end() ? *found : nullptr;
}

void Workspace::take_views() {
    if (auto result = compare_task_.take()) {
        if (!result->error.empty()) notify(profiler::Severity::kError, result->error);
        comparison_ = std::move(result->comparison);
        compare_view_ = std::move(result->view);
    }
    if (auto notice = export_task_.take()) notices_.push_back(std::move(*notice));
    if (auto view = timeline_task_.take(); view && selection_.a) timeline_view_ = *view;
    if (auto view = ledger_task_.take(); view && selection_.a) ledger_view_ = *view;
}

void Workspace::start_stale_views() {
    if (std::exchange(compare_stale_, false)) {
        compare_task_.start([documents = documents_] {
            CompareResult result;
            if (documents.empty()) return result;
            std::vector<profiler::NamedTrace> traces;
            for (const auto& d : documents) traces.push_back({d->file.string(), d->trace});
            auto comparison = profiler::compare(traces);
            if (!comparison) {
                result.error = comparison.error().message;
                return result;
            }
            result.view = std::make_shared<const profiler::CompareView>(
                profiler::build_compare_view(*comparison));
            result.comparison =
                std::make_shared<const profiler::Comparison>(std::move(*comparison));
            return result;
        });
    }
    if (selection_.a && time_window_.width_px > 0 && std::exchange(timeline_stale_, false)) {
        timeline_task_.start([selection = selection_, window = time_window_] {
            return std::make_shared<const profiler::TimelineView>(
                profiler::build_timeline_view(make_request(selection, with_margins(window))));
        });
    }
    if (selection_.a && std::exchange(ledger_stale_, false)) {
        ledger_task_.start([a = selection_.a, b = selection_.b, query = ledger_query_] {
            return std::make_shared<const profiler::LedgerView>(
                profiler::build_ledger_view({.first = ledger_source(a),
                                             .second = ledger_source(query.compare ? b : nullptr),
                                             .filter = query.filter,
                                             .sort_by = query.sort_by,
                                             .descending = query.descending,
                                             .only_differences = query.only_differences}));
        });
    }
}

void Workspace::update() {
    take_captured();
    take_loaded();
    take_views();
    start_stale_views();
}

bool Workspace::settled() const {
    const bool stale =
        compare_stale_ ||
        (selection_.a && (ledger_stale_ || (timeline_stale_ && time_window_.width_px > 0)));
    return !stale && !loader_.progress() && !compare_task_.busy() && !timeline_task_.busy() &&
           !ledger_task_.busy() && !export_task_.busy();
}

// ---- export ---------------------------------------------------------------------------------

void Workspace::start_export(
    fs::path file, std::function<models::Result<void>(const profiler::ChartOptions&)> write) {
    const auto format = profiler::chart_format_of(file);
    if (!format) return notify(profiler::Severity::kError, format.error().message);
    export_task_.start([file = std::move(file), format = *format, write = std::move(write)] {
        const auto written = write({.format = format});
        return written ? Notice{profiler::Severity::kInfo, "Wrote " + file.string() + "."}
                       : Notice{profiler::Severity::kError, written.error().message};
    });
}

void Workspace::export_comparison(const fs::path& file, bool dark) {
    if (!compare_view_) return;
    start_export(file, [view = compare_view_, file, dark](const profiler::ChartOptions& options) {
        return profiler::write_comparison_chart(
            *view, dark ? profiler::dark_theme() : profiler::light_theme(), options, file);
    });
}

void Workspace::export_timeline(const fs::path& file, bool dark) {
    if (!selection_.a) return;
    start_export(file, [selection = selection_, window = time_window_, file,
                        dark](const profiler::ChartOptions& options) {
        TimeWindow shown = window;
        shown.width_px = static_cast<int>(options.width);
        return profiler::write_timeline_chart(
            profiler::build_timeline_view(make_request(selection, shown)),
            dark ? profiler::dark_theme() : profiler::light_theme(), options, file);
    });
}

// ---- events ---------------------------------------------------------------------------------

void Workspace::apply(const PanelEvents& events) {
    if (events.cancel_loading) cancel_loading();
    if (!events.open.empty()) open(events.open);
    if (events.close) close(events.close);
    if (events.cancel_capture) capture_.cancel();
    if (events.start_capture) {
        if (const auto started = capture_.start(*events.start_capture); !started) {
            notify(profiler::Severity::kError, started.error().message);
        }
    }
    if (events.set_a || events.set_b || events.column) selection_.chosen = true;
    if (events.set_a) set_a(*events.set_a);
    if (events.set_b) set_b(*events.set_b);
    if (events.column) {
        const DocumentPtr document = document_of_column(*events.column);
        if (document && document != selection_.a) set_b(document);
    }
    if (events.role) {
        selection_.role = selection_.role == events.role ? std::nullopt : events.role;
    }
    if (events.range) selection_.range = *events.range;
    if (events.tensor) select_row(*events.tensor);
    if (events.clear_tensor) selection_.tensor.reset();
    if (events.fit_time) fit_time();
    if (!events.fit_time && events.time_window && *events.time_window != time_window_) {
        const bool realign = events.time_window->alignment != time_window_.alignment;
        time_window_ = *events.time_window;
        timeline_stale_ = true;
        if (realign) selection_changed();
    }
    if (events.ledger_query && *events.ledger_query != ledger_query_) {
        ledger_query_ = *events.ledger_query;
        ledger_stale_ = true;
    }
}

}  // namespace app
