#pragma once

#include "app/prediction/predictor.h"
#include "app/prediction/recent.h"
#include "app/workspace/document.h"
#include "app/workspace/frontier_plans.h"
#include "app/workspace/jobs/job_queue.h"
#include "app/workspace/queries.h"
#include "app/workspace/time_axis.h"
#include "profiler/analysis/compare/comparison.h"
#include "profiler/analysis/ranks/rank_run.h"
#include "profiler/view/allocator/segment_map_view.h"
#include "profiler/view/kernels/kernels_view.h"
#include "profiler/view/layers/layer_view.h"
#include "profiler/view/memory/blocks_view.h"
#include "profiler/view/memory/timeline_view.h"
#include "profiler/view/programs/compare_view.h"
#include "profiler/view/programs/pair_view.h"
#include "profiler/view/ranks/ranks_view.h"
#include "profiler/view/selected/inspector_view.h"
#include "profiler/view/selected/range_view.h"
#include "profiler/view/selected/search_view.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

/// The slots of the workspace: one for each view that panels draw. A slot names what it does, what
/// it should show now, and how its view is built. docs/adding_a_panel.md walks through adding one.
namespace app {

// ---- a slot -----------------------------------------------------------------------------------

/// What a slot should show: the request from which its view is built.
template <typename Request>
struct ViewOrder {
    Request request;
    /// The documents from which request and view borrow; the slot keeps them alive. A view of other
    /// documents disappears at once, because its rows and columns mean nothing to the new ones (a
    /// pending pair gets its views first: pending_pairs.h). A view of the same documents stays
    /// until the new one is ready.
    std::vector<DocumentPtr> documents;

    friend bool operator==(const ViewOrder&, const ViewOrder&) = default;
};

/// One view of the workspace: its request, the view built from it off the frame thread, and the
/// error if building failed. The slot compares what is wanted now with what it was last asked for,
/// so nobody has to mark it as stale.
///
///     wanted(inputs) --changed?--> build(request) on the slot's thread --> view() --> panel
///                       \--> cached: a view that was made ahead is shown at once
///
/// `Inputs` is what the slot makes its requests from: WorkspaceState or WindowState.
template <typename Inputs, typename Request, typename View>
class ViewSlot {
public:
    /// What to show now; nullopt when there is nothing to show.
    using Want = std::optional<ViewOrder<Request>> (*)(const Inputs&);
    using Build = std::function<models::Result<View>(const Request&)>;
    /// Gets the share that is done, in [0, 1]; the builder should stop when it returns false.
    using Report = std::function<bool(double share)>;
    using LongBuild = std::function<models::Result<View>(const Request&, const Report&)>;
    /// Makes a view on any thread. What it returns puts the view into the slot, on the frame
    /// thread.
    using Keep = std::function<void()>;
    using Make = std::function<Keep()>;

    /// `what` begins the sentence about a builder that throws: "Drawing the timeline".
    ViewSlot(std::string what, Want want, Build build)
        : ViewSlot(std::move(what), want,
                   LongBuild([build = std::move(build)](const Request& request, const Report&) {
                       return build(request);
                   })) {
        is_long_ = false;
    }
    /// For views that take a while: progress() is known, and unless `finishes`, a new request
    /// cancels the one under way.
    ViewSlot(std::string what, Want want, LongBuild build, bool finishes = false)
        : what_(std::move(what)), want_(want), build_(std::move(build)), finishes_(finishes) {}
    ~ViewSlot() { queue_.cancel(); }

    /// Once a frame: takes a finished view and orders a new one if something else is wanted.
    /// Returns true when view() or error() has changed.
    bool update(const Inputs& inputs) {
        const bool changed = take();
        auto order = want_(inputs);
        if (order == asked_) return changed;
        const bool same = order && asked_ && order->documents == asked_->documents;
        asked_ = std::move(order);
        is_cancelled_ = false;
        if (const auto cached = asked_ ? cached_.find(*asked_) : std::nullopt) {
            clear();
            show(*cached);
            return true;
        }
        const bool cleared = !same && clear();
        if (is_long_ && !finishes_) queue_.cancel();
        if (asked_) {
            queue_.start(what_, [build = build_, order = *asked_](const Report& report) {
                return built(build, order, report);
            });
        }
        return changed || cleared;
    }

