#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

/// A and B in a line of figures: above the picture of a layer, and in the bar of the window.
namespace profiler {

struct Comparison;
struct CompareView;

/// One number of A and B. A count has no share.
struct PairFigure {
    std::string label;                 // "layer 5", "saved for backward"
    std::array<std::string, 2> value;  // of A and B; empty: not known
    std::string difference;            // "-48.0 MiB", "+3"
    int sign = 0;                      // of B minus A; for bytes less is good
    bool more_is_good = false;
    std::array<double, 2> share{};  // of the largest number of bytes in the line; 0 for a count
    std::array<double, 2> start{};  // the share of the figure before, which is a part of this one
};

/// What B allows and costs beside A, in two figures: the largest batch on the planned GPU, and the
/// time of a step. `a` and `b` are columns of the comparison; without `b` the figures are A's. What
/// is not known is left out.
std::vector<PairFigure> pair_figures(const Comparison& comparison, const CompareView& view,
                                     std::size_t a, std::optional<std::size_t> b);

}  // namespace profiler
