// The fuzz targets under libFuzzer, built by the CMake preset "fuzz":
//
//   build-fuzz/bin/tests/fuzz snapshot -max_total_time=600
//
// It keeps its inputs in the folder build-fuzz/bin/tests/fuzz.snapshot.corpus, which begins with
// the target's seeds and the inputs of tests/fuzz/corpus. https://llvm.org/docs/LibFuzzer.html
// lists the options.
#include "tests/fuzz/fuzz_target.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace {

/// Processes that libFuzzer starts itself find their target here.
constexpr const char* kTargetVariable = "TEMPOSCOPE_FUZZ_TARGET";

/// nullptr: there is none of this name.
const tests::FuzzTarget* find_target(std::string_view name) {
    static const std::vector<tests::FuzzTarget> targets = tests::fuzz_targets();
    const auto found = std::find_if(targets.begin(), targets.end(),
                                    [&](const auto& target) { return target.name == name; });
    return found == targets.end() ? nullptr : &*found;
}

const tests::FuzzTarget& target() {
    static const tests::FuzzTarget* const chosen = [] {
        const char* name = std::getenv(kTargetVariable);
        return name == nullptr ? nullptr : find_target(name);
    }();
    if (chosen != nullptr) return *chosen;
    std::fputs("Name a target first, then libFuzzer's options:\n", stderr);
    for (const tests::FuzzTarget& one : tests::fuzz_targets()) {
        std::fprintf(stderr, "  %s\n", one.name);
    }
    std::exit(1);
}

}  // namespace

/// Takes the target from the command line, writes its seeds and adds their folder.
extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
    static std::vector<char*> arguments(*argv, *argv + *argc);
    if (arguments.size() > 1 && find_target(arguments[1]) != nullptr) {
        setenv(kTargetVariable, arguments[1], 1);
        arguments.erase(arguments.begin() + 1);
    }
    static std::string corpus = std::string((*argv)[0]) + "." + target().name + ".corpus";
    std::filesystem::create_directories(corpus);
    int number = 0;
    for (const std::string& seed : tests::inputs_of(target())) {
        std::ofstream(corpus + "/seed" + std::to_string(number++), std::ios::binary) << seed;
    }
    arguments.push_back(corpus.data());
    *argc = static_cast<int>(arguments.size());
    arguments.push_back(nullptr);
    *argv = arguments.data();
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
    target().run(std::string(reinterpret_cast<const char*>(data), size));
    return 0;
}
