// The Meta source: what a step would ask of a GPU, without one.
//
// What must hold whatever the GPU: what is saved for backward is what the CPU keeps, where CPU and
// CUDA save the same; the same step again allocates the same; nothing is left over; a batch changes
// sizes, not the sequence.

#include "profiler/capture/meta/capture.h"

#include "profiler/analysis/ledger.h"
#include "profiler/analysis/peak.h"
#include "profiler/capture/cpu_capture.h"
#include "profiler/capture/meta/allocator.h"
#include "tests/profiler/capture/meta/workloads.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/native_dropout.h>
#include <fmt/format.h>

#include <gmock/gmock.h>

#include <set>

namespace profiler {
namespace {

using models::Head;
using models::Precision;
using models::Workload;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using tests::meta_trace;
using tests::small_workload;

std::vector<std::string> ledger_rows(const Trace& trace) {
    std::vector<std::string> rows;
    for (const LedgerRow& row : build_ledger(trace).rows) {
        rows.push_back(fmt::format("{} {} {} {} {}", row.module_path, row.tensor, row.shape,
                                   name_of(row.dtype), row.size_bytes));
    }
    return rows;
}

/// Requests of step `index`, in order: bytes and the op that asked.
std::vector<std::pair<int64_t, std::string>> requests(const Trace& trace, std::size_t index) {
    const Step step = trace.steps[Id<Step>(index)];
    std::vector<std::pair<int64_t, std::string>> result;
    for (std::size_t i = 0; i < trace.allocations.size(); ++i) {
        const Allocation a = trace.allocations[Id<Allocation>(i)];
        if (a.alloc_event < step.first_event || a.alloc_event >= step.last_event) continue;
        const std::string op(a.op.valid() ? trace.text(trace.ops.get<&Op::name>(a.op)) : "");
        result.emplace_back(a.requested_bytes, op);
    }
    return result;
}

std::vector<int64_t> workspace_bytes(const Trace& trace) {
    std::vector<int64_t> result;
    for (std::size_t i = 0; i < trace.storages.size(); ++i) {
        const Storage storage = trace.storages[Id<Storage>(i)];
        if (storage.category != Category::kWorkspace) continue;
        EXPECT_EQ(trace.allocations.get<&Allocation::free_requested_event>(storage.allocation), -1);
        result.push_back(storage.size_bytes);
    }
    return result;
}

struct Case {
    std::string model, recipe;
    Head head;
};

class MetaCapture : public testing::TestWithParam<Case> {};

TEST_P(MetaCapture, KeepsForBackwardWhatTheCpuKeeps) {
    const auto& [model, recipe, head] = GetParam();
    Workload workload = small_workload(model, recipe, head);
    Trace on_cpu;
    capture_on_cpu(workload, {.warmup_steps = 1, .steps = 1, .num_threads = 1}, {}, on_cpu);
    EXPECT_EQ(ledger_rows(meta_trace(workload)), ledger_rows(on_cpu));
}

std::vector<Case> all_cases() {
    std::vector<Case> cases;
    for (const models::RecipePreset& preset : models::recipe_presets()) {
        // Fused attention saves other tensors on CUDA, and has no dropout on the CPU.
        if (preset.recipe.attention == models::Attention::kFlash ||
            !models::runs_on_cpu(preset.recipe))
            continue;
        const std::string recipe(preset.name);
        cases.push_back({"bert-base", recipe, Head::kLayers});
        cases.push_back({"bert-base", recipe, Head::kMlm});
        cases.push_back({"gpt2", recipe, Head::kLm});
    }
    cases.push_back({"bert-base", "tempo", Head::kSquad});
    cases.push_back({"substation-encoder", "original", Head::kLayers});
    return cases;
}

INSTANTIATE_TEST_SUITE_P(Recipes, MetaCapture, testing::ValuesIn(all_cases()),
                         [](const auto& test) {
                             std::string name =
                                 fmt::format("{}_{}_{}", test.param.model, test.param.recipe,
                                             name_of(test.param.head));
                             for (char& c : name) {
                                 if (c == '-') c = '_';
                             }
                             return name;
                         });

TEST(MetaTrace, SaysWhatItIs) {
    const Trace trace = meta_trace(small_workload("bert-base", "tempo"), {.capability = {9, 0}});
    EXPECT_EQ(trace.run().source, Source::kPredicted);
    EXPECT_EQ(trace.run().time_basis, TimeBasis::kEventOrder);
    EXPECT_EQ(trace.run().state, RunState::kComplete);
    EXPECT_EQ(trace.text(trace.run().device_name), "compute capability 9.0");
    EXPECT_EQ(trace.text(trace.devices.get<&Device::name>(Id<Device>(0))), "cuda:0");
    ASSERT_EQ(trace.steps.size(), 1U);
    ASSERT_EQ(trace.phases.size(), 8U);  // those of the warm-up have no step
    for (std::size_t i = 0; i < trace.phases.size(); ++i) {
        EXPECT_EQ(trace.phases.get<&Phase::step>(Id<Phase>(i)).valid(), i >= 4);
    }
    for (std::size_t i = 0; i < trace.allocations.size(); ++i) {
        const Allocation a = trace.allocations[Id<Allocation>(i)];
        EXPECT_EQ(a.alloc_ns, a.alloc_event);
        EXPECT_EQ(a.free_requested_ns, a.free_requested_event);
        EXPECT_EQ(a.address, 0);
        EXPECT_GT(a.requested_bytes, 0);
    }
}

TEST(MetaTrace, KnowsTheGradientsOfTheWarmUpToo) {
    const Trace trace = meta_trace(small_workload("bert-base", "tempo", Head::kMlm));
    const int64_t step = trace.steps.get<&Step::first_event>(Id<Step>(std::size_t{0}));
    std::vector<int64_t> before, in_step;
    for (std::size_t i = 0; i < trace.allocations.size(); ++i) {
        const Allocation a = trace.allocations[Id<Allocation>(i)];
        if (trace.storages.get<&Storage::category>(a.storage) != Category::kGradient) continue;
        (a.alloc_event < step ? before : in_step).push_back(a.requested_bytes);
    }
    EXPECT_FALSE(in_step.empty());
    EXPECT_EQ(before, in_step);
}

/// What Tempo's release keeps is what ours keeps; its scratch comes on top.
TEST(MetaTrace, OfTheReleaseHasItsScratch) {
    const Workload ours = small_workload("bert-base", "tempo", Head::kMlm);
    Workload release = *models::with_recipe(ours, "tempo-published");
    const Trace trace = meta_trace(release);
    EXPECT_EQ(ledger_rows(trace), ledger_rows(meta_trace(ours)));
    const auto bytes_of = [](const Trace& of, std::string_view name) {
        int64_t bytes = 0;
        for (std::size_t i = 0; i < of.allocations.size(); ++i) {
            Id<Op> op = of.allocations.get<&Allocation::op>(Id<Allocation>(i));
            while (op.valid() && of.text(of.ops.get<&Op::name>(op)) != name) {
                op = of.ops.get<&Op::parent>(op);
            }
            if (op.valid())
                bytes += of.allocations.get<&Allocation::requested_bytes>(Id<Allocation>(i));
        }
        return bytes;
    };
    const int64_t n = release.batch_size * release.seq_len * release.model.hidden_size;
    const int64_t rows = release.batch_size * release.seq_len;
    const int64_t t =
        release.batch_size * release.model.num_heads * release.seq_len * release.seq_len;
    const int64_t layers = release.model.num_layers;
    // Of each of a layer's two norms, and of those of the embeddings and of the head: dx, x̂ in
    // fp32, gradients of gamma and beta, two sums a row.
    const int64_t norm = 2 * 4 * n + 2 * 4 * release.model.hidden_size + 2 * 4 * rows;
    EXPECT_EQ(bytes_of(trace, "tempo::layer_norm_backward"), (2 * layers + 2) * norm);
    EXPECT_EQ(bytes_of(trace, "tempo::softmax_dropout_backward_"), layers * 4 * 4 * t);
    EXPECT_EQ(bytes_of(meta_trace(ours), "tempo::softmax_dropout_backward_"), 0);
}

TEST(MetaTrace, LeavesNothingBehindAndRestoresTorch) {
    meta_trace(small_workload("bert-base", "tempo", Head::kMlm, Precision::kAmpBf16));
    EXPECT_EQ(MetaAllocator::instance().allocated_bytes(), 0);
    const at::Tensor x = at::empty({4}, at::device(at::kMeta).dtype(at::kFloat));
    EXPECT_THROW(at::native_dropout(x, 0.1, true), c10::Error);  // torch has no such kernel
}

TEST(MetaTrace, EveryStepAllocatesTheSame) {
    for (const char* recipe : {"original", "tempo-packed", "checkpoint"}) {
        const Trace trace =
            meta_trace(small_workload("bert-base", recipe, Head::kMlm), {.steps = 3});
        ASSERT_EQ(trace.steps.size(), 3U);
        EXPECT_EQ(requests(trace, 1), requests(trace, 0)) << recipe;
        EXPECT_EQ(requests(trace, 2), requests(trace, 0)) << recipe;
        const int64_t first = trace.steps.get<&Step::first_event>(Id<Step>(2));
        EXPECT_EQ(live_at(trace, first - 1).size(),
                  live_at(trace, trace.steps.get<&Step::last_event>(Id<Step>(2)) - 1).size());
    }
}

TEST(MetaTrace, WarmUpsRequestsComeBeforeTheStepAndItsOptimizerStateStays) {
    const Workload workload = small_workload("bert-base", "original");
    const Trace warm = meta_trace(workload);
    const Trace cold = meta_trace(workload, {.warmup_steps = 0});
    EXPECT_GT(warm.steps.get<&Step::first_event>(Id<Step>(0)),
              cold.steps.get<&Step::first_event>(Id<Step>(0)));
    std::set<int64_t> born;
    for (std::size_t i = 0; i < warm.storages.size(); ++i) {
        const Storage storage = warm.storages[Id<Storage>(i)];
        if (storage.category != Category::kOptimizerState) continue;
        born.insert(warm.allocations.get<&Allocation::alloc_event>(storage.allocation));
    }
    ASSERT_FALSE(born.empty());
    EXPECT_LT(*born.rbegin(), warm.steps.get<&Step::first_event>(Id<Step>(0)));
}

TEST(MetaTrace, AtAnotherBatchTheSequenceIsTheSameAndSizesAreAffine) {
    for (const Case& c :
         {Case{"bert-base", "original", Head::kMlm},
          Case{"bert-base", "tempo-packed", Head::kSquad}, Case{"gpt2", "original", Head::kLm}}) {
        std::vector<Trace> traces;
        for (const int64_t batch_size : {8, 9, 10}) {
            Workload workload = small_workload(c.model, c.recipe, c.head);
            workload.batch_size = batch_size;
            traces.push_back(meta_trace(workload));
        }
        ASSERT_EQ(traces[0].allocations.size(), traces[2].allocations.size());
        ASSERT_EQ(traces[0].ops.size(), traces[2].ops.size());
        int64_t num_growing = 0;
        for (std::size_t i = 0; i < traces[0].allocations.size(); ++i) {
            const Id<Allocation> id(i);
            std::vector<Allocation> a;
            for (const Trace& trace : traces) a.push_back(trace.allocations[id]);
            EXPECT_EQ(a[0].alloc_event, a[2].alloc_event);
            EXPECT_EQ(a[0].free_requested_event, a[2].free_requested_event);
            EXPECT_EQ(a[2].requested_bytes - a[1].requested_bytes,
                      a[1].requested_bytes - a[0].requested_bytes)
                << c.recipe << " allocation " << i;
            num_growing += a[1].requested_bytes > a[0].requested_bytes ? 1 : 0;
        }
        EXPECT_GT(num_growing, 100);
    }
}

TEST(MetaTrace, CublasWorkspacesArePerThreadAndOfTheCardsSize) {
    // cuBLASLt runs the products with a bias, all of them in forward.
    constexpr int64_t kLt = 1 << 20, kCublas = 8320 << 10, kHopper = 32 << 20;
    const Workload workload = small_workload("bert-base", "original");
    EXPECT_THAT(workspace_bytes(meta_trace(workload)), ElementsAre(kCublas, kLt, kCublas));
    EXPECT_THAT(workspace_bytes(meta_trace(workload, {.capability = {9, 0}})),
                ElementsAre(kHopper, kLt, kHopper));
    EXPECT_THAT(workspace_bytes(meta_trace(workload, {.capability = {10, 0}})),
                ElementsAre(kCublas, kLt, kCublas));
    // A checkpoint runs forward again on the engine's thread, whose handle then takes one too.
    EXPECT_THAT(workspace_bytes(meta_trace(small_workload("bert-base", "checkpoint"))),
                ElementsAre(kCublas, kLt, kCublas, kLt));
}

TEST(MetaTrace, GradientsThatMeetAreSummedInPlace) {
    // torch's engine adds Meta tensors out of place; CUDA's it does not.
    for (const char* recipe : {"original", "checkpoint"}) {
        const Trace trace = meta_trace(small_workload("bert-base", recipe));
        int64_t num_sums = 0;
        for (std::size_t i = 0; i < trace.ops.size(); ++i) {
            const Op op = trace.ops[Id<Op>(i)];
            const bool sums = op.phase.valid() && op.parent.valid() &&
                              trace.text(op.name) == "aten::add" &&
                              trace.text(trace.ops.get<&Op::name>(op.parent))
                                  .starts_with("autograd::engine::evaluate_function");
            num_sums += sums ? 1 : 0;
        }
        EXPECT_EQ(num_sums, 12) << recipe;  // 3 layers: q, k, v and the residual; the MLP's
        for (const auto& [bytes, op] : requests(trace, 0)) EXPECT_NE(op, "aten::add") << recipe;
    }
}

TEST(MetaTrace, AMaskThatIsAddedInPlaceCostsBackwardNothing) {
    // Through a view, autograd's CopySlices would copy the gradient of all scores twice.
    for (const auto& [model, head] :
         {std::pair("bert-base", Head::kSquad), std::pair("bert-base", Head::kMlm),
          std::pair("gpt2", Head::kLm)}) {
        Workload workload = small_workload(model, "original", head);
        workload.padding = models::Padding::kRandom;
        const Trace trace = meta_trace(workload);
        for (std::size_t i = 0; i < trace.ops.size(); ++i) {
            EXPECT_THAT(trace.text(trace.ops.get<&Op::name>(Id<Op>(i))),
                        Not(HasSubstr("CopySlices")))
                << model;
        }
    }
}

TEST(MetaTrace, SoftmaxBackwardAndAttentionHaveCudasTemporaries) {
    // dP P is a tensor of the size of the probabilities.
    const Trace trace = meta_trace(small_workload("bert-base", "original"));
    const int64_t scores = 4 * 2 * 4 * 48 * 48;
    int64_t num_temporaries = 0;
    for (const auto& [bytes, op] : requests(trace, 0)) {
        if (op == "aten::_softmax_backward_data") {
            EXPECT_EQ(bytes, scores);
            ++num_temporaries;
        }
    }
    EXPECT_EQ(num_temporaries, 2 * 3);

    // Flash backward in 16 bits: dQ in fp32, sequences rounded to 128 and heads of 16 to 32.
    const Trace flash =
        meta_trace(small_workload("bert-base", "flash", Head::kLayers, Precision::kBf16));
    std::vector<int64_t> backward;
    for (const auto& [bytes, op] : requests(flash, 0)) {
        if (op == "aten::_scaled_dot_product_flash_attention_backward") backward.push_back(bytes);
    }
    const int64_t heads = 2 * 2 * 48 * 64;
    const int64_t row_sums = 4 * 2 * 4 * 128, dquery_sums = 4 * 2 * 4 * 128 * 32;
    ASSERT_EQ(backward.size(), 15U);
    backward.resize(5);
    EXPECT_THAT(backward, ElementsAre(heads, heads, heads, row_sums, dquery_sums));
}

TEST(MetaTrace, LossScalingTakesTheStepThatDoesNotOverflow) {
    const Trace trace =
        meta_trace(small_workload("bert-base", "original", Head::kMlm, Precision::kFp16));
    std::set<std::string> optimizer_ops;
    for (std::size_t i = 0; i < trace.ops.size(); ++i) {
        const Op op = trace.ops[Id<Op>(i)];
        if (!op.phase.valid()) continue;
        if (trace.phases.get<&Phase::kind>(op.phase) == PhaseKind::kOptimizer) {
            optimizer_ops.emplace(trace.text(op.name));
        }
    }
    EXPECT_TRUE(optimizer_ops.contains("aten::_amp_foreach_non_finite_check_and_unscale_"));
    EXPECT_TRUE(optimizer_ops.contains("aten::_foreach_addcdiv_"));
    EXPECT_TRUE(optimizer_ops.contains("aten::_foreach_copy_"));  // masters to 16-bit weights
    EXPECT_FALSE(optimizer_ops.contains("aten::addcdiv_"));       // one kernel, not one per tensor
}

TEST(MetaTrace, CountsTheOptimizersDataMovement) {
    // Words read and written per parameter: mul_ 1+1, lerp_ 2+1, mul_ 1+1, addcmul_ 3+1, sqrt 1+1,
    // div_ 1+1, add_ 1+1, addcdiv_ 3+1.
    const Trace trace = meta_trace(small_workload("bert-base", "original"));
    int64_t num_parameters = 0;
    for (std::size_t i = 0; i < trace.storages.size(); ++i) {
        const Storage storage = trace.storages[Id<Storage>(i)];
        if (storage.category == Category::kParameter) num_parameters += storage.size_bytes / 4;
    }
    int64_t read = 0, written = 0;
    for (std::size_t i = 0; i < trace.ops.size(); ++i) {
        const Op op = trace.ops[Id<Op>(i)];
        if (!trace.text(op.name).starts_with("aten::_foreach")) continue;
        read += op.elements_read;
        written += op.elements_written;
    }
    EXPECT_EQ(read, 13 * num_parameters);
    EXPECT_EQ(written, 8 * num_parameters);
}

}  // namespace
}  // namespace profiler
