#include "profiler/analysis/step/attention_calls.h"

#include "tests/support/trace_builder.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace {

using namespace tests;

/// Two layers in two steps; the second layer's mask keeps flash attention out.
Trace two_layers() {
    TraceBuilder b;
    const auto layer0 = b.module_path("layers.0", 0);
    const auto layer1 = b.module_path("layers.1", 1);
    const auto attend = [&](Id<ModulePath> layer, std::string_view backend) {
        const auto call = b.op("aten::scaled_dot_product_attention", layer);
        const auto inner = b.op(backend, layer);
        b.trace().ops.set<&Op::parent>(inner, call);
        return call;
    };
    for (int step = 0; step < 2; ++step) {
        b.begin_step(PhaseKind::kForward);
        attend(layer0, "aten::_scaled_dot_product_flash_attention");
        const auto slow = attend(layer1, "aten::_scaled_dot_product_efficient_attention");
        b.trace().slow_attentions.append({.op = slow, .reasons = b.text("It has a mask.")});
        b.begin_phase(PhaseKind::kBackward);
        attend(layer0, "aten::_scaled_dot_product_flash_attention");
        b.end_step();
    }
    return b.finish();
}

TEST(AttentionSites, NameTheBackendAndWhyNoBetterOneRan) {
    const auto sites = attention_sites(two_layers());
    ASSERT_EQ(sites.size(), 2U);
    EXPECT_EQ(sites[0].backend, "efficient");
    EXPECT_EQ(sites[0].modules, "layers.*");
    EXPECT_EQ(sites[0].num_calls, 1) << "of the last step's forward";
    EXPECT_EQ(sites[0].reasons, "It has a mask.");
    EXPECT_EQ(sites[1].backend, "flash");
    EXPECT_EQ(sites[1].reasons, "");
}

TEST(AttentionSites, OfCallsInsideOfTheBackendHaveTheSameReason) {
    const Trace trace = two_layers();
    const Id<Op> slow(2);
    EXPECT_EQ(flash_refusal_of(trace, slow), "It has a mask.");
    EXPECT_EQ(flash_refusal_of(trace, Id<Op>(3)), "It has a mask.");
    EXPECT_EQ(flash_refusal_of(trace, Id<Op>(0)), "");
}

}  // namespace
