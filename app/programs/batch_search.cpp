#include "app/programs/batch_search.h"

#include "app/prediction/prediction_target.h"
#include "models/config/batch_bisection.h"
#include "profiler/analysis/ranks/collectives.h"
#include "profiler/analysis/ranks/rank_run.h"
#include "profiler/analysis/step/failure_words.h"
#include "profiler/analysis/step/origin.h"
#include "profiler/analysis/step/recorded_step.h"
#include "profiler/planner/step/batch_interpolation.h"
#include "profiler/planner/step/capacity_search.h"
#include "profiler/trace/at_once.h"
#include "profiler/trace/available_memory.h"
#include "profiler/trace/file/temporary_paths.h"
#include "profiler/trace/file/trace_file.h"
#include "profiler/trace/units.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <fstream>
#include <map>
#include <mutex>
#include <thread>

namespace app {
namespace {

using models::fail;
using models::Result;
using namespace profiler;

/// The batches of the line. Of a batch of 1 some kernels are others than of all larger ones.
constexpr std::array<int64_t, 2> kLineBatches{2, 4};

/// What the output of a program that failed says of it: the error of C++ that ended it, else its
/// last line.
std::string telling_line(const std::filesystem::path& file) {
    constexpr std::string_view kWhat = "  what():  ";  // of std::terminate
    std::ifstream lines(file);
    std::string telling;
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with(kWhat)) return line.substr(kWhat.size());
        if (!line.empty()) telling = line;
    }
    return telling;
}

// ---- what a run came to ----------------------------------------------------------------------

std::string place_of(const Trace& trace, const PeakReport& peak) {
    std::string place;
    if (peak.phase.valid()) place = name_of(trace.phases.get<&Phase::kind>(peak.phase));
    if (!peak.op.valid()) return place;
    const Id<ModulePath> module = trace.ops.get<&Op::module_path>(peak.op);
    if (!module.valid()) return place;
    if (!place.empty()) place += ", ";
    return place + std::string(trace.text(trace.module_paths.get<&ModulePath::path>(module)));
}

std::vector<LiveTensor> largest_tensors(const Trace& trace, const PeakReport& peak) {
    constexpr std::size_t kMost = 5;
    const std::vector<StringId> names = names_of_storages(trace);
    std::map<std::string_view, int64_t> bytes;
    for (const Id<Allocation> row : peak.live) {
        const Id<Storage> storage = trace.allocations.get<&Allocation::storage>(row);
        if (!storage.valid() || !names[storage.index()].valid()) continue;
        bytes[trace.text(names[storage.index()])] +=
            trace.allocations.get<&Allocation::requested_bytes>(row);
    }
    std::vector<LiveTensor> tensors;
    for (const auto& [name, size] : bytes) tensors.push_back({std::string(name), size});
    std::ranges::stable_sort(tensors, [](const LiveTensor& a, const LiveTensor& b) {
        return a.size_bytes > b.size_bytes;
    });
    tensors.resize(std::min(tensors.size(), kMost));
    return tensors;
}

/// The first request that failed, and that the program knows of.
void read_failed_request(const Trace& trace, BatchRun& one) {
    for (const profiler::Failure& failure : trace.failures.rows()) {
        if (!lacked_memory(failure)) continue;
        one.requested_bytes = failure.requested_bytes;
        one.free_bytes = failure.free_bytes;
        return;
    }
}

/// What a recipe says that changed none of the program's models; empty: see BatchRun.
std::string nothing_replaced(const Trace& trace) {
    std::string text;
    for (const Diagnostic note : trace.diagnostics.rows()) {
        if (trace.text(note.code) != "recipe_applied") continue;
        if (note.severity != Severity::kWarning) return {};
        text = trace.text(note.explanation);
    }
    return text;
}

void read_peak(const Trace& trace, BatchRun& one) {
    const PeakReport peak = find_peak(trace);
    one.peak_allocated_bytes = peak.allocated_bytes;
    one.peak_reserved_bytes = peak.reserved_bytes;
    one.by_category = peak.by_category;
    one.place = place_of(trace, peak);
    one.nothing_replaced = nothing_replaced(trace);
    one.largest = largest_tensors(trace, peak);
}

/// A run with its files, and the traces that it left.
struct Attempt {
    BatchRun outcome;
    std::vector<Trace> traces = {};  // of its ranks; the one with the largest peak first
    int64_t resident_bytes = 0;
    bool was_asked_to_end = false;  // by a signal: nothing else is known
};

