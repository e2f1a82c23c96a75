#include "profiler/planner/step/published_tempo.h"

#include "tests/support/trace_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

using namespace profiler;
using testing::ElementsAre;

/// Kernels and bytes of an op of `words` elements of 2 bytes.
std::vector<std::pair<KernelKind, int64_t>> kernels_of(std::string_view name,
                                                       bool has_mask = false) {
    std::vector<OpWork> ops;
    append_published(name, {.work = {.kernel = KernelKind::kElementWise, .moved_bytes = 700}},
                     {.words = 100, .word_bytes = 2, .has_mask = has_mask}, ops);
    std::vector<std::pair<KernelKind, int64_t>> kernels;
    for (const OpWork& op : ops) kernels.emplace_back(op.work.kernel, op.work.moved_bytes);
    return kernels;
}

TEST(PublishedTempo, LayerNormBackwardGoesOverMemoryFourTimes) {
    const auto kernels = kernels_of("tempo::layer_norm_backward");
    int64_t bytes = 0;
    for (const auto& [kernel, moved] : kernels) bytes += moved;
    EXPECT_EQ(kernels.size(), 4U);
    EXPECT_EQ(bytes, 100 * (5 * 2 + 16));  // n(5e+16)
}

TEST(PublishedTempo, AttentionIsNotFused) {
    using enum KernelKind;
    EXPECT_THAT(kernels_of("tempo::softmax_dropout_forward"),
                ElementsAre(std::pair(kElementWise, 400), std::pair(kSoftmax, 400),
                            std::pair(kElementWise, 500)));
    EXPECT_EQ(kernels_of("tempo::softmax_dropout_forward", true).size(), 4U);
    EXPECT_THAT(kernels_of("tempo::softmax_dropout_backward_"),
                ElementsAre(std::pair(kElementWise, 500), std::pair(kSoftmaxBackward, 600),
                            std::pair(kElementWise, 400)));
}

TEST(PublishedTempo, LeavesTheRestAsItIs) {
    EXPECT_THAT(kernels_of("tempo::gelu_backward"),
                ElementsAre(std::pair(KernelKind::kPublishedGeluBackward, 700)));
    EXPECT_THAT(kernels_of("aten::gelu"), ElementsAre(std::pair(KernelKind::kElementWise, 700)));
}

TEST(PublishedTempo, OpsOfATraceStandForSeveralKernels) {
    tests::TraceBuilder b;
    b.begin_step(PhaseKind::kBackward);
    const Id<Op> op = b.op("tempo::layer_norm_backward");
    b.trace().ops.set<&Op::op_class>(op, OpClass::kNormalization);
    b.trace().ops.set<&Op::read_words>(op, 200);
    b.trace().ops.set<&Op::written_words>(op, 100);
    const Trace trace = b.finish();
    OpWorkDefaults defaults{.type = MatmulType::kFp32, .word_bytes = 4};
    EXPECT_EQ(ops_of_step(trace, Id<Step>(std::size_t{0}), defaults).ops.size(), 1U);
    defaults.implementation = models::Implementation::kPublished;
    EXPECT_EQ(ops_of_step(trace, Id<Step>(std::size_t{0}), defaults).ops.size(), 4U);
}

}  // namespace
