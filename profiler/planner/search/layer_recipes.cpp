#include "profiler/planner/search/layer_recipes.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace profiler {
namespace {

/// A choice for the layers so far.
struct Label {
    int64_t saved_bytes = 0;
    int64_t peak_bytes = 0;  // without the base
    int64_t time_ns = 0;
    uint32_t before = 0;  // index of the label without the last layer
    uint16_t option = 0;  // of the last layer
};

Label extend(const LayerProblem& problem, const Label& label, int64_t layer, uint16_t index) {
    const LayerOption& option = problem.options[index];
    Label next = label;
    next.option = index;
    next.time_ns += option.time_ns;
    next.saved_bytes += option.saved_bytes;
    const int64_t gradients = (problem.num_layers - 1 - layer) * problem.gradient_bytes;
    next.peak_bytes = std::max({label.peak_bytes, label.saved_bytes + option.forward_bytes,
                                next.saved_bytes + option.backward_bytes + gradients});
    return next;
}

int64_t final_peak(const LayerProblem& problem, const Label& label) {
    const int64_t peak = std::max(label.peak_bytes, label.saved_bytes + problem.head_bytes);
    return std::max(problem.base_bytes + peak, problem.least_peak_bytes);
}

/// Finds labels that another label equals or beats in all three numbers, in O(log n) each.
class Staircase {
public:
    /// Call it by rising time. False: the label is beaten.
    bool add(const Label& label) {
        auto step = lowest_peak_.upper_bound(label.saved_bytes);
        if (step != lowest_peak_.begin() && std::prev(step)->second <= label.peak_bytes) {
            return false;
        }
        while (step != lowest_peak_.end() && step->second >= label.peak_bytes) {
            step = lowest_peak_.erase(step);
        }
        lowest_peak_[label.saved_bytes] = label.peak_bytes;
        return true;
    }

private:
    std::map<int64_t, int64_t> lowest_peak_;  // by saved bytes; peaks fall as saved bytes rise
};

void drop_dominated(std::vector<Label>& labels) {
    std::ranges::stable_sort(labels, {}, [](const Label& label) {
        return std::tie(label.time_ns, label.saved_bytes, label.peak_bytes);
    });
    Staircase staircase;
    std::erase_if(labels, [&](const Label& label) { return !staircase.add(label); });
}

/// The same choice in another order: options that save less first, then those with larger
/// temporaries. Sums stay the same, and layers with one option are side by side.
LayerChoice in_order(const LayerProblem& problem, LayerChoice choice) {
    std::vector<uint16_t> sorted = choice.options;
    std::ranges::stable_sort(sorted, [&](uint16_t a, uint16_t b) {
        const LayerOption& x = problem.options[a];
        const LayerOption& y = problem.options[b];
        return std::tuple(x.saved_bytes, -x.backward_bytes, a) <
               std::tuple(y.saved_bytes, -y.backward_bytes, b);
    });
    LayerChoice ordered = evaluate_choice(problem, std::move(sorted));
    return ordered.peak_bytes <= choice.peak_bytes ? ordered : choice;
}

}  // namespace

LayerChoice evaluate_choice(const LayerProblem& problem, std::vector<uint16_t> options) {
    Label label;
    for (std::size_t i = 0; i < options.size(); ++i) {
        label = extend(problem, label, static_cast<int64_t>(i), options[i]);
    }
    return {.peak_bytes = final_peak(problem, label),
            .saved_bytes = label.saved_bytes,
            .time_ns = label.time_ns,
            .options = std::move(options)};
}

std::vector<uint16_t> useful_options(const LayerProblem& problem) {
    const auto beats = [&](std::size_t a, std::size_t b) {
        const LayerOption& x = problem.options[a];
        const LayerOption& y = problem.options[b];
        const auto all = [](const LayerOption& o) {
            return std::tie(o.saved_bytes, o.forward_bytes, o.backward_bytes, o.time_ns);
        };
        if (all(x) == all(y)) return a < b;
        return x.saved_bytes <= y.saved_bytes && x.forward_bytes <= y.forward_bytes &&
               x.backward_bytes <= y.backward_bytes && x.time_ns <= y.time_ns;
    };
    std::vector<uint16_t> useful;
    for (std::size_t b = 0; b < problem.options.size(); ++b) {
        bool is_beaten = false;
        for (std::size_t a = 0; a < problem.options.size(); ++a) {
            is_beaten |= a != b && beats(a, b);
        }
        if (!is_beaten) useful.push_back(static_cast<uint16_t>(b));
    }
    return useful;
}

std::vector<LayerChoice> pareto_layer_choices(const LayerProblem& problem) {
    const std::vector<uint16_t> useful = useful_options(problem);
    std::vector<std::vector<Label>> layers{{Label{}}};
    for (int64_t layer = 0; layer < problem.num_layers; ++layer) {
        std::vector<Label> next;
        for (uint32_t i = 0; i < layers.back().size(); ++i) {
            for (const uint16_t option : useful) {
                Label label = extend(problem, layers.back()[i], layer, option);
                label.before = i;
                if (final_peak(problem, label) <= problem.most_peak_bytes) next.push_back(label);
            }
        }
        drop_dominated(next);
        layers.push_back(std::move(next));
    }

    std::vector<LayerChoice> choices;
    for (const Label& last : layers.back()) {
        LayerChoice choice{
            .peak_bytes = final_peak(problem, last),
            .saved_bytes = last.saved_bytes,
            .time_ns = last.time_ns,
            .options = std::vector<uint16_t>(static_cast<std::size_t>(problem.num_layers))};
        const Label* label = &last;
        for (std::size_t i = choice.options.size(); i-- > 0;) {
            choice.options[i] = label->option;
            label = &layers[i][label->before];
        }
        choices.push_back(std::move(choice));
    }
    std::ranges::stable_sort(choices, {}, [](const LayerChoice& choice) {
        return std::tie(choice.peak_bytes, choice.time_ns, choice.saved_bytes);
    });
    int64_t fastest_ns = std::numeric_limits<int64_t>::max();
    std::erase_if(choices, [&](const LayerChoice& choice) {
        if (choice.time_ns >= fastest_ns) return true;
        fastest_ns = choice.time_ns;
        return false;
    });
    for (LayerChoice& choice : choices) choice = in_order(problem, std::move(choice));
    return choices;
}

LayerChoice smallest_choice(const LayerProblem& problem) {
    LayerProblem timeless = problem;
    timeless.most_peak_bytes = std::numeric_limits<int64_t>::max();
    for (LayerOption& option : timeless.options) option.time_ns = 0;
    return evaluate_choice(problem, pareto_layer_choices(timeless).front().options);
}

}  // namespace profiler
