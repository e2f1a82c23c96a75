#include "profiler/analysis/step/closed_form.h"

#include "tests/support/trace_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include <array>

/// Golden values: bytes that torch 2.11 saved per middle layer on the CPU, counted by four
/// independent counters that agreed to the byte.
namespace {

using namespace tests;
using models::Padding;
using models::Precision;
using models::Workload;
using testing::ElementsAre;

struct Shape {
    int64_t batch_size, seq_len, hidden_size, num_heads;
};
constexpr std::array<Shape, 2> kShapes{{{2, 64, 128, 4}, {3, 37, 96, 3}}};

Workload make_workload(const std::string& recipe, const Shape& shape, Precision precision,
                       const std::string& model = "bert-base") {
    Workload w;
    w.model = models::find_model(model).value();
    w.model.num_layers = 3;
    w.model.hidden_size = shape.hidden_size;
    w.model.num_heads = shape.num_heads;
    w.model.intermediate_size = 4 * shape.hidden_size;
    w.recipe_name = recipe;
    w.recipe = models::parse_recipe(recipe).value();
    w.batch_size = shape.batch_size;
    w.seq_len = shape.seq_len;
    w.precision = precision;
    return w;
}

ClosedForm form_of(const Workload& workload, bool on_cpu = true) {
    auto form = closed_form_of_layer(workload, on_cpu);
    EXPECT_TRUE(form) << form.error().message;
    return form.value_or(ClosedForm{});
}

struct Golden {
    std::string recipe;
    std::string formula;
    std::array<int64_t, 4> bytes;  // S=64 fp32, bf16, S=37 fp32, bf16
    double hidden_dropout_p = 0.1;
    double attention_dropout_p = 0.1;
};

const std::vector<Golden> kGolden{
    {"original", "n(16e+2)+T(2e+1)+4Rs", {1378304, 721920, 815961, 424797}},
    {"tempo", "n(10e+6)+T(e+1)+8R", {918528, 525312, 552669, 314907}},
    {"tempo-packed", "10en+eT+8R+c8(T)+2c8(n)+c8(4n)", {803840, 410624, 485945, 248183}},
    {"deepspeed-normalize-invertible", "n(14e+2)+T(2e+1)+8R", {1246208, 656384, 729825, 382173}},
    {"deepspeed-attn-dropout-checkpoint", "n(16e+2)+T(e+1)+4Rs", {1247232, 656384, 766677, 400155}},
    {"deepspeed-gelu-checkpoint", "n(12e+2)+T(2e+1)+4Rs", {1116160, 590848, 645465, 339549}},
    {"deepspeed-all", "n(10e+2)+T(e+1)+8R", {852992, 459776, 510045, 272283}},
    {"flash", "n(16e+2)+4Rs+4BAS", {1085440, 560128, 706404, 364524}, 0.1, 0},
    {"flash-tempo", "n(10e+6)+8R+4BAS", {756736, 429056, 492396, 279276}, 0.1, 0},
    {"original", "16en+eT+4Rs", {1181696, 590848, 733044, 366522}, 0, 0},
    {"checkpoint", "en", {65536, 32768, 42624, 21312}},
};

class ClosedFormGolden : public testing::TestWithParam<std::string> {};  // the model

TEST_P(ClosedFormGolden, EqualsWhatTorchSaved) {
    for (const Golden& golden : kGolden) {
        for (std::size_t i = 0; i < golden.bytes.size(); ++i) {
            const auto precision = i % 2 == 0 ? Precision::kFp32 : Precision::kBf16;
            Workload w = make_workload(golden.recipe, kShapes[i / 2], precision, GetParam());
            w.model.hidden_dropout_p = golden.hidden_dropout_p;
            w.model.attention_dropout_p = golden.attention_dropout_p;
            const ClosedForm form = form_of(w);
            EXPECT_EQ(form.total_bytes, golden.bytes[i]) << golden.recipe << " column " << i;
            EXPECT_EQ(form.formula, golden.formula) << golden.recipe;
        }
    }
}

// Pre-LN and post-LN layers save the same bytes.
INSTANTIATE_TEST_SUITE_P(Models, ClosedFormGolden, testing::Values("bert-base", "gpt2"),
                         [](const auto& model) { return model.param == "gpt2" ? "Gpt2" : "Bert"; });

TEST(ClosedForm, EqualsTheThirdMeasuredShape) {
    constexpr Shape shape{2, 128, 256, 4};
    const auto bytes = [&](const char* recipe, Precision precision) {
        return form_of(make_workload(recipe, shape, precision)).total_bytes;
    };
    EXPECT_EQ(bytes("original", Precision::kFp32), 5509120);
    EXPECT_EQ(bytes("original", Precision::kBf16), 2885632);
    EXPECT_EQ(bytes("tempo", Precision::kFp32), 3672064);
    EXPECT_EQ(bytes("tempo", Precision::kBf16), 2099200);
    EXPECT_EQ(bytes("tempo-packed", Precision::kFp32), 3213312);
    EXPECT_EQ(bytes("tempo-packed", Precision::kBf16), 1640448);
}

/// Korthikanti et al. 2022, "Reducing Activation Recomputation": sbh(34 + 5as/h), in 16 bits and
/// without LayerNorm's statistics; 2 sbh with full recomputation.
TEST(ClosedForm, EqualsMegatronsFormulasBesideTheStatistics) {
    constexpr Shape shape{4, 512, 1024, 16};
    const int64_t n = 4 * 512 * 1024, t = int64_t{4} * 16 * 512 * 512, statistics = 16 * 4 * 512;
    const auto bytes = [&](const char* recipe) {
        return form_of(make_workload(recipe, shape, Precision::kFp16), /*on_cpu=*/false)
            .total_bytes;
    };
    EXPECT_EQ(bytes("original"), 34 * n + 5 * t + statistics);
    EXPECT_EQ(bytes("original,checkpoint=per_layer"), 2 * n);
}

/// A layer of the same paper's 22B model, B = 4, in 16 bits, on one of the GPUs that share it.
struct LayerOf22B {
    static constexpr int64_t n = int64_t{4} * 2048 * 6144;
    static constexpr int64_t t = int64_t{4} * 64 * 2048 * 2048;
    static constexpr int64_t statistics = 16 * 4 * 2048;

