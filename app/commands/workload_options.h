#pragma once

#include "app/commands/outcome.h"
#include "models/config/workload.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

/// The options that `capture` and `sweep` share: which step to train, how, and where to write.
namespace app {

struct WorkloadOptions {
    std::string model;
    std::optional<int64_t> layers, hidden, heads, intermediate, vocab;
    std::string head = "layers";
    std::string recipes = "original";
    int64_t batch_size = 8;
    int64_t seq_len = 512;
    std::optional<double> dropout_p, attention_dropout_p;
    std::string padding = "none";
    std::string precision = "fp32";
    std::string device = "auto";
    int64_t seed = 0;
    int64_t warmup_steps = 1;
    int64_t steps = 3;
    std::string memory_limit;  // "16GiB"; empty = none
    std::string output;
};

void add_workload_options(CLI::App& command, WorkloadOptions& options);

/// One recipe to run and the file that it writes.
struct Job {
    models::Workload workload;
    std::string path;  // ends in .tscope
};

struct JobList {
    std::vector<Job> jobs;
    int64_t memory_limit_bytes = -1;
    std::string folder;  // to be made first; empty: the file's folder must exist
};

/// Everything that the command line alone can be wrong about: unknown names, impossible shapes,
/// several recipes into one file. All recipes are checked before the first one runs.
models::Result<JobList> make_jobs(const WorkloadOptions& options);

/// "original,tempo" are two recipes; "tempo,masks=bit" and "gelu=in_place,masks=bit" are one:
/// an item with '=' belongs to the recipe before it.
std::vector<std::string> split_recipes(std::string_view text);

}  // namespace app