    /// How to make the view that these inputs want, before they are those of the window. Empty:
    /// there is none, or it is made already.
    Make make_ahead(const Inputs& inputs) {
        auto order = want_(inputs);
        if (!order || order == asked_ || cached_.find(*order)) return nullptr;
        return [this, order = std::move(*order)]() -> Keep {
            auto result = run_guarded(
                what_, [&] { return built(build_, order, [](double) { return true; }); });
            return [this, order, result = std::move(result)] { cached_.add(order, result); };
        };
    }
    /// Forgets what was made ahead.
    void forget_cached() { cached_.clear(); }

    /// Ends the work under way; the view stays as it is until something else is wanted.
    void cancel() {
        is_cancelled_ = queue_.busy();
        queue_.cancel();
        let_go(queue_.take());
    }
    /// What is wanted is not made, because it was cancelled. `restart` makes it after all.
    bool is_cancelled() const { return is_cancelled_; }
    void restart() { asked_.reset(); }
    bool is_long() const { return is_long_; }

    /// Null until there is something to show.
    const View* view() const { return shown_ ? &shown_->view : nullptr; }
    /// The same for a thread that outlives this frame; keeps the documents alive too.
    std::shared_ptr<const View> shared() const {
        return shown_ ? std::shared_ptr<const View>(shown_, &shown_->view) : nullptr;
    }
    /// Why the newest view could not be built; empty when nothing went wrong.
    const std::string& error() const { return error_; }
    /// How much of the view under way is built; empty when none is.
    std::optional<double> progress() const {
        const auto progress = queue_.progress();
        return progress ? std::optional(progress->share) : std::nullopt;
    }
    /// The view shown is the one wanted, or there is nothing to show.
    bool settled(const Inputs& inputs) const { return !queue_.busy() && want_(inputs) == asked_; }

private:
    struct Built {
        std::vector<DocumentPtr> documents;
        View view;
    };
    using Shown = std::shared_ptr<const Built>;
    static models::Result<Shown> built(const LongBuild& build, const ViewOrder<Request>& order,
                                       const Report& report) {
        auto view = build(order.request, report);
        if (!view) return tl::unexpected(view.error());
        return std::make_shared<const Built>(Built{order.documents, std::move(*view)});
    }

    bool take() {
        auto results = queue_.take();
        if (results.empty()) return false;
        models::Result<Shown> newest = std::move(results.back());
        results.pop_back();
        let_go(std::move(results));
        show(newest);
        return true;
    }

    void show(const models::Result<Shown>& result) {
        error_ = result ? std::string() : result.error().message;
        let_go(std::exchange(shown_, result ? *result : nullptr));
    }

    /// Drops the view, the error and the work under way. Returns true when something was shown.
    bool clear() {
        queue_.cancel();
        let_go(queue_.take());
        const bool showed = shown_ || !error_.empty();
        let_go(std::exchange(shown_, nullptr));
        error_.clear();
        return showed;
    }

    /// Views are large: they are not destroyed in a frame.
    void let_go(Shown shown) {
        if (shown) queue_.discard(std::move(shown));
    }
    void let_go(std::vector<models::Result<Shown>> results) {
        for (models::Result<Shown>& result : results) {
            if (result) let_go(std::move(*result));
        }
    }

