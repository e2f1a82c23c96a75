#pragma once

#include "app/user/usual_setup.h"
#include "models/config/workload.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Which steps to train, how, and where to write. Options of commands and the window's Capture
/// panel fill a StepForm; the jobs for the worker are made from it.
namespace app {

/// Before the GPU of a device that is predicted.
inline constexpr std::string_view kPredict = "predict:";

struct RecipeList {
    std::vector<std::string> names{"original"};
    bool is_all = false;  // "all" was written: the names are those of every preset

    friend bool operator==(const RecipeList&, const RecipeList&) = default;
};

struct StepForm {
    std::string device = "auto";        // auto, cpu, cuda or predict:GPU
    std::string setup = usual_setup();  // the software environment of a prediction
    bool sweeps = false;                // also finds the largest batch that trains
    std::string model;
    std::optional<int64_t> layers, hidden, heads, intermediate, vocab, positions;  // empty: its own
    std::string head = "layers";
    RecipeList recipes;
    int64_t batch_size = 8;
    int64_t seq_len = 512;
    int64_t gradient_accumulation_steps = 1;
    std::optional<double> dropout_p, attention_dropout_p;
    bool hidden_dropout = true, attention_dropout = true;  // false: none of this kind
    std::string padding = "none";
    std::string precision = "fp32";
    int64_t seed = 0;
    int64_t warmup_steps = 1;
    int64_t steps = 3;
    std::string memory_limit;  // "16GiB"; empty = none
    std::string output;        // a folder, or a file that ends in .tscope
    bool overwrites = false;   // files that are there already

    bool predicts() const { return device.starts_with(kPredict); }

    friend bool operator==(const StepForm&, const StepForm&) = default;
};

/// One recipe to run and the file that it writes.
struct Job {
    models::Workload workload;
    std::string path;  // ends in .tscope
};

/// A recipe of "all" that cannot run here, and why.
struct LeftOut {
    std::string recipe;
    models::Error why;
};

struct JobList {
    std::vector<Job> jobs;
    std::vector<LeftOut> left_out;  // only of "all"
    bool is_all = false;
    int64_t memory_limit_bytes = -1;
    std::string folder;          // to make first, if it is missing
    std::string gpu;             // the predicted GPU; empty: measured on this machine
    std::string device = "cpu";  // where it is measured: "cpu", "cuda" or "auto"
};

/// The step that the options describe, with the recipe `original`; not yet validated.
/// Errors: unknown names.
models::Result<models::Workload> make_workload(const StepForm& options);

/// The device to request from the worker for "auto", "cpu" or "cuda". "auto" becomes "cpu" if no
/// driver has created a device file (/dev/nvidiactl, or /dev/dxg in the Windows Subsystem for
/// Linux). Otherwise the worker decides.
std::string measured_device(const std::string& device);

/// Makes a job for each recipe. Checks all of them before the first one runs: unknown names,
/// impossible shapes, several recipes for one file. Recipes of "all" that are impossible are left
/// out, as long as one is possible.
models::Result<JobList> make_jobs(const StepForm& form);

/// Takes out the jobs that `check` refuses. Errors: the first refusal, if the recipes were named or
/// no job is left.
models::Result<void> leave_out(JobList& list,
                               const std::function<models::Result<void>(const Job&)>& check);

/// "original,tempo" are two recipes; "tempo,masks=bit" and "gelu=in_place,masks=bit" are one:
/// an item with '=' belongs to the recipe before it.
std::vector<std::string> split_recipes(std::string_view text);
/// The same, where "all" stands for every preset.
RecipeList recipes_of(std::string_view text);

}  // namespace app
