#include "profiler/view/memory/timeline_view.h"

#include "tests/support/loaded_step.h"
#include "tests/support/synthetic_trace.h"
#include "tests/support/trace_builder.h"

#include <gtest/gtest.h>

#include <limits>

namespace {

using namespace profiler;
using Loaded = tests::LoadedStep;
using tests::TraceBuilder;

/// Two layers of 1000 ns each with attention and output, then as long for backward.
Loaded make_step() {
    TraceBuilder b;
    std::vector<Id<ModulePath>> modules;
    const auto encoder = b.module_path("encoder");
    for (int64_t i = 0; i < 2; ++i) {
        const std::string path = "encoder." + std::to_string(i);
        const auto layer = b.module_path(path, i, encoder);
        modules.push_back(b.module_path(path + ".attention", i, layer));
        modules.push_back(b.module_path(path + ".output", i, layer));
    }
    Trace trace = b.finish();
    const auto step = trace.steps.append({.start_ns = 0, .end_ns = 4000});
    const auto forward = trace.phases.append(
        {.step = step, .kind = PhaseKind::kForward, .start_ns = 0, .end_ns = 2000});
    const auto backward = trace.phases.append(
        {.step = step, .kind = PhaseKind::kBackward, .start_ns = 2000, .end_ns = 4000});
    for (std::size_t i = 0; i < 8; ++i) {
        const auto start_ns = static_cast<int64_t>(i) * 500;
        trace.ops.append({.module_path = modules[i < 4 ? i : 7 - i],
                          .phase = i < 4 ? forward : backward,
                          .start_ns = start_ns,
                          .end_ns = start_ns + 500});
    }
    return Loaded(std::move(trace));
}

RibbonRequest whole(const Loaded& a) {
    return {.steps = {&a.index}, .start_ns = 0, .end_ns = 4000, .width_px = 400};
}

TEST(RibbonView, NamesLayersAndTheirModules) {
    const Loaded a = make_step();
    const RibbonView view = build_ribbon_view(whole(a));
    ASSERT_TRUE(view.has_modules);
    const auto& outer = view.traces[0].levels[0];
    ASSERT_EQ(outer.size(), 4U);  // forward and backward of a layer are two blocks
    EXPECT_EQ(outer[0].label, "layer 0");
    EXPECT_EQ(outer[1].label, "layer 1");
    EXPECT_EQ(outer[1].short_label, "1");
    EXPECT_EQ(outer[1].phase, PhaseKind::kForward);
    EXPECT_EQ(outer[2].label, "layer 1");
    EXPECT_EQ(outer[2].phase, PhaseKind::kBackward);
    EXPECT_NE(outer[0].shade, outer[1].shade);
    EXPECT_EQ(outer[0].shade, outer[3].shade);
    const auto& inner = view.traces[0].levels[1];
    ASSERT_EQ(inner.size(), 8U);
    EXPECT_EQ(inner[0].label, "attention");
    EXPECT_EQ(inner[1].label, "output");
    EXPECT_EQ(inner[1].start_ns, 500);
    EXPECT_EQ(inner[1].end_ns, 1000);
}

TEST(RibbonView, MergesWhatIsNarrowerThanAPixel) {
    const Loaded a = make_step();
    RibbonRequest request = whole(a);
    request.width_px = 2;  // a pixel is as long as two layers
    const RibbonView view = build_ribbon_view(request);
    const auto& inner = view.traces[0].levels[1];
    ASSERT_EQ(inner.size(), 2U);
    EXPECT_EQ(inner[0].count, 4);
    EXPECT_TRUE(inner[0].label.empty());
    EXPECT_EQ(inner[0].end_ns, inner[1].start_ns);
}

TEST(RibbonView, ManyOpsFillThePixelsOnly) {
    const Loaded a(tests::make_synthetic_trace({.num_allocations = 50'000}));
    const auto end_ns =
        static_cast<double>(a.index.modules().track(ModuleLevel::kOuter).spans.back().end_ns);
    const RibbonView view =
        build_ribbon_view({.steps = {&a.index}, .start_ns = 0, .end_ns = end_ns, .width_px = 500});
    for (const auto& level : view.traces[0].levels) {
        EXPECT_LE(level.size(), 1000U);
        for (std::size_t i = 1; i < level.size(); ++i) {
            ASSERT_LE(level[i - 1].end_ns, level[i].start_ns);
        }
    }
}

TEST(RibbonView, ABlockSaysWhereWhenAndHowMuch) {
    const Loaded a = make_step();
    const RibbonReadout readout = read_ribbon(a.index, ModuleLevel::kInner, 3);
    EXPECT_EQ(readout.title, "encoder.1.output");
    EXPECT_EQ(readout.layer, 1);
    ASSERT_GE(readout.rows.size(), 5U);
    EXPECT_EQ(readout.rows[0].second, "forward of step 1");
    EXPECT_EQ(readout.rows[2].second, "500 ns");
    EXPECT_TRUE(read_ribbon(a.index, ModuleLevel::kInner, 99).rows.empty());
}

TEST(RibbonView, WindowsThatNoClockHoldsAreEmpty) {
    const Loaded a = make_step();
    RibbonRequest request = whole(a);
    for (const double end_ns : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(),
                                std::numeric_limits<double>::infinity()}) {
        request.end_ns = end_ns;
        EXPECT_TRUE(build_ribbon_view(request).traces.empty());
    }
    const Loaded nothing{Trace()};
    const RibbonView view = build_ribbon_view(whole(nothing));
    EXPECT_FALSE(view.has_modules);
    EXPECT_TRUE(view.traces[0].empty());
}

TEST(RibbonView, TheSecondTraceStandsOnTheClockOfTheFirst) {
    const Loaded a = make_step(), b = make_step();
    RibbonRequest request = whole(a);
    request.steps.b = &b.index;
    request.alignment = std::make_shared<const Alignment>(
        Alignment{.second = TimeMap({{0, 0}, {4000, 2000}, {8000, 4000}})});
    const RibbonView view = build_ribbon_view(request);
    ASSERT_EQ(view.traces.size(), 2U);
    EXPECT_EQ(view.traces[1].levels[0].size(), 2U);
    EXPECT_EQ(view.traces[1].levels[0][0].end_ns, 2000);
}

}  // namespace
