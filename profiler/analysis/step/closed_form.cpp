#include "profiler/analysis/step/closed_form.h"

#include "models/config/switches.h"
#include "profiler/analysis/step/describe_run.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>

namespace profiler {
namespace {

using models::Activation;
using models::FamilyTraits;
using models::Norm;
using models::SavedTensor;
using models::SavedWhen;
using models::Scale;
using models::Term;
using models::Unit;
using models::Workload;

/// Fused attention pads the rows of its bias to a multiple of so many elements.
constexpr int64_t kBiasMultiple = 16;

int64_t round_up(int64_t value, int64_t multiple) {
    return (value + multiple - 1) / multiple * multiple;
}

/// Sizes of one layer in elements, and the bytes of an element and of a LayerNorm statistic.
struct LayerSizes {
    LayerSizes(const Workload& w, bool on_cpu, int64_t num_gpus)
        : num_shares(num_gpus),
          rows(w.batch_size * w.seq_len),
          hidden(w.model.hidden_size),
          intermediate(w.model.intermediate_size),
          batch_size(w.batch_size),
          num_heads(w.model.num_heads),
          seq_len(w.seq_len),
          element_bytes(models::weight_bytes(w.precision)),
          statistic_bytes(on_cpu && !models::is_autocast(w.precision) ? element_bytes : 4) {}

    int64_t count(Unit unit) const {
        switch (unit) {
            case Unit::kHidden:
                return rows * hidden;
            case Unit::kIntermediate:
                return rows * intermediate;
            case Unit::kScores:
                return rows * num_heads * seq_len;
            case Unit::kRows:
                return rows;
            case Unit::kHeadRows:
                return rows * num_heads;
            case Unit::kHeadRowsBy32:
                return batch_size * num_heads * round_up(seq_len, 32);
            case Unit::kRowsBy16:
                return batch_size * round_up(seq_len, kBiasMultiple);
            case Unit::kLayer:
                return 1;
            case Unit::kHiddenSquared:
                return hidden * hidden;
            case Unit::kHiddenIntermediate:
                return hidden * intermediate;
            case Unit::kHiddenChannels:
                return hidden;
            case Unit::kIntermediateChannels:
                return intermediate;
        }
        return 0;
    }
    int64_t bytes(const Term& term, bool is_shared) const {
        const int64_t elements = count(term.unit) / (is_shared ? num_shares : 1);
        switch (term.scale) {
            case Scale::kElement:
                return elements * term.in_one * element_bytes;
            case Scale::kBytes:
                return elements * term.bytes;
            case Scale::kStatistic:
                return elements * statistic_bytes;
            case Scale::kBits:
                return (elements + 7) / 8;
        }
        return 0;
    }
    /// I/H if that is a whole number, else 0.
    int64_t intermediate_per_hidden() const {
        return intermediate % hidden == 0 ? intermediate / hidden : 0;
    }

    int64_t num_shares, rows, hidden, intermediate, batch_size, num_heads, seq_len;
    int64_t element_bytes, statistic_bytes;
};

struct NamedTerm {
    std::string_view tensor;
    Term term;
    bool is_shared = false;  // each GPU of a tensor-parallel group has its share
};

/// Whether a tensor of heads, or of the MLP's width, has these dimensions as a factor.
constexpr bool is_divided(Unit unit) {
    return unit != Unit::kRows && unit != Unit::kRowsBy16 && unit != Unit::kLayer;
}

constexpr Term elements(Unit unit) { return {unit, Scale::kElement}; }
constexpr Term bytes_of(int64_t bytes, Unit unit) { return {unit, Scale::kBytes, bytes}; }

/// The rows of one layer, in the order in which its forward saves the tensors.
///
///     post-LN   x -> attention -> + x -> LayerNorm -> MLP -> + -> LayerNorm      (BERT)
///     pre-LN    x -> LayerNorm -> attention -> + x -> LayerNorm -> MLP -> +      (GPT-2)
///
/// In post-LN the layer's input is the output of the LayerNorm before it. With from_output that
/// LayerNorm saves it first, and this layer's own output takes its place in the sum.
class LayerRows {
public:
    LayerRows(const Workload& workload, bool on_cpu, bool splits_positions)
        : w_(workload),
          on_cpu_(on_cpu),
          splits_positions_(splits_positions),
          traits_(workload.model.traits()),
          pre_norm_(traits_.is_pre_norm()) {}

