#include "profiler/view/memory/timeline_view.h"

#include "profiler/view/theme.h"
#include "profiler/view/time_map.h"
#include "tests/support/loaded_step.h"
#include "tests/support/trace_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace {

using namespace profiler;
using Loaded = tests::LoadedStep;
using testing::HasSubstr;
using tests::TraceBuilder;

constexpr int64_t kMiB = int64_t{1} << 20;

/// One step: parameters live throughout, `activation_bytes` from forward to backward. Forward lasts
/// `forward_ns`, backward 1 ms.
Trace make_trace(int64_t activation_bytes = 8 * kMiB, int64_t forward_ns = 4'000'000,
                 int64_t lead_ns = 0) {
    TraceBuilder b;
    b.allocate({.bytes = 2 * kMiB, .category = Category::kParameter});
    b.wait(lead_ns);
    b.begin_step(PhaseKind::kForward);
    b.wait(forward_ns / 2);
    const auto activation =
        b.allocate({.bytes = activation_bytes, .category = Category::kActivation});
    b.wait(forward_ns / 2);
    b.begin_phase(PhaseKind::kBackward);
    const auto temporary = b.allocate({.bytes = kMiB, .category = Category::kTemporary});
    b.wait(1'000'000);
    b.free(temporary);
    b.free(activation);
    b.end_step(1.5);
    b.wait(10'000);
    return b.finish();
}

TimelineView view_of(const Loaded& a, double start_ns, double end_ns, int width_px = 100) {
    return build_timeline_view(
        {.steps = {&a.index}, .start_ns = start_ns, .end_ns = end_ns, .width_px = width_px});
}

TimelineRequest request_of(const Loaded& a) {
    return {.steps = {&a.index}, .start_ns = 0, .end_ns = 5.2e6, .width_px = 500};
}

TEST(TimelineView, ShowsTheLimitAndWhereMemoryRanOut) {
    Trace trace = make_trace(4 * kMiB, 1'000'000);
    trace.runs.set<&profiler::Run::memory_limit_bytes>(Id<profiler::Run>(0), 8 * kMiB);
    const Loaded fits(std::move(trace));
    const TimelineTrace shown = build_timeline_view(request_of(fits)).traces[0];
    EXPECT_EQ(shown.summary, "peak 7.00 MiB of 8.00 MiB for tensors");
    EXPECT_EQ(shown.limit_bytes, static_cast<double>(8 * kMiB));
    EXPECT_EQ(shown.limit_text, "limit 8.00 MiB");
    EXPECT_FALSE(shown.out_of_memory);

    trace = fits.trace;
    add_diagnostic(
        trace,
        {.code = kRanOutOfMemory, .severity = Severity::kError, .explanation = "Too large."});
    const Loaded cut_off(std::move(trace));
    const TimelineView view = build_timeline_view(request_of(cut_off));
    EXPECT_EQ(view.traces[0].summary, "peak 7.00 MiB of 8.00 MiB for tensors, out of memory");
    ASSERT_TRUE(view.traces[0].out_of_memory);
    EXPECT_EQ(view.traces[0].out_of_memory->bytes, 7 * kMiB);  // at the last allocation
    EXPECT_GE(view.max_bytes, static_cast<double>(8 * kMiB));

    trace = fits.trace;
    trace.runs.set<&profiler::Run::memory_limit_bytes>(Id<profiler::Run>(0), 80 * kMiB);
    const Loaded far(std::move(trace));
    EXPECT_EQ(build_timeline_view(request_of(far)).traces[0].limit_bytes, 0);
}

TimelineRequest request_of(const Loaded& a, const Loaded& b,
                           TimeAlignment alignment = TimeAlignment::kPhases) {
    return {.steps = {&a.index, &b.index},
            .start_ns = 0,
            .end_ns = 5.2e6,
            .width_px = 500,
            .alignment = std::make_shared<const Alignment>(align(a.trace, b.trace, alignment))};
}

double highest(const std::vector<double>& values) {
    return *std::max_element(values.begin(), values.end());
}

TEST(BuildTimelineView, NeverLosesThePeakWhateverTheWidth) {
    const Loaded loaded(make_trace());
    for (const int width : {1, 7, 100, 1919}) {
        const TimelineView view = view_of(loaded, 0, 5'100'000, width);
        ASSERT_EQ(view.traces.size(), 1u);
        EXPECT_EQ(highest(view.traces[0].allocated_bytes), 11.0 * kMiB) << width;
        EXPECT_LE(view.traces[0].column_count(), static_cast<std::size_t>(width) + 1);
        EXPECT_EQ(view.traces[0].edge_ns.size(), view.traces[0].column_count() + 1);
    }
}

TEST(BuildTimelineView, NotesWhatIsNotAsItShouldBe) {
    Trace trace = make_trace();
    const auto notes_of = [](const Trace& traced) {
        const Loaded loaded(traced);
        return build_timeline_view(
                   {.steps = {&loaded.index}, .names = {"A"}, .end_ns = 5e6, .width_px = 9})
            .notes;
    };
    trace.runs.set<&profiler::Run::state>(Id<profiler::Run>(0), RunState::kComplete);
    EXPECT_THAT(notes_of(trace), testing::IsEmpty());
    trace.runs.set<&profiler::Run::state>(Id<profiler::Run>(0), RunState::kIncomplete);
    trace.diagnostics.append({.code = trace.strings.intern(kMachineBusy)});
    EXPECT_THAT(notes_of(trace), testing::ElementsAre("A is incomplete: 1 step was recorded",
                                                      HasSubstr("the machine was busy")));
}

TEST(BuildTimelineView, StacksCategoriesUpToTheAllocatedLine) {
    const Loaded loaded(make_trace());
    const TimelineView view = view_of(loaded, 0, 5e6, 200);
    const TimelineTrace& trace = view.traces[0];
    for (std::size_t i = 0; i < trace.column_count(); ++i) {
        double below = 0;
        for (const Category category : kCategoryStackOrder) {
            const double top = trace.top_bytes[static_cast<std::size_t>(category)][i];
            EXPECT_GE(top, below);
            below = top;
        }
        EXPECT_EQ(below, trace.allocated_bytes[i]);
    }
    EXPECT_THAT(view.categories, testing::ElementsAre(Category::kParameter, Category::kActivation,
                                                      Category::kTemporary));
    EXPECT_FALSE(trace.has_reserved);
    EXPECT_EQ(view.max_bytes, 11.0 * kMiB);
}

TEST(BuildTimelineView, KeepsColumnsWherePanningFindsThem) {
    const Loaded loaded(make_trace());
    const auto columns_from = [&](double start_ns) {
        return view_of(loaded, start_ns, start_ns + 1e6).traces[0];
    };
    const TimelineTrace here = columns_from(2'000'000);
    const TimelineTrace there = columns_from(2'123'456);
    ASSERT_GT(here.edge_ns.back(), there.edge_ns.front());
    for (std::size_t i = 0; i < here.column_count(); ++i) {
        const auto same =
            std::find(there.edge_ns.begin(), there.edge_ns.end() - 1, here.edge_ns[i]);
        if (same == there.edge_ns.end() - 1) continue;
        const auto j = static_cast<std::size_t>(same - there.edge_ns.begin());
        EXPECT_EQ(here.allocated_bytes[i], there.allocated_bytes[j]);
    }
    EXPECT_EQ(here.edge_ns[1] - here.edge_ns[0], there.edge_ns[1] - there.edge_ns[0]);
}

TEST(BuildTimelineView, MarksPhasesStepsAndThePeak) {
    const Loaded loaded(make_trace());
    const TimelineView view = view_of(loaded, 0, 6e6);
    const TimelineTrace& trace = view.traces[0];
    ASSERT_EQ(trace.phases.size(), 2u);
    EXPECT_EQ(trace.phases[0].kind, PhaseKind::kForward);
    EXPECT_EQ(trace.phases[0].text, "forward 4.00 ms");
    ASSERT_EQ(trace.steps.size(), 1u);
    EXPECT_EQ(trace.steps[0].text, "step 1");
    ASSERT_EQ(trace.peaks.size(), 1u);
    EXPECT_EQ(trace.peaks[0].text, "peak 11.0 MiB, backward of step 1");
    EXPECT_EQ(trace.summary, "peak 11.0 MiB");
}

TEST(BuildTimelineView, LeavesOutBandsBesideTheWindow) {
    const Loaded loaded(make_trace());
    const TimelineView view = view_of(loaded, 1e6, 2e6);
    EXPECT_EQ(view.traces[0].phases.size(), 1u);
    EXPECT_TRUE(view.traces[0].peaks.empty());
    EXPECT_EQ(view.max_bytes, 11.0 * kMiB) << "the axis does not jump while zooming";
}

TEST(BuildTimelineView, AlignsPhasesOfTracesOfDifferentSpeed) {
    const Loaded a(make_trace());
    const Loaded b(make_trace(4 * kMiB, 9'000'000, 3'000'000));
    const TimelineView view = build_timeline_view(request_of(a, b));
    EXPECT_EQ(view.alignment, TimeAlignment::kPhases);
    EXPECT_EQ(view.alignment_note, "");
    ASSERT_EQ(view.traces[1].phases.size(), 2u);
    for (std::size_t i = 0; i < 2; ++i) {
        EXPECT_NEAR(view.traces[0].phases[i].start_ns, view.traces[1].phases[i].start_ns, 1);
        EXPECT_NEAR(view.traces[0].phases[i].end_ns, view.traces[1].phases[i].end_ns, 1);
    }
    EXPECT_EQ(view.traces[1].phases[0].text, "forward 9.00 ms") << "durations stay their own";
    EXPECT_EQ(highest(view.traces[1].allocated_bytes), 7.0 * kMiB);
}

TEST(BuildTimelineView, SubtractsTheFirstTraceFromTheSecond) {
    const Loaded a(make_trace());
    const Loaded b(make_trace(4 * kMiB, 9'000'000));
    const TimelineView view = build_timeline_view(request_of(a, b));
    ASSERT_EQ(view.difference_bytes.size(), view.traces[0].column_count());
    // In the middle of backward both traces hold parameters, an activation and a temporary.
    const auto middle =
        static_cast<std::size_t>(4.5e6 / (view.traces[0].edge_ns[1] - view.traces[0].edge_ns[0]));
    EXPECT_EQ(view.difference_bytes[middle], -4.0 * kMiB);
    EXPECT_EQ(view.max_difference_bytes, 4.0 * kMiB) << "no spikes where phases begin and end";
}

/// Holds 8 MiB for `held_ns`, and 1 MiB for an instant in the middle of it if `with_spike`.
Trace make_holding(int64_t held_ns, bool with_spike = false) {
    TraceBuilder b;
    b.begin_step(PhaseKind::kForward);
    const auto held = b.allocate({.bytes = 8 * kMiB});
    b.wait(held_ns / 2);
    if (with_spike) b.free(b.allocate({.bytes = kMiB}));
    b.wait(held_ns / 2);
    b.free(held);
    b.wait(2'000'000);
    return b.finish();
}

TEST(BuildTimelineView, AStepInNeighbouringColumnsIsNoDifference) {
    const Loaded a(make_holding(1'000'000));
    const auto most = [&](const Trace& trace) {
        const Loaded b(trace);
        return build_timeline_view(request_of(a, b, TimeAlignment::kTime)).max_difference_bytes;
    };
    constexpr int64_t kColumnNs = 5'200'000 / 500;
    EXPECT_EQ(most(make_holding(1'000'000 + kColumnNs)), 0);
    EXPECT_EQ(most(make_holding(1'000'000 - kColumnNs)), 0);
    EXPECT_EQ(most(make_holding(1'000'000 + 4 * kColumnNs)), 8.0 * kMiB);
    EXPECT_EQ(most(make_holding(1'000'000, /*with_spike=*/true)), 1.0 * kMiB);
}

TEST(BuildTimelineView, SubtractsNothingWhereOneTraceHasEnded) {
    const Loaded a(make_trace());
    const Loaded b(make_trace(8 * kMiB, 9'000'000));
    TimelineRequest request = request_of(a, b, TimeAlignment::kTime);
    request.start_ns = -2e6;
    request.end_ns = 12e6;
    const TimelineView view = build_timeline_view(request);
    ASSERT_LT(view.traces[0].end_ns, view.traces[1].end_ns);
    for (std::size_t i = 0; i < view.difference_bytes.size(); ++i) {
        if (view.traces[0].edge_ns[i + 1] <= view.traces[0].end_ns) continue;
        EXPECT_EQ(view.difference_bytes[i], 0);
    }
    EXPECT_GT(view.max_difference_bytes, 0) << "before that they differ";
}

TEST(BuildTimelineView, SaysWhyPhasesCannotBeAligned) {
    const Loaded a(make_trace());
    TraceBuilder builder;
    builder.allocate({.bytes = 64});
    const Loaded b(builder.finish());
    const TimelineView view = build_timeline_view(request_of(a, b));
    EXPECT_EQ(view.alignment, TimeAlignment::kTime);
    EXPECT_EQ(view.alignment_note, "Shown on their own clocks: one of the traces has no phases.");
}

TEST(BuildTimelineView, IsEmptyForEmptyAndAbsurdWindows) {
    const Loaded loaded(make_trace());
    for (const auto& [start, end, width] :
         {std::tuple{0.0, 0.0, 100}, {5.0, 1.0, 100}, {0.0, 1e6, 0}, {0.0, 1e300, 100}}) {
        EXPECT_EQ(view_of(loaded, start, end, width).traces[0].column_count(), 0u);
    }
    EXPECT_TRUE(build_timeline_view({}).traces.empty());
}

TEST(FitTimeline, CoversAllTraces) {
    const Loaded a(make_trace());
    const Loaded b(make_trace(4 * kMiB, 9'000'000, 3'000'000));
    const TimeRange own = fit_timeline(request_of(a, b, TimeAlignment::kTime));
    EXPECT_EQ(own.end_ns - own.start_ns,
              static_cast<double>(b.index.curve().end_ns() - b.index.curve().start_ns()));
    const TimeRange aligned = fit_timeline(request_of(a, b));
    EXPECT_LT(aligned.end_ns, own.end_ns) << "the slower forward is pressed into the faster one's";
    EXPECT_LE(aligned.start_ns, 0);
}

TEST(ReadTimeline, ListsCategoriesFromTheTopOfTheStack) {
    const Loaded loaded(make_trace());
    const TimelineReadout readout = read_timeline({.steps = {&loaded.index}}, 0, 4'500'000);
    EXPECT_EQ(readout.phase_text, "backward of step 1");
    EXPECT_EQ(readout.total_text, "11.0 MiB");
    ASSERT_EQ(readout.rows.size(), 3u);
    EXPECT_EQ(readout.rows[0].category, Category::kTemporary);
    EXPECT_EQ(readout.rows[1].text, "8.00 MiB");
    EXPECT_EQ(readout.rows[1].share, "72.7 %");
    EXPECT_EQ(readout.rows[2].category, Category::kParameter);
}

TEST(ReadTimeline, NamesTheAnnotationsAroundATimeFromTheOutside) {
    Trace trace = make_trace();
    const auto mark = [&](std::string_view name, int64_t start_ns, int64_t end_ns) {
        trace.annotations.append({trace.strings.intern(name), start_ns, end_ns});
    };
    mark("all_reduce", 200, 300);
    mark("epoch 1", 0, 1000);
    mark("step", 100, 400);
    mark("train", 0, 2000);
    mark("a mark without length", 250, 250);
    const Loaded loaded(std::move(trace));
    const auto text_at = [&](double time_ns) {
        return read_timeline({.steps = {&loaded.index}}, 0, time_ns).annotation_text;
    };
    EXPECT_EQ(text_at(250), "epoch 1 > step > all_reduce");
    EXPECT_EQ(text_at(300), "train > epoch 1 > step");
    EXPECT_EQ(text_at(1500), "train");
    EXPECT_EQ(text_at(2000), "");
}

TEST(TimeMap, GoesThereAndBack) {
    const TimeMap map({{0, 100}, {10, 200}, {30, 210}});
    EXPECT_EQ(map.to_own(5), 150);
    EXPECT_EQ(map.to_own(20), 205);
    EXPECT_EQ(map.to_own(-7), 93);
    EXPECT_EQ(map.to_own(35), 215);
    for (double t = -20; t < 50; t += 0.7) EXPECT_NEAR(map.to_shared(map.to_own(t)), t, 1e-9);
    EXPECT_EQ(TimeMap().to_own(42), 42);
}

TEST(Align, NamesTheFirstPhaseThatDiffers) {
    TraceBuilder builder;
    builder.begin_step(PhaseKind::kLoss);
    builder.wait(10);
    builder.end_step();
    const Alignment alignment =
        align(make_trace(64, 1000), builder.finish(), TimeAlignment::kPhases);
    EXPECT_EQ(alignment.used, TimeAlignment::kTime);
    EXPECT_THAT(alignment.note, HasSubstr("phase 1 is forward in one trace and loss in the other"));
}

/// Two traces without phases, the second one twice as slow and with blocks of its own.
TEST(Align, FollowsTheBlocksWhereThereAreNoPhases) {
    const auto make = [](int64_t pause_ns, int extra) {
        TraceBuilder b;
        for (int i = 0; i < 50; ++i) {
            b.wait(pause_ns);
            const auto op = b.op("op" + std::to_string(i));
            b.allocate({.bytes = 512 + i, .op = op});
            for (int n = 0; n < extra; ++n) b.allocate({.bytes = 64, .op = op});
        }
        return b.finish();
    };
    const Trace first = make(1'000, 0), second = make(2'000, 1);
    const Alignment alignment = align(first, second, TimeAlignment::kPhases);
    EXPECT_EQ(alignment.used, TimeAlignment::kBlocks);
    EXPECT_THAT(alignment.note, HasSubstr("Aligned by 50 blocks"));
    for (const std::size_t i : {0, 10, 49}) {
        const auto time_of = [](const Trace& trace, std::size_t row) {
            return static_cast<double>(
                trace.allocations.get<&Allocation::alloc_ns>(Id<Allocation>(row)));
        };
        EXPECT_EQ(alignment.second.to_own(time_of(first, i)), time_of(second, 2 * i)) << i;
    }
}

/// A phase of 100 ticks in which calls begin at given times: in forward, one in each module of
/// these names; in the optimizer, calls of these names.
Trace make_calls(PhaseKind phase, const std::vector<std::pair<std::string, int64_t>>& calls) {
    TraceBuilder b;
    b.begin_step(phase);
    int64_t now_ns = 0;
    for (const auto& [name, start_ns] : calls) {
        b.wait(start_ns - now_ns);
        now_ns = start_ns;
        if (phase == PhaseKind::kForward) {
            b.op("aten::addmm", b.module_path(name));
        } else {
            b.op(name);
        }
    }
    b.wait(100 - now_ns);
    return b.finish();
}

TEST(Align, MapsModulesOntoEachOther) {
    const Trace first =
        make_calls(PhaseKind::kForward, {{"query", 10}, {"softmax", 20}, {"output", 50}});
    const Trace second = make_calls(
        PhaseKind::kForward, {{"query", 30}, {"extra", 35}, {"softmax", 40}, {"output", 90}});
    const TimeMap map = align(first, second, TimeAlignment::kPhases).second;
    EXPECT_EQ(map.to_own(10), 30);
    EXPECT_EQ(map.to_own(20), 40);
    EXPECT_EQ(map.to_own(35), 65) << "half way between softmax and output in both";
    EXPECT_EQ(map.to_own(100), 100);
}

TEST(Align, MapsTheOptimizersCallsOntoEachOther) {
    const Trace first =
        make_calls(PhaseKind::kOptimizer, {{"mul_", 10}, {"sqrt", 20}, {"mul_", 50}});
    const Trace second =
        make_calls(PhaseKind::kOptimizer, {{"mul_", 30}, {"sqrt", 60}, {"mul_", 90}});
    const TimeMap map = align(first, second, TimeAlignment::kPhases).second;
    EXPECT_EQ(map.to_own(10), 30);
    EXPECT_EQ(map.to_own(20), 60);
    EXPECT_EQ(map.to_own(50), 90) << "the second call of a name is held against the second";
}

TEST(Align, PassesOverModulesThatRunInAnotherOrder) {
    const Trace first = make_calls(PhaseKind::kForward, {{"a", 10}, {"b", 20}, {"c", 50}});
    const Trace second = make_calls(PhaseKind::kForward, {{"b", 10}, {"a", 20}, {"c", 60}});
    const TimeMap map = align(first, second, TimeAlignment::kPhases).second;
    EXPECT_EQ(map.to_own(10), 20);
    EXPECT_EQ(map.to_own(50), 60);
    for (double t = 1; t < 100; ++t) EXPECT_GT(map.to_own(t), map.to_own(t - 1));
}

TEST(ReadTimeline, IsEmptyForASourceThatIsNotThere) {
    const Loaded loaded(make_trace());
    const TimelineReadout readout = read_timeline({.steps = {&loaded.index}}, 1, 100);
    EXPECT_TRUE(readout.rows.empty());
    EXPECT_EQ(readout.total_text, "");
}

}  // namespace
