#pragma once

#include "app/commands/console/terminal.h"
#include "app/commands/fit_row.h"
#include "profiler/view/bench_view.h"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

/// What fits where: the largest batch of a model over cards, numbers of them and strategies.
namespace app {

void print_fits(Output& output, const std::vector<FitRow>& rows);
/// {"rows": [...], "least": index of the row that fits on the least memory of cards, or null}
nlohmann::json fits_json(const std::vector<FitRow>& rows);
std::string fits_csv(const std::vector<FitRow>& rows);
/// A group for each set of cards, with a bar for each strategy.
profiler::BarChart fits_chart(const std::vector<FitRow>& rows);

}  // namespace app
