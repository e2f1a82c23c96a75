#include "profiler/analysis/step/module_spans.h"

#include "tests/support/synthetic_trace.h"
#include "tests/support/trace_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using namespace profiler;
using testing::ElementsAre;
using tests::TraceBuilder;

/// Modules "embeddings", "encoder.layer.0" and ".1", each layer with "attention" and "output".
struct Model {
    Model() {
        embeddings = b.module_path("embeddings");
        const auto encoder = b.module_path("encoder");
        const auto container = b.module_path("encoder.layer", -1, encoder);
        for (int64_t i = 0; i < 2; ++i) {
            const std::string path = "encoder.layer." + std::to_string(i);
            layers[i] = b.module_path(path, i, container);
            attention[i] = b.module_path(path + ".attention", i, layers[i]);
            self[i] = b.module_path(path + ".attention.self", i, attention[i]);
            output[i] = b.module_path(path + ".output", i, layers[i]);
        }
    }

    Id<Op> op(Id<ModulePath> module, int64_t start_ns, int64_t end_ns, Id<Op> forward = {}) {
        return b.trace().ops.append(
            {.module_path = module, .forward = forward, .start_ns = start_ns, .end_ns = end_ns});
    }

    /// "embeddings 0-10"
    std::vector<std::string> spans(ModuleLevel level) {
        std::vector<std::string> texts;
        const ModuleSpans spans(b.trace());
        for (const ModuleSpan& span : spans.track(level).spans) {
            const std::string_view path =
                span.module.valid()
                    ? b.trace().text(b.trace().module_paths.get<&ModulePath::path>(span.module))
                    : "none";
            texts.push_back(std::string(path) + " " + std::to_string(span.start_ns) + "-" +
                            std::to_string(span.end_ns));
        }
        return texts;
    }

    TraceBuilder b;
    Id<ModulePath> embeddings;
    std::array<Id<ModulePath>, 2> layers, attention, self, output;
};

TEST(ModuleSpans, LayersHoldTheModulesDirectlyInThem) {
    Model m;
    m.op(m.embeddings, 0, 10);
    m.op(m.self[0], 10, 20);
    m.op(m.attention[0], 25, 30);
    m.op(m.output[0], 30, 40);
    m.op(m.self[1], 40, 50);
    EXPECT_THAT(m.spans(ModuleLevel::kOuter),
                ElementsAre("embeddings 0-10", "encoder.layer.0 10-40", "encoder.layer.1 40-50"));
    EXPECT_THAT(m.spans(ModuleLevel::kInner),
                ElementsAre("encoder.layer.0.attention 10-30", "encoder.layer.0.output 30-40",
                            "encoder.layer.1.attention 40-50"));
}

TEST(ModuleSpans, BackwardCountsForTheModuleOfItsForwardOp) {
    Model m;
    const auto forward = m.op(m.self[0], 0, 10);
    m.op(m.output[0], 10, 20);
    m.op({}, 20, 30, forward);
    EXPECT_THAT(m.spans(ModuleLevel::kInner),
                ElementsAre("encoder.layer.0.attention 0-10", "encoder.layer.0.output 10-20",
                            "encoder.layer.0.attention 20-30"));
}

TEST(ModuleSpans, ACallAroundOtherModulesEndsWhereTheyBegin) {
    Model m;
    m.op(m.layers[1], 0, 100);
    m.op(m.self[0], 10, 20);
    m.op(m.self[0], 20, 30);
    EXPECT_THAT(m.spans(ModuleLevel::kOuter),
                ElementsAre("encoder.layer.1 0-10", "encoder.layer.0 10-30"));
}

TEST(ModuleSpans, TheOptimizerIsASpanWithoutAModule) {
    Model m;
    m.op({}, 0, 5);  // not in the optimizer: small change
    const auto phase = m.b.trace().phases.append({.kind = PhaseKind::kOptimizer});
    m.b.trace().ops.append({.phase = phase, .start_ns = 10, .end_ns = 20});
    EXPECT_THAT(m.spans(ModuleLevel::kOuter), ElementsAre("none 10-20"));
}

TEST(ModuleSpans, CountsBytesOfEachSpan) {
    Model m;
    m.op(m.self[0], -1, 10'000'000);
    const auto kept = m.b.allocate({.bytes = 100});
    m.b.free(m.b.allocate({.bytes = 7}));
    Trace& trace = m.b.trace();
    const int64_t end_ns = trace.allocations.get<&Allocation::alloc_ns>(kept) + 1'000'000;
    trace.ops.set<&Op::end_ns>(Id<Op>(std::size_t{0}), end_ns);
    const ModuleSpans spans(trace);
    const ModuleSpan& span = spans.track(ModuleLevel::kOuter).spans.at(0);
    EXPECT_EQ(span.allocated_bytes, 107);
    EXPECT_EQ(span.freed_bytes, 7);
    EXPECT_EQ(span.left_bytes, 100);
}

TEST(ModuleSpans, SurvivesDamagedParentsAndTracesWithoutModules) {
    EXPECT_TRUE(ModuleSpans(Trace()).empty());
    Model m;
    m.op(m.self[0], 0, 10);
    m.op(m.self[0], 5, 2);  // ends before it begins
    m.b.trace().module_paths.set<&ModulePath::parent>(m.layers[0], m.self[0]);
    m.b.trace().module_paths.set<&ModulePath::parent>(m.self[0], m.self[0]);
    EXPECT_EQ(ModuleSpans(m.b.trace()).track(ModuleLevel::kOuter).spans.size(), 1U);
}

TEST(ModuleSpans, SpansDoNotOverlapAndAllBytesAreCounted) {
    const Trace trace = tests::make_synthetic_trace({.num_allocations = 20'000});
    const ModuleSpans spans(trace);
    for (const ModuleLevel level : {ModuleLevel::kOuter, ModuleLevel::kInner}) {
        const ModuleTrack& track = spans.track(level);
        ASSERT_GT(track.spans.size(), 100U);
        for (std::size_t i = 1; i < track.spans.size(); ++i) {
            ASSERT_LE(track.spans[i - 1].end_ns, track.spans[i].start_ns);
        }
        // As SpanFinder, without its memory of the span before.
        std::vector<int64_t> allocated(track.spans.size()), freed(allocated);
        const auto add = [&](std::vector<int64_t>& to, int64_t time_ns, int64_t bytes) {
            const std::size_t at = track.first_ending_after(time_ns);
            if (at < to.size() && track.spans[at].start_ns <= time_ns) to[at] += bytes;
        };
        for (std::size_t i = 0; i < trace.allocations.size(); ++i) {
            const Allocation row = trace.allocations[Id<Allocation>(i)];
            add(allocated, row.alloc_ns, row.requested_bytes);
            if (row.free_requested_event >= 0)
                add(freed, row.free_requested_ns, row.requested_bytes);
        }
        for (std::size_t i = 0; i < track.spans.size(); ++i) {
            ASSERT_EQ(track.spans[i].allocated_bytes, allocated[i]) << i;
            ASSERT_EQ(track.spans[i].freed_bytes, freed[i]) << i;
        }
    }
}

}  // namespace
