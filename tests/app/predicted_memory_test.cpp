// What a step asks of a GPU, on virtual GPUs.
//
// Three things hold on every GPU. Backward keeps the tensors that it keeps on the CPU, where both
// save the same ones. Every recipe runs. Saved bytes equal the closed forms.

#include "models/config/validity.h"
#include "profiler/analysis/step/closed_form.h"
#include "profiler/analysis/step/ledger.h"
#include "profiler/capture/cpu_capture.h"
#include "tests/app/predicted_steps.h"
#include "tests/profiler/capture/small_workload.h"

#include <fmt/format.h>

#include <gmock/gmock.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace profiler {
namespace {

using models::Head;
using models::Padding;
using models::Precision;
using models::Workload;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using tests::small_workload;

std::vector<std::string> ledger_rows(const Trace& trace) {
    std::vector<std::string> rows;
    for (const LedgerRow& row : build_ledger(trace).rows) {
        rows.push_back(fmt::format("{} {} {} {} {}", row.module_path, row.tensor, row.shape,
                                   name_of(row.dtype), row.size_bytes));
    }
    return rows;
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

class PredictedMemory : public ::tests::PredictedSteps {};

/// Recipes that save the same tensors on the CPU.
std::vector<Workload> as_on_the_cpu() {
    std::vector<Workload> workloads;
    for (const models::RecipePreset& preset : models::recipe_presets()) {
        // Fused attention saves other tensors on CUDA, and has no dropout on the CPU.
        if (preset.recipe.attention == models::Attention::kFlash ||
            !models::runs_on_cpu(preset.recipe))
            continue;
        const std::string recipe(preset.name);
        for (const auto& [model, head] :
             {std::pair("bert-base", Head::kLayers), std::pair("bert-base", Head::kMlm),
              std::pair("gpt2", Head::kLm), std::pair("substation-encoder", Head::kLayers)}) {
            const Workload w = small_workload(model, recipe, head);
            if (models::validate(w)) workloads.push_back(w);
        }
    }
    workloads.push_back(small_workload("bert-base", "tempo", Head::kSquad));
    workloads.push_back(small_workload("bert-base", "fusion=deepspeed", Head::kMlm));
    workloads.push_back(small_workload("bert-base", "tempo", Head::kMlm));
    workloads.back().gradient_accumulation_steps = 3;
    return workloads;
}

TEST_F(PredictedMemory, BackwardKeepsWhatItKeepsOnTheCpu) {
    for (const Workload& workload : as_on_the_cpu()) {
        SCOPED_TRACE(fmt::format("{} {} {}", workload.model.name, workload.recipe_name,
                                 name_of(workload.head)));
        Trace on_cpu;
        capture_on_cpu(workload, {.warmup_steps = 1, .steps = 1, .num_threads = 1}, {}, on_cpu);
        EXPECT_EQ(ledger_rows(predict(workload)), ledger_rows(on_cpu));
    }
}

TEST_F(PredictedMemory, SaysWhatItIs) {
    const Trace trace = predict(small_workload("bert-base", "tempo"), "h100-sxm");
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
        EXPECT_GT(a.requested_bytes, 0);
    }
}

TEST_F(PredictedMemory, KnowsTheGradientsOfTheWarmUpToo) {
    const Trace trace = predict(small_workload("bert-base", "tempo", Head::kMlm));
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
TEST_F(PredictedMemory, OfTheReleaseHasItsScratch) {
    const Workload ours = small_workload("bert-base", "tempo", Head::kMlm);
    Workload release = *models::with_recipe(ours, "tempo-published");
    const Trace trace = predict(release);
    EXPECT_EQ(ledger_rows(trace), ledger_rows(predict(ours)));
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
    EXPECT_EQ(bytes_of(predict(ours), "tempo::softmax_dropout_backward_"), 0);
}

TEST_F(PredictedMemory, CublasWorkspacesArePerThreadAndOfTheCardsSize) {
    // cuBLASLt runs the products with a bias, all of them in forward.
    constexpr int64_t kLt = 1 << 20, kCublas = 8320 << 10, kHopper = 32 << 20;
    const Workload workload = small_workload("bert-base", "original");
    EXPECT_THAT(workspace_bytes(predict(workload)), ElementsAre(kCublas, kLt, kCublas));
    EXPECT_THAT(workspace_bytes(predict(workload, "h100-sxm")), ElementsAre(kHopper, kLt, kHopper));
    EXPECT_THAT(workspace_bytes(predict(workload, "b200")), ElementsAre(kCublas, kLt, kCublas));
    // A checkpoint runs forward again on the engine's thread, whose handle then takes one too.
    EXPECT_THAT(workspace_bytes(predict(small_workload("bert-base", "checkpoint"))),
                ElementsAre(kCublas, kLt, kCublas, kLt));
}

TEST_F(PredictedMemory, AMaskThatIsAddedInPlaceCostsBackwardNothing) {
    // Through a view, autograd's CopySlices would copy the gradient of all scores twice.
    for (const auto& [model, head] :
         {std::pair("bert-base", Head::kSquad), std::pair("bert-base", Head::kMlm),
          std::pair("gpt2", Head::kLm)}) {
        Workload workload = small_workload(model, "original", head);
        workload.padding = models::Padding::kRandom;
        const Trace trace = predict(workload);
        for (std::size_t i = 0; i < trace.ops.size(); ++i) {
            EXPECT_THAT(trace.text(trace.ops.get<&Op::name>(Id<Op>(i))),
                        Not(HasSubstr("CopySlices")))
                << model;
        }
    }
}

TEST_F(PredictedMemory, LossScalingTakesTheStepThatDoesNotOverflow) {
    const Trace trace =
        predict(small_workload("bert-base", "original", Head::kMlm, Precision::kFp16));
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

TEST_F(PredictedMemory, CountsTheOptimizersDataMovement) {
    // Words read and written per parameter: mul_ 1+1, lerp_ 2+1, mul_ 1+1, addcmul_ 3+1, sqrt 1+1,
    // div_ 1+1, add_ 1+1, addcdiv_ 3+1.
    const Trace trace = predict(small_workload("bert-base", "original"));
    int64_t num_parameters = 0;
    for (std::size_t i = 0; i < trace.storages.size(); ++i) {
        const Storage storage = trace.storages[Id<Storage>(i)];
        if (storage.category == Category::kParameter) num_parameters += storage.size_bytes / 4;
    }
    int64_t read = 0, written = 0;
    for (std::size_t i = 0; i < trace.ops.size(); ++i) {
        const Op op = trace.ops[Id<Op>(i)];
        if (!trace.text(op.name).starts_with("aten::_foreach")) continue;
        read += op.read_words;
        written += op.written_words;
    }
    EXPECT_EQ(read, 13 * num_parameters);
    EXPECT_EQ(written, 8 * num_parameters);
}

/// Every recipe with a precision that it allows: no call that the virtual GPU lacks.
TEST_F(PredictedMemory, EveryPresetRunsWithEveryHeadAndPrecision) {
    const std::pair<const char*, Head> models[] = {
        {"bert-base", Head::kMlm}, {"roberta-base", Head::kSquad}, {"gpt2", Head::kLm}};
    int64_t runs = 0;
    for (const models::RecipePreset& preset : models::recipe_presets()) {
        for (const auto& [model, head] : models) {
            for (std::size_t p = 0; p < models::kPrecisionNames.size(); ++p) {
                Workload w = small_workload(model, std::string(preset.name), head,
                                            static_cast<Precision>(p));
                w.model.num_layers = 1;
                if (!models::validate_for_prediction(w, models::kAmpere)) continue;
                SCOPED_TRACE(fmt::format("{} {} {}", model, preset.name, name_of(w.precision)));
                EXPECT_GT(predict(w).allocations.size(), 0U);
                ++runs;
            }
        }
    }
    EXPECT_GT(runs, 300);
}

TEST_F(PredictedMemory, EveryOptimizerAttentionMaskAndPaddingRuns) {
    for (const char* recipe :
         {"optimizer=sgd", "optimizer=adamw_loop", "optimizer=adamw_fused", "optimizer=lamb",
          "attention=efficient", "attention=cudnn", "attention=efficient,checkpoint=sqrt",
          "flash,optimizer=adamw_fused", "original,checkpoint=sqrt", "tempo,checkpoint=per_layer",
          "tempo,masks=philox", "gelu=python"}) {
        for (const Precision precision : {Precision::kBf16, Precision::kAmpFp16}) {
            SCOPED_TRACE(recipe);
            predict(small_workload("bert-base", recipe, Head::kMlm, precision), "h100-sxm");
            predict(small_workload("gpt2", recipe, Head::kLm, precision), "h100-sxm");
        }
    }
    for (const char* recipe : {"original", "tempo", "attention=efficient", "attention=cudnn"}) {
        for (const int64_t seq_len : {48, 37}) {  // the mask of fused attention is padded to 16
            SCOPED_TRACE(fmt::format("{}, S = {}", recipe, seq_len));
            Workload w = small_workload("bert-base", recipe, Head::kMlm, Precision::kBf16);
            w.padding = Padding::kRandom;
            w.seq_len = seq_len;
            predict(w, "h100-sxm");
        }
    }
    predict(small_workload("substation-encoder", "original"));
}

// ---- saved bytes where CUDA saves other tensors than the CPU -----------------------------------

struct Sizes {
    explicit Sizes(const Workload& w)
        : n(w.batch_size * w.seq_len * w.model.hidden_size),
          t(w.batch_size * w.model.num_heads * w.seq_len * w.seq_len),
          r(w.batch_size * w.seq_len),
          head_rows(w.batch_size * w.model.num_heads * w.seq_len),
          h(w.model.hidden_size),
          h2(h * h) {}
    int64_t n, t, r, head_rows, h, h2;
};

int64_t saved_bytes(const Workload& workload, const Trace& trace) {
    const auto check = check_against_closed_form(trace);
    EXPECT_TRUE(check && check->equal()) << (check ? to_sentence(*check) : "no closed form");
    const std::string module_path = std::string(workload.model.traits().layers) + "1";
    return build_ledger(trace, {.module_path = module_path}).total_bytes;
}

TEST_F(PredictedMemory, LayerNormsStatisticsAreFp32) {
    for (const char* model : {"bert-base", "gpt2"}) {
        for (const Precision precision :
             {Precision::kBf16, Precision::kFp16, Precision::kPureBf16, Precision::kFp32}) {
            const Workload w = small_workload(model, "original", Head::kLayers, precision);
            const Sizes s(w);
            const int64_t e = models::weight_bytes(precision);
            EXPECT_EQ(saved_bytes(w, predict(w)), s.n * (16 * e + 2) + s.t * (2 * e + 1) + 16 * s.r)
                << model << " " << name_of(precision);
        }
    }
}

TEST_F(PredictedMemory, OneProductForQueryKeyAndValueKeepsWhatThreeKeep) {
    for (const char* model : {"bert-base", "gpt2"}) {
        for (const char* qkv : {"qkv=separate", "qkv=qk", "qkv=kv", "qkv=fused"}) {
            SCOPED_TRACE(fmt::format("{} {}", model, qkv));
            const Workload w = small_workload(model, qkv, Head::kLayers, Precision::kFp32);
            const Sizes s(w);
            EXPECT_EQ(saved_bytes(w, predict(w)), 66 * s.n + 9 * s.t + 16 * s.r);
        }
    }
}

/// Substation's 34 n + 4 T elements and DeepSpeed's flags, in each type that the kernels take.
TEST_F(PredictedMemory, FusedLayersKeepTheirClosedForms) {
    const std::pair<const char*, const char*> runs[] = {
        {"substation-encoder", "original"}, {"substation-encoder", "substation"},
        {"bert-base", "substation"},        {"bert-base", "deepspeed-fused"},
        {"bert-base", "fusion=deepspeed"},  {"bert-base", "fusion=deepspeed,gelu=recompute"}};
    for (const auto& [model, recipe] : runs) {
        for (const Precision precision : {Precision::kBf16, Precision::kFp16, Precision::kFp32}) {
            SCOPED_TRACE(fmt::format("{} {} {}", model, recipe, name_of(precision)));
            const Workload w = small_workload(model, recipe, Head::kLayers, precision);
            const Sizes s(w);
            const int64_t bytes = saved_bytes(w, predict(w)), e = models::weight_bytes(precision);
            if (std::string_view(model) == "bert-base") continue;
            EXPECT_EQ(bytes, std::string_view(recipe) == "substation"
                                 ? e * (34 * s.n + 4 * s.t) + 8 * s.r
                                 : s.n * (16 * e + 6) + s.t * (2 * e + 1) + 16 * s.r);
        }
    }
}

TEST_F(PredictedMemory, AutocastKeepsCudasCasts) {
    for (const Precision precision : {Precision::kAmpBf16, Precision::kAmpFp16}) {
        const Workload w = small_workload("bert-base", "original", Head::kLayers, precision);
        const Sizes s(w);
        EXPECT_EQ(saved_bytes(w, predict(w)), 42 * s.n + 7 * s.t + 16 * s.r + 24 * s.h2)
            << name_of(precision);
        const auto saved = [&](const char* recipe, const char* model = "bert-base") {
            SCOPED_TRACE(fmt::format("{} {} {}", name_of(precision), model, recipe));
            const Workload t = small_workload(model, recipe, Head::kLayers, precision);
            return saved_bytes(t, predict(t, "h100-sxm"));
        };
        const int64_t tempo = 26 * s.n + 3 * s.t + 8 * s.r + 24 * s.h2;
        EXPECT_EQ(saved("tempo"), tempo);
        EXPECT_EQ(saved("tempo-fused"), tempo);
        const int64_t without_scores = 42 * s.n + 16 * s.r + 24 * s.h2, lse = 4 * s.head_rows;
        EXPECT_EQ(saved("flash"), without_scores + lse + 24);
        EXPECT_EQ(saved("flash", "gpt2"), without_scores - 4 * s.n + lse + 24);
        EXPECT_EQ(saved("attention=cudnn"), without_scores + lse + 16);
        const int64_t best = 20 * s.n + 4 * s.n / 8 + 8 * s.r + 24 * s.h2 + lse + 24;
        EXPECT_EQ(saved("best"), best);
        EXPECT_EQ(saved("best", "gpt2"), best);
        EXPECT_EQ(saved("fusion=deepspeed"), without_scores - 4 * s.n + 5 * s.t + 8 * s.h);
        EXPECT_EQ(saved("deepspeed-fused"), tempo - 4 * s.n + 8 * s.h);
        EXPECT_EQ(saved("substation"), 60 * s.n + 8 * s.t + 8 * s.r + 24 * s.h2 + 4 * s.h);
        EXPECT_EQ(saved("checkpoint"), 4 * s.n);
        EXPECT_EQ(saved("tempo,checkpoint=per_layer"), 2 * s.n);
    }
}

/// With attention dropout and without: the kernels of flash attention and cuDNN keep where their
/// random numbers begin in any case.
TEST_F(PredictedMemory, FusedAttentionKeepsItsLogarithmsAndGeneratorState) {
    for (const double p : {0.1, 0.0}) {
        for (const char* model : {"bert-base", "gpt2"}) {
            const auto saved = [&](const char* recipe) {
                SCOPED_TRACE(fmt::format("{} {} {}", model, recipe, p));
                Workload w = small_workload(model, recipe, Head::kLayers, Precision::kBf16);
                w.seq_len = 40;  // the efficient kernel rounds it to 64
                w.model.attention_dropout_p = p;
                return saved_bytes(w, predict(w, "h100-sxm"));
            };
            Workload w = small_workload(model, "flash");
            w.seq_len = 40;
            const Sizes s(w);
            const int64_t original = s.n * (16 * 2 + 2) + 16 * s.r, lse = 4 * s.head_rows;
            const int64_t tempo = s.n * 10 * 2 + 8 * s.r;
            EXPECT_EQ(saved("flash"), original + lse + 24);
            EXPECT_EQ(saved("flash-tempo"), tempo + 6 * s.n + lse + 24);
            EXPECT_EQ(saved("best"), tempo + 4 * s.n / 8 + lse + 24);
            EXPECT_EQ(saved("attention=cudnn"), original + lse + 16);
            EXPECT_EQ(saved("attention=efficient"), original + lse / 40 * 64);
        }
    }
}

TEST_F(PredictedMemory, FusedAttentionKeepsAMaskThatItPads) {
    for (const int64_t seq_len : {48, 37}) {
        for (const char* recipe : {"attention=efficient", "attention=cudnn"}) {
            for (const Precision precision : {Precision::kBf16, Precision::kAmpBf16}) {
                SCOPED_TRACE(fmt::format("{} {} {}", recipe, seq_len, name_of(precision)));
                Workload w = small_workload("bert-base", recipe, Head::kMlm, precision);
                w.padding = Padding::kRandom;
                w.seq_len = seq_len;
                saved_bytes(w, predict(w, "h100-sxm"));
            }
        }
    }
}

}  // namespace
}  // namespace profiler
