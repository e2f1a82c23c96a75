#pragma once

#include "app/commands/console/terminal.h"
#include "models/config/workload.h"
#include "profiler/analysis/ops/movement.h"
#include "profiler/analysis/step/step_report.h"
#include "profiler/view/kernels/movement_view.h"

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <string>
#include <vector>

/// The report of `temposcope movement` as tables for people, as JSON and as CSV; docs/commands.md
/// lists the JSON keys.
namespace app {

struct MovementDocument {
    profiler::NamedTrace named;
    std::optional<models::Workload> workload;
    profiler::MovementOps ops = profiler::MovementOps::kRun;
    profiler::MovementScope scope = profiler::MovementScope::kLayers;
    profiler::MovementBy by = profiler::MovementBy::kOp;
    profiler::PeaksOfTrace peaks;
    profiler::MovementReport report;
    std::vector<std::string> charts;  // files that were written
    std::vector<std::string> files;   // all that were written
};

void print_movement(Output& output, const MovementDocument& document);
nlohmann::json movement_json(const MovementDocument& document);
std::string movement_csv(const MovementDocument& document);

}  // namespace app
