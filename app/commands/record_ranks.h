#pragma once

#include "app/commands/console/outcome.h"
#include "app/prediction/prediction_target.h"
#include "app/programs/program_run.h"
#include "profiler/analysis/step/value_reads.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

/// Programs that are recorded on a virtual GPU, one trace or one of each rank.
namespace app {

struct RecordedProgramRun {
    ProgramResult result;
    std::optional<ProgramTarget> target;  // none: the devices of this machine
};

/// Runs the program on the virtual GPU `gpu`; if that is empty, on the devices of this machine.
models::Result<RecordedProgramRun> run_on(const std::string& gpu, ProgramRun& run);

/// Gives the steps of a trace their modelled times, and notes a later peak in it. The sentence says
/// if the times failed.
void complete_trace(const std::optional<ProgramTarget>& target, const std::string& file,
                    LaterPeak& later_peak, std::string& sentence);

/// Whether an output is a folder for the traces of ranks: it is one, or could be one by its name.
bool names_folder(const std::string& output);

/// The verdict on the last request for memory that torch did not absorb: "Out of memory at
/// train.py:14 in step 1: ..."; empty: the trace has none, cannot be read, or there is no `file`.
std::string verdict_on(const std::string& file);
/// Prints it, and the command that says more about `trace`.
void print_verdict(const std::string& verdict, const std::filesystem::path& trace);

/// What the program read that nobody computed, and what was assumed.
struct ValueReads {
    std::vector<profiler::ValueReadLine> lines;
    std::vector<std::string> sentences;
};

/// Reads them from the trace `file`. Empty: no file was named, or it cannot be read.
ValueReads value_reads_of(const std::string& file);

struct RecordRequest {
    std::string output;
    bool overwrites = false;  // traces that are there already
    std::string gpu;          // a virtual one; empty: the devices of this machine
    std::string link;         // bytes a second between the GPUs of a node; empty: the calibration's
    std::string next;         // the command after a run that had enough memory; empty: none
};

/// A trace of each rank that runs, into a folder. Prints what became of them.
tl::expected<ProgramResult, Failure> record_ranks(ProgramRun& run, const RecordRequest& request);

}  // namespace app
