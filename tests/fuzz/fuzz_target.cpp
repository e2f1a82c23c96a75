#include "tests/fuzz/fuzz_target.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace tests {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> kept_inputs(const FuzzTarget& target) {
    std::vector<fs::path> files;
    std::error_code none_kept;
    for (const auto& entry : fs::directory_iterator(
             fs::path(TEMPOSCOPE_SOURCE_DIR "/tests/fuzz/corpus") / target.name, none_kept)) {
        files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    return files;
}

}  // namespace

std::vector<FuzzTarget> fuzz_targets() {
    std::vector<FuzzTarget> targets(trace_targets().begin(), trace_targets().end());
    targets.insert(targets.end(), data_targets().begin(), data_targets().end());
    return targets;
}

std::vector<std::string> inputs_of(const FuzzTarget& target) {
    std::vector<std::string> inputs = target.seeds();
    for (const fs::path& file : kept_inputs(target)) {
        std::ostringstream bytes;
        bytes << std::ifstream(file, std::ios::binary).rdbuf();
        inputs.push_back(std::move(bytes).str());
    }
    return inputs;
}

}  // namespace tests
