#include "app/workspace/workspace.h"

#include <algorithm>
#include <optional>
#include <tuple>

/// What the workspace does with the events of the panels.
namespace app {
namespace {

/// Panels send their queries in every frame. Returns whether it is another one.
template <typename Query>
bool change(Query& query, const std::optional<Query>& wanted) {
    if (!wanted || *wanted == query) return false;
    query = *wanted;
    return true;
}

}  // namespace

void Workspace::apply(const PanelEvents& events, int window) {
    apply_part(events.traces);
    apply_part(events.capture);
    apply_part(events.recipes);
    apply_part(events.selection);
    apply_part(events.time);
    apply_part(events.window, views_.at(index_of(window)).queries);
    apply_part(events.queries);
    apply_part(events.advice);
}

void Workspace::apply_part(const TraceEvents& events) {
    if (events.cancel_loading) documents_.cancel_loading();
    if (!events.open.empty()) open(events.open);
    if (events.close) close(events.close);
    if (events.open_examples) open_examples();
    if (events.set_a || events.set_b || events.column) selection_.chosen = true;
    if (events.set_a) set_a(*events.set_a);
    if (events.set_b) set_b(*events.set_b);
    if (events.column) {
        const DocumentPtr document = document_of_column(*events.column);
        if (document && document != selection_.a) set_b(document);
    }
    if (events.keep_prediction) keep_prediction();
}

void Workspace::apply_part(const CaptureEvents& events) {
    if (events.cancel) capture_.cancel();
    if (!events.start) return;
    if (const auto started = capture_.start(*events.start); !started) {
        notify(profiler::Severity::kError, started.error().message);
    }
}

void Workspace::apply_part(const RecipeEvents& events) {
    if (events.try_recipe) {
        look_ahead_.want(*events.try_recipe);
        show_wanted_recipe();
    }
    if (events.cancel_work) cancel_work();
    if (events.plan_again) {
        if (slots_.planned_compare.is_cancelled()) slots_.planned_compare.restart();
        if (slots_.planner.is_cancelled()) slots_.planner.restart();
    }
    predicts_ahead_ |= events.predicts_ahead;
}

void Workspace::apply_part(const SelectionEvents& events) {
    if (events.category) {
        const bool again = selection_.category == events.category;
        selection_.category = again ? std::nullopt : events.category;
    }
    if (events.layers) selection_.layers = *events.layers;
    if (events.range) selection_.range = *events.range;
    if (events.moment_ns) selection_.moment_ns = *events.moment_ns;
    if (events.marks) selection_.marks = *events.marks;
    if (events.clear_tensor) selection_.tensor.reset();
    if (events.clear_call) selection_.call.reset();
    // An earlier event may have changed A or B. Then the views are gone, and the row or the call
    // that was clicked belongs to the documents before.
    if (events.tensor) select_tensor(*events.tensor);
    if (events.call && (slots_.kernels.view() || slots_.layers.view() || slots_.movement.view())) {
        select_call(*events.call);
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

bool Workspace::select_call(const PickedCall& picked) {
    const DocumentPtr& document = picked.in_b ? selection_.b : selection_.a;
    if (document) selection_.call = select(picked, *document, time_.alignment.get());
    return document != nullptr;
}

void Workspace::find_call(const PickedCall& picked) {
    if (!select_call(picked)) return;
    time_.reveal(selection_.call->range);
    history_.observe(selection_);
}

void Workspace::apply_part(const TimeEvents& events) {
    const auto widths = [this] {
        return std::tuple(time_.window.width_px, time_.kernels_width_px, time_.lane_width_px);
    };
    const auto widths_before = widths();
    if (events.kernels_width_px) time_.kernels_width_px = *events.kernels_width_px;
    if (events.lane_width_px) time_.lane_width_px = *events.lane_width_px;
    if (events.insets) time_.insets = *events.insets;
    if (events.fit) {
        time_.fit();
    } else if (events.window) {
        const bool realign = events.window->alignment != time_.window.alignment;
        time_.window = *events.window;
        if (realign) time_.align(selection_);
        if (realign) forget_all_places();
    }
    if (widths() == widths_before) return;
    changed_ = true;
    check_ahead();
}

/// The slots ask in the next frame.
void Workspace::apply_part(const WindowEvents& events, WindowQueries& queries) {
    const bool has_ledger = change(queries.ledger, events.ledger);
    const bool has_flame = change(queries.flame, events.flame);
    const bool has_blocks = change(queries.blocks, events.blocks);
    if (has_ledger || has_flame || has_blocks) {
        changed_ = true;
        check_ahead();
    }
    if (events.inspector) queries.inspector = *events.inspector;
}

void Workspace::apply_part(const QueryEvents& events) {
    if (events.plan) choose_gpu(*events.plan);
    changed_ |= change(queries_.planner, events.planner);
    changed_ |= change(queries_.movement, events.movement);
    changed_ |= change(queries_.ranks, events.ranks);
    changed_ |= change(queries_.frontier, events.frontier);
    grows_frontier_ |= events.grows_frontier;
}

void Workspace::apply_part(const AdviceEvents& events) {
    std::optional<profiler::ExplainTarget> target = events.target;
    // On the GPU that was recorded, the recording says what happened, and needs no estimate.
    const profiler::Gpu* const own = gpu_of(selection_.a);
    if (target && own != nullptr && own->id == target->gpu) target->gpu.clear();
    changed_ |= change(queries_.advice, target);
    if (events.run) programs_.start(*events.run);
    if (!events.try_remedy.empty()) try_remedy(events.try_remedy);
}

void Workspace::try_remedy(const std::string& id) {
    const profiler::AdviceView* const view = slots_.advice.view();
    if (view == nullptr || !selection_.a) return;
    const auto& remedies = view->explanation.remedies;
    const auto remedy = std::ranges::find(remedies, id, &profiler::Remedy::id);
    if (remedy != remedies.end()) programs_.try_remedy(selection_.a, *remedy, queries_.advice);
}

/// That its step ran on; null: there is no document, or the catalogue lacks the GPU.
const profiler::Gpu* Workspace::gpu_of(const DocumentPtr& document) const {
    return document ? profiler::gpu_of_trace(*document->trace, gpus()) : nullptr;
}

/// The GPU that A has is no choice: another A then brings its own.
void Workspace::choose_gpu(const GpuForm& form) {
    const DocumentPtr& a = selection_.a;
    const profiler::Gpu* const own = gpu_of(a);
    queries_.plan = form;
    if (own != nullptr && own->id == form.gpu) queries_.plan.is_chosen = false;
    queries_.plan = gpu_form_beside(a);
    check_ahead();
}

}  // namespace app
