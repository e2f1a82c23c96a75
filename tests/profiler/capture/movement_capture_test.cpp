// Arithmetic and modules of the ops of real training steps, in every recipe that runs here.

#include "profiler/analysis/ops/movement.h"
#include "profiler/capture/cpu_capture.h"
#include "profiler/trace/flop_counts.h"
#include "tests/profiler/capture/small_workload.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace profiler {
namespace {

MovementReport movement_in(const std::string& model, const std::string& recipe) {
    Trace trace;
    capture_on_cpu(tests::small_workload(model, recipe),
                   {.warmup_steps = 0, .steps = 1, .num_threads = 1}, {}, trace);
    return movement_of(trace, MovementScope::kLayers);
}

/// Flop of each element of the MLP's width, of all ops of this name.
double flop_per_element(const MovementReport& report, std::string_view name, PhaseKind phase) {
    const models::Workload w = tests::small_workload("bert-base", "original");
    const double elements = static_cast<double>(w.batch_size * w.seq_len * w.model.num_layers *
                                                w.model.intermediate_size);
    double flop = 0;
    for (const MovementRow& row : report.rows) {
        if (row.name == name && row.phase == phase &&
            row.module.find("intermediate") != std::string::npos) {
            flop += static_cast<double>(row.work.flop);
        }
    }
    return flop / elements;
}

TEST(MovementOfSteps, GeluCountsTheSameInEveryRecipe) {
    struct Case {
        std::string recipe, forward, backward;
        int64_t other_forward = 0, other_backward = 0;  // what the op does beside GELU
    };
    const std::vector<Case> cases = {
        {"original", "aten::gelu", "aten::gelu_backward"},
        {"tempo", "tempo::gelu_forward", "tempo::gelu_backward"},
        {"tempo-fused", "tempo::bias_gelu_forward", "tempo::gelu_backward", flop::kBias, 0},
        // Backward adds the bias again, and sums the columns for its gradient.
        {"fusion=deepspeed", "tempo::bias_dropout_forward", "tempo::bias_dropout_backward",
         flop::kBias, 2 * flop::kBias},
    };
    for (const Case& one : cases) {
        const MovementReport report = movement_in("bert-base", one.recipe);
        EXPECT_EQ(flop_per_element(report, one.forward, PhaseKind::kForward),
                  flop::kGelu + one.other_forward)
            << one.recipe;
        EXPECT_EQ(flop_per_element(report, one.backward, PhaseKind::kBackward),
                  flop::kGeluBackward + one.other_backward)
            << one.recipe;
    }
}

/// "forward aten::add_": ops that stand in no module of their layer.
std::vector<std::string> ops_without_module(const MovementReport& report) {
    std::vector<std::string> ops;
    for (const MovementRow& row : report.rows) {
        if (row.module.empty()) ops.push_back(std::string(name_of(*row.phase)) + " " + row.name);
    }
    return ops;
}

TEST(MovementOfSteps, EveryOpOfALayerHasAModule) {
    for (const char* recipe : {"original", "tempo", "tempo-fused", "fusion=deepspeed",
                               "deepspeed-fused", "substation", "checkpoint"}) {
        const MovementReport report = movement_in("bert-base", recipe);
        EXPECT_EQ(ops_without_module(report), std::vector<std::string>()) << recipe;
        EXPECT_FALSE(report.rows.empty());
    }
}

TEST(MovementOfSteps, SubstationsBackwardRunsInTheModulesOfItsForward) {
    std::map<PhaseKind, std::set<std::string>> modules;
    for (const MovementRow& row : movement_in("substation-encoder", "substation").rows) {
        modules[*row.phase].insert(row.module);
    }
    const std::set<std::string> all = {"attention.self", "attention.output", "intermediate",
                                       "output"};
    EXPECT_EQ(modules[PhaseKind::kForward], all);
    EXPECT_EQ(modules[PhaseKind::kBackward], all);
}

}  // namespace
}  // namespace profiler
