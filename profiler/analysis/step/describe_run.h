#pragma once

#include "models/config/parallel.h"
#include "models/config/workload.h"
#include "profiler/trace/trace.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Describes a run and its workload in words: the same words in every command, chart and panel.
namespace profiler {

// What a trace of a user's own program says about it, or of one that spreads a built-in model.

/// A built-in model over many GPUs (capture --parallel).
struct SpreadStep {
    models::Workload workload;  // of one GPU
    models::Parallel parallel;
};

/// Empty and 0: not known.
struct RecordedProgram {
    std::string program;    // "train.py"
    std::string model;      // class of the model: "BertForMaskedLM"
    std::string precision;  // "fp32", "amp-bf16"
    int64_t batch_size = 0;
    int64_t seq_len = 0;
    int64_t micro_batches = 0;       // of a step, each of batch_size
    bool has_other_batches = false;  // of other sizes or lengths (kBatchesDiffer)
    int64_t world_size = 1;
    std::optional<SpreadStep> spread;  // none: a program of the user's
};

/// Nullopt: the trace is not of such a program.
std::optional<RecordedProgram> program_of(const Trace& trace);

/// Sequences that a step trains: of this process, and of a built-in model on all GPUs together. 0:
/// not known.
int64_t sequences_per_step(const RecordedProgram& program);

/// Sequences of so many micro-batches. 0: not known, or more than a file can truly say.
int64_t sequences_of(int64_t batch_size, int64_t micro_batches);

/// "train.py: BertForMaskedLM, 4 micro-batches of B=8 S=128, fp32", as far as it is known.
std::string describe(const RecordedProgram& program);
/// "fsdp2"; empty: no built-in model over many GPUs.
std::string strategy_of(const RecordedProgram& program);
/// "fsdp2 on 8 GPUs"; empty likewise.
std::string describe_spread(const RecordedProgram& program);

/// What differs between the steps of two programs, each as "batch size (8 and 16)". Empty exactly
/// when they train the same step; recipes and strategies do it in ways of their own.
std::vector<std::string> differences(const RecordedProgram& a, const RecordedProgram& b);

/// The workload that a trace ran. It passes `models::validate`. Nullopt when the trace does not say
/// (imported files) or says something impossible (damaged files).
std::optional<models::Workload> workload_of(const Trace& trace);

/// Micro-batches of a step. Nullopt: a program's, which the recorder could not count. 1 for files
/// that do not say what they are of.
std::optional<int64_t> micro_batches_of(const Trace& trace);
/// Sequences that a step trains; of a built-in model over many GPUs on all of them. 0: not known.
int64_t sequences_per_step(const Trace& trace);

/// What differs between two workloads besides the recipe, each as "batch size (8 and 16)". Empty
/// exactly when they are comparable.
std::vector<std::string> differences(const models::Workload& a, const models::Workload& b);

/// What differs between the steps of two traces. Unless both name a workload, or both a program,
/// only what both say is compared.
std::vector<std::string> differences(const Trace& a, const Trace& b);

/// "bert-large, 3 layers, no head, 4 micro-batches of B=8 S=512, fp32".
std::string describe(const models::Workload& workload);
/// The same for a trace. A trace without a workload is described by its other columns.
std::string describe_workload(const Trace& trace);
/// The workload, the recipe and how it is spread over GPUs, as far as the trace knows them.
std::string describe_run(const Trace& trace);

/// What tells the runs of one step apart: "tempo"; of a built-in model over many GPUs "tempo ·
/// fsdp2". Empty: the trace names no recipe.
std::string describe_recipe(const Trace& trace);

/// Canonical text of a trace's recipe: equal for traces of the same recipe, however the user named
/// it. Nullopt if the trace does not say.
std::optional<std::string> canonical_recipe(const Trace& trace);

/// What the traces of all ranks of one `temposcope run` have in common; empty: not known.
std::string run_id_of(const Trace& trace);
/// What the traces of all nodes of one launch have in common; a launch at the same time has another
/// one. Empty: not known.
std::string launch_id_of(const Trace& trace);

/// What identifies the captures that were measured in turn with this one, step by step; empty: it
/// was measured alone.
std::string turns_run_of(const Trace& trace);

/// "measured on the CPU".
std::string_view describe(Source source);
/// "the loss", "the optimizer's step"
std::string_view describe(PhaseKind phase);
/// Whether the classes of blocks follow from when and where they were allocated, because the file
/// does not have them.
bool has_inferred_categories(const Trace& trace);
inline constexpr std::string_view kClassesInferred =
    "The file has no classes: they are inferred from where and when blocks were allocated and "
    "freed.";
inline constexpr std::string_view kOthersInferred =
    "Classes that the file does not tell are inferred from where and when blocks were allocated "
    "and freed.";
/// What to say beside the classes of a trace: that they are inferred. Empty: the file has them.
std::string_view classes_note(const Trace& trace);
/// Whether the lines in call stacks are those where functions begin, as the PyTorch profiler writes
/// them.
bool has_lines_of_functions(const Trace& trace);
/// Whether peaks count the bytes of blocks, because the profiler does not write what was asked for.
bool counts_block_bytes(const Trace& trace);
/// Whether the trace says what autograd saved. Files of other tools do not.
bool records_saves(const Trace& trace);
/// "measured on the CPU (AMD EPYC), 2 threads, torch 2.11.0, limited to 16.0 GiB";
/// "imported (NVIDIA H100), rank 0 of 2, classes inferred".
std::string describe_source(const Trace& trace);

}  // namespace profiler