    static ClosedForm form(const char* recipe, const LayerSplit& split) {
        return closed_form_of_layer(
                   make_workload(recipe, {4, 2048, 6144, 64}, Precision::kFp16, "gpt2"),
                   /*on_cpu=*/false, split)
            .value();
    }
};

/// The same paper's tensor parallelism among t: sbh(10 + 24/t + 5as/(ht)), with selective
/// recomputation sbh(10 + 24/t).
TEST(ClosedForm, EqualsMegatronsFormulasOfTensorParallelism) {
    constexpr auto n = LayerOf22B::n, t = LayerOf22B::t, statistics = LayerOf22B::statistics;
    const auto form = [](const char* recipe, int64_t num_shares) {
        return LayerOf22B::form(recipe, {.num_gpus = num_shares});
    };
    for (const int64_t shares : {2, 4, 8}) {
        EXPECT_EQ(form("original", shares).total_bytes,
                  10 * n + 24 * n / shares + 5 * t / shares + statistics);
        EXPECT_EQ(form("original,checkpoint=attention_core", shares).total_bytes,
                  10 * n + 24 * n / shares + statistics);
        EXPECT_EQ(form("original,checkpoint=per_layer", shares).total_bytes, 2 * n);
    }
    EXPECT_EQ(form("original", 8).formula, "n(4e+2)+4Rs+(12en+T(2e+1))/8");
    EXPECT_EQ(form("original", 1).formula, "n(16e+2)+T(2e+1)+4Rs");
    // Where kernels keep their random numbers is of no head.
    EXPECT_EQ(form("flash", 4).total_bytes - form("flash", 2).total_bytes,
              -(24 * n + 4 * 4 * 2048 * 64) / 4);
}

/// The same paper's sequence parallelism: sbh(34/t + 5as/(ht)), with selective recomputation
/// 34sbh/t. Its 22B model on 8 GPUs, B = 4: 885.0 MB a layer, and 213.9 MB.
TEST(ClosedForm, EqualsMegatronsFormulasOfSequenceParallelism) {
    constexpr auto n = LayerOf22B::n, t = LayerOf22B::t, statistics = LayerOf22B::statistics;
    const auto form = [](const char* recipe, int64_t num_gpus) {
        return LayerOf22B::form(recipe, {.num_gpus = num_gpus, .by_positions = true});
    };
    for (const int64_t gpus : {1, 2, 8}) {
        EXPECT_EQ(form("original", gpus).total_bytes, (34 * n + 5 * t + statistics) / gpus);
        EXPECT_EQ(form("original,checkpoint=attention_core", gpus).total_bytes,
                  (34 * n + statistics) / gpus);
        EXPECT_EQ(form("original,checkpoint=per_layer", gpus).total_bytes, 2 * n);
    }
    EXPECT_EQ(form("original", 8).total_bytes, 885'014'528);
    EXPECT_EQ(form("original,checkpoint=attention_core", 8).total_bytes, 213'925'888);
    EXPECT_EQ(form("original", 8).formula, "(n(16e+2)+T(2e+1)+4Rs)/8");
}

/// Ivanov et al. 2021, "Data Movement Is All You Need": 34 n + 4 T elements, from the tensors that
/// their encoder.py allocates; sbh(68 + 8as/h) in 16 bits. rstd comes on top.
TEST(ClosedForm, OfSubstationEqualsItsTensors) {
    constexpr Shape shape{8, 512, 1024, 16};
    const int64_t n = 8 * 512 * 1024, t = int64_t{8} * 16 * 512 * 512, r = 8 * 512;
    Workload w = make_workload("substation", shape, Precision::kFp16, "substation-encoder");
    EXPECT_EQ(form_of(w).total_bytes, 68 * n + 8 * t + 8 * r);
    EXPECT_EQ(form_of(w).formula, "34en+4eT+8R");
    EXPECT_NEAR(68e-6 * n + 8e-6 * t, 553.7, 0.06);  // 1.8 times as much as `original`
    w.recipe = models::Recipe{};
    EXPECT_EQ(form_of(w).formula, "n(16e+6)+T(2e+1)+4Rs");
    w.model.hidden_dropout_p = w.model.attention_dropout_p = 0;
    EXPECT_EQ(form_of(w).formula, "12en+eT+4Rs");
    w.recipe = *models::parse_recipe("substation");
    EXPECT_EQ(form_of(w).formula, "28en+2eT+8R");
    EXPECT_EQ(form_of(make_workload("substation", shape, Precision::kFp16)).formula,
              "30en+4eT+8R");  // BERT drops nothing inside its MLP
}

/// DeepSpeed's fused kernels save what its flags say (ds_transformer_cuda.cpp).
TEST(ClosedForm, OfDeepSpeedIsThatOfItsFlags) {
    for (const char* flags : {"original", "gelu=recompute", "attention=recompute_dropout",
                              "layer_norm=from_output", "deepspeed-all"}) {
        const Workload steps = make_workload(flags, kShapes[1], Precision::kBf16);
        const Workload fused =
            make_workload(std::string(flags) + ",fusion=deepspeed", kShapes[1], Precision::kBf16);
        EXPECT_EQ(form_of(fused).total_bytes, form_of(steps).total_bytes) << flags;
    }
}

TEST(ClosedForm, CountsStatisticsInFourBytesOffTheCpu) {
    const auto w = make_workload("original", kShapes[0], Precision::kBf16);
    const int64_t rows = 2 * 64;
    EXPECT_EQ(form_of(w, false).total_bytes - form_of(w, true).total_bytes, 4 * 2 * rows);
}

/// Each switch alone: the bytes it removes and adds, in n, T and R.
TEST(ClosedForm, ChangesWithEachSwitchAsItsTechniqueSays) {
    const Shape shape = kShapes[1];
    const int64_t n = 3 * 37 * 96, t = 3 * 3 * 37 * 37, r = 3 * 37, e = 4;
    const auto saved = [&](const char* recipe) {
        return form_of(make_workload("original", shape, Precision::kFp32)).total_bytes -
               form_of(make_workload(recipe, shape, Precision::kFp32)).total_bytes;
    };
    const auto c8 = [](int64_t count) { return (count + 7) / 8; };
    EXPECT_EQ(saved("tempo-gelu"), 4 * n * e - 4 * n);
    EXPECT_EQ(saved("tempo-layernorm"), 2 * n * e + 2 * r * e);
    EXPECT_EQ(saved("tempo-dropout"), t * e);
    EXPECT_EQ(saved("masks=bit"), 2 * (n - c8(n)) + t - c8(t));
    EXPECT_EQ(saved("masks=philox"), 2 * n + t);
    EXPECT_EQ(saved("gelu=in_place,masks=philox"), 4 * n * e - c8(4 * n) + 2 * n + t);
    EXPECT_EQ(saved("gelu=recompute"), 4 * n * e);
    EXPECT_EQ(saved("gelu=python"), -8 * n * e);
    EXPECT_EQ(saved("dropout=stock"), 0);
    EXPECT_EQ(saved("optimizer=sgd"), 0);
}

TEST(ClosedForm, TakesAnyIntermediateSize) {
    Workload w = make_workload("tempo", kShapes[0], Precision::kFp32);
    w.model.intermediate_size = 2 * 128;
    EXPECT_EQ(form_of(w).formula, "n(8e+4)+T(e+1)+8R");
    w.model.intermediate_size = 300;
    const ClosedForm odd = form_of(w);
    EXPECT_EQ(odd.formula, "n(6e+2)+f(e+1)+T(e+1)+8R");
    const int64_t n = 2 * 64 * 128, f = 2 * 64 * 300, t = 2 * 4 * 64 * 64, r = 2 * 64;
    EXPECT_EQ(odd.total_bytes, n * 26 + f * 5 + t * 5 + 8 * r);
}

/// Measured under autocast: 42n+7T+16R+24H² with separate projections, 38n with GPT-2's fused one.
TEST(ClosedForm, UnderAutocastListsTheCopiesOfWeights) {
    for (const auto& [model, n_bytes] : {std::pair{"bert-base", 42}, std::pair{"gpt2", 38}}) {
        const Workload w = make_workload("original", kShapes[0], Precision::kAmpBf16, model);
        const int64_t n = 2 * 64 * 128, t = 2 * 4 * 64 * 64, r = 2 * 64, h = 128;
        const ClosedForm form = form_of(w);
        EXPECT_EQ(form.total_bytes, n_bytes * n + 7 * t + 16 * r + 24 * h * h);
        EXPECT_EQ(form.formula, std::to_string(n_bytes) + "n+7T+4Rs+24H²");
    }
}

/// Tempo's ops keep to 16 bits: its closed forms with e = 2, and the copies of weights.
TEST(ClosedForm, UnderAutocastTempoSavesWhatItSavesInSixteenBits) {
    for (const char* model : {"bert-base", "gpt2"}) {
        for (const char* recipe : {"tempo", "tempo-packed", "tempo-philox", "tempo-fused"}) {
            const auto total = [&](Precision precision) {
                return form_of(make_workload(recipe, kShapes[0], precision, model)).total_bytes;
            };
            EXPECT_EQ(total(Precision::kAmpBf16), total(Precision::kBf16) + 24 * 128 * 128);
        }
    }
    const auto formula = [](const char* recipe) {
        return form_of(make_workload(recipe, kShapes[0], Precision::kAmpBf16)).formula;
    };
    EXPECT_EQ(formula("tempo"), "26n+3T+8R+24H²");
    EXPECT_EQ(formula("layer_norm=from_output"), "30n+7T+8R+24H²");
    EXPECT_EQ(formula("attention=recompute_dropout"), "42n+3T+4Rs+24H²");
    EXPECT_EQ(formula("qkv=fused"), "38n+7T+4Rs+24H²");
    EXPECT_EQ(formula("fusion=deepspeed"), "38n+5T+4Rs+24H²+8H");
    EXPECT_EQ(formula("deepspeed-fused"), "22n+3T+8R+24H²+8H");
    EXPECT_EQ(formula("substation"), "60n+8T+8R+24H²+4H");
    EXPECT_EQ(formula("checkpoint"), "4n");
}

TEST(ClosedForm, RowsSumToTheTotal) {
    for (const auto& preset : models::recipe_presets()) {
        Workload w = make_workload(std::string(preset.name), kShapes[1], Precision::kFp32);
        w.model.attention_dropout_p = 0;
        const ClosedForm form = form_of(w);
        int64_t total = 0;
        for (const auto& row : form.rows) total += row.size_bytes;
        EXPECT_EQ(total, form.total_bytes) << preset.name;
    }
}

/// A ledger finds its closed-form rows by the names that layers give to saved tensors.
TEST(ClosedForm, NamesTensorsAsTheLayersDo) {
    const auto names_of = [](const char* recipe, const char* model) {
        std::vector<std::string> names;
        for (auto& row : form_of(make_workload(recipe, kShapes[0], Precision::kFp32, model)).rows) {
            names.push_back(row.tensor);
        }
        return names;
    };
    EXPECT_THAT(names_of("original", "bert-base"),
                ElementsAre("hidden_states", "query", "key", "value", "attention_probs",
                            "keep_mask", "dropped_probs", "context", "keep_mask",
                            "attention_residual", "mean", "rstd", "attention_output", "gelu_input",
                            "gelu_output", "keep_mask", "output_residual", "mean", "rstd"));
    EXPECT_THAT(names_of("tempo", "gpt2"),
                ElementsAre("rstd", "ln_1_output", "query", "key", "value", "attention_probs",
                            "keep_mask", "context", "keep_mask", "rstd", "ln_2_output",
                            "branch_mask", "gelu_output", "keep_mask"));
}

/// docs/techniques.md lists the sum of every preset that has one.
TEST(ClosedForm, IsDocumentedForEachRecipe) {
    std::ifstream file(TEMPOSCOPE_SOURCE_DIR "/docs/techniques.md");
    const std::string notation{std::istreambuf_iterator<char>(file), {}};
    for (const models::RecipePreset& preset : models::recipe_presets()) {
        Workload workload = make_workload(std::string(preset.name), kShapes[0], Precision::kFp32);
        if (preset.recipe.attention == models::Attention::kFlash) {
            workload.model.attention_dropout_p = 0;
        }
        const std::string row =
            fmt::format("| `{}` | {} |", preset.name, form_of(workload).formula);
        EXPECT_THAT(notation, testing::HasSubstr(row));
    }
}

TEST(ClosedForm, SaysWhyThereIsNone) {
    const auto reason_of = [](const Workload& w) {
        const auto form = closed_form_of_layer(w, true);
        EXPECT_FALSE(form);
        return form ? std::string() : form.error().message;
    };
    EXPECT_EQ(reason_of(make_workload("gelu=python", kShapes[0], Precision::kAmpBf16)),
              "There is no formula to compare with: none is known for gelu=python under "
              "autocast.");
    EXPECT_EQ(
        reason_of(make_workload("original", kShapes[0], Precision::kAmpBf16, "t5-base-encoder")),
        "There is no formula to compare with: none is known for T5 under autocast.");
}

/// Flash attention and cuDNN keep 24 and 16 bytes about their random numbers on a GPU, efficient
/// attention rounds its rows to 32 and keeps a padded mask.
TEST(ClosedForm, OfFusedAttentionOnAGpuHasWhatItsKernelsKeep) {
    const auto formula = [](const char* recipe, Padding padding = Padding::kNone,
                            Precision precision = Precision::kBf16) {
        Workload w = make_workload(recipe, kShapes[1], precision);
        w.padding = padding;
        return form_of(w, /*on_cpu=*/false).formula;
    };
    EXPECT_EQ(formula("flash"), "n(16e+2)+4Rs+4BAS+24");
    EXPECT_EQ(formula("flash-tempo"), "n(10e+6)+8R+4BAS+24");
    EXPECT_EQ(formula("best"), "10en+8R+4BAS+24+c8(4n)");
    EXPECT_EQ(formula("attention=cudnn"), "n(16e+2)+4Rs+4BAS+16");
    EXPECT_EQ(formula("attention=efficient"), "n(16e+2)+4Rs+4BAr32(S)");
    EXPECT_EQ(formula("attention=efficient", Padding::kRandom), "n(16e+2)+4Rs+4BAr32(S)+eBr16(S)");
    EXPECT_EQ(formula("best", Padding::kNone, Precision::kAmpBf16), "20n+8R+4BAS+24+24H²+c8(4n)");
    EXPECT_EQ(formula("attention=efficient", Padding::kRandom, Precision::kAmpBf16),
              "42n+4Rs+4BAr32(S)+2Br16(S)+24H²");
}

/// A trace whose layer 1 saves `bytes`.
Trace make_saving_trace(const Workload& workload, int64_t bytes) {
    TraceBuilder b(workload);
    b.begin_step(PhaseKind::kForward);
    for (int64_t layer = 0; layer < workload.model.num_layers; ++layer) {
        const auto op =
            b.op("aten::addmm", b.module_path("encoder.layer." + std::to_string(layer), layer));
        b.save(b.allocate(
                   {.bytes = layer == 1 ? bytes : 1, .category = Category::kActivation, .op = op}),
               op);
    }
    return b.finish();
}

TEST(CheckAgainstClosedForm, ComparesAMiddleLayer) {
    const Workload w = make_workload("tempo", kShapes[1], Precision::kFp32);
    const auto equal = check_against_closed_form(make_saving_trace(w, 552669));
    ASSERT_TRUE(equal);
    EXPECT_EQ(equal->layer, 1);
    EXPECT_TRUE(equal->equal());
    EXPECT_EQ(to_sentence(*equal), "Layer 1 saves 552,669 B for backward, equal to the formula " +
                                       equal->form.formula + ".");
    const auto differing = check_against_closed_form(make_saving_trace(w, 552670)).value();
    EXPECT_FALSE(differing.equal());
    EXPECT_EQ(differing.ledger_bytes - differing.form.total_bytes, 1);
    EXPECT_TRUE(to_sentence(differing).ends_with(" gives 552,669 B."));
    EXPECT_TRUE(to_sentence_below_rows(*equal).starts_with(
        "Checked on the middle layer, 1: it saves 552,669 B for backward, equal to"));
}

TEST(CheckAgainstClosedForm, NeedsThreeLayersOfOneRecipe) {
    Workload w = make_workload("tempo", kShapes[1], Precision::kFp32);
    w.model.num_layers = 2;
    EXPECT_FALSE(check_against_closed_form(make_saving_trace(w, 1)));
    w.model.num_layers = 3;
    Trace mixed = make_saving_trace(w, 1);
    mixed.runs.set<&Run::recipe_per_layer>(
        Id<profiler::Run>(0), mixed.strings.intern(R"(["original","gelu=in_place","original"])"));
    EXPECT_FALSE(check_against_closed_form(mixed));
    mixed.runs.set<&Run::recipe_per_layer>(
        Id<profiler::Run>(0), mixed.strings.intern(R"(["original","original","original"])"));
    ASSERT_TRUE(check_against_closed_form(mixed));
    EXPECT_EQ(check_against_closed_form(mixed)->form.total_bytes, 815961);
    mixed.runs.set<&Run::recipe_per_layer>(Id<profiler::Run>(0), mixed.strings.intern("[1,2"));
    EXPECT_FALSE(check_against_closed_form(mixed));
}

}  // namespace
