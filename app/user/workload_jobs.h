#pragma once

#include "models/config/workload.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Which steps to train, how, and where to write: what `capture`, `sweep` and the window's form
/// say, and the jobs for the worker that come of it.
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
    std::string device = "auto";       // auto, cpu, cuda or predict:GPU
    std::string setup = "torch-2.11";  // of a prediction
    int64_t seed = 0;
    int64_t warmup_steps = 1;
    int64_t steps = 3;
    std::string memory_limit;  // "16GiB"; empty = none
    std::string output;
};

/// One recipe to run and the file that it writes.
struct Job {
    models::Workload workload;
    std::string path;  // ends in .tscope
};

struct JobList {
    std::vector<Job> jobs;
    int64_t memory_limit_bytes = -1;
    std::string folder;          // to be made first; empty: the file's folder must exist
    std::string gpu;             // the GPU that is predicted; empty: measured here
    std::string device = "cpu";  // where it is measured: "cpu", "cuda" or "auto"
};

/// The step that the options describe, with the recipe `original`; not yet validated.
/// Errors: unknown names.
models::Result<models::Workload> make_workload(const WorkloadOptions& options);

/// What the worker is asked for, of "auto", "cpu" or "cuda": auto is the processor where no driver
/// has made a device (/dev/nvidiactl; /dev/dxg in the Windows Subsystem for Linux), and else the
/// worker's to find out.
std::string measured_device(const std::string& device);

/// Everything that the options alone can be wrong about: unknown names, impossible shapes, several
/// recipes into one file. All recipes are checked before the first one runs.
models::Result<JobList> make_jobs(const WorkloadOptions& options,
                                  const std::vector<std::string>& recipes);
/// Of the recipes that `options.recipes` lists.
models::Result<JobList> make_jobs(const WorkloadOptions& options);

/// "original,tempo" are two recipes; "tempo,masks=bit" and "gelu=in_place,masks=bit" are one:
/// an item with '=' belongs to the recipe before it.
std::vector<std::string> split_recipes(std::string_view text);

}  // namespace app