constexpr const char* kCancelled = "The search was cancelled.";

/// Only a pipeline's time takes the traces of all stages (rank_run.h).
void drop_unless_it_sends(Attempt& made) {
    if (made.traces.size() > 1 && !is_stage(made.traces.back())) made.traces.pop_back();
}

/// Reads what a rank left. A failed request of any rank is one of the run.
Result<void> add_trace(const std::string& file, Attempt& made) {
    if (file.empty()) return {};
    auto trace = read_trace(file);
    if (!trace) return tl::unexpected(trace.error());
    BatchRun& outcome = made.outcome;
    if (outcome.requested_bytes < 0) read_failed_request(*trace, outcome);
    made.traces.push_back(std::move(*trace));
    const Trace& added = made.traces.back();
    if (made.traces.size() > 1 &&
        find_peak(added).allocated_bytes <= outcome.peak_allocated_bytes) {
        drop_unless_it_sends(made);
        return {};
    }
    read_peak(added, outcome);
    std::swap(made.traces.front(), made.traces.back());
    drop_unless_it_sends(made);
    return {};
}

/// Of the last recorded step. -1: its times cannot be modelled, or leave out communication.
int64_t modelled_step_ns(const ProgramTarget& target, std::vector<Trace>& ranks) {
    Trace& largest = ranks.front();
    if (largest.steps.empty() || !target.model_times(largest)) return -1;
    if (knows_communication(largest)) {
        const Step step = largest.steps[last_step(largest)];
        return step.end_ns - step.start_ns;
    }
    if (ranks.size() < 2) return -1;
    std::vector<const Trace*> stages;
    for (Trace& trace : ranks) {
        if (&trace != &largest && !target.model_times(trace)) return -1;
        stages.push_back(&trace);
    }
    return pipeline_step_ns(stages, join_collectives(stages)).value_or(-1);
}

std::string reason(const ProgramResult& result, const std::filesystem::path& log) {
    const std::string line = telling_line(log);
    return line.empty() || result.exit_code == 0 ? result.sentence : line;
}

Result<Attempt> attempt(ProgramRun run, int64_t batch_size) {
    const profiler::TemporaryFolder folder;
    if (!folder.exists()) return fail(profiler::kNoTemporaryFolder);
    if (run.world_size > 0) {
        run.folder = (folder / "ranks").string();
        std::error_code error;
        std::filesystem::create_directory(run.folder, error);
        if (error) return fail(profiler::kNoTemporaryFolder);
    } else {
        run.file = (folder / "try.tscope").string();
    }
    run.log = (folder / "log").string();
    // The second finds the optimizer's state. The third finds what the program keeps of the second
    // and the pieces that it left, and DDP has its last buckets in it. Where a later step is of
    // interest, the program runs on to it.
    const bool is_of_later_step = run.skip > ProgramRun().skip;
    if (!is_of_later_step) {
        run.steps = 3;
        run.skip = 0;
    }
    run.stops = true;
    const auto result = run_program(run);
    if (!result) return tl::unexpected(result.error());
    if (result->was_asked_to_end) return Attempt{.was_asked_to_end = true};
    if (result->has_timed_out) {
        return fail(
            "the program did not come to the end of step {} within {} s: give it more "
            "time.",
            run.skip + run.steps, run.timeout.count());
    }
    std::vector<std::string> files;
    if (run.world_size == 0) files.push_back(result->file);
    for (const RankResult& rank : result->ranks) files.push_back(rank.file);
    Attempt made{.outcome = {.batch_size = batch_size},
                 .resident_bytes = result->resident_bytes * static_cast<int64_t>(files.size())};
    for (const std::string& file : files) {
        if (const auto ok = add_trace(file, made); !ok) return tl::unexpected(ok.error());
    }
    // A program may catch its own failure, and go on or end as it likes.
    const bool ran_out =
        result->exception == "OutOfMemoryError" || made.outcome.requested_bytes >= 0;
    // What happens after the last recorded step, as in libraries at the end, is not of memory.
    const bool has_all_steps = result->recorded_steps >= run.steps;
    const bool has_some = result->recorded_steps > 0 || is_of_later_step;
    const bool trained = has_all_steps || (result->exit_code == 0 && has_some);
    if (!ran_out && !trained) {
        return fail("the program ended with exit code {}: {}", result->exit_code,
                    reason(*result, run.log));
    }
    made.outcome.fits = !ran_out;
    return made;
}

