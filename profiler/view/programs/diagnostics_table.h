#pragma once

#include "profiler/analysis/step/diagnostics.h"
#include "profiler/tables/columns.h"

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace profiler {

/// Each trace by its name.
DataTable diagnostics_data(
    std::span<const std::pair<std::string, std::vector<DiagnosticItem>>> traces);

}  // namespace profiler
