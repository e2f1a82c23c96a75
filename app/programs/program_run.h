#pragma once

#include "models/config/parallel.h"
#include "models/config/result.h"
#include "profiler/protocol/virtual_gpu_process.h"

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

/// Runs a program of the user's with the recorder in it. Python loads the recorder by itself:
/// app/python/start comes first in PYTHONPATH, and waits for the import of torch.
namespace app {

struct ProgramRun {
    std::vector<std::string> words;      // "python", "train.py", "--epochs", "1"
    std::vector<std::string> variables;  // for its environment: "NAME=value"
    std::string file;                    // trace to write; absolute
    std::string folder;                  // for a trace of each rank, in place of `file`; absolute
    std::optional<profiler::VirtualCard> card;  // none: the devices of this machine
    std::string recipe;                         // to put into the program's models; empty: none
    std::vector<std::string> layers;            // classes that are layers for the recipe
    int64_t steps = 3;                          // to record
    int64_t skip = 1;                           // before them; the first one is recorded, too
    bool reads_zeros = false;          // on a simulated GPU: values that kernels compute are zeros
    std::string routing = "balanced";  // of experts there (models::parse_routing)
    bool tries_imbalance = false;      // one more step shows what uneven experts take
    bool with_stacks = false;          // records the Python lines that led to each allocation
    bool with_cpp_stacks = false;      // and the C++ functions below them
    bool stops = false;                // the program ends after the recorded steps
    bool output_is_ours = false;       // the program's standard output goes to standard error
    std::string log;                   // a file that takes all output of the program; empty: none
    std::string working_folder;        // the program starts there; empty: here
    std::chrono::seconds timeout{0};   // it is ended after so long; 0: never
    std::stop_token stop = {};         // ends it when asked to stop
    /// Number of ranks that the program is told. `ranks` of them run, alone (docs/many_gpus.md).
    /// 0: the processes that the program starts.
    int64_t world_size = 0;
    std::vector<int64_t> ranks;  // empty: representative ones
};

/// A peak of a program after its recorded steps, higher than what came before.
struct LaterPeak {
    int64_t bytes = 0;     // 0: there is none
    std::string sentence;  // for people: where it lies, and how it is recorded
};

/// Adds it to the trace `file` (profiler::kLaterPeak), if it is higher than the peak there; else
/// there is none. Errors: the file cannot be read or written.
models::Result<void> note_later_peak(LaterPeak& peak, const std::string& file);

/// What became of the recording of one rank.
struct RankResult {
    int64_t rank = 0;
    int64_t recorded_steps = 0;
    bool is_complete = false;
    std::string file;          // what was written; empty: nothing
    std::string failure_file;  // as in ProgramResult
    std::string sentence;      // for people
    LaterPeak later_peak;
};

/// What became of the recording. The program itself went its own way.
struct ProgramResult {
    int exit_code = 0;           // the program's own; 128 + the number of a signal that ended it
    int64_t resident_bytes = 0;  // the most memory that one of its processes held
    int64_t recorded_steps = 0;  // of ranks: by each
    bool is_complete = false;
    bool was_asked_to_end = false;  // by a signal, such as Ctrl-C, or by ProgramRun::stop
    bool has_timed_out = false;
    std::string exception;  // that ended the program, or its first rank that failed: "ValueError"
    std::string file;       // what was written: the trace, or its .partial; empty: nothing
    /// The trace that tells of memory that ran out, or of an error at the end: `file`, or the one
    /// beside it (oom_trace_of) if memory ran out after the recorded steps. Empty: none does.
    std::string failure_file;
    std::string sentence;  // for people
    LaterPeak later_peak;
    nlohmann::json applied;  // per model that the recipe was put into; null: no recipe
    std::vector<std::string> applied_sentences;  // for people
    std::vector<RankResult> ranks;               // of a run into a folder, in their order
};

/// The folder of the Python package. This program lies in the folder `bin` of an installed one, and
/// beside the package in a build.
models::Result<std::filesystem::path> find_python_package();

/// What runs programs of ours: the interpreter that TEMPOSCOPE_PYTHON names; without it, python3.
std::string python_interpreter();

/// Any number of threads may call it at once.
/// Errors: the recorder, the virtual GPU or the program cannot be started.
models::Result<ProgramResult> run_program(const ProgramRun& run);

/// Whether Ctrl-C or another signal asked the last programs to end: then no more shall run.
bool were_asked_to_end();

/// A built-in model as a program of Python, which torch's own wrappers can spread over many GPUs: a
/// run of three steps, as far as model and ranks say it. Further arguments may follow the words.
/// Errors: as models::validate; the package is missing.
models::Result<ProgramRun> built_in_program(const models::Workload& workload,
                                            const models::Parallel& parallel, int64_t world_size);

}  // namespace app
