#pragma once

#include <cstdint>
#include <limits>
#include <vector>

/// Which layer gets which recipe: exact dynamic programming over layers.
///
/// A step's memory over time is a mountain: forward climbs by what each layer keeps, backward
/// descends, and each layer stands above that slope by its own temporaries. With k_i kept by layer
/// i, f_i and w_i what lives for a moment in its forward and backward, and g the gradients that a
/// layer's backward leaves,
///
///     peak = base + max_i { k_0 + .. + k_i-1 + f_i,   k_0 + .. + k_i + w_i + (L-1-i) g,
///                           k_0 + .. + k_L-1 + head }
///
/// and time is a sum over layers. A choice for the first i layers matters to the rest by three
/// numbers alone: bytes saved, peak so far, time. Whatever is no better than another choice in any
/// of the three is dropped; all others are carried on, so nothing that is optimal is lost.
namespace profiler {

/// A recipe of one layer.
struct LayerOption {
    int64_t saved_bytes = 0;     // from forward to backward
    int64_t forward_bytes = 0;   // above what lives when its forward begins, at its highest
    int64_t backward_bytes = 0;  // above what lives when its backward begins
    int64_t time_ns = 0;         // forward and backward
};

struct LayerProblem {
    std::vector<LayerOption> options;  // the same for each layer
    int64_t num_layers = 0;
    int64_t gradient_bytes = 0;    // that each layer's backward leaves
    int64_t head_bytes = 0;        // that loss and head take above all that is kept
    int64_t base_bytes = 0;        // what lives when forward begins
    int64_t least_peak_bytes = 0;  // of what no recipe changes: the optimizer's
    int64_t most_peak_bytes = std::numeric_limits<int64_t>::max();  // mixes above it are dropped
};

struct LayerChoice {
    int64_t peak_bytes = 0;
    int64_t saved_bytes = 0;
    int64_t time_ns = 0;            // of all layers
    std::vector<uint16_t> options;  // by layer
};

/// Peak, saved bytes and time of a choice.
LayerChoice evaluate_choice(const LayerProblem& problem, std::vector<uint16_t> options);

/// The options that no other one beats in every number, of equal ones the first.
std::vector<uint16_t> useful_options(const LayerProblem& problem);

/// All mixes that no other one beats in both peak and time: peaks rise, times fall. Of equal ones
/// the first found. In each, layers of one option stand together where that costs no memory.
std::vector<LayerChoice> pareto_layer_choices(const LayerProblem& problem);

/// The mix of the smallest peak, whatever its time. Requires an option.
LayerChoice smallest_choice(const LayerProblem& problem);

}  // namespace profiler