    std::vector<NamedTerm> uniform() {
        if (is_checkpointed()) return checkpointed();
        const auto whole_layer = saves_of(models::kFusionSwitch);
        if (!whole_layer.empty()) {  // one op, whose switches save nothing of their own
            add_all(whole_layer);
            return std::move(rows_);
        }
        if (pre_norm_) norm("hidden_states");
        attention(traits_.attention);
        if (traits_.cross_attention) {
            norm("attention_residual");
            attention(*traits_.cross_attention);
        }
        norm(traits_.cross_attention ? "cross_attention_residual" : "attention_residual");
        add(traits_.mlp.input, elements(Unit::kHidden));
        share([this] { add_all(saves_of(models::kGeluSwitch)); });
        add_dropout_mask(Unit::kHidden, w_.model.hidden_dropout_p);
        if (!pre_norm_) norm("output_residual");
        return std::move(rows_);
    }

    /// Under autocast a linear layer saves a 16-bit copy of its weight and, if its input is fp32,
    /// of that. torch's softmax and LayerNorm save and return fp32; Tempo's ops keep to 16 bits, so
    /// the output of a norm is what the next linear layer saves.
    std::vector<NamedTerm> autocast() {
        if (is_checkpointed()) return checkpointed(stream_bytes());
        if (const auto whole_layer = saves_of(models::kFusionSwitch); !whole_layer.empty()) {
            add_all(whole_layer, 2);
            add_copies_of_weights();
            add("LayerNorm weights", bytes_of(2 * 2, Unit::kHiddenChannels));
            return std::move(rows_);
        }
        if (pre_norm_) autocast_norm("hidden_states");
        for (int copy = 0; copy < (norms_in_fp32() ? num_projections() : 1); ++copy) {
            add(traits_.attention.input, bytes_of(2, Unit::kHidden));
        }
        share([this] {
            for (const char* name : {"query", "key", "value"}) {
                add(name, bytes_of(2, Unit::kHidden));
            }
            if (w_.recipe.checkpoint != models::Checkpoint::kAttentionCore) autocast_attention();
            add("context", bytes_of(2, Unit::kHidden));
        });
        add_dropout_mask(Unit::kHidden, w_.model.hidden_dropout_p);
        autocast_norm("attention_residual");
        add(traits_.mlp.input, bytes_of(2, Unit::kHidden));
        share([this] {
            add_all(saves_of(models::kGeluSwitch), 2);
            // The op of the activation adds the bias, in backward once more.
            if (is_deepspeed()) add("MLP bias", bytes_of(2, Unit::kIntermediateChannels));
        });
        add_dropout_mask(Unit::kHidden, w_.model.hidden_dropout_p);
        if (!pre_norm_) autocast_norm("output_residual");
        share([this] { add_copies_of_weights(); });
        return std::move(rows_);
    }

private:
    void add(std::string_view tensor, Term term) {
        const bool is_shared = splits_positions_ ? !is_checkpointed() && term.unit != Unit::kLayer
                                                 : shares_ && is_divided(term.unit);
        rows_.push_back({tensor, term, is_shared});
    }
    /// What `add_rows` adds are tensors of heads, or of the MLP's width.
    template <typename AddRows>
    void share(const AddRows& add_rows) {
        shares_ = true;
        add_rows();
        shares_ = false;
    }

    std::span<const SavedTensor> saves_of(const auto& table) const {
        return table.chosen(w_.recipe).saves;
    }

    bool is_checkpointed() const { return !saves_of(models::kCheckpointSwitch).empty(); }
    /// A checkpointed layer saves nothing else.
    std::vector<NamedTerm> checkpointed(std::optional<int64_t> element_bytes = std::nullopt) {
        add_all(saves_of(models::kCheckpointSwitch), element_bytes);
        return std::move(rows_);
    }

    bool is_deepspeed() const { return w_.recipe.fusion == models::Fusion::kDeepSpeed; }
    /// Whether norms return fp32 under autocast.
    bool norms_in_fp32() const { return w_.recipe.layer_norm == models::LayerNorm::kOriginal; }
    /// Bytes of an element of a layer's input and output under autocast: a norm's output in
    /// post-LN, the fp32 residual stream in pre-LN.
    int64_t stream_bytes() const {
        const bool in_fp32 =
            w_.recipe.fusion != models::Fusion::kSubstation && (pre_norm_ || norms_in_fp32());
        return in_fp32 ? 4 : 2;
    }
    void add_copies_of_weights() {
        add("attention weights", bytes_of(2 * 4, Unit::kHiddenSquared));
        add("MLP weights", bytes_of(2 * 2, Unit::kHiddenIntermediate));
    }

