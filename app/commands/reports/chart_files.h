#pragma once

#include "models/config/result.h"
#include "profiler/analysis/comparison.h"

#include <string>
#include <vector>

/// Charts that commands write.
namespace app {

/// What pictures call a trace: its recipe, else its file.
std::string label_of(const profiler::NamedTrace& named);

/// Writes `comparison.FORMAT` for each format into the folder, which is made; returns the files.
models::Result<std::vector<std::string>> write_comparison_charts(
    const profiler::Comparison& comparison, const std::string& folder,
    const std::vector<std::string>& formats);

/// Memory over time of one trace, or of two above each other on aligned phases.
models::Result<void> write_timeline(const std::vector<profiler::NamedTrace>& traces,
                                    const std::string& format, const std::string& path);

}  // namespace app
