#pragma once

#include "app/programs/program_run.h"
#include "profiler/analysis/step/peak.h"
#include "profiler/trace/trace.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// The largest batch with which a program trains on a virtual GPU, found by running it.
///
///     two small batches on a GPU without end  ──►  a line  ──►  the largest batch of each GPU
///     that batch and the next on the GPU  ──►  one fits and one does not, or the search goes on
///
/// The line saves most runs. Only runs decide.
namespace app {

/// Why a run that the user stopped has no result.
inline constexpr std::string_view kRunCancelled = "The run was cancelled.";

inline constexpr int64_t kMostTriedBatch = 1 << 16;

struct LiveTensor {
    std::string name;
    int64_t size_bytes = 0;
};

/// What a run with one batch came to.
struct BatchRun {
    int64_t batch_size = 0;
    bool fits = false;
    int64_t peak_allocated_bytes = -1;  // -1: not known, the program failed before its first step
    int64_t peak_reserved_bytes = -1;
    // Modelled, of the rank with the largest peak or of all stages of a pipeline; -1: not known.
    int64_t step_time_ns = -1;
    std::string place;  // of the peak: "backward, encoder.layer.3.attention.self"
    profiler::CategoryBytes by_category{};
    std::vector<LiveTensor> largest;  // at the peak, of one name together; the largest first
    int64_t requested_bytes = -1;     // by the request that failed
    int64_t free_bytes = -1;          // of the GPU at that time
    /// "In Net, checkpoint: replaced nothing; ..."; empty: no recipe, or one that did something.
    std::string nothing_replaced;
};

/// Runs a program until two steps came to their end, so that the second one finds the optimizer's
/// state. `run` needs neither file nor log. It fits if no request fails: a program may catch that.
/// Errors: an unknown GPU; the program ended for another reason than memory, or took too long.
models::Result<BatchRun> try_program(ProgramRun run, const std::string& gpu);

/// What a run came to, and its trace with lines of Python and modelled times.
struct RecordedTry {
    BatchRun outcome;
    profiler::Trace trace;
};

/// The same, with the trace of what ran: of ranks, the one with the largest peak.
/// Errors: as try_program; the run leaves no trace.
models::Result<RecordedTry> record_try(ProgramRun run, const std::string& gpu);

/// The same run on the GPU with memory without end, with its lines of Python and modelled times: a
/// step that does not come to its end on the GPU itself. Of ranks, the one with the largest peak.
/// Errors: as try_program; not even that memory is enough.
models::Result<profiler::Trace> record_without_limit(ProgramRun run, const std::string& gpu);

/// A program on a GPU.
struct ProgramCase {
    std::string gpu;                                          // id
    std::vector<std::pair<std::string, std::string>> values;  // that tell cases apart: "SEQ", "512"
    ProgramRun run;  // without a file or a folder; {BATCH} in its words is the batch size
    int64_t most_batch = kMostTriedBatch;  // none larger is tried
    std::string why_most;  // what stands against a larger one; empty: only the search
};

/// Puts the value in the place of "{name}" in all words. False: there is none.
[[nodiscard]] bool fill_in(std::vector<std::string>& words, const std::string& name,
                           const std::string& value);

struct LargestBatch {
    ProgramCase of;
    std::optional<BatchRun> largest;      // none: not even a batch of 1 fits
    std::optional<BatchRun> first_above;  // that does not fit; none: the search ended before
    std::vector<BatchRun> tries;          // all, the smallest first
    std::string error;                    // why the search of this case ended; empty: it did not
};

/// Which batches are tried before the last ones.
enum class BatchOrder : uint8_t {
    kGuessed,  // few: the line's guess, and from there
    kDoubled   // 1, 2, 4, ...: how memory and time grow
};

/// Called after each run, by one thread at a time.
using AfterBatch = std::function<void(const ProgramCase&, const BatchRun&)>;

/// About as many programs will run: one for each batch of a line, and two of each case if the line
/// guesses well.
std::size_t expected_runs(const std::vector<ProgramCase>& cases);

/// The words of each case have `{placeholder}` where the batch size goes. A batch fits if two steps
/// come to their end, so that the second one finds the optimizer's state, and no request fails: a
/// program may catch that and go on. Of a run of ranks the one with the largest peak counts. As
/// many programs run at a time as this machine has cores and memory for. A case that cannot be
/// searched has an error of its own, because the program ended for another reason than memory.
/// Errors: an unknown GPU, one that does not run CUDA, or a signal such as Ctrl-C.
models::Result<std::vector<LargestBatch>> find_largest_batches(
    const std::string& placeholder, const std::vector<ProgramCase>& cases,
    const AfterBatch& after_batch, BatchOrder order = BatchOrder::kGuessed);

}  // namespace app