    bool is_saved(SavedWhen when) const {
        switch (when) {
            case SavedWhen::kAlways:
                return true;
            case SavedWhen::kDropout:
                return w_.model.attention_dropout_p > 0;
            case SavedWhen::kHiddenDropout:
                return w_.model.hidden_dropout_p > 0;
            case SavedWhen::kInnerDropout:
                return w_.model.inner_dropout_p() > 0;
            case SavedWhen::kGelu:
                return traits_.activation != Activation::kRelu;
            case SavedWhen::kRelu:
                return traits_.activation == Activation::kRelu;
            case SavedWhen::kTanhGelu:
                return traits_.activation == Activation::kTanhGelu;
            case SavedWhen::kErfGelu:
                return traits_.activation == Activation::kGelu;
            case SavedWhen::kOffCpu:
                return !on_cpu_;
            case SavedWhen::kPaddedRows:
                return w_.padding != models::Padding::kNone &&
                       (w_.seq_len % kBiasMultiple != 0 || models::is_autocast(w_.precision));
        }
        return false;
    }

    /// `element_bytes`: of an element, where that is not e.
    void add_all(std::span<const SavedTensor> saves,
                 std::optional<int64_t> element_bytes = std::nullopt) {
        for (const SavedTensor& saved : saves) {
            if (!is_saved(saved.when)) continue;
            const bool is_mask =
                saved.tensor == models::kDropoutMask || saved.tensor == models::kBranchMask;
            if (is_mask) {
                add_mask(saved.tensor, saved.term.unit);
            } else {
                const bool is_element_mask = saved.tensor == models::kElementMask;
                const bool is_fixed = element_bytes && saved.term.scale == Scale::kElement;
                add(is_element_mask ? models::kDropoutMask : saved.tensor,
                    is_fixed ? bytes_of(*element_bytes * saved.term.in_one, saved.term.unit)
                             : saved.term);
            }
        }
    }

    /// A mask in the form of the switch `masks`; nothing if that regenerates it.
    void add_mask(std::string_view tensor, Unit unit) {
        for (const SavedTensor& form : saves_of(models::kMasksSwitch)) {
            if (form.tensor == tensor) add(tensor, {unit, form.term.scale});
        }
    }
    void add_dropout_mask(Unit unit, double p) {
        if (p > 0) add_mask(models::kDropoutMask, unit);
    }

    int64_t wide_bytes() const { return std::max<int64_t>(4, models::weight_bytes(w_.precision)); }
    bool is_16_bit() const { return models::weight_bytes(w_.precision) == 2; }

    void norm(std::string_view input) {
        if (traits_.norm == Norm::kRmsNorm) return rms_norm(input);
        layer_norm(input);
    }
    /// Saves its input, in fp32 too where that is 16-bit, and the normalized value.
    void rms_norm(std::string_view input) {
        if (is_16_bit()) add("norm_input", bytes_of(4, Unit::kHidden));
        add(input, elements(Unit::kHidden));
        add("rstd", bytes_of(wide_bytes(), Unit::kRows));
        add("normalized", elements(Unit::kHidden));
    }
    void layer_norm(std::string_view input) {
        for (const SavedTensor& saved : saves_of(models::kLayerNormSwitch)) {
            add(saved.tensor == models::kInputOfNorm ? input : saved.tensor, saved.term);
        }
    }

    /// From the projections to the dropout before the residual. Cross attention projects the
    /// output of an encoder, which is an input of the stack.
    void attention(const models::AttentionNames& names) {
        add(names.input, elements(Unit::kHidden));
        share([this] {
            for (const char* name : {"query", "key", "value"}) add(name, elements(Unit::kHidden));
            if (traits_.has_fp32_softmax) {
                fp32_softmax();
            } else if (w_.recipe.checkpoint != models::Checkpoint::kAttentionCore) {
                add_all(saves_of(models::kAttentionSwitch));
            }
            add("context", elements(Unit::kHidden));
        });
        add_dropout_mask(Unit::kHidden, w_.model.hidden_dropout_p);
    }
    void fp32_softmax() {
        const double p = w_.model.attention_dropout_p;
        add("attention_probs", bytes_of(wide_bytes(), Unit::kScores));
        add_dropout_mask(Unit::kScores, p);
        if (p > 0) add("dropped_probs", elements(Unit::kScores));
        if (p == 0 && is_16_bit()) add("attention_probs cast", elements(Unit::kScores));
    }