    const std::string what_;
    const Want want_;
    const LongBuild build_;
    const bool finishes_ = false;
    bool is_long_ = true;
    bool is_cancelled_ = false;
    std::optional<ViewOrder<Request>> asked_;
    Shown shown_;
    std::string error_;
    /// Made ahead. A view of a predicted step takes some hundred KiB.
    Recent<ViewOrder<Request>, models::Result<Shown>> cached_{48};
    JobQueue<Shown> queue_{Waiting::kDrop};
};

// ---- what slots make their requests from ----------------------------------------------------

/// The usual recipes that no open file has, planned for the step of the open ones.
struct UsualPlan {
    StepPlanRequest request;
    profiler::Plan plan;  // no rows if it could not be made
};

/// The open ranks of one run, and the values that are computed once for all of them.
struct RanksOfRun {
    std::vector<DocumentPtr> documents;  // in the order of the ranks
    profiler::RankRun run;
    profiler::TextTable peaks;
    profiler::TextTable times;  // without rows if none are known
};

/// What requests are made from: what the window shows, or what it would show with another A and B.
struct WorkspaceState {
    const std::vector<DocumentPtr>& documents;
    const Selection& selection;
    const TimeAxis& time;
    const PanelQueries& queries;
    const FrontierPlans& frontier_plans;
    const std::optional<StepPlanRequest>& usual_request;
    std::shared_ptr<const profiler::MarksView> marks;  // null: nothing is marked
    std::shared_ptr<const RanksOfRun> rank_run;        // null: not made yet
    std::shared_ptr<const UsualPlan> usual_plan;       // null: not made yet
    std::string recipe_being_planned;                  // for the trial; empty: none
};

/// Which of the repeatable panels have an open window with a certain number.
struct OpenPanels {
    bool ledger = false;
    bool flame = false;
    bool blocks = false;
    bool inspector = false;
};

/// The same for the views of one window (WindowViews).
struct WindowState : WorkspaceState {
    const WindowQueries& own;
    const OpenPanels& open;
    /// Where the chosen allocator settings would put segments and blocks; null: not known.
    std::shared_ptr<const profiler::SegmentLayout> replayed;
};

// ---- what slots should show -----------------------------------------------------------------

/// A and B as far as they have a recorded step. Without A there is no B: the time axis is A's.
profiler::Steps recorded_steps(const Selection& selection);

std::optional<ViewOrder<profiler::PairRequest>> order_pair(const WorkspaceState& state);
std::optional<ViewOrder<profiler::TimelineRequest>> order_timeline(const WorkspaceState& state);
std::optional<ViewOrder<profiler::RibbonRequest>> order_ribbon(const WorkspaceState& state);
std::optional<ViewOrder<profiler::KernelsRequest>> order_kernels(const WorkspaceState& state);
std::optional<ViewOrder<profiler::MarksRequest>> order_marks(const WorkspaceState& state);
std::optional<ViewOrder<profiler::LayerRequest>> order_layers(const WorkspaceState& state);
std::optional<ViewOrder<StepPlanRequest>> order_planner(const WorkspaceState& state);
std::optional<ViewOrder<profiler::LedgerRequest>> order_ledger(const WindowState& window);
std::optional<ViewOrder<profiler::FlameRequest>> order_flame(const WindowState& window);
std::optional<ViewOrder<profiler::RangeRequest>> order_range(const WindowState& window);
std::optional<ViewOrder<profiler::InspectorRequest>> order_inspector(const WindowState& window);
std::optional<ViewOrder<profiler::BlocksRequest>> order_blocks(const WindowState& window);
std::optional<ViewOrder<profiler::LiveBlocksRequest>> order_live_blocks(const WindowState& window);
std::optional<ViewOrder<profiler::SegmentMapRequest>> order_segments(const WindowState& window);
std::optional<ViewOrder<profiler::WhatIfRequest>> order_what_if(const WindowState& window);

/// A request without the peaks of the cards, which are looked up on the slot's thread.
struct MovementOrder {
    profiler::Steps steps;
    MovementQuery query;
    std::string usual_gpu;                             // id: for logical ops of a CPU's trace
    const std::vector<profiler::Gpu>* gpus = nullptr;  // borrowed: the catalogue

    friend bool operator==(const MovementOrder&, const MovementOrder&) = default;
};
std::optional<ViewOrder<MovementOrder>> order_movement(const WorkspaceState& state);
profiler::MovementView build_movement(const MovementOrder& order);

/// The timeline of A, and of B if it has a recorded step, in `window`. Has no steps when A holds no
/// recorded step.
profiler::TimelineRequest timeline_request(const Selection& selection, const TimeAxis& time,
                                           const TimeWindow& window);
/// What it takes to compare the layers of two documents; `b` may be null.
profiler::LayerRequest layer_request(const DocumentPtr& a, const DocumentPtr& b,
                                     const profiler::LayerRange& layers);
/// What the Inspector of a window describes: what it has pinned, or what is selected.
inline const Selection& inspected(const InspectorQuery& query, const Selection& selection) {
    return query.pinned ? *query.pinned : selection;
}

/// The trace that the Blocks panel draws: 0 is A, also when B was wanted and there is none.
size_t shown_trace(const Selection& selection, const BlocksQuery& query);
/// What the user chose; else by category, or by line of code in a snapshot without ops.
profiler::BlockColoring coloring_of(const Selection& selection, const BlocksQuery& query);
/// Selection::moment_ns, or the peak of A.
double moment_of(const Selection& selection);

// ---- the comparison of all open traces, with what is planned for them -----------------------

/// All open documents, and the GPU for which their recipes are planned. The request owns the
/// documents, so that the old comparison stays on the screen while a file is added or closed.
struct CompareRequest {
    std::vector<DocumentPtr> documents;
    std::string gpu;                         // its id
    std::shared_ptr<const UsualPlan> usual;  // may be of another step or GPU, or null

