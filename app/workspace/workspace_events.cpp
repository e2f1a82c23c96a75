#include "app/workspace/workspace.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

/// What the workspace does with the events of the panels.
namespace app {

void Workspace::apply(const PanelEvents& events) {
    const auto widths = [this] {
        return std::tuple(time_.window.width_px, time_.kernels_width_px, time_.lane_width_px);
    };
    const auto widths_before = widths();
    apply_to_documents(events);
    apply_to_captures(events);
    apply_to_selection(events);
    apply_to_time(events);
    if (widths() != widths_before) {
        changed_ = true;
        check_ahead();
    }
    apply_to_views(events);
    if (events.plan_choice) choose_gpu(*events.plan_choice);
    predicts_ahead_ |= events.predicts_ahead;
    set_query(planner_query_, events.planner_query);
    set_query(movement_query_, events.movement_query);
    set_query(ranks_query_, events.ranks_query);
    set_query(frontier_query_, events.frontier_query);
    grows_frontier_ |= events.grows_frontier;
}

/// Its slot asks in the next frame. Panels send their queries in every frame. Returns whether it is
/// another one.
template <typename Query>
bool Workspace::set_query(Query& query, const std::optional<Query>& wanted) {
    if (!wanted || *wanted == query) return false;
    query = *wanted;
    changed_ = true;
    return true;
}

/// The GPU that A has is no choice: another A then brings its own.
void Workspace::choose_gpu(const PlanChoice& choice) {
    const DocumentPtr& a = selection_.a;
    const profiler::Gpu* const own = a ? profiler::gpu_of_trace(*a->trace, gpus()) : nullptr;
    plan_choice_ = choice;
    if (own != nullptr && own->id == choice.gpu) plan_choice_.is_chosen = false;
    plan_choice_ = plan_choice_beside(a);
    check_ahead();
}

void Workspace::apply_to_views(const PanelEvents& events) {
    WindowQueries& queries = views_.at(index_of(events.window)).queries;
    const bool has_ledger = set_query(queries.ledger, events.ledger_query);
    const bool has_flame = set_query(queries.flame, events.flame_query);
    const bool has_blocks = set_query(queries.blocks, events.blocks_query);
    if (has_ledger || has_flame || has_blocks) check_ahead();
    if (events.inspector_query) queries.inspector = *events.inspector_query;
}

void Workspace::apply_to_documents(const PanelEvents& events) {
    if (events.cancel_loading) documents_.cancel_loading();
    if (!events.open.empty()) open(events.open);
    if (events.close) close(events.close);
}

void Workspace::apply_to_captures(const PanelEvents& events) {
    if (events.open_examples) open_examples();
    if (events.cancel_capture) capture_.cancel();
    if (!events.start_capture) return;
    if (const auto started = capture_.start(*events.start_capture); !started) {
        notify(profiler::Severity::kError, started.error().message);
    }
}

void Workspace::apply_to_selection(const PanelEvents& events) {
    if (events.set_a || events.set_b || events.column) selection_.chosen = true;
    if (events.set_a) set_a(*events.set_a);
    if (events.set_b) set_b(*events.set_b);
    if (events.column) {
        const DocumentPtr document = document_of_column(*events.column);
        if (document && document != selection_.a) set_b(document);
    }
    if (events.category) {
        const bool again = selection_.category == events.category;
        selection_.category = again ? std::nullopt : events.category;
    }
    if (events.try_recipe) {
        trials_.want(*events.try_recipe);
        show_wanted_recipe();
    }
    if (events.keep_trial) keep_trial();
    if (events.cancel_work) cancel_work();
    if (events.plan_again) {
        if (slots_.planned_compare.is_cancelled()) slots_.planned_compare.restart();
        if (slots_.planner.is_cancelled()) slots_.planner.restart();
    }
    if (events.layers) selection_.layers = *events.layers;
    if (events.range) selection_.range = *events.range;
    if (events.moment_ns) selection_.moment_ns = *events.moment_ns;
    if (events.marks) selection_.marks = *events.marks;
    if (events.clear_tensor) selection_.tensor.reset();
    if (events.clear_activity) selection_.activity.reset();
    // An earlier event may have changed A or B. Then the views are gone, and the row or the call
    // that was clicked belongs to the documents before.
    const profiler::Alignment* alignment = time_.alignment.get();
    if (events.tensor) select_tensor(*events.tensor);
    if (events.activity &&
        (slots_.kernels.view() || slots_.layers.view() || slots_.movement.view())) {
        if (const DocumentPtr& document = events.activity->in_b ? selection_.b : selection_.a) {
            selection_.activity = select(*events.activity, *document, alignment);
        }
    }
    history_.observe(selection_);
    if (events.history_step != 0) step_selection(events.history_step);
}

void Workspace::select_tensor(const PickedTensor& picked) {
    const bool in_b = picked.document && picked.document == selection_.b;
    if (!picked.document || (!in_b && picked.document != selection_.a)) return;
    selection_.tensor = select(picked, in_b, time_.alignment.get());
    time_.reveal(*selection_.tensor);
}

void Workspace::find_activity(const PickedActivity& picked) {
    const DocumentPtr& document = picked.in_b ? selection_.b : selection_.a;
    if (!document) return;
    selection_.activity = select(picked, *document, time_.alignment.get());
    time_.reveal(selection_.activity->range);
    history_.observe(selection_);
}

void Workspace::apply_to_time(const PanelEvents& events) {
    if (events.kernels_width_px) time_.kernels_width_px = *events.kernels_width_px;
    if (events.lane_width_px) time_.lane_width_px = *events.lane_width_px;
    if (events.insets) time_.insets = *events.insets;
    if (events.fit_time) return time_.fit();
    if (!events.time_window) return;
    const bool realign = events.time_window->alignment != time_.window.alignment;
    time_.window = *events.time_window;
    if (!realign) return;
    time_.align(selection_);
    forget_all_places();
}

}  // namespace app