    void autocast_norm(std::string_view input) {
        if (!norms_in_fp32()) return layer_norm(input);
        add(input, bytes_of(4, Unit::kHidden));
        add("mean", {Unit::kRows, Scale::kStatistic});
        add("rstd", {Unit::kRows, Scale::kStatistic});
    }
    /// torch's softmax returns fp32, and the product after it saves a 16-bit copy. DeepSpeed's
    /// layer has the op of dropout recomputation also where it recomputes nothing.
    void autocast_attention() {
        if (w_.recipe.attention != models::Attention::kEager || is_deepspeed()) {
            return add_all(saves_of(models::kAttentionSwitch), 2);
        }
        add("attention_probs", bytes_of(4, Unit::kScores));
        add_dropout_mask(Unit::kScores, w_.model.attention_dropout_p);
        add("dropped_probs", bytes_of(2, Unit::kScores));
    }
    /// Products that project to query, key and value.
    int num_projections() const {
        switch (w_.recipe.qkv) {
            case models::Qkv::kModel:
                return !traits_.stacked_projection.empty() || is_deepspeed() ? 1 : 3;
            case models::Qkv::kSeparate:
                return 3;
            case models::Qkv::kQueryKey:
            case models::Qkv::kKeyValue:
                return 2;
            case models::Qkv::kFused:
                return 1;
        }
        return 1;
    }

