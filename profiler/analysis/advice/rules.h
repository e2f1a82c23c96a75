#pragma once

#include "profiler/analysis/advice/evidence.h"
#include "profiler/analysis/advice/explanation.h"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

/// What is unusual in a step: a table of rules.
///
///     row        id, find, asked
///     find       one function, at most a screen: evidence -> sentences with bytes and blocks
///     sentence   what it is, how much, where
///
/// A rule is decided by one trace and says nothing of a program that trains as most do. Some habits
/// are common and cost memory all the same, such as logits in one piece: their rules are asked only
/// when memory is short.
namespace profiler {

enum class Asked : uint8_t { kAlways, kWhenShort };

struct Rule {
    std::string_view id;
    std::vector<Finding> (*find)(const Evidence& evidence) = nullptr;
    Asked asked = Asked::kAlways;
};

// The rows, by subject.
std::span<const Rule> rules_of_program();      // the allocator, lifetimes, steps, validation
std::span<const Rule> rules_of_activations();  // autocast, dropout, checkpoints
std::span<const Rule> rules_of_attention();
std::span<const Rule> rules_of_loss();
std::span<const Rule> rules_of_optimizer();
std::span<const Rule> rules_of_ranks();

/// Whether memory ran out, or nearly so.
bool is_short_of_memory(const Evidence& evidence);

/// All findings that weigh at least 2 % of the memory that the moment needs, the largest first.
std::vector<Finding> find_unusual(const Evidence& evidence);
/// The same of the rules with this id, whether memory is short or not: a remedy for a common habit
/// also lets a larger batch fit.
std::vector<Finding> find_unusual(const Evidence& evidence, std::string_view id);

}  // namespace profiler
