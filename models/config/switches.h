#pragma once

#include "models/config/compute_capability.h"
#include "models/config/recipe.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>

/// One table for each switch of a recipe, with one row for each value: its name, the words for it
/// in a sentence, where it runs, where the recipe search tries it, and what it makes a layer save
/// for backward. Parsing, texts, validity, the recipe search and the closed forms read these
/// tables. To add a value, add its enumerator, its row, and the code that runs it.
namespace models {

// ---- tensors that a layer saves for backward, as formulas in its sizes (docs/techniques.md) -----

/// What is counted.
enum class Unit : uint8_t {
    kHidden,               // n = B*S*H
    kIntermediate,         // f = B*S*I
    kScores,               // T = B*A*S^2
    kRows,                 // R = B*S
    kHeadRows,             // B*A*S
    kHeadRowsBy32,         // B*A*r32(S), S rounded up to a multiple of 32
    kRowsBy16,             // B*r16(S)
    kLayer,                // 1
    kHiddenSquared,        // H^2, weights
    kHiddenIntermediate,   // H*I, weights
    kHiddenChannels,       // H, of LayerNorm's weights
    kIntermediateChannels  // I, of a bias
};

/// How many bytes the count takes.
enum class Scale : uint8_t {
    kElement,    // e bytes each
    kBytes,      // a whole number of bytes each
    kStatistic,  // s bytes each, one LayerNorm statistic
    kBits        // c8(count) = ceil(count / 8) bytes in all
};

struct Term {
    Unit unit = Unit::kHidden;
    Scale scale = Scale::kElement;
    int64_t bytes = 1;   // for kBytes
    int64_t in_one = 1;  // for kElement: how often the tensor holds the unit
};

enum class SavedWhen : uint8_t {
    kAlways,
    kDropout,        // attention drops probabilities: attention_dropout_p > 0
    kHiddenDropout,  // hidden_dropout_p > 0
    kInnerDropout,   // the same, in a model with dropout inside the MLP (Substation)
    kTanhGelu,       // the GELU has the tanh form (GPT-2)
    kErfGelu,        // the GELU has the erf form (BERT)
    kGelu,           // the activation is a GELU
    kRelu,           // it is ReLU (Substation)
    kOffCpu,         // the layer runs on another device than the CPU
    kPaddedRows      // a padding mask has rows of no multiple of 16, or autocast copies it
};

struct SavedTensor {
    std::string_view tensor;  // the name that models/layers gives it, or one of those below
    Term term;
    SavedWhen when = SavedWhen::kAlways;
};

/// Names that stand for a tensor that depends on more than one value of one switch, or that more
/// than one value saves.
inline constexpr std::string_view kInputOfNorm = "input";  // "attention_residual", "hidden_states"
inline constexpr std::string_view kDropoutMask = "keep_mask";  // stored as the switch `masks` says
inline constexpr std::string_view kElementMask = "keep_mask in e bytes";  // of any switch `masks`
inline constexpr std::string_view kGeneratorState = "generator_state";
inline constexpr std::string_view kBranchMask = "branch_mask";  // of in-place GELU; the same

// ---- switches --------------------------------------------------------------------------------

enum class RunsOn : uint8_t {
    kEverywhere,
    kCuda,        // measured on CUDA, and predicted
    kPrediction,  // predicted, never run
    kNowhere      // not implemented
};

/// Where the recipe search tries a value in a layer.
enum class Search : uint8_t {
    kAlways,  // in each combination with the other switches' values
    kOnBest,  // on top of the recipes that no other recipe beats
    kNever
};

/// What torch's CUDA kernels ask of a workload (sdp_utils.cpp in torch).
struct CudaLimits {
    ComputeCapability capability{0, 0};  // at least
    int64_t max_element_bytes = 8;       // of the dtype attention runs in
    int64_t head_load_bytes = 1;         // a head's row is a multiple
    int64_t max_head_dim = std::numeric_limits<int64_t>::max();
    bool takes_padding = true;
    bool takes_padding_with_causality = true;
};

struct SwitchValue {
    std::string_view name;    // in a recipe's text: "in_place"
    std::string_view phrase;  // in a sentence: "in-place GELU"
    RunsOn runs_on = RunsOn::kEverywhere;
    CudaLimits cuda = {};
    bool is_fused_attention = false;  // a backend of scaled_dot_product_attention
    bool has_cpu_dropout = true;      // false: attention dropout must be 0 on the CPU
    Search search = Search::kAlways;
    bool uses_implementation = false;         // the switch `implementation` chooses its kernels
    std::string_view needs = {};              // what other switches must be, as a recipe's text
    std::span<const SavedTensor> saves = {};  // by the op of this switch, in one layer
    std::string_view former_name = {};        // from older files; still read
};

template <typename Enum>
struct SwitchRow {
    Enum value;
    SwitchValue is;
};

template <typename Enum, std::size_t N>
struct Switch {
    std::string_view name;         // in a recipe's text: "gelu"
    std::string_view former_name;  // from older files; still read
    Enum Recipe::*member;
    bool is_for_step;  // one choice for the whole step; otherwise each layer may have its own
    std::array<SwitchRow<Enum>, N> rows;

