// The workspace without a window: traces, A and B, and the views built off the frame thread, also
// while the views belong to an earlier A or B.
#include "app/workspace/workspace.h"
#include "app/workspace/jobs/wake.h"
#include "models/config/workload.h"
#include "tests/support/synthetic_trace.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

namespace {

using profiler::Id;
using profiler::Run;
using profiler::Trace;

app::DocumentPtr make_document(const std::string& file, const std::string& recipe,
                               int64_t num_layers = 4) {
    auto trace = std::make_shared<Trace>(tests::make_synthetic_trace(
        {.num_allocations = 1500, .num_layers = num_layers, .in_place = recipe != "original"}));
    trace->runs.set<&Run::recipe>(Id<Run>(0), trace->strings.intern(recipe));
    models::Workload workload{.model = *models::find_model("bert-large"), .recipe_name = recipe};
    workload.recipe = *models::parse_recipe(recipe);
    trace->runs.set<&Run::workload>(Id<Run>(0),
                                    trace->strings.intern(models::to_json(workload).dump()));
    return app::make_document(file, trace);
}

/// A trace that holds a sweep and no step.
app::DocumentPtr make_sweep(const std::string& file, const std::string& recipe) {
    Trace trace;
    trace.runs.append({});
    trace.runs.set<&Run::recipe>(Id<Run>(0), trace.strings.intern(recipe));
    trace.sweep_points.append({.batch_size = 4});
    return app::make_document(file, std::make_shared<Trace>(std::move(trace)));
}

/// Updates no more often than the window draws: after a change, and when something wakes it.
void settle(app::Workspace& workspace) {
    static std::atomic<bool> is_woken;
    app::set_wake_window([] { is_woken = true; });
    workspace.update();
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!workspace.settled()) {
        if (std::chrono::steady_clock::now() > end) {
            ADD_FAILURE() << "Nothing asks for the next frame.";
            break;
        }
        if (workspace.take_changed() || is_woken.exchange(false)) {
            workspace.update();
        } else {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    }
    app::set_wake_window(nullptr);
}

class WorkspaceTest : public testing::Test {
protected:
    WorkspaceTest() {
        app::TimeWindow window;
        window.width_px = 400;
        workspace_.apply({.time = {.window = window}});
    }
    void settle() { ::settle(workspace_); }
    app::DocumentPtr add(const std::string& recipe) {
        const auto document = make_document("/t/" + recipe + ".tscope", recipe);
        workspace_.add(document);
        return document;
    }
    app::Workspace workspace_;
};

TEST_F(WorkspaceTest, ChoosesTheOriginalOfAStrategyAsA) {
    const auto spread = [](const std::string& recipe) {
        Trace trace = *make_document("/t/rank.tscope", recipe)->trace;
        const Id<profiler::Run> run(0);
        const nlohmann::json what{
            {"program", "built-in"},
            {"workload", nlohmann::json::parse(trace.text(trace.run().workload))},
            {"parallel", "ddp"}};
        trace.runs.set<&profiler::Run::workload>(run, trace.strings.intern(what.dump()));
        trace.runs.set<&profiler::Run::world_size>(run, 2);
        return app::make_document("/t/" + recipe + ".tscope",
                                  std::make_shared<Trace>(std::move(trace)));
    };
    const auto original = spread("original");
    ASSERT_EQ(original->recipe, "original · ddp");
    workspace_.add(spread("tempo"));
    workspace_.add(original);
    settle();
    EXPECT_EQ(workspace_.selection().a, original);
}

TEST_F(WorkspaceTest, ShowsTheOldPairUntilTheViewsOfTheNewOneAreMade) {
    const auto original = make_document("/t/original.tscope", "original");
    const auto tempo = make_document("/t/tempo.tscope", "tempo", 2);
    workspace_.add(original);
    workspace_.add(tempo);
    settle();
    ASSERT_EQ(workspace_.selection().a, original);
    ASSERT_EQ(workspace_.selection().b, tempo);
    ASSERT_EQ(workspace_.slots().timeline.view()->traces.size(), 2U);
    const profiler::LedgerViewRow row = workspace_.views().ledger.view()->rows.back();

    workspace_.set_b(nullptr);
    while (workspace_.selection().b) {
        EXPECT_FALSE(workspace_.settled());
        ASSERT_NE(workspace_.slots().timeline.view(), nullptr);
        EXPECT_EQ(workspace_.slots().timeline.view()->traces.size(), 2U);
        ASSERT_NE(workspace_.views().ledger.view(), nullptr);
        EXPECT_TRUE(workspace_.views().ledger.view()->has_other);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        workspace_.update();
    }
    // All views change at once.
    ASSERT_NE(workspace_.slots().timeline.view(), nullptr);
    EXPECT_EQ(workspace_.slots().timeline.view()->traces.size(), 1U);
    EXPECT_FALSE(workspace_.views().ledger.view()->has_other);
    EXPECT_NE(workspace_.slots().layers.view(), nullptr);
    EXPECT_TRUE(workspace_.read_timeline(1, 0).rows.empty());
    // A click in this frame was on a row of the ledger before.
    workspace_.apply({.selection = {.tensor = {{tempo, row.storage, row.allocation}}}});
    EXPECT_FALSE(workspace_.selection().tensor);

    // Of two wishes the later one counts.
    workspace_.set_a(tempo);
    workspace_.update();
    workspace_.set_a(original);
    settle();
    EXPECT_EQ(workspace_.slots().timeline.view()->traces[0].name, "A  original");
}

TEST_F(WorkspaceTest, ShowsNothingOfATraceThatIsClosed) {
    add("original");
    const auto tempo = add("tempo"), gelu = add("tempo-gelu");
    settle();
    workspace_.set_b(gelu);
    workspace_.close(gelu);
    settle();
    EXPECT_EQ(workspace_.selection().b, tempo);
    workspace_.close(tempo);
    EXPECT_NE(workspace_.selection().b, tempo);
}

TEST_F(WorkspaceTest, HasOneOfAFileHoweverItIsNamed) {
    const auto folder = std::filesystem::temp_directory_path();
    workspace_.open({folder / "missing_a.tscope", folder / "." / "x" / ".." / "missing_a.tscope"});
    settle();
    const auto notices = workspace_.take_notices();
    ASSERT_EQ(notices.size(), 2U);
    EXPECT_EQ(notices[0].text, notices[1].text);
}

TEST_F(WorkspaceTest, ARecipeHasOneColourHoweverItIsSpelled) {
    add("original");
    workspace_.add(make_document("/t/own.tscope", "masks=bit,gelu=in_place"));
    settle();
    const auto colors = workspace_.colors_of({"flash", "gelu=in_place,masks=bit", "original"});
    EXPECT_EQ(colors[1], workspace_.labels()[1].color);
    EXPECT_EQ(colors[2], workspace_.labels()[0].color);
    EXPECT_NE(colors[0], colors[1]);
    EXPECT_NE(colors[0], colors[2]);
}

TEST_F(WorkspaceTest, TellsTwoFilesOfOneRecipeApartAsTheComparisonDoes) {
    workspace_.add(make_document("/before/tempo.tscope", "tempo"));
    add("original");
    workspace_.add(make_document("/t/after.tscope", "tempo"));
    settle();
    const auto& labels = workspace_.labels();
    const auto& columns = workspace_.slots().compare.view()->view.columns;
    ASSERT_EQ(labels.size(), 3U);
    ASSERT_EQ(columns.size(), 3U);
    EXPECT_NE(labels[0].name, labels[2].name);
    EXPECT_NE(labels[0].color, labels[2].color);
    for (const auto& label : labels) {
        const auto column = std::find_if(columns.begin(), columns.end(),
                                         [&](const auto& one) { return one.recipe == label.name; });
        ASSERT_NE(column, columns.end()) << label.name;
        EXPECT_EQ(column->color, label.color);
    }
    EXPECT_EQ(workspace_.selection().label_a.name, "original");
    EXPECT_EQ(workspace_.selection().label_b.name, labels[0].name);
    EXPECT_EQ(workspace_.selection().label_b.color, labels[0].color);
}

TEST_F(WorkspaceTest, ShowsASweepAloneAsA) {
    const auto sweep = make_sweep("/t/sweep.tscope", "tempo");
    ASSERT_FALSE(sweep->has_step);
    workspace_.add(sweep);
    settle();
    EXPECT_EQ(workspace_.selection().a, sweep);
    EXPECT_EQ(workspace_.slots().timeline.view(), nullptr);
    EXPECT_EQ(workspace_.views().ledger.view(), nullptr);
    EXPECT_EQ(workspace_.document_of_column(0), sweep);
    // A captured step takes its place, unless the user has chosen.
    const auto original = add("original");
    settle();
    EXPECT_EQ(workspace_.selection().a, original);
    EXPECT_EQ(workspace_.selection().b, nullptr);
    workspace_.apply({.traces = {.set_b = sweep}});
    settle();
    EXPECT_EQ(workspace_.selection().b, sweep);
    ASSERT_NE(workspace_.slots().timeline.view(), nullptr);
    EXPECT_EQ(workspace_.slots().timeline.view()->traces.size(), 1U);
    EXPECT_FALSE(workspace_.views().ledger.view()->has_other);
}

TEST_F(WorkspaceTest, GoesBackToEarlierSelections) {
    add("original");
    settle();
    const auto select_range = [&](double start_ns, double end_ns) {
        app::PanelEvents events;
        events.selection.range = profiler::TimeRange{start_ns, end_ns};
        workspace_.apply(events);
    };
    EXPECT_FALSE(workspace_.can_step_selection(-1));
    select_range(10, 20);
    select_range(10, 30);  // the same drag
    select_range(50, 60);
    workspace_.apply({.selection = {.history_step = -1}});
    EXPECT_EQ(workspace_.selection().range->end_ns, 30);
    EXPECT_TRUE(workspace_.can_step_selection(1));
    workspace_.apply({.selection = {.history_step = -1}});
    EXPECT_FALSE(workspace_.selection().range);
    EXPECT_FALSE(workspace_.can_step_selection(-1));
    workspace_.step_selection(1);
    select_range(70, 80);  // what came after is forgotten
    EXPECT_FALSE(workspace_.can_step_selection(1));
    for (int i = 0; i < 100; ++i) select_range(100 * i, 100 * i + 50);
    int steps = 0;
    for (; workspace_.can_step_selection(-1); ++steps) workspace_.step_selection(-1);
    EXPECT_EQ(steps, 49);
    add("tempo");
    EXPECT_FALSE(workspace_.can_step_selection(1)) << "A and B are others";
}

/// The Kernels panel draws phases and modules, also where the Memory timeline was never drawn.
TEST(Workspace, HasPhasesAndModulesForTheKernelsPanelAlone) {
    app::Workspace workspace;
    workspace.apply({.time = {.kernels_width_px = 400}});
    workspace.add(make_document("original.tscope", "original"));
    settle(workspace);
    ASSERT_TRUE(workspace.slots().timeline.view());
    ASSERT_TRUE(workspace.slots().ribbon.view());
    EXPECT_FALSE(workspace.slots().timeline.view()->traces[0].phases.empty());
}

TEST_F(WorkspaceTest, BuildsTheFlameGraphOnceItsPanelIsDrawn) {
    add("original");
    add("tempo");
    settle();
    EXPECT_EQ(workspace_.views().flame.view(), nullptr);
    workspace_.apply({.window = {.flame = app::FlameQuery{.is_drawn = true}}});
    settle();
    ASSERT_NE(workspace_.views().flame.view(), nullptr);
    const int64_t peak_bytes = workspace_.selection().a->index->peak().allocated_bytes;
    EXPECT_EQ(workspace_.views().flame.view()->root().bytes[0], peak_bytes);
    workspace_.apply({.selection = {.moment_ns = std::optional<double>(0)}});
    settle();
    EXPECT_LT(workspace_.views().flame.view()->root().bytes[0], peak_bytes);
}

TEST_F(WorkspaceTest, SearchesTheTracesThatAreAAndB) {
    add("original");
    workspace_.search({"gelu_input", true});
    settle();
    const auto& slot = workspace_.slots().search;
    ASSERT_NE(slot.view(), nullptr);
    EXPECT_EQ(slot.view()->query, "gelu_input");
    ASSERT_EQ(slot.view()->groups.size(), 1U);
    EXPECT_EQ(slot.view()->groups[0].hits.at(0).count.find(" in B"), std::string::npos);
    const auto index = slot.view()->index;
    workspace_.search({"gelu", true});
    settle();
    EXPECT_EQ(slot.view()->index, index);  // a key press builds no index
    add("tempo");
    settle();
    EXPECT_NE(slot.view()->index, index);
    EXPECT_NE(slot.view()->groups[0].hits.at(0).count.find("B"), std::string::npos);
    workspace_.search({"gelu", false});
    settle();
    EXPECT_EQ(slot.view(), nullptr);
}

TEST_F(WorkspaceTest, ACallThatIsFoundIsInTheVisibleTime) {
    add("original");
    settle();
    const app::PickedCall first{false, {profiler::CallKind::kOp, 0}};
    const auto& ops = workspace_.selection().a->trace->ops;
    const auto last_row = static_cast<int32_t>(ops.size()) - 1;
    workspace_.find_call(first);
    workspace_.find_call({false, {profiler::CallKind::kOp, last_row}});
    const app::TimeWindow& window = workspace_.time().window;
    const auto& found = workspace_.selection().call;
    ASSERT_TRUE(found);
    EXPECT_EQ(found->id.row, last_row);
    EXPECT_LE(window.start_ns, found->range.start_ns);
    EXPECT_GE(window.end_ns, found->range.end_ns);
    // It is zoomed to, as far as the axis zooms in.
    const double length_ns = found->range.end_ns - found->range.start_ns;
    EXPECT_LE(window.end_ns - window.start_ns, std::max(100 * length_ns, app::kMinWindowNs) * 1.01);
    workspace_.find_call({true, {profiler::CallKind::kOp, 0}});  // there is no B
    EXPECT_EQ(workspace_.selection().call->id.row, last_row);
}

}  // namespace
