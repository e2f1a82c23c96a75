#include "profiler/analysis/closed_form.h"

#include "profiler/analysis/closed_form_text.h"

#include <fmt/format.h>

#include <utility>

namespace profiler {
namespace {

using models::Attention;
using models::Checkpoint;
using models::Family;
using models::Gelu;
using models::LayerNorm;
using models::Masks;
using models::Workload;

/// Sizes of one layer in elements, and the bytes of an element and of a LayerNorm statistic.
struct LayerSizes {
    explicit LayerSizes(const Workload& w, bool on_cpu)
        : rows(w.batch_size * w.seq_len),
          hidden(w.model.hidden_size),
          intermediate(w.model.intermediate_size),
          head_rows(w.batch_size * w.model.num_heads * w.seq_len),
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
                return head_rows * seq_len;
            case Unit::kRows:
                return rows;
            case Unit::kHeadRows:
                return head_rows;
            case Unit::kHiddenSquared:
                return hidden * hidden;
            case Unit::kHiddenIntermediate:
                return hidden * intermediate;
        }
        return 0;
    }
    int64_t bytes(const Term& term) const {
        const int64_t elements = count(term.unit);
        switch (term.scale) {
            case Scale::kElement:
                return elements * element_bytes;
            case Scale::kBytes:
                return elements * term.bytes;
            case Scale::kStatistic:
                return elements * statistic_bytes;
            case Scale::kBits:
                return (elements + 7) / 8;
        }
        return 0;
    }
    /// I/H when whole, else 0.
    int64_t intermediate_per_hidden() const {
        return intermediate % hidden == 0 ? intermediate / hidden : 0;
    }

    int64_t rows, hidden, intermediate, head_rows, seq_len;
    int64_t element_bytes, statistic_bytes;
};

struct NamedTerm {
    const char* tensor;
    Term term;
};

constexpr Term elements(Unit unit) { return {unit, Scale::kElement}; }
constexpr Term bytes_of(int64_t bytes, Unit unit) { return {unit, Scale::kBytes, bytes}; }

/// What is called what in a layer: the names that models/layers gives to the tensors.
struct LayerNames {
    const char* attention_input;  // of the projections to query, key and value
    const char* mlp_input;
    const char* first_norm_input;
    const char* second_norm_input;
};
constexpr LayerNames kPostNormNames{"hidden_states", "attention_output", "attention_residual",
                                    "output_residual"};
constexpr LayerNames kPreNormNames{"ln_1_output", "ln_2_output", "hidden_states",
                                   "attention_residual"};

/// The rows of one layer, in the order in which its forward keeps them.
///
///     post-LN   x -> attention -> + x -> LayerNorm -> MLP -> + -> LayerNorm      (BERT)
///     pre-LN    x -> LayerNorm -> attention -> + x -> LayerNorm -> MLP -> +      (GPT-2)
///
/// In post-LN the layer's input is the output of the LayerNorm before; with from_output that norm
/// keeps it first, and this layer's own output takes its place in the sum.
class LayerRows {
public:
    explicit LayerRows(const Workload& workload)
        : w_(workload),
          pre_norm_(workload.model.family == Family::kGpt2),
          names_(pre_norm_ ? kPreNormNames : kPostNormNames) {}

    std::vector<NamedTerm> uniform() {
        if (w_.recipe.checkpoint == Checkpoint::kPerLayer) {
            add("hidden_states", elements(Unit::kHidden));
            return std::move(rows_);
        }
        if (pre_norm_) layer_norm(names_.first_norm_input);
        add(names_.attention_input, elements(Unit::kHidden));
        attention();
        keep_mask(Unit::kHidden, w_.model.hidden_dropout_p);
        layer_norm(pre_norm_ ? names_.second_norm_input : names_.first_norm_input);
        add(names_.mlp_input, elements(Unit::kHidden));
        gelu();
        keep_mask(Unit::kHidden, w_.model.hidden_dropout_p);
        if (!pre_norm_) layer_norm(names_.second_norm_input);
        return std::move(rows_);
    }

    /// Autocast keeps a 16-bit copy of what each linear reads (of its weight too), and what softmax
    /// and LayerNorm read and write in fp32. BERT's three projections each make their own copy.
    std::vector<NamedTerm> autocast() {
        if (pre_norm_) autocast_norm(names_.first_norm_input);
        for (int copy = 0; copy < (pre_norm_ ? 1 : 3); ++copy) {
            add(names_.attention_input, bytes_of(2, Unit::kHidden));
        }
        for (const char* name : {"query", "key", "value"}) add(name, bytes_of(2, Unit::kHidden));
        add("attention_probs", bytes_of(4, Unit::kScores));
        keep_mask(Unit::kScores, w_.model.attention_dropout_p);
        add("dropped_probs", bytes_of(2, Unit::kScores));
        add("context", bytes_of(2, Unit::kHidden));
        keep_mask(Unit::kHidden, w_.model.hidden_dropout_p);
        autocast_norm(pre_norm_ ? names_.second_norm_input : names_.first_norm_input);
        add(names_.mlp_input, bytes_of(2, Unit::kHidden));
        add("gelu_input", bytes_of(2, Unit::kIntermediate));
        add("gelu_output", bytes_of(2, Unit::kIntermediate));
        keep_mask(Unit::kHidden, w_.model.hidden_dropout_p);
        if (!pre_norm_) autocast_norm(names_.second_norm_input);
        add("attention weights", bytes_of(2 * 4, Unit::kHiddenSquared));
        add("MLP weights", bytes_of(2 * 2, Unit::kHiddenIntermediate));
        return std::move(rows_);
    }

private:
    void add(const char* tensor, Term term) { rows_.push_back({tensor, term}); }

