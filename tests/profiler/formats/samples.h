#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace tests {

/// The folder of real captures: the CMake variable TEMPOSCOPE_SAMPLES, else the environment
/// variable.
inline std::filesystem::path samples_folder() {
    const std::string configured = TEMPOSCOPE_SAMPLES;
    if (!configured.empty()) return configured;
    const char* variable = std::getenv("TEMPOSCOPE_SAMPLES");
    return variable != nullptr ? variable : "";
}

/// Snapshots in that folder, by name; none when there is no such folder.
inline std::vector<std::filesystem::path> sample_snapshots() {
    std::vector<std::filesystem::path> files;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(samples_folder(), error)) {
        if (entry.path().extension() == ".pickle") files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    return files;
}

}  // namespace tests
