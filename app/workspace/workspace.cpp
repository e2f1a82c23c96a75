#include "app/workspace/workspace.h"

#include "app/workspace/selected.h"
#include "app/workspace/view_requests.h"
#include "profiler/formats/trace_formats.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <system_error>
#include <utility>

namespace app {
namespace {

namespace fs = std::filesystem;

/// The same file has one name, however it was typed: it is open once.
fs::path one_name_of(const fs::path& file) {
    std::error_code error;
    const fs::path absolute = fs::absolute(file, error);
    return error ? file : absolute.lexically_normal();
}

bool is_baseline(const Document& document) { return document.recipe == "original"; }

}  // namespace

// ---- files ----------------------------------------------------------------------------------

void Workspace::open(const std::vector<fs::path>& files) {
    for (const fs::path& typed : files) {
        const fs::path file = one_name_of(typed);
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
            notify(
                profiler::Severity::kWarning,
                fmt::format("{} holds no trace ({}); open a folder that `temposcope capture` has "
                            "written.",
                            file.string(), fmt::join(profiler::trace_extensions(), ", ")));
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
    selection_.category.reset();
    selection_.range.reset();
    selection_.tensor.reset();
    selection_.activity.reset();
}

void Workspace::fit_time() {
    time_window_.start_ns = time_limits_.start_ns;
    time_window_.end_ns = time_limits_.end_ns;
    time_window_changed();
}

void Workspace::time_window_changed() {
    timeline_stale_ = activity_stale_ = selection_.a && selection_.a->has_step;
}

DocumentPtr Workspace::find_document(const std::function<bool(const Document&)>& is_wanted) const {
    const auto found = std::find_if(documents_.begin(), documents_.end(),
                                    [&](const DocumentPtr& d) { return is_wanted(*d); });
    return found == documents_.end() ? nullptr : *found;
}

/// A is the baseline, B another recipe; a file without a recorded step only where there is no
/// other. What the user has chosen stays.
void Workspace::choose_defaults() {
    DocumentPtr &a = selection_.a, &b = selection_.b;
    const auto is_free = [&](const Document& d) { return d.has_step && &d != b.get(); };
    if (!a) a = find_document([&](const Document& d) { return is_free(d) && is_baseline(d); });
    if (!a) a = find_document(is_free);
    if (!a) a = std::exchange(b, nullptr);
    if (!a) a = find_document([](const Document&) { return true; });
    if (!a || selection_.chosen) return;
    if (!a->has_step || !is_baseline(*a)) {
        // Opened after the others.
        auto better = find_document([](const Document& d) { return d.has_step && is_baseline(d); });
        if (!better && !a->has_step) better = find_document(is_free);
        if (better && better == b) b = nullptr;
        if (better) b = std::exchange(a, better);
        if (b && !b->has_step) b = nullptr;
    }
    const auto is_other = [&](const Document& d) { return d.has_step && &d != a.get(); };
    if (!b) {
        b = find_document([&](const Document& d) { return is_other(d) && d.recipe != a->recipe; });
    }
    if (!b) b = find_document(is_other);
}

void Workspace::update_looks() {
    looks_.clear();
    for (const DocumentPtr& document : documents_) {
        DocumentLook look{document->recipe, looks_.size()};  // until the comparison knows it
        const size_t count = comparison_ ? comparison_->columns.size() : 0;
        for (size_t i = 0; i < count; ++i) {
            const profiler::ComparisonColumn& column = comparison_->columns[i];
            const bool is_in = std::find(column.files.begin(), column.files.end(),
                                         document->file.string()) != column.files.end();
            if (is_in) look = {column.recipe, i};
        }
        if (document == selection_.a) selection_.look_a = look;
        if (document == selection_.b) selection_.look_b = look;
        looks_.push_back(std::move(look));
    }
}

void Workspace::documents_changed() {
    if (documents_.empty()) selection_.chosen = false;
    choose_defaults();
    compare_stale_ = true;
    selection_changed();
}

/// Views of the A and B before would be read with the rows and columns of these: away with them.
void Workspace::selection_changed() {
    timeline_view_.reset();
    activity_view_.reset();
    ledger_view_.reset();
    timeline_error_.clear();
    activity_error_.clear();
    ledger_error_.clear();
    changed_ = true;
    update_looks();
    // Without a recorded step there is nothing to build; the panels say so.
    ledger_stale_ = selection_.a && selection_.a->has_step;
    time_axis_changed();
}

void Workspace::time_axis_changed() {
    selection_.range.reset();
    selection_.tensor.reset();
    selection_.activity.reset();
    const auto& [a, b] = std::tie(selection_.a, selection_.b);
    alignment_ = nullptr;
    if (a && b && a->has_step && b->has_step) {
        alignment_ = std::make_shared<const profiler::Alignment>(
            profiler::align(*a->trace, *b->trace, time_window_.alignment));
    }
    time_limits_ = profiler::fit_timeline(timeline_request());
    fit_time();
}

void Workspace::select_row(const profiler::LedgerViewRow& row) {
    const DocumentPtr& document =
        row.presence == profiler::Presence::kAdded ? selection_.b : selection_.a;
    if (!document) return;
    selection_.tensor = select(row, *document, alignment_.get());
    reveal(*selection_.tensor);
}

void Workspace::select_activity(const PickedActivity& picked) {
    const DocumentPtr& document = picked.in_b ? selection_.b : selection_.a;
    if (document) selection_.activity = select(picked, *document, alignment_.get());
}

void Workspace::reveal(const SelectedTensor& tensor) {
    if (!tensor.alloc_ns) return;
    const double end_ns = tensor.free_ns.value_or(time_limits_.end_ns);
    if (*tensor.alloc_ns < time_window_.end_ns && end_ns > time_window_.start_ns) return;
    const double shown_ns = time_window_.end_ns - time_window_.start_ns;
    time_window_.start_ns = (*tensor.alloc_ns + end_ns - shown_ns) / 2;
    time_window_.end_ns = time_window_.start_ns + shown_ns;
    time_window_changed();
}

// ---- views ----------------------------------------------------------------------------------

profiler::TimelineRequest Workspace::timeline_request() const {
    return make_request(selection_, time_window_, alignment_);
}

profiler::TimelineReadout Workspace::read_timeline(size_t source, double time_ns) const {
    return profiler::read_timeline(timeline_request(), source, time_ns);
}

DocumentPtr Workspace::document_of_column(size_t column) const {
    if (!comparison_ || column >= comparison_->columns.size()) return nullptr;
    const profiler::ComparisonColumn& wanted = comparison_->columns[column];
    const auto has_step = [&](const Document& d) { return d.trace == wanted.step_trace; };
    if (auto captured = wanted.step_trace ? find_document(has_step) : nullptr) return captured;
    return find_document([&](const Document& d) {
        return std::find(wanted.files.begin(), wanted.files.end(), d.file.string()) !=
               wanted.files.end();
    });
}

template <typename View>
void Workspace::take_view(ViewTask<View>& task, std::shared_ptr<const View>& view,
                          std::string& error) {
    auto result = task.take();
    if (!result) return;
    changed_ = true;
    if (!*result) {
        error = result->error().message;
        return notify(profiler::Severity::kError, error);
    }
    if ((*result)->a != selection_.a || (*result)->b != selection_.b) return;
    view = std::move((*result)->view);
    error.clear();
}

void Workspace::take_views() {
    if (auto result = compare_task_.take()) {
        if (!*result) notify(profiler::Severity::kError, result->error().message);
        const CompareResult taken = *result ? std::move(**result) : CompareResult();
        comparison_ = taken.comparison;
        compare_view_ = taken.view;
        changed_ = true;
        update_looks();
    }
    take_view(timeline_task_, timeline_view_, timeline_error_);
    take_view(activity_task_, activity_view_, activity_error_);
    take_view(ledger_task_, ledger_view_, ledger_error_);
    for (const auto& ended : exports_.take()) {
        ended ? notify(profiler::Severity::kInfo, *ended)
              : notify(profiler::Severity::kError, ended.error().message);
    }
}

void Workspace::start_stale_views() {
    if (std::exchange(compare_stale_, false)) {
        compare_task_.start([documents = documents_]() -> models::Result<CompareResult> {
            if (documents.empty()) return CompareResult();
            std::vector<profiler::NamedTrace> traces;
            for (const auto& d : documents)
                traces.push_back({d->file.string(), d->trace, d->report});
            auto comparison = profiler::compare(traces);
            if (!comparison) return tl::unexpected(comparison.error());
            CompareResult result;
            result.view = std::make_shared<const profiler::CompareView>(
                profiler::build_compare_view(*comparison));
            result.comparison =
                std::make_shared<const profiler::Comparison>(std::move(*comparison));
            return result;
        });
    }
    if (time_window_.width_px > 0 && std::exchange(timeline_stale_, false)) {
        using Result = models::Result<ViewOf<profiler::TimelineView>>;
        timeline_task_.start([selection = selection_, window = time_window_,
                              alignment = alignment_]() -> Result {
            const auto request = make_request(selection, with_margins(window), alignment);
            return ViewOf<profiler::TimelineView>{selection.a, selection.b,
                                                  std::make_shared<const profiler::TimelineView>(
                                                      profiler::build_timeline_view(request))};
        });
    }
    if (kernels_width_px_ > 0 && std::exchange(activity_stale_, false)) {
        using Result = models::Result<ViewOf<profiler::ActivityView>>;
        activity_task_.start([selection = selection_, window = time_window_,
                              width_px = kernels_width_px_, alignment = alignment_]() -> Result {
            // Twice the window in twice the pixels (with_margins).
            const auto request =
                make_activity_request(selection, with_margins(window), 2 * width_px, alignment);
            return ViewOf<profiler::ActivityView>{selection.a, selection.b,
                                                  std::make_shared<const profiler::ActivityView>(
                                                      profiler::build_activity_view(request))};
        });
    }
    if (std::exchange(ledger_stale_, false)) {
        using Result = models::Result<ViewOf<profiler::LedgerView>>;
        ledger_task_.start([a = selection_.a, b = selection_.b, query = ledger_query_]() -> Result {
            const auto request = make_request(a, b, query);
            return ViewOf<profiler::LedgerView>{
                a, b,
                std::make_shared<const profiler::LedgerView>(profiler::build_ledger_view(request))};
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
    const bool stale = compare_stale_ || ledger_stale_ ||
                       (timeline_stale_ && time_window_.width_px > 0) ||
                       (activity_stale_ && kernels_width_px_ > 0);
    return !stale && !loader_.progress() && !compare_task_.busy() && !timeline_task_.busy() &&
           !activity_task_.busy() && !ledger_task_.busy() && !exports_.busy();
}

// ---- export ---------------------------------------------------------------------------------

void Workspace::start_export(
    fs::path file, std::function<models::Result<void>(const profiler::ChartOptions&)> write) {
    const auto format = profiler::chart_format_of(file);
    if (!format) return notify(profiler::Severity::kError, format.error().message);
    exports_.start([file = std::move(file), format = *format,
                    write = std::move(write)]() -> models::Result<std::string> {
        const auto written = write({.format = format});
        if (!written) return tl::unexpected(written.error());
        return fmt::format("Wrote {}.", file.string());
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
    if (!timeline_view_) return;
    start_export(file, [selection = selection_, window = time_window_, alignment = alignment_, file,
                        dark](const profiler::ChartOptions& options) {
        TimeWindow shown = window;
        shown.width_px = static_cast<int>(options.width);
        return profiler::write_timeline_chart(
            profiler::build_timeline_view(make_request(selection, shown, alignment)),
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
    if (events.category) {
        selection_.category =
            selection_.category == events.category ? std::nullopt : events.category;
    }
    if (events.range) selection_.range = *events.range;
    // Not when an event before this one has changed A or B: the row is of the old ledger then.
    if (events.tensor && ledger_view_) select_row(*events.tensor);
    if (events.clear_tensor) selection_.tensor.reset();
    // Not when A or B is another now: the row is of the trace before.
    if (events.activity && activity_view_) select_activity(*events.activity);
    if (events.clear_activity) selection_.activity.reset();
    if (events.kernels_width_px && *events.kernels_width_px != kernels_width_px_) {
        kernels_width_px_ = *events.kernels_width_px;
        activity_stale_ = selection_.a && selection_.a->has_step;
    }
    if (events.fit_time) fit_time();
    if (!events.fit_time && events.time_window && *events.time_window != time_window_) {
        const bool realign = events.time_window->alignment != time_window_.alignment;
        time_window_ = *events.time_window;
        time_window_changed();
        if (realign) time_axis_changed();
    }
    if (events.ledger_query && *events.ledger_query != ledger_query_) {
        ledger_query_ = *events.ledger_query;
        ledger_stale_ = selection_.a && selection_.a->has_step;
    }
}

}  // namespace app