/// A run of its own, of the batch that stands in the program.
Result<Attempt> attempt_alone(ProgramRun run) {
    auto made = attempt(std::move(run), -1);
    if (made && made->was_asked_to_end) return fail("{}", kRunCancelled);
    return made;
}

// ---- the search ------------------------------------------------------------------------------

/// One case while it is searched.
struct Bracket {
    LargestBatch found;
    ProgramTarget target;
    int64_t guess = 0;          // 0: none
    int64_t bytes_of_one = -1;  // that each further sample takes; -1: not known
    models::BatchBisection search{.most = found.of.most_batch};
    int64_t less = 1;  // than a guess that failed

    bool is_closed() const { return !found.error.empty() || search.is_done(); }

    void add(BatchRun one) {
        search.answer(one.batch_size, one.fits);
        found.tries.push_back(std::move(one));
    }

    std::optional<BatchRun> try_of(int64_t batch_size) const {
        const auto one = std::ranges::find(found.tries, batch_size, &BatchRun::batch_size);
        return one == found.tries.end() ? std::nullopt : std::optional(*one);
    }

    /// As many more samples as the memory that the largest batch leaves has room for. 0: not known.
    int64_t room() const {
        const auto largest = try_of(search.fits);
        if (bytes_of_one <= 0 || !largest || largest->peak_reserved_bytes < 0) return 0;
        const int64_t free_bytes = target.capacity_bytes() - largest->peak_reserved_bytes;
        return std::max<int64_t>(free_bytes / bytes_of_one, 0);
    }

    /// As far as there is room. Below a guess that did not fit: 1 and 4 less, as guesses are seldom
    /// far off, and then half.
    int64_t next() {
        if (search.fails == 0) return search.next(search.fits + room());
        if (search.fits == 0) {
            constexpr int64_t kNear = 4;
            const int64_t step = std::exchange(less, 4 * less);
            return search.next(step <= kNear && step < search.fails ? search.fails - step : 0);
        }
        const int64_t half = (search.fails - search.fits) / 2;
        return search.next(search.fits + std::clamp(room(), std::max<int64_t>(half / 4, 1), half));
    }
};

bool share_a_line(const ProgramRun& a, const ProgramRun& b) {
    return a.words == b.words && a.world_size == b.world_size;
}

/// What a batch takes on a GPU without end.
struct Line {
    const Bracket* bracket = nullptr;         // whose run it is
    std::vector<int64_t> peaks;               // of kLineBatches
    std::optional<BatchInterpolation> bytes;  // of each request; none: the batches differ
    int64_t nccl_bytes = 0;                   // beside them
    int64_t resident_bytes = 0;               // what a run takes of this machine
    std::string error;                        // why it could not be recorded

    bool is_of(const ProgramRun& run) const { return share_a_line(bracket->found.of.run, run); }

    /// The batch that should just fit, by the allocator's simulator or else by the peaks alone;
    /// 0: the line does not say.
    int64_t largest_in(int64_t capacity_bytes) {
        capacity_bytes -= nccl_bytes;
        if (bytes) {
            const auto batch = find_max_batch(*bytes, {}, capacity_bytes);
            if (batch) return std::max<int64_t>(*batch, 1);
        }
        if (peaks.size() < kLineBatches.size()) return 0;
        if (bytes_of_one() <= 0) return 0;
        return std::max<int64_t>(kLineBatches[1] + (capacity_bytes - peaks[1]) / bytes_of_one(), 1);
    }

    /// -1: not known.
    int64_t bytes_of_one() const {
        if (peaks.size() < kLineBatches.size()) return -1;
        return (peaks[1] - peaks[0]) / (kLineBatches[1] - kLineBatches[0]);
    }
};

class Search {
public:
    Search(const std::string& placeholder, const AfterBatch& after_batch)
        : placeholder_(placeholder), after_batch_(after_batch) {}

