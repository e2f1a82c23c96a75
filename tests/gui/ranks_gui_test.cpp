// The Ranks panel in the real window, with a run of four ranks: rank 3 needs more memory, and rank
// 2 comes late to every all_reduce.
#include "app/panels/ranks/ranks_panel.h"
#include "profiler/trace/file/trace_file.h"
#include "tests/gui/test_window.h"
#include "tests/support/trace_builder.h"

#include <fmt/format.h>

namespace tests {
namespace {

using profiler::CollectiveKind;
using profiler::RanksView;

constexpr int kRanks = 4;
constexpr int64_t kMiB = int64_t{1} << 20;
constexpr const char* kPanel = "//###ranks";

app::Workspace& workspace() { return window().workspace(); }
app::RanksState& state() { return window().ui().panels.ranks; }
const RanksView* view() { return workspace().slots().ranks.view(); }

/// Two steps with a forward, a backward with one collective a layer, and an optimizer.
profiler::Trace trace_of_rank(int64_t rank) {
    TraceBuilder b;
    auto& trace = b.trace();
    const Id<profiler::Run> run(0);
    trace.runs.set<&profiler::Run::rank>(run, rank);
    trace.runs.set<&profiler::Run::world_size>(run, kRanks);
    const auto group = trace.communicators.append({.name = b.text("0"),
                                                   .description = b.text("default_pg"),
                                                   .num_ranks = kRanks,
                                                   .ranks = b.text("[0, 1, 2, 3]")});
    const int64_t size = (rank == 3 ? 96 : 64) * kMiB;
    b.allocate({.bytes = 256 * kMiB, .category = Category::kParameter, .name = "weight"});
    for (int step = 0; step < 2; ++step) {
        b.begin_step();
        b.begin_phase(PhaseKind::kForward);
        std::vector<Id<Allocation>> kept;
        for (int layer = 0; layer < 6; ++layer) {
            b.wait(4'000'000);
            kept.push_back(b.allocate({.bytes = size, .category = Category::kActivation}));
        }
        b.end_phase();
        b.begin_phase(PhaseKind::kBackward);
        for (int layer = 0; layer < 6; ++layer) {
            // All of them end together, whenever the rank came.
            const int64_t lateness_ns = rank == 2 ? 1'500'000 : 100'000 * rank;
            const int64_t start_ns = (step * 80 + 30 + layer * 7) * 1'000'000LL + lateness_ns;
            const int64_t end_ns = (step * 80 + 35 + layer * 7) * 1'000'000LL;
            trace.collectives.append(
                {.op = b.op("c10d::allreduce_"),
                 .communicator = group,
                 .kind = layer % 3 == 2 ? CollectiveKind::kAllGather : CollectiveKind::kAllReduce,
                 .in_bytes = 11 * kMiB,
                 .out_bytes = 11 * kMiB,
                 .start_ns = start_ns,
                 .end_ns = end_ns});
            b.wait(7'000'000);
            b.free(kept[static_cast<size_t>(5 - layer)]);
        }
        b.end_phase();
        b.begin_phase(PhaseKind::kOptimizer);
        b.wait(6'000'000);
        b.end_phase();
        b.end_step(0.5);
        b.wait(8'000'000);
    }
    return b.finish();
}

void show(ImGuiTestContext* c) {
    window().reset(c);
    state() = {};
    window().focus(c, kPanel);
}

void show_ranks(ImGuiTestContext* c) {
    show(c);
    const auto folder = window().folder() / "ranks";
    std::filesystem::create_directories(folder);
    for (int rank = 0; rank < kRanks; ++rank) {
        const auto file = folder / fmt::format("rank-{:04}.tscope", rank);
        IM_CHECK_SILENT(profiler::write_trace(trace_of_rank(rank), file).has_value());
    }
    window().open_files(c, {folder});
    window().focus(c, kPanel);
    IM_CHECK_SILENT(view() != nullptr);
    IM_CHECK_EQ_NO_RET(view()->lanes.size(), size_t{kRanks});
}

GUI_TEST(ranks, says_what_it_will_show) {
    show(c);
    IM_CHECK(view() == nullptr);
    const auto file = window().folder() / "alone.tscope";
    TraceBuilder alone;
    alone.begin_step();
    alone.allocate({.bytes = kMiB});
    alone.end_step();
    IM_CHECK_SILENT(profiler::write_trace(alone.finish(), file).has_value());
    window().open_files(c, {file});
    c->Yield(3);
    IM_CHECK(view() == nullptr);
    window().take_picture(c, "ranks_empty");
}

GUI_TEST(ranks, draws_all_ranks_on_one_axis) {
    show_ranks(c);
    IM_CHECK_STR_EQ(view()->lanes[3].difference.c_str(), "+192 MiB");
    IM_CHECK(view()->headline.find("Rank 3 needs the most memory") == 0);
    IM_CHECK(view()->headline.find("Rank 0 waits the most, 9.00 ms.") != std::string::npos);
    IM_CHECK_EQ(view()->kinds.size(), size_t{2});
    window().take_picture(c, "ranks");
    window().click(c, "//###ranks/###difference");
    IM_CHECK(state().shown == app::RanksShown::kDifference);
    window().take_picture(c, "ranks_difference");
    window().click(c, "//###ranks/###peaks");
    window().take_picture(c, "ranks_peaks");
    window().click(c, "//###ranks/###times");
    window().take_picture(c, "ranks_times");
}

GUI_TEST(ranks, a_collective_is_shown_on_all_ranks) {
    show_ranks(c);
    const auto& lane = view()->lanes[1];
    IM_CHECK_SILENT(!lane.collectives.empty());
    const auto& span = lane.collectives.front();
    IM_CHECK_EQ(profiler::read_collective(*view(), span).places.size(), size_t{kRanks});
    const app::PlotMap& plot = state().plot;
    const auto place = app::place_lanes(*view(), plot.size.y)[1];
    c->MouseMoveToPos({plot.x((span.start_ns + span.end_ns) / 2),
                       plot.corner.y + place.top + place.memory_height + 5});
    c->Yield(3);
    IM_CHECK(window().has_tooltip());
    window().take_picture(c, "ranks_collective", /*keep_mouse=*/true);
}

GUI_TEST(ranks, a_rank_becomes_a_or_b) {
    show_ranks(c);
    const auto rank_of = [](const app::DocumentPtr& document) {
        return document ? document->trace->run().rank : -1;
    };
    const auto click = [&](const char* button) {
        c->SetRef(c->WindowInfo("//###ranks/##lanes").ID);
        c->ItemClick(button);
        c->SetRef("");
        window().settle(c);
    };
    click("$$2/A/A");
    IM_CHECK_EQ(rank_of(workspace().selection().a), 2);
    click("$$3/B/B");
    IM_CHECK_EQ(rank_of(workspace().selection().b), 3);
    IM_CHECK_SILENT(view() != nullptr);
    IM_CHECK_EQ(view()->lanes.size(), size_t{kRanks});
}

}  // namespace
}  // namespace tests