    const Workload& w_;
    bool on_cpu_;
    bool splits_positions_;
    const FamilyTraits& traits_;
    bool pre_norm_;
    bool shares_ = false;
    std::vector<NamedTerm> rows_;
};

// ---- its text: "n(16e+2)+T(2e+1)+4Rs" --------------------------------------------------------

constexpr std::array<std::string_view, 12> kUnitNames{
    "n", "f", "T", "R", "BAS", "BAr32(S)", "Br16(S)", "" /* a layer */, "H²", "HI", "H", "I"};

/// A unit and its factor: f is 4n if I = 4H.
struct Multiple {
    Unit unit;
    int64_t factor;
};

Multiple in_hidden_units(Unit unit, int64_t intermediate_per_hidden) {
    if (intermediate_per_hidden > 0) {
        if (unit == Unit::kIntermediate) return {Unit::kHidden, intermediate_per_hidden};
        if (unit == Unit::kHiddenIntermediate)
            return {Unit::kHiddenSquared, intermediate_per_hidden};
        if (unit == Unit::kIntermediateChannels)
            return {Unit::kHiddenChannels, intermediate_per_hidden};
    }
    return {unit, 1};
}

/// The text before a name: "" for 1, "4" for 4.
std::string coefficient(int64_t value) {
    return value == 1 ? std::string() : fmt::to_string(value);
}

struct Coefficients {
    int64_t elements = 0;    // times e
    int64_t bytes = 0;       // times 1
    int64_t statistics = 0;  // times s
};

std::string unit_to_text(std::string_view name, const Coefficients& c) {
    std::vector<std::string> parts;
    if (c.statistics > 0) parts.push_back(fmt::format("{}{}s", coefficient(c.statistics), name));
    if (c.elements > 0 && c.bytes > 0) {
        parts.push_back(fmt::format("{}({}e+{})", name, coefficient(c.elements), c.bytes));
    } else if (c.elements > 0) {
        parts.push_back(fmt::format("{}e{}", coefficient(c.elements), name));
    } else if (c.bytes > 0) {
        parts.push_back(name.empty() ? fmt::to_string(c.bytes)
                                     : fmt::format("{}{}", coefficient(c.bytes), name));
    }
    return fmt::format("{}", fmt::join(parts, "+"));
}

/// The sum of the terms, with terms of the same unit joined: "en", "2T", "Rs", "c8(4n)".
/// `intermediate_per_hidden` is I/H if that is a whole number, and then f is written as a multiple
/// of n; otherwise it is 0.
std::string sum_to_text(const std::vector<Term>& terms, int64_t intermediate_per_hidden) {
    std::array<Coefficients, kUnitNames.size()> by_unit{};
    std::vector<std::pair<std::string, int64_t>> packed;  // "c8(4n)" and its factor
    for (const Term& term : terms) {
        const auto [unit, factor] = in_hidden_units(term.unit, intermediate_per_hidden);
        Coefficients& c = by_unit[static_cast<std::size_t>(unit)];
        switch (term.scale) {
            case Scale::kElement:
                c.elements += factor * term.in_one;
                break;
            case Scale::kBytes:
                c.bytes += factor * term.bytes;
                break;
            case Scale::kStatistic:
                c.statistics += factor;
                break;
            case Scale::kBits: {
                const std::string text = fmt::format("c8({}{})", coefficient(factor),
                                                     kUnitNames[static_cast<std::size_t>(unit)]);
                bool known = false;
                for (auto& [name, count] : packed) {
                    if (name == text) ++count, known = true;
                }
                if (!known) packed.emplace_back(text, 1);
            }
        }
    }
    std::vector<std::string> parts;
    for (std::size_t unit = 0; unit < by_unit.size(); ++unit) {
        if (auto text = unit_to_text(kUnitNames[unit], by_unit[unit]); !text.empty()) {
            parts.push_back(std::move(text));
        }
    }
    for (const auto& [name, count] : packed) parts.push_back(coefficient(count) + name);
    return fmt::format("{}", fmt::join(parts, "+"));
}

/// Why there is no closed form; empty if there is one.
std::string_view missing_reason(const Workload& w) {
    if (!models::is_autocast(w.precision)) return {};
    if (w.model.traits().norm == Norm::kRmsNorm) return "none is known for T5 under autocast";
    if (w.recipe.gelu == models::Gelu::kPython) {
        return "none is known for gelu=python under autocast";
    }
    return {};
}

}  // namespace

models::Result<ClosedForm> closed_form_of_layer(const Workload& workload, bool on_cpu,
                                                const LayerSplit& split) {
    if (const auto missing = missing_reason(workload); !missing.empty()) {
        return models::fail("There is no formula to compare with: {}.", missing);
    }
    const LayerSizes sizes(workload, on_cpu, split.num_gpus);
    LayerRows layer(workload, on_cpu, split.by_positions);
    const bool autocast = models::is_autocast(workload.precision);
    const std::vector<NamedTerm> rows = autocast ? layer.autocast() : layer.uniform();

    ClosedForm form;
    std::vector<Term> whole, shared;
    for (const NamedTerm& row : rows) {
        const bool is_shared = row.is_shared && split.num_gpus > 1;
        const std::string text = sum_to_text({row.term}, sizes.intermediate_per_hidden());
        form.rows.push_back({std::string(row.tensor),
                             is_shared ? fmt::format("{}/{}", text, split.num_gpus) : text,
                             sizes.bytes(row.term, is_shared)});
        form.total_bytes += form.rows.back().size_bytes;
        (is_shared ? shared : whole).push_back(row.term);
    }
    form.formula = sum_to_text(whole, sizes.intermediate_per_hidden());
    if (!shared.empty()) {
        form.formula +=
            fmt::format("{}({})/{}", whole.empty() ? "" : "+",
                        sum_to_text(shared, sizes.intermediate_per_hidden()), split.num_gpus);
    }
    return form;
}

namespace {

/// The recipe of `layer` if its neighbours have the same one, otherwise nullopt: the recipes of
/// both layers decide what is saved between them.
std::optional<models::Recipe> recipe_around(const Trace& trace, int64_t layer,
                                            const models::Recipe& of_workload) {
    const std::string_view text = trace.text(trace.run().recipe_per_layer);
    if (text.empty()) return of_workload;
    const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!json.is_array() || static_cast<int64_t>(json.size()) < layer + 2) return std::nullopt;
    const auto index = static_cast<std::size_t>(layer);
    if (!json[index].is_string()) return std::nullopt;
    if (json[index] != json[index - 1] || json[index] != json[index + 1]) return std::nullopt;
    const auto recipe = models::parse_recipe(json[index].get_ref<const std::string&>());
    return recipe ? std::optional(*recipe) : std::nullopt;
}

bool differs_by_layer(const Trace& trace) {
    const std::string_view text = trace.text(trace.run().recipe_per_layer);
    if (text.empty()) return false;
    const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!json.is_array()) return true;
    return std::ranges::any_of(
        json, [&](const nlohmann::json& recipe) { return recipe != json.front(); });
}

