#pragma once

#include "app/programs/batch_search.h"
#include "app/programs/program_run.h"
#include "profiler/analysis/advice/explain.h"

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

/// Verifies remedies: the recorded program runs again on a virtual GPU, once with each of them. A
/// program that failed before the end of its first step runs once with enough memory before that.
namespace app {

/// How a program is run again.
struct Rerun {
    ProgramRun run;  // words, variables and working folder
    std::string gpu;
};

/// The program that a trace recorded. `words` stand in for its command.
/// Errors: the trace has no command, or it left something out; the program's folder is gone.
models::Result<ProgramRun> recorded_run(const profiler::Trace& trace,
                                        const std::vector<std::string>& words = {});

/// The same on the GPU of the target, or else of the trace.
/// Errors: as recorded_run; no GPU of the catalogue is the recorded one.
models::Result<Rerun> rerun_of(const profiler::Trace& trace, const std::vector<std::string>& words,
                               const profiler::ExplainTarget& target);

/// Runs the program as it is, with enough memory, and adds what the whole step needs
/// (profiler::add_whole_step). A note says why, if that cannot be found.
void find_whole_step(profiler::Explanation& explanation, const Rerun& rerun,
                     const profiler::ExplainRequest& request);

/// A run that begins.
struct RemedyTry {
    const profiler::Remedy& remedy;
    std::size_t number = 0;  // from 1
    std::size_t count = 0;   // of all
};

/// Runs the program with each of the first `count` remedies that can be put into a run, as many at
/// a time as this machine has cores for. What it measures goes into `verified`; a remedy that
/// breaks the program gets its `problem`. A change of the code goes into a copy of the program's
/// file, never into the file itself. `tried` is called before each run, by one thread at a time.
void verify_remedies(profiler::Explanation& explanation, const Rerun& rerun, std::size_t count,
                     const std::function<void(const RemedyTry&)>& tried);

/// The same for one remedy, and keeps the trace of the run; none: the remedy has a `problem`.
std::optional<profiler::Trace> record_remedy(profiler::Remedy& remedy, Rerun rerun);

}  // namespace app
