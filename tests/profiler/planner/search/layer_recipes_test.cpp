// The dynamic program is held against trying every choice.
#include "profiler/planner/search/layer_recipes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>

namespace {

using namespace profiler;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

using PeakAndTime = std::pair<int64_t, int64_t>;

/// All choices, then those that no other one beats: peaks rise, times fall.
std::vector<PeakAndTime> frontier_by_enumeration(const LayerProblem& problem) {
    std::vector<PeakAndTime> all;
    std::vector<uint16_t> options(static_cast<std::size_t>(problem.num_layers), 0);
    while (true) {
        const LayerChoice choice = evaluate_choice(problem, options);
        if (choice.peak_bytes <= problem.most_peak_bytes) {
            all.emplace_back(choice.peak_bytes, choice.time_ns);
        }
        std::size_t digit = 0;  // counts in a number system of as many digits as layers
        while (digit < options.size() && ++options[digit] == problem.options.size()) {
            options[digit++] = 0;
        }
        if (digit == options.size()) break;
    }
    std::sort(all.begin(), all.end());
    std::vector<PeakAndTime> frontier;
    for (const PeakAndTime& one : all) {
        if (frontier.empty() || one.second < frontier.back().second) frontier.push_back(one);
    }
    return frontier;
}

std::vector<PeakAndTime> frontier_of(const std::vector<LayerChoice>& choices) {
    std::vector<PeakAndTime> frontier;
    for (const LayerChoice& choice : choices)
        frontier.emplace_back(choice.peak_bytes, choice.time_ns);
    return frontier;
}

LayerProblem random_problem(std::mt19937& random) {
    const auto number = [&](int64_t most) {
        return std::uniform_int_distribution<int64_t>(0, most)(random);
    };
    LayerProblem problem{.options = {},
                         .num_layers = 1 + number(4),
                         .gradient_bytes = number(1) * number(15),
                         .head_bytes = number(30),
                         .base_bytes = number(20),
                         .least_peak_bytes = number(1) * number(150)};
    problem.options.resize(static_cast<std::size_t>(1 + number(4)));
    for (LayerOption& option : problem.options) {
        // Small numbers, so that many sums are equal.
        option = {.saved_bytes = number(12) - 2,
                  .forward_bytes = number(25),
                  .backward_bytes = number(40),
                  .time_ns = number(9)};
    }
    if (number(2) == 0) problem.most_peak_bytes = number(120);
    return problem;
}

TEST(ParetoChoices, AreThoseOfTryingEveryChoice) {
    std::mt19937 random(6);
    for (int i = 0; i < 2000; ++i) {
        const LayerProblem problem = random_problem(random);
        const std::vector<LayerChoice> choices = pareto_layer_choices(problem);
        ASSERT_EQ(frontier_of(choices), frontier_by_enumeration(problem)) << "problem " << i;
        for (const LayerChoice& choice : choices) {  // and each is what it says
            const LayerChoice again = evaluate_choice(problem, choice.options);
            ASSERT_EQ(again.peak_bytes, choice.peak_bytes);
            ASSERT_EQ(again.time_ns, choice.time_ns);
            ASSERT_EQ(again.saved_bytes, choice.saved_bytes);
        }
    }
}

TEST(SmallestChoice, HasTheLeastPeakOfAll) {
    std::mt19937 random(7);
    for (int i = 0; i < 500; ++i) {
        LayerProblem problem = random_problem(random);
        problem.most_peak_bytes = std::numeric_limits<int64_t>::max();
        EXPECT_EQ(smallest_choice(problem).peak_bytes,
                  frontier_by_enumeration(problem).front().first);
    }
}

/// 24 layers that can keep 10 bytes in 5 ns, 6 in 6, or 1 in 9 with 12 bytes made again.
LayerProblem deep_problem() {
    return {.options = {{.saved_bytes = 10, .backward_bytes = 4, .time_ns = 5},
                        {.saved_bytes = 6, .backward_bytes = 4, .time_ns = 6},
                        {.saved_bytes = 1, .backward_bytes = 16, .time_ns = 9}},
            .num_layers = 24};
}

TEST(ParetoChoices, RiseInPeakAndFallInTime) {
    const std::vector<LayerChoice> choices = pareto_layer_choices(deep_problem());
    ASSERT_GT(choices.size(), 24U);
    for (std::size_t i = 1; i < choices.size(); ++i) {
        EXPECT_GT(choices[i].peak_bytes, choices[i - 1].peak_bytes);
        EXPECT_LT(choices[i].time_ns, choices[i - 1].time_ns);
    }
    EXPECT_EQ(choices.back().time_ns, 24 * 5);
    EXPECT_EQ(choices.back().peak_bytes, 24 * 10 + 4);
    // Temporaries of the last layers stand on all that is kept: two had better not be recomputed.
    EXPECT_EQ(choices.front().peak_bytes, 22 * 1 + 16);
    EXPECT_EQ(choices.front().options[21], 2);
    EXPECT_EQ(choices.front().options[22], 1);
}

TEST(ParetoChoices, KeepLayersOfOneOptionTogether) {
    for (const LayerChoice& choice : pareto_layer_choices(deep_problem())) {
        int changes = 0;
        for (std::size_t i = 1; i < choice.options.size(); ++i) {
            changes += choice.options[i] != choice.options[i - 1] ? 1 : 0;
        }
        EXPECT_LE(changes, 2);
    }
}

TEST(ParetoChoices, NeverHoldAnOptionThatDoesNotPay) {
    LayerProblem problem = deep_problem();
    problem.options.push_back({.saved_bytes = 10, .backward_bytes = 5, .time_ns = 5});
    problem.options.push_back({.saved_bytes = 7, .backward_bytes = 4, .time_ns = 7});
    for (const LayerChoice& choice : pareto_layer_choices(problem)) {
        for (const uint16_t option : choice.options) EXPECT_LT(option, 3);
    }
    EXPECT_THAT(useful_options(problem), ElementsAre(0, 1, 2));
}

TEST(ParetoChoices, AreNoneWhereNothingFits) {
    LayerProblem problem = deep_problem();
    problem.most_peak_bytes = 30;
    EXPECT_THAT(pareto_layer_choices(problem), IsEmpty());
    problem.least_peak_bytes = 1000;
    problem.most_peak_bytes = 1000;
    EXPECT_THAT(pareto_layer_choices(problem), SizeIs(1));  // all take what the optimizer takes
}

}  // namespace
