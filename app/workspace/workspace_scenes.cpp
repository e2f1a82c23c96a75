#include "app/workspace/wake.h"
#include "app/workspace/workspace.h"

#include <algorithm>
#include <memory>
#include <utility>

/// How the window comes to another A and B (scene.h): for what the user asks for, and ahead of time
/// for the recipes that are one switch away.
namespace app {
namespace {

/// A view whose request differs each time is not waited for longer.
constexpr int kMostRounds = 4;
constexpr size_t kMostAhead = 48;

bool is_of(const Scene& scene, const Pair& pair) {
    return scene.pair.a == pair.a && scene.pair.b == pair.b;
}

/// The axis of the scene, as wide as the panels are now.
void fit_widths(TimeAxis& time, const TimeAxis& now) {
    time.window.width_px = now.window.width_px;
    time.kernels_width_px = now.kernels_width_px;
    time.lane_width_px = now.lane_width_px;
    time.insets = now.insets;
}

}  // namespace

void Workspace::show(Pair pair) {
    if (!pair.a) return;
    next_.reset();
    for_next_.cancel();
    if (pair.a == selection_.a && pair.b == selection_.b) return;
    const auto known = std::find_if(ahead_.begin(), ahead_.end(),
                                    [&](const auto& scene) { return is_of(*scene, pair); });
    next_ = known != ahead_.end() ? *known : std::make_shared<Scene>();
    next_->pair = std::move(pair);
    next_->rounds = 0;
    // Without a picture there is none to keep.
    if (!selection_.a || !slots_.compare.view()) return show_scene(*std::exchange(next_, nullptr));
    show_next_scene();
}

/// What the window shows, or will show next.
Pair Workspace::latest_pair() const {
    return next_ ? next_->pair : Pair{selection_.a, selection_.b};
}

/// What the requests of its views are made from, which may have changed since.
void Workspace::refresh(Scene& scene) const {
    scene.selection = selection_;
    forget_places(scene.selection);
    scene.selection.a = scene.pair.a;
    scene.selection.b = scene.pair.b;
    if (scene.pair.a) scene.selection.look_a = look_of(scene.pair.a);
    if (scene.pair.b) scene.selection.look_b = look_of(scene.pair.b);
    scene.documents =
        scene.pair.trial ? documents_.with_trial(*scene.pair.trial) : documents_.all();
    const auto& open = scene.documents;
    if (std::find(open.begin(), open.end(), scene.pair.a) == open.end()) {
        scene.documents.push_back(scene.pair.a);
    }
    if (scene.time.window.alignment != time_.window.alignment) scene.is_aligned = false;
    if (!scene.is_aligned) scene.time = time_;
    fit_widths(scene.time, time_);
}

/// How to make what the scene lacks; empty: it can be shown. Plans take longer than the rest and
/// are made `with_plans` only.
std::vector<SceneMaker::Make> Workspace::missing_of(const std::shared_ptr<Scene>& scene,
                                                    bool with_plans) {
    refresh(*scene);
    if (!scene->is_aligned) return {align_scene(scene)};
    std::vector<SceneMaker::Make> makes;
    const auto add = [&](auto& slot, const auto& inputs, bool long_ones) {
        if (slot.is_long() && !long_ones) return;
        if (auto make = slot.make_ahead(inputs)) makes.push_back(std::move(make));
    };
    static const SearchQuery kNoSearch;
    static const std::string kNoRecipe;
    const PlanChoice choice = plan_choice_beside(scene->pair.a);
    const SlotInputs shared{scene->documents,
                            scene->selection,
                            scene->time,
                            choice,
                            planner_query_,
                            frontier_query_,
                            frontier_plans_,
                            movement_query_,
                            /*marks=*/nullptr,  // they belong to the pair before
                            ranks_query_,
                            slots_.rank_run.shared(),
                            kNoSearch,
                            usual_question_,
                            slots_.usual_plan.shared(),
                            kNoRecipe};
    std::apply([&](auto&... slot) { (add(slot, shared, with_plans), ...); }, slots_.all());
    for (WindowViews& views : views_) {
        WindowQueries queries = views.queries;
        queries.inspector = {};  // what is pinned belongs to the pair before
        const WindowInputs inputs{shared, queries, views.open, nullptr};
        std::apply([&](auto&... slot) { (add(slot, inputs, false), ...); }, views.all());
    }
    return makes;
}

void Workspace::show_next_scene() {
    for_next_.update();
    if (!next_ || for_next_.busy()) return;
    auto makes = missing_of(next_, /*with_plans=*/false);
    if (makes.empty() || ++next_->rounds > kMostRounds) {
        return show_scene(*std::exchange(next_, nullptr));
    }
    for_next_.start(std::move(makes));
}

void Workspace::show_scene(Scene& scene) {
    refresh(scene);
    if (scene.pair.trial) documents_.show_trial(*scene.pair.trial);
    if (!documents_.is_open(scene.pair.a)) documents_.add(scene.pair.a);
    // A trial that others are compared with is more than a try.
    if (documents_.trial() == scene.pair.a) documents_.keep_trial();
    const bool has_other_a = selection_.a != scene.pair.a;
    selection_.a = scene.pair.a;
    selection_.b = scene.pair.b;
    if (scene.is_aligned) {
        time_ = scene.time;
        pair_changed();
    } else {
        selection_changed();
    }
    if (has_other_a) forget_ahead();  // the slots have taken what they need
}

/// Nothing that was made ahead fits any more: A, or an open trace, is another one.
void Workspace::forget_ahead() {
    ahead_.clear();
    for_ahead_.cancel();
    trials_.forget_ahead();
    const auto forget = [](auto&... slot) { (slot.forget_kept(), ...); };
    std::apply(forget, slots_.all());
    for (WindowViews& views : views_) std::apply(forget, views.all());
}

bool Workspace::is_made_ahead() const {
    return trials_.is_idle() && trials_.knows_ahead() && !for_ahead_.busy() && !ahead_.empty() &&
           std::all_of(ahead_.begin(), ahead_.end(),
                       [](const auto& scene) { return scene->is_made || !scene->is_near; });
}

/// Looks at all scenes again: some of their requests may have changed.
void Workspace::check_ahead() {
    trials_.forget_ahead();
    for (const auto& scene : ahead_) {
        scene->is_made = false;
        scene->rounds = 0;
    }
}

/// The scenes of these pairs come first; the others are kept for a way back, but not made anew.
void Workspace::keep_ahead(std::vector<Pair>& pairs) {
    for (const auto& scene : ahead_) scene->is_near = false;
    for (Pair& pair : pairs) {
        auto found = std::find_if(ahead_.begin(), ahead_.end(),
                                  [&](const auto& scene) { return is_of(*scene, pair); });
        if (found == ahead_.end()) found = ahead_.insert(found, std::make_shared<Scene>());
        (*found)->pair = std::move(pair);
        (*found)->is_near = true;
    }
    ahead_.sort([](const auto& x, const auto& y) { return x->is_near && !y->is_near; });
    while (ahead_.size() > kMostAhead) ahead_.pop_back();
}

/// Only while the switches are in sight, and the user waits for nothing.
void Workspace::make_ahead() {
    for_ahead_.update();
    if (!std::exchange(predicts_ahead_, false)) return;
    const profiler::LayerView* view = slots_.layers.view();
    trials_.predict_ahead(trial_inputs(), view);
    if (!view || for_ahead_.busy()) return;
    if (auto pairs = trials_.take_known_ahead(trial_inputs(), *view)) keep_ahead(*pairs);
    const auto next = std::find_if(ahead_.begin(), ahead_.end(), [](const auto& scene) {
        return scene->is_near && !scene->is_made;
    });
    if (next == ahead_.end() || !settled()) return;
    auto makes = missing_of(*next, /*with_plans=*/true);
    (*next)->is_made = makes.empty() || ++(*next)->rounds > kMostRounds;
    if (!makes.empty()) return for_ahead_.start(std::move(makes));
    wake_window();  // for the one after it
}

}  // namespace app
