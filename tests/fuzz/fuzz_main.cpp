// Mutated inputs for every reader, in this process: a crash, a hang (ctest's timeout) or a finding
// of the sanitizers is the failure.
//
//   fuzz [TARGET] [--runs N] [--first I]     N runs (2000) of each target, from the I-th on
//
// A run's input depends on its number alone: "trace_file, run 1234" in the last line of a crash is
// repeated by `fuzz trace_file --first 1234 --runs 1`.
#include "tests/fuzz/fuzz_target.h"

#include <charconv>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string_view>

namespace {

struct Options {
    std::string_view target;
    uint64_t runs = 2000;
    uint64_t first = 0;
};

bool parse_number(const char* text, uint64_t& number) {
    const auto [end, error] = std::from_chars(text, text + std::strlen(text), number);
    return error == std::errc() && *end == '\0';
}

bool parse(int argc, char** argv, Options& options) {
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = argv[i];
        const bool is_number = word == "--runs" || word == "--first";
        if (!is_number) {
            options.target = word;
        } else if (i + 1 == argc ||
                   !parse_number(argv[++i], word == "--runs" ? options.runs : options.first)) {
            return false;
        }
    }
    return true;
}

/// Where a run is noted before it begins: a crash leaves it there to be read.
void note(const char* target, uint64_t run) {
    std::fprintf(stderr, "\r%s, run %llu ", target, static_cast<unsigned long long>(run));
}

bool survives(const tests::FuzzTarget& target, const std::string& bytes, const std::string& input) {
    try {
        target.run(bytes);
        return true;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "\n%s, %s threw: %s\n", target.name, input.c_str(), error.what());
        return false;
    }
}

bool fuzz(const tests::FuzzTarget& target, const Options& options) {
    const std::vector<std::string> seeds = target.seeds();
    for (const std::string& seed : seeds) {
        if (!survives(target, seed, "a seed")) return false;
    }
    for (uint64_t run = options.first; run < options.first + options.runs; ++run) {
        note(target.name, run);
        if (!survives(target, tests::mutate(seeds, run), "run " + std::to_string(run)))
            return false;
    }
    std::fprintf(stderr, "\r%s: %llu runs      \n", target.name,
                 static_cast<unsigned long long>(options.runs));
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    if (!parse(argc, argv, options)) {
        std::fprintf(stderr, "usage: fuzz [TARGET] [--runs N] [--first I]\n");
        return 2;
    }
    bool found = false, passed = true;
    for (const auto targets : {tests::trace_targets(), tests::data_targets()}) {
        for (const tests::FuzzTarget& target : targets) {
            if (!options.target.empty() && options.target != target.name) continue;
            found = true;
            passed &= fuzz(target, options);
        }
    }
    if (!found) std::fprintf(stderr, "fuzz: there is no such target\n");
    return found && passed ? 0 : 1;
}
