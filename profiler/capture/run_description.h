#pragma once

#include "models/config/workload.h"
#include "profiler/capture/capture_options.h"
#include "profiler/trace/trace.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace profiler {

/// The device on which a run is measured, or for which it is predicted.
struct RunEnvironment {
    Source source = Source::kMeasuredCpu;
    TimeBasis time_basis = TimeBasis::kMeasured;
    std::string device_name;
    int64_t memory_limit_bytes = -1;  // -1: none
    int64_t num_threads = 0;          // of a measured processor; 0 on a GPU
};

/// The name that the system gives this machine's processor.
std::string processor_name();

/// Appends the run's row: what is trained, where, with which versions.
void describe_run(const models::Workload& workload, const RunEnvironment& environment,
                  Trace& trace);

/// What is known of a program that is not ours. Empty and 0: not known.
struct ProgramDescription {
    std::string program;    // "train.py"
    std::string model;      // class of the model
    std::string recipe;     // of techniques that were put into it: "tempo"
    std::string precision;  // "fp32", "amp-bf16"
    int64_t batch_size = 0;
    int64_t seq_len = 0;
    int64_t micro_batches = 0;  // of a step
    int64_t rank = 0;
    int64_t world_size = 1;
    std::string run_id;     // the same in all ranks of a run
    std::string launch_id;  // the same on all its nodes; another one in a run at the same time
    /// The program trains this built-in model. The fields above that name the model are not used.
    std::optional<models::Workload> workload;
    std::string parallel;  // and spreads it so: models::to_text(Parallel)
    // How it was started: columns of Run, as text.
    std::string command;  // JSON array
    std::string folder;
    std::string environment;  // JSON object
};

/// Appends the run's row of such a program, or fills it in again when more is known.
void describe_program(const ProgramDescription& program, const RunEnvironment& environment,
                      Trace& trace);

/// Parameters in float32 do not tell in which type a program computes: FSDP2's mixed precision and
/// programs that cast on their own multiply in 16 bits. The type in which most of forward's
/// products are multiplied tells: "amp-bf16".
void correct_precision(Trace& trace);

/// Adds `entries`, a JSON object, to the run's software.
void add_software(const nlohmann::json& entries, Trace& trace);

/// Writes into the run's row with which other recipes this one takes turns, once. A recipe that
/// should have taken turns and runs alone gets a note that says so.
void note_turn(const Turn& turn, Trace& trace);

/// Adds a counter at `time_ns` with the wall clock, by which steps of several files are ordered.
void note_wall_clock(int64_t time_ns, Trace& trace);

}  // namespace profiler