    constexpr const SwitchValue& operator[](Enum value) const {
        return rows[static_cast<std::size_t>(value)].is;
    }
    constexpr const SwitchValue& chosen(const Recipe& recipe) const {
        return (*this)[recipe.*member];
    }
    constexpr std::array<std::string_view, N> names() const {
        std::array<std::string_view, N> names{};
        for (std::size_t i = 0; i < N; ++i) names[i] = rows[i].is.name;
        return names;
    }
};

// ---- what the values make a layer save (docs/techniques.md) ----------------------------------

inline constexpr Term kHiddenTerm{Unit::kHidden, Scale::kElement};
inline constexpr Term kIntermediateTerm{Unit::kIntermediate, Scale::kElement};
inline constexpr Term kScoresTerm{Unit::kScores, Scale::kElement};
inline constexpr Term kStatisticTerm{Unit::kRows, Scale::kStatistic};

/// Dropout saves its mask, and the linear layer after it the dropped output.
inline constexpr std::array<SavedTensor, 5> kGeluSaves{
    {{"gelu_input", kIntermediateTerm, SavedWhen::kGelu},
     {"gelu_output", kIntermediateTerm, SavedWhen::kGelu},
     {"relu_output", kIntermediateTerm, SavedWhen::kRelu},
     {kDropoutMask, kIntermediateTerm, SavedWhen::kInnerDropout},
     {"dropped_relu", kIntermediateTerm, SavedWhen::kInnerDropout}}};
inline constexpr std::array<SavedTensor, 2> kInPlaceGeluSaves{
    {{kBranchMask, kIntermediateTerm}, {"gelu_output", kIntermediateTerm}}};
inline constexpr std::array<SavedTensor, 1> kRecomputedGeluSaves{
    {{"gelu_input", kIntermediateTerm}}};
/// 0.5 x (1 + f(...)): the argument or value of f, the two factors and their product. The tanh form
/// also raises its input to a power.
inline constexpr std::array<SavedTensor, 6> kPythonGeluSaves{
    {{"gelu_input", kIntermediateTerm, SavedWhen::kTanhGelu},
     {"tanh", kIntermediateTerm, SavedWhen::kTanhGelu},
     {"erf_input", kIntermediateTerm, SavedWhen::kErfGelu},
     {"gelu_half", kIntermediateTerm},
     {"gelu_factor", kIntermediateTerm},
     {"gelu_output", kIntermediateTerm}}};

inline constexpr std::array<SavedTensor, 3> kLayerNormSaves{
    {{kInputOfNorm, kHiddenTerm}, {"mean", kStatisticTerm}, {"rstd", kStatisticTerm}}};
inline constexpr std::array<SavedTensor, 1> kLayerNormFromOutputSaves{
    {{"rstd", {Unit::kRows, Scale::kBytes, 4}}}};  // fp32 in every precision

inline constexpr std::array<SavedTensor, 3> kEagerSaves{
    {{"attention_probs", kScoresTerm},
     {kDropoutMask, kScoresTerm, SavedWhen::kDropout},
     {"dropped_probs", kScoresTerm, SavedWhen::kDropout}}};
inline constexpr std::array<SavedTensor, 2> kRecomputeDropoutSaves{
    {{"attention_probs", kScoresTerm}, {kDropoutMask, kScoresTerm, SavedWhen::kDropout}}};
/// CUDA's kernels of flash attention and cuDNN save where the generator of random numbers stood,
/// with or without dropout. Those of efficient attention keep that on the host, and round rows.
inline constexpr std::array<SavedTensor, 3> kFlashSaves{
    {{"logsumexp", {Unit::kHeadRows, Scale::kBytes, 4}},
     {kGeneratorState, {Unit::kLayer, Scale::kBytes, 16}, SavedWhen::kOffCpu},
     {kGeneratorState, {Unit::kLayer, Scale::kBytes, 8}, SavedWhen::kOffCpu}}};
inline constexpr std::array<SavedTensor, 2> kEfficientSaves{
    {{"logsumexp", {Unit::kHeadRowsBy32, Scale::kBytes, 4}},
     {"attention_bias", {Unit::kRowsBy16, Scale::kElement}, SavedWhen::kPaddedRows}}};
inline constexpr std::array<SavedTensor, 4> kCudnnSaves{
    {{"logsumexp", {Unit::kHeadRows, Scale::kBytes, 4}},
     {kGeneratorState, {Unit::kLayer, Scale::kBytes, 8}},
     {kGeneratorState, {Unit::kLayer, Scale::kBytes, 8}},
     {"attention_bias", {Unit::kRowsBy16, Scale::kElement}, SavedWhen::kPaddedRows}}};

/// How a mask is stored; the count is that of the op that draws it.
inline constexpr std::array<SavedTensor, 2> kByteMasks{
    {{kDropoutMask, {.scale = Scale::kBytes}}, {kBranchMask, {.scale = Scale::kBytes}}}};
inline constexpr std::array<SavedTensor, 2> kBitMasks{
    {{kDropoutMask, {.scale = Scale::kBits}}, {kBranchMask, {.scale = Scale::kBits}}}};
inline constexpr std::array<SavedTensor, 1> kPhiloxMasks{
    {{kBranchMask, {.scale = Scale::kBits}}}};  // dropout masks are drawn again

/// Every tensor that Substation's forward writes; its masks have the layer's type. In 16 bits, with
/// I = 4H and without rstd, sbh(68 + 8 a s / h).
inline constexpr Term kRstdTerm{Unit::kRows, Scale::kBytes, 4};
inline constexpr std::array<SavedTensor, 26> kSubstationSaves{
    {{"hidden_states", kHiddenTerm},
     {"projected", {.unit = Unit::kHidden, .in_one = 3}},  // query, key and value
     {"query", kHiddenTerm},
     {"key", kHiddenTerm},
     {"value", kHiddenTerm},
     {"attention_scores", kScoresTerm},
     {"attention_probs", kScoresTerm},
     {kElementMask, kScoresTerm, SavedWhen::kDropout},
     {"dropped_probs", kScoresTerm, SavedWhen::kDropout},
     {"context", kHiddenTerm},
     {"attention_dense", kHiddenTerm},
     {"normalized", kHiddenTerm},
     {"centered", kHiddenTerm},
     {"rstd", kRstdTerm},
     {kElementMask, kHiddenTerm, SavedWhen::kHiddenDropout},
     {"attention_output", kHiddenTerm},
     {"up", kIntermediateTerm},
     {"activation_input", kIntermediateTerm},
     {kElementMask, kIntermediateTerm, SavedWhen::kInnerDropout},
     {"activation_output", kIntermediateTerm},
     {"down", kHiddenTerm},
     {"output_dense", kHiddenTerm},
     {"normalized", kHiddenTerm},
     {"centered", kHiddenTerm},
     {"rstd", kRstdTerm},
     {kElementMask, kHiddenTerm, SavedWhen::kHiddenDropout}}};

/// A checkpointed layer saves its input and nothing else.
inline constexpr std::array<SavedTensor, 1> kCheckpointedLayerSaves{
    {{"hidden_states", kHiddenTerm}}};

// ---- the tables ------------------------------------------------------------------------------

inline constexpr Switch<Gelu, 4> kGeluSwitch{
    .name = "gelu",
    .former_name = {},
    .member = &Recipe::gelu,
    .is_for_step = false,
    .rows = {{
        {Gelu::kOriginal,
         {.name = "original", .phrase = "GELU as in the original", .saves = kGeluSaves}},
        {Gelu::kInPlace,
         {.name = "in_place",
          .phrase = "in-place GELU",
          .uses_implementation = true,
          .saves = kInPlaceGeluSaves}},
        {Gelu::kRecompute,
         {.name = "recompute",
          .phrase = "recomputed GELU",
          .uses_implementation = true,
          .saves = kRecomputedGeluSaves}},
        {Gelu::kPython,
         {.name = "python",
          .phrase = "unfused GELU",
          .search =
              Search::kNever,  // it only takes more: it is there to compare with other libraries
          .saves = kPythonGeluSaves}},
    }}};

inline constexpr Switch<LayerNorm, 2> kLayerNormSwitch{
    .name = "layer_norm",
    .former_name = {},
    .member = &Recipe::layer_norm,
    .is_for_step = false,
    .rows = {{
        {LayerNorm::kOriginal,
         {.name = "original", .phrase = "LayerNorm as in the original", .saves = kLayerNormSaves}},
        {LayerNorm::kFromOutput,
         {.name = "from_output",
          .phrase = "in-place LayerNorm",
          .uses_implementation = true,
          .saves = kLayerNormFromOutputSaves}},
    }}};

inline constexpr Switch<Attention, 5> kAttentionSwitch{
    .name = "attention",
    .former_name = {},
    .member = &Recipe::attention,
    .is_for_step = false,
    .rows = {{
        {Attention::kEager,
         {.name = "eager",
          .phrase = "eager attention",
          .saves = kEagerSaves,
          .former_name = "materialized"}},
        {Attention::kRecomputeDropout,
         {.name = "recompute_dropout",
          .phrase = "dropout recomputation",
          .uses_implementation = true,
          .saves = kRecomputeDropoutSaves}},
        {Attention::kFlash,
         {.name = "flash",
          .phrase = "flash attention",
          .cuda = {.capability = kAmpere,
                   .max_element_bytes = 2,
                   .head_load_bytes = 16,
                   .max_head_dim = 256,
                   .takes_padding = false},
          .is_fused_attention = true,
          .has_cpu_dropout = false,
          .saves = kFlashSaves}},
        {Attention::kEfficient,
         {.name = "efficient",
          .phrase = "memory-efficient attention",
          .runs_on = RunsOn::kCuda,
          .cuda = {.max_element_bytes = 4,
                   .head_load_bytes = 16,
                   .takes_padding_with_causality = false},
          .is_fused_attention = true,
          .saves = kEfficientSaves}},
        {Attention::kCudnn,
         {.name = "cudnn",
          .phrase = "cuDNN attention",
          .runs_on = RunsOn::kCuda,
          .cuda = {.capability = kAmpere,
                   .max_element_bytes = 2,
                   .head_load_bytes = 16,
                   .max_head_dim = 128,
                   .takes_padding_with_causality = false},
          .is_fused_attention = true,
          .saves = kCudnnSaves}},
    }}};

inline constexpr Switch<Masks, 3> kMasksSwitch{
    .name = "masks",
    .former_name = {},
    .member = &Recipe::masks,
    .is_for_step = false,
    .rows = {{
        {Masks::kByte, {.name = "byte", .phrase = "masks of one byte", .saves = kByteMasks}},
        {Masks::kBit,
         {.name = "bit",
          .phrase = "masks of one bit",
          .uses_implementation = true,
          .saves = kBitMasks}},
        {Masks::kPhilox,
         {.name = "philox",
          .phrase = "regenerated masks",
          .uses_implementation = true,
          .saves = kPhiloxMasks}},
    }}};

inline constexpr Switch<Checkpoint, 4> kCheckpointSwitch{
    .name = "checkpoint",
    .former_name = {},
    .member = &Recipe::checkpoint,
    .is_for_step = false,
    .rows = {{
        {Checkpoint::kNone, {.name = "none", .phrase = "no checkpointing"}},
        {Checkpoint::kPerLayer,
         {.name = "per_layer",
          .phrase = "checkpointing",
          .search = Search::kOnBest,
          .saves = kCheckpointedLayerSaves}},
        {Checkpoint::kSqrt,  // the first layer of each checkpoint saves its input
         {.name = "sqrt",
          .phrase = "checkpointing of several layers at once",
          .search = Search::kNever,
          .saves = kCheckpointedLayerSaves}},
        {Checkpoint::kAttentionCore,  // what eager attention saves is saved no more
         {.name = "attention_core",
          .phrase = "checkpointing of attention",
          .needs = "attention=eager,fusion=none"}},
    }}};

inline constexpr Switch<Fusion, 4> kFusionSwitch{
    .name = "fusion",
    .former_name = {},
    .member = &Recipe::fusion,
    .is_for_step = false,
    .rows = {{
        {Fusion::kNone, {.name = "none", .phrase = "no fusion"}},
        {Fusion::kTempo,  // the fused ops save what their steps save, and have one form of each
         {.name = "tempo",
          .phrase = "fused GELU and LayerNorm",
          .needs = "gelu=in_place,layer_norm=from_output,dropout=tempo,implementation=ours"}},
        {Fusion::kSubstation,  // the layer is one op, which saves all that its forward writes
         {.name = "substation",
          .phrase = "Substation's fused kernels",
          .needs = "gelu=original,layer_norm=original,attention=eager,masks=byte,dropout=tempo,"
                   "implementation=ours,qkv=model",
          .saves = kSubstationSaves}},
        {Fusion::kDeepSpeed,  // the fused ops save what their steps save
         {.name = "deepspeed",
          .phrase = "DeepSpeed's fused kernels",
          .needs = "dropout=tempo,implementation=ours,qkv=model"}},
    }}};

/// None changes what a layer saves: the projections save their input once, and attention saves
/// query, key and value, in one storage or in three.
inline constexpr Switch<Qkv, 5> kQkvSwitch{
    .name = "qkv",
    .former_name = {},
    .member = &Recipe::qkv,
    .is_for_step = false,
    .rows = {{
        {Qkv::kModel, {.name = "model", .phrase = "query, key and value as the model has them"}},
        {Qkv::kSeparate,
         {.name = "separate",
          .phrase = "query, key and value in three products",
          .search = Search::kNever}},
        {Qkv::kQueryKey,
         {.name = "qk", .phrase = "one matmul for query and key", .search = Search::kNever}},
        {Qkv::kKeyValue,
         {.name = "kv", .phrase = "one matmul for key and value", .search = Search::kNever}},
        {Qkv::kFused,
         {.name = "fused", .phrase = "fused QKV projection", .search = Search::kOnBest}},
    }}};

inline constexpr Switch<Dropout, 2> kDropoutSwitch{
    .name = "dropout",
    .former_name = {},
    .member = &Recipe::dropout,
    .is_for_step = false,
    .rows = {{
        {Dropout::kTempo, {.name = "tempo", .phrase = "tempo::dropout", .search = Search::kNever}},
        {Dropout::kStock, {.name = "stock", .phrase = "torch's dropout", .search = Search::kNever}},
    }}};

inline constexpr Switch<Optimizer, 5> kOptimizerSwitch{
    .name = "optimizer",
    .former_name = {},
    .member = &Recipe::optimizer,
    .is_for_step = true,
    .rows = {{
        {Optimizer::kSgd, {.name = "sgd", .phrase = "SGD", .search = Search::kNever}},
        {Optimizer::kAdamW, {.name = "adamw", .phrase = "foreach AdamW", .search = Search::kNever}},
        {Optimizer::kAdamWLoop,
         {.name = "adamw_loop", .phrase = "AdamW tensor by tensor", .search = Search::kNever}},
        {Optimizer::kAdamWFused,
         {.name = "adamw_fused", .phrase = "fused AdamW", .search = Search::kNever}},
        {Optimizer::kLamb, {.name = "lamb", .phrase = "LAMB", .search = Search::kNever}},
    }}};

inline constexpr Switch<Implementation, 2> kImplementationSwitch{
    .name = "implementation",
    .former_name = "kernels",
    .member = &Recipe::implementation,
    .is_for_step = true,
    .rows = {{
        {Implementation::kOurs,
         {.name = "ours", .phrase = "our kernels", .search = Search::kNever}},
        {Implementation::kPublished,
         {.name = "published",
          .phrase = "the kernels of Tempo's 2022 release",
          .runs_on = RunsOn::kPrediction,
          .search = Search::kNever}},
    }}};

/// In the order of canonical text.
inline constexpr auto kSwitches =
    std::tie(kGeluSwitch, kLayerNormSwitch, kAttentionSwitch, kMasksSwitch, kCheckpointSwitch,
             kFusionSwitch, kQkvSwitch, kDropoutSwitch, kOptimizerSwitch, kImplementationSwitch);

/// Calls `visit(table)` for each switch.
template <typename Visit>
constexpr void for_each_switch(Visit&& visit) {
    std::apply([&](const auto&... tables) { (visit(tables), ...); }, kSwitches);
}

/// The place of an enum's table in kSwitches; their number if the enum is no switch.
template <typename Enum>
inline constexpr std::size_t kSwitchIndex = std::apply(
    [](const auto&... tables) {
        std::size_t index = 0;
        (void)((std::is_same_v<std::remove_cvref_t<decltype(tables.rows[0].value)>, Enum> ||
                (++index, false)) ||
               ...);
        return index;
    },
    kSwitches);

template <typename Enum>
concept SwitchEnum = kSwitchIndex<Enum> < std::tuple_size_v<decltype(kSwitches)>;

/// table_of<Gelu>() is kGeluSwitch.
template <SwitchEnum Enum>
constexpr const auto& table_of() {
    return std::get<kSwitchIndex<Enum>>(kSwitches);
}

/// "in_place".
template <SwitchEnum Enum>
constexpr std::string_view name_of(Enum value) {
    return table_of<Enum>()[value].name;
}

// ---- every enumerator has its row ------------------------------------------------------------

/// GCC and Clang print an enumerator by its name ("models::Gelu::kPython") and any other value as a
/// cast ("(models::Gelu)4").
template <auto kValue>
constexpr bool is_enumerator() {
    constexpr std::string_view kPrefix = "kValue = ";
    const std::string_view text = __PRETTY_FUNCTION__;
    return text[text.find(kPrefix) + kPrefix.size()] != '(';
}

/// The rows stand in the order of the enumerators and leave none out.
template <typename Enum, std::size_t N>
constexpr bool is_complete(const Switch<Enum, N>& table) {
    for (std::size_t i = 0; i < N; ++i) {
        if (table.rows[i].value != static_cast<Enum>(i)) return false;
    }
    return is_enumerator<static_cast<Enum>(N - 1)>() && !is_enumerator<static_cast<Enum>(N)>();
}

static_assert(std::apply([](const auto&... tables) { return (is_complete(tables) && ...); },
                         kSwitches));

}  // namespace models
