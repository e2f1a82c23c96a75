// A short, repeatable run of every fuzz target, for ctest. Long runs are libFuzzer's
// (libfuzzer.cpp).
//
//   fuzz [TARGET [RUN]]     every target 300 times, or one target, or one run of it
//
// The input of a run depends on its number alone, and the last line of a crash names it.
#include "tests/fuzz/fuzz_target.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <random>
#include <string_view>

namespace {

constexpr int kRuns = 300;

/// Flips a bit, writes a number that is often forgotten, cuts, or inserts a part of another seed.
std::string mutate(const std::vector<std::string>& seeds, int run) {
    std::mt19937_64 random(static_cast<uint64_t>(run));
    const auto below = [&](std::size_t end) { return end == 0 ? 0 : random() % end; };
    std::string bytes = seeds[below(seeds.size())];
    for (std::size_t changes = 1 + below(8); changes > 0 && !bytes.empty(); --changes) {
        const std::size_t at = below(bytes.size());
        const std::string& other = seeds[below(seeds.size())];
        switch (below(4)) {
            case 0:
                bytes[at] = static_cast<char>(bytes[at] ^ 1 << below(8));
                break;
            case 1:
                std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                            std::min(bytes.size() - at, std::size_t{1} << below(4)),
                            "\0\x01\x7f\xff"[below(4)]);
                break;
            case 2:
                bytes.erase(at, below(4) == 0 ? std::string::npos : below(64));
                break;
            default:
                bytes.insert(at, other.substr(below(other.size()), below(256)));
                break;
        }
    }
    return bytes;
}

bool survives(const tests::FuzzTarget& target, int first, int last) {
    const auto seeds = target.seeds();
    for (int run = first; run < last; ++run) {
        std::fprintf(stderr, "\r%s, run %d ", target.name, run);
        try {
            target.run(run < 0 ? seeds[static_cast<std::size_t>(-run - 1)] : mutate(seeds, run));
        } catch (const std::exception& error) {
            std::fprintf(stderr, "threw: %s\n", error.what());
            return false;
        }
    }
    std::fprintf(stderr, "\r%s: %d runs        \n", target.name, last - first);
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    bool found = false, passed = true;
    for (const auto targets : {tests::trace_targets(), tests::data_targets()}) {
        for (const tests::FuzzTarget& target : targets) {
            if (argc > 1 && std::string_view(argv[1]) != target.name) continue;
            found = true;
            const int first =
                argc > 2 ? std::atoi(argv[2]) : -static_cast<int>(target.seeds().size());
            passed &= survives(target, first, argc > 2 ? first + 1 : kRuns);
        }
    }
    if (!found) std::fprintf(stderr, "fuzz: there is no target of this name\n");
    return found && passed ? 0 : 1;
}
