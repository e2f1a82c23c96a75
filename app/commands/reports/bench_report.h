#pragma once

#include "app/commands/console/terminal.h"
#include "profiler/view/kernels/bench_view.h"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

/// Results of `temposcope bench`, as text, JSON and CSV.
namespace app {

struct BenchDocument {
    std::vector<profiler::BenchRow> rows;
    std::vector<std::string> charts;  // files
};

void print_bench(Output& output, const BenchDocument& document);
nlohmann::json bench_json(const BenchDocument& document);
std::string bench_csv(const BenchDocument& document);

}  // namespace app
