#pragma once

#include "models/config/result.h"
#include "profiler/analysis/step/step_report.h"

#include <string>
#include <vector>

namespace app {

/// The browser page of one trace, or of two that are aligned by their phases.
/// Errors: a file holds no memory over time.
models::Result<std::string> render_page(const std::vector<profiler::NamedTrace>& traces);

}  // namespace app