    friend bool operator==(const CompareRequest&, const CompareRequest&) = default;
};
struct CompareResult {
    profiler::Comparison comparison;
    profiler::CompareView view;
    /// What to plan so that the usual recipes stand beside the open ones; empty: nothing.
    std::optional<StepPlanRequest> usual;
};
/// With what is known already of the plan of the first step: what would fit on the chosen GPU, and
/// how fast it would be.
models::Result<CompareResult> build_comparison(Predictor& predictor, const CompareRequest& request);

/// The same with the whole plan. Recipes that were not planned before take some tenths of a second,
/// so the comparison comes before it.
models::Result<CompareResult> build_planned_comparison(Predictor& predictor,
                                                       const CompareRequest& request,
                                                       const Predictor::Report& report);

UsualPlan build_usual_plan(Predictor& predictor, const StepPlanRequest& request,
                           const Predictor::Report& report);

std::optional<ViewOrder<CompareRequest>> order_comparison(const WorkspaceState& state);
/// Disappears when other documents are open: a plan of others would leave recipes out. While the
/// recipe of B is being planned, it waits for that.
std::optional<ViewOrder<CompareRequest>> order_planned_comparison(const WorkspaceState& state);
std::optional<ViewOrder<StepPlanRequest>> order_usual_plan(const WorkspaceState& state);

// ---- the Recipe frontier --------------------------------------------------------------------

/// The step of the Planner with every recipe. First those of A, B and open traces of the step, and
/// those between the two selected dots.
StepPlanRequest frontier_wish(const WorkspaceState& state);

std::optional<ViewOrder<profiler::FrontierRequest>> order_frontier(const WorkspaceState& state);

// ---- the Ranks panel ------------------------------------------------------------------------

/// A's run: A and the open traces in its folder that are of a run of the same size. Empty: A is no
/// rank, or has no step.
std::vector<DocumentPtr> ranks_beside(const DocumentPtr& a,
                                      const std::vector<DocumentPtr>& documents);

std::optional<ViewOrder<std::vector<DocumentPtr>>> order_rank_run(const WorkspaceState& state);
models::Result<RanksOfRun> build_rank_run(const std::vector<DocumentPtr>& documents);

std::optional<ViewOrder<profiler::RanksRequest>> order_ranks(const WorkspaceState& state);

// ---- the search -----------------------------------------------------------------------------

struct SearchRequest {
    std::vector<DocumentPtr> documents;  // A, and B if there is one
    std::string text;

    friend bool operator==(const SearchRequest&, const SearchRequest&) = default;
};

std::optional<ViewOrder<SearchRequest>> order_search(const WorkspaceState& state);

/// Searches, and keeps the index of the last documents, so that a key press only reads names. Used
/// by one thread: that of its slot.
class Searcher {
public:
    models::Result<profiler::SearchView> operator()(const SearchRequest& request) const;

private:
    struct Cache {
        std::vector<std::weak_ptr<const Document>> documents;
        std::shared_ptr<const profiler::SearchIndex> index;
    };
    std::shared_ptr<Cache> cache_ = std::make_shared<Cache>();  // std::function copies
};

// ---- the slots ------------------------------------------------------------------------------

template <typename Request, typename View>
using Slot = ViewSlot<WorkspaceState, Request, View>;

struct Slots {
    explicit Slots(Predictor& predictor)
        : compare("Comparing the traces", order_comparison,
                  std::bind_front(build_comparison, std::ref(predictor))),
          planned_compare("Planning the recipes", order_planned_comparison,
                          std::bind_front(build_planned_comparison, std::ref(predictor))),
          usual_plan("Planning other recipes", order_usual_plan,
                     std::bind_front(build_usual_plan, std::ref(predictor))),
          planner("Planning the recipes", order_planner,
                  std::bind_front(build_planner, std::ref(predictor)), /*finishes=*/true) {}