    Result<std::vector<LargestBatch>> run(const std::vector<ProgramCase>& cases, BatchOrder order) {
        for (const ProgramCase& one : cases) {
            auto target = ProgramTarget::find(one.gpu);
            if (!target) return tl::unexpected(target.error());
            brackets_.push_back({.found = {.of = one}, .target = std::move(*target)});
        }
        if (order == BatchOrder::kGuessed) {
            guess();
            try_guesses();
        } else {
            if (!brackets_.front().is_closed()) add_try(0, 1);  // says what memory a run takes
            limit_by_memory(resident_bytes_);
        }
        for_each_at_once(brackets_.size(), num_at_once_, [&](std::size_t i) {
            while (!cancelled_ && !brackets_[i].is_closed()) add_try(i, brackets_[i].next());
        });
        if (cancelled_) return fail(kCancelled);
        std::vector<LargestBatch> found;
        for (Bracket& bracket : brackets_) {
            std::ranges::sort(bracket.found.tries, {}, &BatchRun::batch_size);
            bracket.found.largest = bracket.try_of(bracket.search.fits);
            bracket.found.first_above = bracket.try_of(bracket.search.fails);
            found.push_back(std::move(bracket.found));
        }
        return found;
    }

private:
    Result<Attempt> run_case(const ProgramCase& of, const VirtualCard& card, int64_t batch_size) {
        ProgramRun run = of.run;
        run.card = card;
        if (!fill_in(run.words, placeholder_, std::to_string(batch_size))) {
            return fail("No argument of the program holds {{{}}}, the batch size.", placeholder_);
        }
        auto made = attempt(std::move(run), batch_size);
        if (made && made->was_asked_to_end) {
            cancelled_ = true;
            return fail(kCancelled);
        }
        if (made) return made;
        return fail("With {{{}}} = {} {}", placeholder_, batch_size, made.error().message);
    }

    void add_try(std::size_t index, int64_t batch_size) {
        Bracket& bracket = brackets_[index];
        auto made = run_case(bracket.found.of, bracket.target.card(), batch_size);
        if (made && made->outcome.fits) {
            made->outcome.step_time_ns = modelled_step_ns(bracket.target, made->traces);
        }
        const std::lock_guard lock(mutex_);
        if (!made) {
            bracket.found.error = made.error().message;
            return;
        }
        resident_bytes_ = std::max(resident_bytes_, made->resident_bytes);
        if (after_batch_) after_batch_(bracket.found.of, made->outcome);
        bracket.add(std::move(made->outcome));
    }

    /// Programs that fit into this machine together, by what one of them held.
    void limit_by_memory(int64_t resident_bytes) {
        constexpr double kLargerBatch = 1.25;
        num_at_once_ = std::max(1U, std::thread::hardware_concurrency());
        const int64_t available_bytes = available_memory_bytes();
        if (available_bytes < 0 || resident_bytes <= 0) return;
        const double fit = static_cast<double>(available_bytes) /
                           (kLargerBatch * static_cast<double>(resident_bytes));
        num_at_once_ = std::clamp<std::size_t>(static_cast<std::size_t>(fit), 1, num_at_once_);
    }

    /// For all cases of the same run, from one line. Lines are recorded one by one, and say what
    /// memory a run takes.
    void guess() {
        std::vector<Line> lines;
        const auto line_of = [&](const Bracket& bracket) {
            return std::ranges::find_if(
                lines, [&](const Line& line) { return line.is_of(bracket.found.of.run); });
        };
        for (const Bracket& bracket : brackets_) {
            if (line_of(bracket) == lines.end()) lines.push_back({.bracket = &bracket});
        }
        int64_t resident_bytes = 0;
        for (Line& line : lines) {
            if (cancelled_) return;
            if (const auto ok = record(line); !ok) line.error = ok.error().message;
            resident_bytes = std::max(resident_bytes, line.resident_bytes);
        }
        limit_by_memory(resident_bytes);
        for (Bracket& bracket : brackets_) {
            Line& line = *line_of(bracket);
            bracket.found.error = line.error;
            bracket.bytes_of_one = line.bytes_of_one();
            bracket.guess = std::min(line.largest_in(bracket.target.capacity_bytes()),
                                     bracket.found.of.most_batch);
        }
    }

    Result<void> record(Line& line) {
        const Bracket& bracket = *line.bracket;
        std::vector<StepWork> steps;
        for (const int64_t batch_size : kLineBatches) {
            auto made = run_case(bracket.found.of, bracket.target.endless_card(), batch_size);
            if (!made) return tl::unexpected(made.error());
            line.resident_bytes = made->resident_bytes;
            if (made->traces.empty()) return {};
            line.peaks.push_back(made->outcome.peak_reserved_bytes);
            line.nccl_bytes = nccl_bytes_of(made->traces.front());
            auto step = step_work_of(made->traces.front());
            if (!step) continue;
            step->batch_size = batch_size;
            steps.push_back(std::move(*step));
        }
        if (auto bytes = BatchInterpolation::of_steps(std::move(steps))) {
            line.bytes = std::move(*bytes);
        }
        return {};
    }

