// A short, repeatable run of every fuzz target, for ctest. Long runs are libFuzzer's
// (libfuzzer.cpp).
//
//   fuzz [TARGET [RUN [END]]]     every target 300 times; or one target; or its run RUN; or its
//                                 runs from RUN to before END
//
// The input of a run depends on its number alone, and the last line of a crash names it. Runs below
// 0 are the correct inputs as they are.
#include "tests/fuzz/fuzz_target.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <random>
#include <string_view>

namespace {

constexpr int kRuns = 300;
constexpr unsigned kMostSeconds = 60;  // of a run; its alarm then ends the program

/// Flips a bit, writes a number that is often forgotten, cuts, or inserts a part of another seed.
std::string mutate(const std::vector<std::string>& inputs, int run) {
    std::mt19937_64 random(static_cast<uint64_t>(run));
    const auto below = [&](std::size_t end) { return end == 0 ? 0 : random() % end; };
    std::string bytes = inputs[below(inputs.size())];
    for (std::size_t changes = 1 + below(8); changes > 0 && !bytes.empty(); --changes) {
        const std::size_t at = below(bytes.size());
        const std::string& other = inputs[below(inputs.size())];
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

bool survives(const tests::FuzzTarget& target, const std::vector<std::string>& inputs, int first,
              int last) {
    for (int run = first; run < last; ++run) {
        std::fprintf(stderr, "\r%s, run %d ", target.name, run);
        alarm(kMostSeconds);
        try {
            target.run(run < 0 ? inputs[static_cast<std::size_t>(-run - 1)] : mutate(inputs, run));
        } catch (const std::exception& error) {
            std::fprintf(stderr, "threw: %s\n", error.what());
            return false;
        }
    }
    alarm(0);
    std::fprintf(stderr, "\r%s: %d runs        \n", target.name, last - first);
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    bool found = false, passed = true;
    for (const tests::FuzzTarget& target : tests::fuzz_targets()) {
        if (argc > 1 && std::string_view(argv[1]) != target.name) continue;
        found = true;
        const auto inputs = tests::inputs_of(target);
        const int first = argc > 2 ? std::atoi(argv[2]) : -static_cast<int>(inputs.size());
        const int end = argc > 3 ? std::atoi(argv[3]) : argc > 2 ? first + 1 : kRuns;
        passed &= survives(target, inputs, first, end);
    }
    if (!found) std::fprintf(stderr, "fuzz: there is no target of this name\n");
    return found && passed ? 0 : 1;
}