    Slot<CompareRequest, CompareResult> compare;
    Slot<CompareRequest, CompareResult> planned_compare;
    Slot<StepPlanRequest, UsualPlan> usual_plan;
    Slot<profiler::PairRequest, profiler::PairView> pair{"Comparing A and B", order_pair,
                                                         profiler::build_pair_view};
    Slot<StepPlanRequest, PlannerResult> planner;
    Slot<profiler::TimelineRequest, profiler::TimelineView> timeline{
        "Drawing the timeline", order_timeline, profiler::build_timeline_view};
    Slot<profiler::RibbonRequest, profiler::RibbonView> ribbon{
        "Laying out the modules", order_ribbon, profiler::build_ribbon_view};
    Slot<profiler::MarksRequest, profiler::MarksView> marks{"Marking calls", order_marks,
                                                            profiler::build_marks_view};
    Slot<profiler::KernelsRequest, profiler::KernelsView> kernels{
        "Laying out calls and kernels", order_kernels, profiler::build_kernels_view};
    Slot<profiler::LayerRequest, profiler::LayerView> layers{"Drawing the layer", order_layers,
                                                             profiler::build_layer_view};
    Slot<SearchRequest, profiler::SearchView> search{"Searching", order_search, Searcher()};

    Slot<profiler::FrontierRequest, profiler::RecipeFrontierView> frontier{
        "Drawing the frontier", order_frontier, profiler::build_recipe_frontier_view};

    Slot<MovementOrder, profiler::MovementView> movement{"Adding up the data movement",
                                                         order_movement, build_movement};

    Slot<std::vector<DocumentPtr>, RanksOfRun> rank_run{"Joining the ranks", order_rank_run,
                                                        build_rank_run};
    Slot<profiler::RanksRequest, profiler::RanksView> ranks{"Drawing the ranks", order_ranks,
                                                            profiler::build_ranks_view};

    static auto all_of(auto& s) {
        return std::tie(s.compare, s.planned_compare, s.usual_plan, s.pair, s.timeline, s.marks,
                        s.kernels, s.layers, s.planner, s.frontier, s.ribbon, s.movement,
                        s.rank_run, s.ranks, s.search);
    }
    /// All of them, for what the workspace does with each.
    auto all() { return all_of(*this); }
    auto all() const { return all_of(*this); }
};

/// A panel has window 1; of some panels the user may open further ones.
inline constexpr int kMostWindows = 4;

template <typename Request, typename View>
using WindowSlot = ViewSlot<WindowState, Request, View>;

/// What the windows with one number show: their queries, and the views built from them. Views of
/// closed windows are not built and take no memory; the queries stay for the case that a window
/// comes back.
struct WindowViews {
    WindowQueries queries;
    OpenPanels open;

    WindowSlot<profiler::LedgerRequest, profiler::LedgerView> ledger{
        "Listing the saved tensors", order_ledger, profiler::build_ledger_view};
    WindowSlot<profiler::FlameRequest, profiler::FlameView> flame{
        "Building the flame graph", order_flame, profiler::build_flame_view};
    WindowSlot<profiler::BlocksRequest, profiler::BlocksView> blocks{
        "Laying out the blocks", order_blocks, profiler::build_blocks_view};
    WindowSlot<profiler::LiveBlocksRequest, profiler::LiveBlocksView> live_blocks{
        "Listing the live blocks", order_live_blocks, profiler::build_live_blocks_view};
    WindowSlot<profiler::WhatIfRequest, profiler::WhatIfView> what_if{
        "Replaying the requests", order_what_if, profiler::build_what_if_view};
    WindowSlot<profiler::SegmentMapRequest, profiler::SegmentMapView> segments{
        "Drawing the segments", order_segments, profiler::build_segment_map_view};
    WindowSlot<profiler::InspectorRequest, profiler::InspectorView> inspector{
        "Describing the selection", order_inspector, profiler::build_inspector_view};
    WindowSlot<profiler::RangeRequest, profiler::RangeView> range{
        "Summing up the selected range", order_range, profiler::build_range_view};

    /// What the slots of this window make their requests from.
    WindowState state(const WorkspaceState& shared) const {
        const profiler::WhatIfView* const replay = what_if.view();
        return {shared, queries, open, replay ? replay->layout : nullptr};
    }

    static auto all_of(auto& s) {
        return std::tie(s.ledger, s.flame, s.blocks, s.live_blocks, s.what_if, s.segments,
                        s.inspector, s.range);
    }
    /// All of them, for what the workspace does with each.
    auto all() { return all_of(*this); }
    auto all() const { return all_of(*this); }
};

}  // namespace app
