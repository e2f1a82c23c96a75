#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

/// What reads bytes that others wrote, under bytes that nobody would write.
namespace tests {

struct FuzzTarget {
    const char* name;
    /// Inputs that are right: mutations begin from them.
    std::function<std::vector<std::string>()> seeds;
    /// Must return, whatever the bytes are: a reader's error is as good as its result.
    std::function<void(const std::string& bytes)> run;
};

std::span<const FuzzTarget> trace_targets();
std::span<const FuzzTarget> data_targets();

/// One to eight changes: bits, bytes, numbers of 1, 2, 4 and 8 bytes that are often forgotten
/// (0, -1, the largest), cuts, repeats, and parts of another seed.
std::string mutate(const std::vector<std::string>& seeds, uint64_t random_seed);

}  // namespace tests
