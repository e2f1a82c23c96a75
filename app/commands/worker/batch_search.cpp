#include "app/commands/worker/batch_search.h"

#include "app/commands/worker/temporary_folder.h"
#include "app/prediction/program_target.h"
#include "profiler/planner/step/batch_interpolation.h"
#include "profiler/planner/step/capacity_search.h"
#include "profiler/trace/available_memory.h"
#include "profiler/trace/trace_file.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <fstream>
#include <future>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

namespace app {
namespace {

using models::fail;
using models::Result;
using namespace profiler;

/// The batches of the line. Of a batch of 1 some kernels are others than of all larger ones.
constexpr std::array<int64_t, 2> kLineBatches{2, 4};

void replace_all(std::string& word, const std::string& name, const std::string& value) {
    const std::string placeholder = "{" + name + "}";
    for (std::size_t at = word.find(placeholder); at != std::string::npos;
         at = word.find(placeholder, at + value.size())) {
        word.replace(at, placeholder.size(), value);
    }
}

std::string last_line(const std::filesystem::path& file) {
    std::ifstream lines(file);
    std::string last;
    for (std::string line; std::getline(lines, line);) {
        if (!line.empty()) last = line;
    }
    return last;
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

/// Names of tensors by storage; of several tensors of one the first.
std::vector<StringId> names_of_storages(const Trace& trace) {
    std::vector<StringId> names(trace.storages.size());
    for (std::size_t i = trace.tensors.size(); i-- > 0;) {
        const Id<Storage> storage = trace.tensors.get<&Tensor::storage>(Id<Tensor>(i));
        if (storage.valid()) {
            names[storage.index()] = trace.tensors.get<&Tensor::name>(Id<Tensor>(i));
        }
    }
    return names;
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
    std::stable_sort(tensors.begin(), tensors.end(), [](const LiveTensor& a, const LiveTensor& b) {
        return a.size_bytes > b.size_bytes;
    });
    tensors.resize(std::min(tensors.size(), kMost));
    return tensors;
}

/// The first request that failed.
void read_failed_request(const Trace& trace, BatchTry& one) {
    for (std::size_t i = 0; i < trace.allocator_events.size(); ++i) {
        const AllocatorEvent event = trace.allocator_events[Id<AllocatorEvent>(i)];
        if (event.action != AllocatorAction::kOom) continue;
        one.requested_bytes = event.size_bytes;
        one.free_bytes = event.free_bytes;
        return;
    }
}

void read_peak(const Trace& trace, BatchTry& one) {
    const PeakReport peak = find_peak(trace);
    one.peak_allocated_bytes = peak.allocated_bytes;
    one.peak_reserved_bytes = peak.reserved_bytes;
    one.by_category = peak.by_category;
    one.place = place_of(trace, peak);
    one.largest = largest_tensors(trace, peak);
}

/// A run with its files, and the trace that it left.
struct Attempt {
    BatchTry outcome;
    std::optional<Trace> trace;
    int64_t resident_bytes = 0;
};

std::string reason(const ProgramResult& result, const std::filesystem::path& log) {
    const std::string line = last_line(log);
    return line.empty() || result.exit_code == 0 ? result.sentence : line;
}

Result<Attempt> attempt(ProgramRun run, int64_t batch_size) {
    const TemporaryFolder folder;
    if (!folder.exists()) return fail(kNoTemporaryFolder);
    run.file = (folder / "try.tscope").string();
    run.log = (folder / "log").string();
    run.steps = 2;
    run.skip = 0;
    run.stops = true;
    const auto result = run_program(run);
    if (!result) return tl::unexpected(result.error());
    Attempt made{.outcome = {.batch_size = batch_size},
                 .trace = {},
                 .resident_bytes = result->resident_bytes};
    if (!result->file.empty()) {
        auto trace = read_trace(result->file);
        if (!trace) return tl::unexpected(trace.error());
        read_peak(*trace, made.outcome);
        read_failed_request(*trace, made.outcome);
        made.trace = std::move(*trace);
    }
    // A program may catch its own failure, and go on or end as it likes.
    const bool ran_out =
        result->exception == "OutOfMemoryError" || made.outcome.requested_bytes >= 0;
    const bool trained = result->exit_code == 0 && result->recorded_steps > 0;
    if (!ran_out && !trained) {
        return fail("the program ended with exit code {}: {}", result->exit_code,
                    reason(*result, run.log));
    }
    made.outcome.fits = !ran_out;
    return made;
}

// ---- the search ------------------------------------------------------------------------------

/// Calls `act` with 0 to `count` - 1 on as many threads. Returns the first error.
template <typename Act>
Result<void> for_each_at_once(std::size_t count, std::size_t num_threads, const Act& act) {
    std::atomic<std::size_t> next = 0;
    std::mutex mutex;
    Result<void> first;
    const auto work = [&] {
        for (std::size_t i = next++; i < count; i = next++) {
            const Result<void> ok = act(i);
            const std::lock_guard lock(mutex);
            if (!ok && first) first = ok;
            if (!first) return;
        }
    };
    std::vector<std::future<void>> others;
    for (std::size_t i = 1; i < std::min(num_threads, count); ++i) {
        others.push_back(std::async(std::launch::async, work));
    }
    work();
    for (std::future<void>& other : others) other.get();
    return first;
}

/// One case while it is searched.
struct Bracket {
    LargestBatch found;
    ProgramTarget target;
    int64_t guess = 0;  // 0: none
    int64_t stride = 1;

    int64_t below() const { return found.largest ? found.largest->batch_size : 0; }
    int64_t above() const { return found.first_above ? found.first_above->batch_size : 0; }
    bool is_closed() const {
        return found.first_above ? above() - below() <= 1 : below() >= kMostBatch;
    }

    void add(BatchTry one) {
        if (one.fits) {
            if (one.batch_size > below()) found.largest = std::move(one);
        } else if (!found.first_above || one.batch_size < above()) {
            found.first_above = std::move(one);
        }
    }

    /// Away from what is known in growing strides, until one batch fits and one does not; then the
    /// middle.
    int64_t next() {
        if (!found.first_above)
            return std::min(below() + std::exchange(stride, 2 * stride), kMostBatch);
        const int64_t down = above() - std::exchange(stride, 2 * stride);
        return !found.largest && down > 0 ? down : below() + (above() - below()) / 2;
    }
};

using Values = std::vector<std::pair<std::string, std::string>>;

class Search {
public:
    Search(const ProgramRun& run, const std::string& placeholder, const BatchTried& tried)
        : run_(run), placeholder_(placeholder), tried_(tried) {}

    Result<std::vector<LargestBatch>> run(const std::vector<ProgramCase>& cases) {
        if (const auto ok = check_placeholders(cases); !ok) return tl::unexpected(ok.error());
        for (const ProgramCase& one : cases) {
            auto target = ProgramTarget::find(one.gpu);
            if (!target) return tl::unexpected(target.error());
            brackets_.push_back({.found = {.of = one}, .target = std::move(*target)});
        }
        if (const auto ok = guess(); !ok) return tl::unexpected(ok.error());
        if (const auto ok = try_guesses(); !ok) return tl::unexpected(ok.error());
        const auto ok = for_each_at_once(brackets_.size(), num_at_once_, [&](std::size_t i) {
            Result<void> tried;
            while (tried && !brackets_[i].is_closed()) tried = add_try(i, brackets_[i].next());
            return tried;
        });
        if (!ok) return tl::unexpected(ok.error());
        std::vector<LargestBatch> found;
        for (Bracket& bracket : brackets_) found.push_back(std::move(bracket.found));
        return found;
    }

private:
    Result<void> check_placeholders(const std::vector<ProgramCase>& cases) const {
        std::vector<std::string> names{placeholder_};
        for (const auto& [name, value] : cases.front().values) names.push_back(name);
        for (const std::string& name : names) {
            const bool is_used =
                std::any_of(run_.words.begin(), run_.words.end(), [&](const std::string& word) {
                    return word.find("{" + name + "}") != std::string::npos;
                });
            if (is_used) continue;
            return fail("No argument of the program holds {{{}}}: write it where {} goes.", name,
                        name == placeholder_ ? "the batch size" : "its value");
        }
        return {};
    }

    Result<Attempt> run_case(const ProgramCase& of, const VirtualCard& card, int64_t batch_size) {
        ProgramRun run = run_;
        run.card = card;
        for (std::string& word : run.words) {
            replace_all(word, placeholder_, std::to_string(batch_size));
            for (const auto& [name, value] : of.values) replace_all(word, name, value);
        }
        auto made = attempt(std::move(run), batch_size);
        if (made) return made;
        return fail("With {{{}}} = {} {}", placeholder_, batch_size, made.error().message);
    }

    Result<void> add_try(std::size_t index, int64_t batch_size) {
        Bracket& bracket = brackets_[index];
        auto made = run_case(bracket.found.of, bracket.target.card(), batch_size);
        if (!made) return tl::unexpected(made.error());
        const std::lock_guard lock(mutex_);
        if (tried_) tried_(bracket.found.of, made->outcome);
        bracket.add(std::move(made->outcome));
        return {};
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

    /// For all cases of the same values, from one line.
    Result<void> guess() {
        std::vector<std::pair<Values, std::optional<BatchInterpolation>>> lines;
        for (Bracket& bracket : brackets_) {
            const Values& values = bracket.found.of.values;
            auto line = std::find_if(lines.begin(), lines.end(),
                                     [&](const auto& one) { return one.first == values; });
            if (line == lines.end()) {
                auto recorded = record_line(bracket);
                if (!recorded) return tl::unexpected(recorded.error());
                line = lines.emplace(lines.end(), values, std::move(*recorded));
            }
            if (!line->second) continue;
            const auto batch = find_max_batch(*line->second, {}, bracket.target.capacity_bytes());
            if (batch) bracket.guess = std::clamp<int64_t>(*batch, 1, kMostBatch - 1);
        }
        return {};
    }

    /// None: the batches give no line.
    Result<std::optional<BatchInterpolation>> record_line(const Bracket& bracket) {
        std::vector<StepWork> steps;
        for (const int64_t batch_size : kLineBatches) {
            auto made = run_case(bracket.found.of, bracket.target.endless_card(), batch_size);
            if (!made) return tl::unexpected(made.error());
            limit_by_memory(made->resident_bytes);
            if (!made->trace) return std::nullopt;
            auto step = step_work_of(*made->trace);
            if (!step) return std::nullopt;
            step->batch_size = batch_size;
            steps.push_back(std::move(*step));
        }
        auto line = BatchInterpolation::of_steps(std::move(steps));
        if (!line) return std::nullopt;
        return std::move(*line);
    }

    /// The guess of each case and the batch above it, as many at a time as fit.
    Result<void> try_guesses() {
        std::vector<std::pair<std::size_t, int64_t>> tries;
        for (std::size_t i = 0; i < brackets_.size(); ++i) {
            const int64_t guess = brackets_[i].guess;
            if (guess == 0) continue;
            tries.emplace_back(i, guess);
            tries.emplace_back(i, guess + 1);
        }
        return for_each_at_once(tries.size(), num_at_once_, [&](std::size_t i) {
            return add_try(tries[i].first, tries[i].second);
        });
    }

    const ProgramRun& run_;
    const std::string placeholder_;
    const BatchTried& tried_;
    std::vector<Bracket> brackets_;
    std::size_t num_at_once_ = 1;
    std::mutex mutex_;  // of brackets_ and tried_ while programs run
};

}  // namespace

Result<std::vector<LargestBatch>> find_largest_batches(const ProgramRun& run,
                                                       const std::string& placeholder,
                                                       const std::vector<ProgramCase>& cases,
                                                       const BatchTried& tried) {
    return Search(run, placeholder, tried).run(cases);
}

}  // namespace app
