// Whatever the user changes in what a panel shows, its view is made again.
#include "app/workspace/slots.h"

#include "tests/app/workspace/waiting.h"
#include "tests/support/synthetic_trace.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace {

using profiler::Id;
using profiler::Run;

app::DocumentPtr make_rank(int64_t rank) {
    auto trace = std::make_shared<profiler::Trace>(tests::make_synthetic_trace(
        {.num_allocations = 3'000, .num_layers = 4, .in_place = rank > 0}));
    trace->runs.set<&Run::rank>(Id<Run>(0), rank);
    trace->runs.set<&Run::world_size>(Id<Run>(0), 2);
    const std::filesystem::path folder = "/run";
    return app::make_document(folder / std::to_string(rank), std::move(trace));
}

const std::vector<app::DocumentPtr>& ranks() {
    static const std::vector<app::DocumentPtr> ranks{make_rank(0), make_rank(1)};
    return ranks;
}

/// A workspace in which every panel is in sight, as far as its views are made from it.
struct Shown {
    Shown() {
        selection.a = documents[0];
        selection.b = documents[1];
        selection.category = profiler::Category::kActivation;
        selection.range = {100, 2000};
        selection.marks.emplace();
        time.window.width_px = time.kernels_width_px = 400;
        time.align(selection);
        queries.planner.is_chosen = true;  // else it follows A
        queries.planner.is_drawn = queries.frontier.is_drawn = queries.movement.is_drawn = true;
        queries.ranks.width_px = 400;
        queries.search = {"mm", true};
        own.flame.is_drawn = true;
        own.blocks.width_px = own.blocks.height_px = own.blocks.segment_px = 300;
        own.blocks.what_if.is_open = true;
        layout = std::make_shared<profiler::SegmentLayout>();
        layout->trace = documents[0]->trace.get();
    }
    app::WindowState state() const {
        return {{.documents = documents,
                 .selection = selection,
                 .time = time,
                 .queries = queries,
                 .frontier_plans = plans,
                 .usual_request = usual_request,
                 .marks = nullptr,
                 .rank_run = rank_run,
                 .usual_plan = nullptr,
                 .recipe_being_planned = {},
                 .trials = {},
                 .planner_data = predictor.data()},
                own,
                open,
                layout};
    }

    std::vector<app::DocumentPtr> documents = ranks();
    app::Selection selection;
    app::TimeAxis time;
    app::PanelQueries queries;
    app::WindowQueries own;
    app::OpenPanels open{true, true, true, true};
    app::Predictor predictor;
    app::FrontierPlans plans{predictor};
    std::optional<app::StepPlanRequest> usual_request;
    std::shared_ptr<const app::RanksOfRun> rank_run =
        std::make_shared<const app::RanksOfRun>(app::build_rank_run(documents).value());
    std::shared_ptr<profiler::SegmentLayout> layout;
};

/// How often a slot with this order makes its view, before and after the change.
template <typename State, typename Request, typename Change>
std::pair<int, int> count_views(std::optional<app::ViewOrder<Request>> (*order)(const State&),
                                const Change& change) {
    int made = 0;
    app::ViewSlot<State, Request, int> slot(
        "Counting", order, [&made](const Request&) -> models::Result<int> { return ++made; });
    Shown shown;
    const auto settle = [&] {
        tests::wait_for([&] {
            slot.update(shown.state());
            return slot.settled(shown.state());
        });
        return made;
    };
    const int before = settle();
    settle();  // nothing has changed
    change(shown);
    return {before, settle()};
}

/// One row for each field: the order that depends on it, and another value.
#define EXPECT_MADE_AGAIN(order, ...)                                                            \
    EXPECT_EQ(count_views(app::order, [](Shown& shown) { shown.__VA_ARGS__; }), std::pair(1, 2)) \
        << #order << ": " << #__VA_ARGS__

/// A field that is added to a query breaks this, and needs a row below.
TEST(ViewOrders, KnowEveryFieldOfTheQueries) {
    [[maybe_unused]] const auto& [filter, sort_by, descending, only_differences, compare,
                                  grouping] = app::LedgerQuery();
    [[maybe_unused]] const auto& [mode, combine_layers, by_stack, search, is_drawn] =
        app::FlameQuery();
    [[maybe_unused]] const auto& [show, order, coloring, low_bytes, high_bytes, width_px, height_px,
                                  phase_strip_px, minimap_px, segment_px, segment, what_if] =
        app::BlocksQuery();
    [[maybe_unused]] const auto& [is_open, choice, tries_all, shows_map] = app::WhatIfQuery();
    [[maybe_unused]] const auto& [pinned] = app::InspectorQuery();
    [[maybe_unused]] const auto& [ops, scope, column, falls, gpu, is_seen] = app::MovementQuery();
    [[maybe_unused]] const auto& [axis, from, to, is_planned] = app::FrontierQuery();
    [[maybe_unused]] const auto& [width] = app::RanksQuery();
    [[maybe_unused]] const auto& [text, is_shown] = app::SearchQuery();
    [[maybe_unused]] const auto& [workload, recipes, optimizer, is_chosen, is_wanted] =
        app::PlannerForm();
}

TEST(ViewOrders, OfAdviceFollowItsTarget) {
    EXPECT_MADE_AGAIN(order_advice, queries.advice.gpu = "t4");
    EXPECT_MADE_AGAIN(order_advice, queries.advice.batch_size = 3);
}

TEST(ViewOrders, OfTheLedgerFollowItsQuery) {
    EXPECT_MADE_AGAIN(order_ledger, own.ledger.filter = "probs");
    EXPECT_MADE_AGAIN(order_ledger, own.ledger.sort_by = profiler::LedgerColumn::kShape);
    EXPECT_MADE_AGAIN(order_ledger, own.ledger.descending = false);
    EXPECT_MADE_AGAIN(order_ledger, own.ledger.only_differences = true);
    EXPECT_MADE_AGAIN(order_ledger, own.ledger.compare = false);
    EXPECT_MADE_AGAIN(order_ledger, own.ledger.grouping = profiler::LedgerGrouping::kKinds);
    EXPECT_MADE_AGAIN(order_ledger, selection.range.reset());
}

TEST(ViewOrders, OfTheFlameGraphFollowItsQuery) {
    EXPECT_MADE_AGAIN(order_flame, own.flame.mode = profiler::FlameMode::kB);
    EXPECT_MADE_AGAIN(order_flame, own.flame.combine_layers = true);
    EXPECT_MADE_AGAIN(order_flame, own.flame.by_stack = true);
    EXPECT_MADE_AGAIN(order_flame, own.flame.search = "gelu");
    EXPECT_MADE_AGAIN(order_flame, selection.moment_ns = 500);
}

TEST(ViewOrders, OfBlocksFollowTheirQuery) {
    using Show = app::BlocksQuery::Show;
    EXPECT_MADE_AGAIN(order_blocks, own.blocks.show = Show::kB);
    EXPECT_MADE_AGAIN(order_blocks, own.blocks.show = Show::kDifference);
    EXPECT_MADE_AGAIN(order_blocks, own.blocks.order = profiler::BlockOrder::kAddress);
    EXPECT_MADE_AGAIN(order_blocks, own.blocks.coloring = profiler::BlockColoring::kSize);
    EXPECT_MADE_AGAIN(order_blocks, own.blocks.low_bytes = 64);
    EXPECT_MADE_AGAIN(order_blocks, own.blocks.high_bytes = 64);
    EXPECT_MADE_AGAIN(order_blocks, own.blocks.width_px = 200);
    EXPECT_MADE_AGAIN(order_blocks, own.blocks.height_px = 200);
    EXPECT_MADE_AGAIN(order_blocks, own.blocks.phase_strip_px = 20);
    EXPECT_MADE_AGAIN(order_blocks, own.blocks.minimap_px = 20);
    EXPECT_MADE_AGAIN(order_live_blocks, own.blocks.show = Show::kB);
    EXPECT_MADE_AGAIN(order_live_blocks, own.blocks.show = Show::kDifference);
    EXPECT_MADE_AGAIN(order_live_blocks, selection.moment_ns = 500);
    EXPECT_MADE_AGAIN(order_segments, own.blocks.show = Show::kB);
    EXPECT_MADE_AGAIN(order_segments, own.blocks.segment_px = 200);
    EXPECT_MADE_AGAIN(order_segments, own.blocks.segment = 4096);
    EXPECT_MADE_AGAIN(order_segments, own.blocks.what_if.shows_map = true);
    EXPECT_MADE_AGAIN(order_segments, selection.moment_ns = 500);
    EXPECT_MADE_AGAIN(order_what_if, own.blocks.show = Show::kB);
    EXPECT_MADE_AGAIN(order_what_if, own.blocks.what_if.choice.memory_limit_bytes = 4096);
    EXPECT_MADE_AGAIN(order_what_if, own.blocks.what_if.choice.settings.expandable_segments = true);
    EXPECT_MADE_AGAIN(order_what_if, own.blocks.what_if.tries_all = true);
}

TEST(ViewOrders, OfTheInspectorFollowSelectionAndPin) {
    EXPECT_MADE_AGAIN(order_inspector, selection.category = profiler::Category::kParameter);
    EXPECT_MADE_AGAIN(order_inspector, selection.tensor.emplace());
    EXPECT_MADE_AGAIN(order_inspector, selection.call.emplace());
    EXPECT_MADE_AGAIN(order_inspector, own.inspector.pinned = shown.selection;
                      shown.own.inspector.pinned->category.reset();
                      shown.own.inspector.pinned->tensor.emplace());
    EXPECT_MADE_AGAIN(order_range, selection.range->end_ns = 3000);
    EXPECT_MADE_AGAIN(order_range, own.inspector.pinned = shown.selection;
                      shown.own.inspector.pinned->range->start_ns = 50);
}

TEST(ViewOrders, OfTheTimeAxisFollowItsWindow) {
    EXPECT_MADE_AGAIN(order_timeline, time.window.start_ns += 10);
    EXPECT_MADE_AGAIN(order_timeline, time.window.end_ns += 10);
    EXPECT_MADE_AGAIN(order_timeline, time.window.width_px = 500);
    EXPECT_MADE_AGAIN(order_timeline, selection.label_a.name = "tempo (before)");
    EXPECT_MADE_AGAIN(order_timeline, selection.label_b.name = "tempo (after)");
    EXPECT_MADE_AGAIN(order_ribbon, time.window.start_ns += 10);
    EXPECT_MADE_AGAIN(order_ribbon, time.kernels_width_px = 500);
    EXPECT_MADE_AGAIN(order_kernels, time.window.end_ns += 10);
    EXPECT_MADE_AGAIN(order_kernels, time.lane_width_px = 500);
    EXPECT_MADE_AGAIN(order_marks, selection.marks->label = "aten::addmm");
    EXPECT_MADE_AGAIN(order_layers, selection.layers = profiler::LayerRange{1, 1});
    EXPECT_MADE_AGAIN(order_pair, time.align(shown.selection));
}

TEST(ViewOrders, OfTheOtherPanelsFollowTheirQueries) {
    EXPECT_MADE_AGAIN(order_movement, queries.movement.ops = profiler::MovementOps::kLogical);
    EXPECT_MADE_AGAIN(order_movement, queries.movement.scope = profiler::MovementScope::kAll);
    EXPECT_MADE_AGAIN(order_movement, queries.movement.sort_by = profiler::MovementColumn::kCalls);
    EXPECT_MADE_AGAIN(order_movement, queries.movement.descending = false);
    EXPECT_MADE_AGAIN(order_movement, queries.movement.gpu = "t4");
    EXPECT_MADE_AGAIN(order_movement, queries.plan.gpu = "t4");
    EXPECT_MADE_AGAIN(order_frontier, queries.frontier.axis = profiler::FrontierAxis::kMaxBatch);
    EXPECT_MADE_AGAIN(order_frontier, queries.planner.workload.batch_size = 3);
    EXPECT_MADE_AGAIN(order_frontier, queries.plan.gpu = "t4");
    EXPECT_MADE_AGAIN(order_planner, queries.planner.workload.seq_len = 64);
    EXPECT_MADE_AGAIN(order_planner, queries.planner.recipes = {"tempo"});
    EXPECT_MADE_AGAIN(order_planner, queries.planner.optimizer = models::Optimizer::kSgd);
    EXPECT_MADE_AGAIN(order_planner, queries.plan.gpu = "t4");
    EXPECT_MADE_AGAIN(order_comparison, queries.plan.gpu = "t4");
    EXPECT_MADE_AGAIN(order_comparison, documents.pop_back());
    EXPECT_MADE_AGAIN(order_search, queries.search.text = "addmm");
    EXPECT_MADE_AGAIN(order_ranks, queries.ranks.width_px = 500);
    EXPECT_MADE_AGAIN(order_ranks, time.window.end_ns += 10);
}

}  // namespace
