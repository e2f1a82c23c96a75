// One fuzz target as a program of libFuzzer, built by the CMake preset "fuzz":
//
//   build-fuzz/bin/tests/fuzz_snapshot -max_total_time=600
//
// It keeps its inputs in the folder build-fuzz/bin/tests/fuzz_snapshot.corpus, which begins with
// the target's seeds and the inputs of tests/fuzz/corpus. https://llvm.org/docs/LibFuzzer.html
// lists the options.
#include "tests/fuzz/fuzz_target.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace {

const tests::FuzzTarget& target() {
    static const std::vector<tests::FuzzTarget> targets = tests::fuzz_targets();
    for (const tests::FuzzTarget& candidate : targets) {
        if (std::string_view(candidate.name) == TEMPOSCOPE_FUZZ_TARGET) return candidate;
    }
    std::fprintf(stderr, "there is no fuzz target %s\n", TEMPOSCOPE_FUZZ_TARGET);
    std::exit(1);
}

}  // namespace

/// Writes the seeds and adds their folder to the command line.
extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
    static std::string corpus = std::string((*argv)[0]) + ".corpus";
    static std::vector<char*> arguments(*argv, *argv + *argc);
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