    /// Of a dropout: a byte or a bit an element, or drawn again from its counter.
    void keep_mask(Unit unit, double p) {
        if (p > 0 && w_.recipe.masks != Masks::kPhilox) add("keep_mask", mask(unit));
    }
    Term mask(Unit unit) const {
        return w_.recipe.masks == Masks::kByte ? bytes_of(1, unit) : Term{unit, Scale::kBits};
    }

    void attention() {
        const double p = w_.model.attention_dropout_p;
        for (const char* name : {"query", "key", "value"}) add(name, elements(Unit::kHidden));
        if (w_.recipe.attention == Attention::kFlash) {
            add("logsumexp", bytes_of(4, Unit::kHeadRows));
        } else {
            add("attention_probs", elements(Unit::kScores));
            keep_mask(Unit::kScores, p);
            if (p > 0 && w_.recipe.attention == Attention::kMaterialized) {
                add("dropped_probs", elements(Unit::kScores));
            }
        }
        add("context", elements(Unit::kHidden));
    }

    void layer_norm(const char* input) {
        if (w_.recipe.layer_norm == LayerNorm::kFromOutput) {
            add("rstd", bytes_of(4, Unit::kRows));  // fp32 in every precision
            return;
        }
        add(input, elements(Unit::kHidden));
        add("mean", {Unit::kRows, Scale::kStatistic});
        add("rstd", {Unit::kRows, Scale::kStatistic});
    }
    void autocast_norm(const char* input) {
        add(input, bytes_of(4, Unit::kHidden));
        add("mean", {Unit::kRows, Scale::kStatistic});
        add("rstd", {Unit::kRows, Scale::kStatistic});
    }

    /// Of 0.5 x (1 + f(...)): f's argument or value, the two factors and their product.
    void python_gelu() {
        const bool tanh = w_.model.family == Family::kGpt2;
        if (tanh) add("gelu_input", elements(Unit::kIntermediate));  // of the power
        for (const char* name : {tanh ? "tanh" : "erf_input", "gelu_half", "gelu_factor"}) {
            add(name, elements(Unit::kIntermediate));
        }
        add("gelu_output", elements(Unit::kIntermediate));
    }

    void gelu() {
        if (w_.recipe.gelu == Gelu::kPython) return python_gelu();
        if (w_.recipe.gelu != Gelu::kInPlace) add("gelu_input", elements(Unit::kIntermediate));
        if (w_.recipe.gelu == Gelu::kRecompute) return;
        if (w_.recipe.gelu == Gelu::kInPlace) add("branch_mask", mask(Unit::kIntermediate));
        add("gelu_output", elements(Unit::kIntermediate));
    }

    const Workload& w_;
    bool pre_norm_;
    const LayerNames& names_;
    std::vector<NamedTerm> rows_;
};

/// Why there is no closed form; empty where there is one.
std::string missing_reason(const Workload& w, bool on_cpu) {
    const auto& recipe = w.recipe;
    if (w.model.family == Family::kSubstation) {
        return "no closed form of Substation's layer has been checked against a run";
    }
    if (recipe.fusion != models::Fusion::kNone) {
        return fmt::format("no closed form of the fusion '{}' has been checked against a run",
                           models::kFusionNames[static_cast<std::size_t>(recipe.fusion)]);
    }
    if (recipe.checkpoint == Checkpoint::kSqrt) {
        return "with checkpoint=sqrt a layer keeps something only at the start of a segment";
    }
    if (recipe.attention == Attention::kEfficient || recipe.attention == Attention::kCudnn) {
        return "what the efficient and cuDNN attention keep depends on the GPU";
    }
    if (recipe.attention == Attention::kFlash && w.model.attention_dropout_p > 0) {
        return on_cpu ? "flash attention has no dropout on the CPU"
                      : "what flash attention keeps for its dropout has not been checked";
    }
    const bool is_stock = recipe.gelu == Gelu::kOriginal &&
                          recipe.layer_norm == LayerNorm::kOriginal &&
                          recipe.attention == Attention::kMaterialized &&
                          recipe.masks == Masks::kByte && recipe.checkpoint == Checkpoint::kNone;
    if (models::is_autocast(w.precision) && !is_stock) {
        return "under autocast a closed form is known for the original recipe only";
    }
    return {};
}

}  // namespace

models::Result<ClosedForm> closed_form_of_layer(const Workload& workload, bool on_cpu) {
    if (const auto missing = missing_reason(workload, on_cpu); !missing.empty()) {
        return models::fail("There is no closed form to compare with: {}.", missing);
    }
    const LayerSizes sizes(workload, on_cpu);
    LayerRows layer(workload);
    const bool autocast = models::is_autocast(workload.precision);
    const std::vector<NamedTerm> rows = autocast ? layer.autocast() : layer.uniform();

    ClosedForm form;
    std::vector<Term> terms;
    for (const NamedTerm& row : rows) {
        form.rows.push_back({row.tensor, to_text(row.term, sizes.intermediate_per_hidden()),
                             sizes.bytes(row.term)});
        form.total_bytes += form.rows.back().size_bytes;
        terms.push_back(row.term);
    }
    form.formula = sum_to_text(terms, sizes.intermediate_per_hidden());
    return form;
}

}  // namespace profiler