    /// The guess of each case and the batch above it, as many at a time as fit.
    void try_guesses() {
        std::vector<std::pair<std::size_t, int64_t>> tries;
        for (std::size_t i = 0; i < brackets_.size(); ++i) {
            const int64_t guess = brackets_[i].guess;
            if (guess == 0 || brackets_[i].is_closed()) continue;
            tries.emplace_back(i, guess);
            if (guess < brackets_[i].found.of.most_batch) tries.emplace_back(i, guess + 1);
        }
        for_each_at_once(tries.size(), num_at_once_, [&](std::size_t i) {
            if (!cancelled_) add_try(tries[i].first, tries[i].second);
        });
    }

    const std::string placeholder_;
    const AfterBatch& after_batch_;
    std::vector<Bracket> brackets_;
    std::size_t num_at_once_ = 1;
    int64_t resident_bytes_ = 0;  // the most that a try took of this machine
    std::mutex mutex_;  // of brackets_, after_batch_ and resident_bytes_ while programs run
    std::atomic<bool> cancelled_ = false;
};

}  // namespace

bool fill_in(std::vector<std::string>& words, const std::string& name, const std::string& value) {
    const std::string placeholder = "{" + name + "}";
    bool is_there = false;
    for (std::string& word : words) {
        for (std::size_t at = word.find(placeholder); at != std::string::npos;
             at = word.find(placeholder, at + value.size())) {
            word.replace(at, placeholder.size(), value);
            is_there = true;
        }
    }
    return is_there;
}

Result<BatchRun> try_program(ProgramRun run, const std::string& gpu) {
    const auto target = ProgramTarget::find(gpu);
    if (!target) return tl::unexpected(target.error());
    run.card = target->card();
    auto made = attempt_alone(std::move(run));
    if (!made) return tl::unexpected(made.error());
    if (made->outcome.fits) made->outcome.step_time_ns = modelled_step_ns(*target, made->traces);
    return std::move(made->outcome);
}

Result<RecordedTry> record_try(ProgramRun run, const std::string& gpu) {
    const auto target = ProgramTarget::find(gpu);
    if (!target) return tl::unexpected(target.error());
    run.card = target->card();
    run.with_stacks = true;
    auto made = attempt_alone(std::move(run));
    if (!made) return tl::unexpected(made.error());
    if (made->traces.empty()) return fail("it leaves no trace.");
    made->outcome.step_time_ns = modelled_step_ns(*target, made->traces);  // also models the times
    return RecordedTry{std::move(made->outcome), std::move(made->traces.front())};
}

Result<Trace> record_without_limit(ProgramRun run, const std::string& gpu) {
    const auto target = ProgramTarget::find(gpu);
    if (!target) return tl::unexpected(target.error());
    run.card = target->endless_card();
    run.with_stacks = true;
    const int64_t total_bytes = run.card->total_bytes;
    auto made = attempt_alone(std::move(run));
    if (!made) return tl::unexpected(made.error());
    if (!made->outcome.fits) {
        return fail("the program runs out of {}, too.", format_bytes(total_bytes));
    }
    if (made->traces.empty()) return fail("it leaves no trace.");
    Trace whole = std::move(made->traces.front());
    (void)target->model_times(whole);  // some cannot be modelled: then only the order is known
    return whole;
}

std::size_t expected_runs(const std::vector<ProgramCase>& cases) {
    std::size_t num_lines = 0;
    for (auto one = cases.begin(); one != cases.end(); ++one) {
        const bool is_first = std::none_of(cases.begin(), one, [&](const ProgramCase& before) {
            return share_a_line(before.run, one->run);
        });
        num_lines += is_first ? 1 : 0;
    }
    constexpr std::size_t kRunsOfCase = 2;  // the guess, and the batch above it
    return kLineBatches.size() * num_lines + kRunsOfCase * cases.size();
}

Result<std::vector<LargestBatch>> find_largest_batches(const std::string& placeholder,
                                                       const std::vector<ProgramCase>& cases,
                                                       const AfterBatch& after_batch,
                                                       BatchOrder order) {
    return Search(placeholder, after_batch).run(cases, order);
}

}  // namespace app
