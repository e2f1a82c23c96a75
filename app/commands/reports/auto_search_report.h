#pragma once

#include "app/commands/console/terminal.h"
#include "models/config/workload.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// `sweep --auto` as a table and sentences for people, as JSON and as CSV; docs/commands.md lists
/// the keys.
namespace app {

/// One way to choose a recipe, and what came out. The first row of a report is the workload's own
/// recipe, which no search chose.
struct AutoSearchRow {
    std::string mode;                       // "fast", "smart", "predicted"; "none": the first row
    std::string recipe;                     // canonical text; empty: the search failed
    std::optional<int64_t> max_batch_size;  // that fits
    std::optional<int64_t> batch_size;      // with the highest throughput
    std::optional<int64_t> step_time_ns;    // at that batch
    std::optional<double> sequences_per_s;  // at that batch
    std::optional<double> ratio;            // of the throughputs: over that of the first row
    std::optional<int64_t> search_time_ns;  // until the recipe was chosen
    int64_t tried_recipes = 0;              // that were run, or that a layer could have
    int64_t tried_steps = 0;                // batches that were run; 0: none was
    std::string why;                        // one sentence: why this recipe, or why none
};

struct AutoSearchReport {
    models::Workload workload;
    std::string from, to;  // the recipes between which the layers move
    std::string device;    // "cpu", "cuda", "predict:rtx3090"
    int64_t memory_limit_bytes = -1;
    bool ran_in_turn = false;  // the throughputs are from steps that took turns
    std::vector<AutoSearchRow> rows;
};

void print_auto_search(Output& output, const AutoSearchReport& report);
nlohmann::json auto_search_json(const AutoSearchReport& report);
std::string auto_search_csv(const AutoSearchReport& report);

}  // namespace app
