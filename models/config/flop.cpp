#include "models/config/flop.h"

namespace models {
namespace {

/// The sizes that products are made of.
struct Sizes {
    explicit Sizes(const Workload& w)
        : tokens(w.batch_size * w.seq_len),
          hidden(w.model.hidden_size),
          intermediate(w.model.intermediate_size),
          scores(tokens * w.seq_len * hidden) {}

    int64_t tokens;
    int64_t hidden;
    int64_t intermediate;
    int64_t scores;  // B S² H: multiplications of QKᵀ, or of the product with V

    /// A linear layer from H to H.
    int64_t projection() const { return 2 * tokens * hidden * hidden; }
};

int64_t head_flop(const Workload& w) {
    const Sizes s(w);
    switch (w.head) {
        case Head::kLayers:
            return 0;
        case Head::kMlm:
            return s.projection() + 2 * s.tokens * s.hidden * w.model.vocab_size;
        case Head::kSquad:
            return 2 * s.tokens * s.hidden * 2;
        case Head::kLm:
            return 2 * s.tokens * s.hidden * w.model.vocab_size;
    }
    return 0;
}

/// What backward of one layer computes again.
int64_t recomputed_flop(const Workload& w, const Recipe& recipe) {
    const Sizes s(w);
    int64_t flop = 0;
    if (layers_per_checkpoint(recipe.checkpoint, w.model.num_layers) > 0) {
        flop += layer_forward_flop(w);
    }
    if (recipe.checkpoint == Checkpoint::kAttentionCore) flop += 4 * s.scores;
    const bool is_fused = recipe.attention == Attention::kFlash ||
                          recipe.attention == Attention::kEfficient ||
                          recipe.attention == Attention::kCudnn;
    if (is_fused) flop += 2 * s.scores;  // QKᵀ, whose softmax is not stored
    return flop;
}

/// Products that compute the gradient of a layer's input alone. Where a normalization stands before
/// the projections, its own gradients need these products.
int64_t input_gradient_flop(const Workload& w) {
    const Sizes s(w);
    const FamilyTraits& traits = w.model.traits();
    if (!traits.is_pre_norm()) return 3 * s.projection();
    return traits.cross_attention ? 2 * s.projection() : 0;  // of its output, by key and value
}

}  // namespace

int64_t layer_forward_flop(const Workload& workload) {
    const Sizes s(workload);
    const int64_t num_attentions = workload.model.traits().cross_attention ? 2 : 1;
    const int64_t attention = num_attentions * (4 * s.projection() + 4 * s.scores);
    return attention + 4 * s.tokens * s.hidden * s.intermediate;
}

int64_t forward_flop(const Workload& workload) {
    return workload.model.num_layers * layer_forward_flop(workload) + head_flop(workload);
}

Flop step_flop(const Workload& workload) {
    Flop flop;
    flop.model = 3 * forward_flop(workload);
    flop.hardware = flop.model;
    const LayerRecipes recipes = layer_recipes_of(workload);
    for (int64_t layer = 0; layer < workload.model.num_layers; ++layer) {
        flop.hardware += recomputed_flop(workload, recipe_of_layer(recipes, layer));
    }
    flop.model *= workload.gradient_accumulation_steps;
    flop.hardware *= workload.gradient_accumulation_steps;
    return flop;
}

Flop layer_flop(const Workload& workload) {
    const int64_t forward = layer_forward_flop(workload);
    return {.model = 3 * forward,
            .hardware = 3 * forward - input_gradient_flop(workload) +
                        recomputed_flop(workload, workload.recipe)};
}

}  // namespace models
