#pragma once

#include <cstdint>
#include <limits>
#include <vector>

/// Which layer gets which recipe: exact dynamic programming over layers.
///
/// During forward, memory rises by what each layer saves for backward; during backward it falls
/// again. Each layer adds its own temporaries on top. With k_i the bytes that layer i saves, f_i
/// and w_i the temporaries of its forward and backward, and g the gradients that the backward of a
/// layer leaves,
///
///     peak = base + max_i { k_0 + .. + k_i-1 + f_i,   k_0 + .. + k_i + w_i + (L-1-i) g,
///                           k_0 + .. + k_L-1 + head }
///
/// and time is a sum over layers. Only three numbers of a choice for the first i layers matter to
/// the remaining layers: bytes saved, peak so far and time. A choice that another one equals or
/// beats in all three is dropped. All others are kept, so no optimal choice is lost.
namespace profiler {

/// What one recipe costs a layer.
struct LayerOption {
    int64_t saved_bytes = 0;     // from forward to backward
    int64_t forward_bytes = 0;   // highest rise during its forward
    int64_t backward_bytes = 0;  // highest rise during its backward
    int64_t time_ns = 0;         // forward and backward
};

struct LayerProblem {
    std::vector<LayerOption> options;  // the same for each layer
    int64_t num_layers = 0;
    int64_t gradient_bytes = 0;    // that each layer's backward leaves
    int64_t head_bytes = 0;        // that head and loss need on top of all saved bytes
    int64_t base_bytes = 0;        // that live when forward begins
    int64_t least_peak_bytes = 0;  // the optimizer's peak, which no recipe changes
    int64_t most_peak_bytes = std::numeric_limits<int64_t>::max();  // drops choices above it
};

struct LayerChoice {
    int64_t peak_bytes = 0;
    int64_t saved_bytes = 0;
    int64_t time_ns = 0;            // of all layers
    std::vector<uint16_t> options;  // by layer
};

/// Peak, saved bytes and time of a choice.
LayerChoice evaluate_choice(const LayerProblem& problem, std::vector<uint16_t> options);

/// The options that no other option equals or beats in every number. Of equal options the first.
std::vector<uint16_t> useful_options(const LayerProblem& problem);

/// All choices that no other choice beats in both peak and time, by rising peak and falling time.
/// Of equal choices the first found. Layers with the same option are placed side by side where that
/// costs no memory.
std::vector<LayerChoice> pareto_layer_choices(const LayerProblem& problem);

/// The choice with the smallest peak, whatever its time. Requires at least one option.
LayerChoice smallest_choice(const LayerProblem& problem);

}  // namespace profiler
