#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

/// Code that reads bytes which other programs wrote. Each target gets bytes that nobody would
/// write.
namespace tests {

struct FuzzTarget {
    const char* name;
    /// Correct inputs, from which mutations begin.
    std::function<std::vector<std::string>()> seeds;
    /// Must return for any bytes. A reader's error is as good as its result.
    std::function<void(const std::string& bytes)> run;
};

std::span<const FuzzTarget> trace_targets();
std::span<const FuzzTarget> data_targets();
/// Those of both.
std::vector<FuzzTarget> fuzz_targets();

/// The seeds of a target, and the files of tests/fuzz/corpus/NAME: inputs that libFuzzer found to
/// reach more code, and inputs that once failed.
std::vector<std::string> inputs_of(const FuzzTarget& target);

}  // namespace tests