/// A layer in the middle of the stack; nullopt: there is none that begins a checkpoint.
std::optional<int64_t> middle_layer(const models::Workload& workload) {
    const int64_t num_layers = workload.model.num_layers;
    const int64_t stride =
        std::max<int64_t>(models::layers_per_checkpoint(workload.recipe.checkpoint, num_layers), 1);
    const int64_t layer = std::max(num_layers / 2 / stride * stride, stride);
    return layer < num_layers - 1 ? std::optional(layer) : std::nullopt;
}

struct LayerOfStep {
    models::Workload workload;
    LayerSplit split;
};

/// What a layer of the trace trains. Errors: why there is none to compare.
models::Result<LayerOfStep> step_of(const Trace& trace) {
    if (auto workload = workload_of(trace)) return LayerOfStep{std::move(*workload)};
    const auto program = program_of(trace);
    if (!program || !program->spread) return models::fail("the trace does not say which model ran");
    const auto& [workload, parallel] = *program->spread;
    if (parallel.strategy == models::Strategy::kPipeline) {
        return models::fail("a stage of a pipeline has some of the layers");
    }
    const bool is_split = parallel.strategy == models::Strategy::kTensor;
    return LayerOfStep{workload, {.num_gpus = is_split ? parallel.group_size : 1}};
}

/// "saves 452,984,832 B for backward, equal to the closed form n(16e+2)+T(2e+1)+4Rs."
std::string what_it_saves(const ClosedFormCheck& check) {
    const std::string saved =
        fmt::format("saves {} for backward", format_exact_bytes(check.ledger_bytes));
    if (check.equal()) {
        return fmt::format("{}, equal to the formula {}.", saved, check.form.formula);
    }
    return fmt::format("{}; the formula {} gives {}.", saved, check.form.formula,
                       format_exact_bytes(check.form.total_bytes));
}

}  // namespace

models::Result<ClosedFormCheck> check_against_closed_form(const Trace& trace,
                                                          const Ledger& ledger) {
    const auto nothing = [](std::string_view why) {
        return models::fail("There is no formula to compare with: {}.", why);
    };
    auto step = step_of(trace);
    if (!step) return nothing(step.error().message);
    models::Workload& workload = step->workload;
    if (ledger.rows.empty()) return nothing("nothing is saved for backward");
    if (workload.model.num_layers < 3) {
        return nothing(fmt::format(
            "formulas hold for a middle layer, which shares its input and output with its "
            "neighbours, and {} {} no middle; capture at least three layers",
            workload.model.num_layers,
            workload.model.num_layers == 1 ? "layer has" : "layers have"));
    }
    const auto layer = middle_layer(workload);
    if (!layer) return nothing("no middle layer begins a checkpoint; capture at least four layers");
    const auto recipe = recipe_around(trace, *layer, workload.recipe);
    if (!recipe) return nothing("the middle layer's neighbours have other recipes");
    if (recipe->checkpoint == models::Checkpoint::kSqrt && differs_by_layer(trace)) {
        return nothing("where recipes differ by layer, checkpoints begin at other layers");
    }
    workload.recipe = *recipe;
    workload.layer_recipes.clear();
    auto form =
        closed_form_of_layer(workload, trace.run().source == Source::kMeasuredCpu, step->split);
    if (!form) return tl::unexpected(form.error());

    ClosedFormCheck check{.layer = *layer, .form = std::move(*form)};
    for (const LedgerRow& row : ledger.rows) {
        if (row.layer == *layer) check.ledger_bytes += row.size_bytes;
    }
    return check;
}

models::Result<ClosedFormCheck> check_against_closed_form(const Trace& trace) {
    return check_against_closed_form(trace, build_ledger(trace));
}

std::string to_sentence(const ClosedFormCheck& check) {
    return fmt::format("Layer {} {}", check.layer, what_it_saves(check));
}

std::string to_sentence_below_rows(const ClosedFormCheck& check) {
    return fmt::format("Checked on the middle layer, {}: it {}", check.layer, what_it_saves(check));
}

}  // namespace profiler
