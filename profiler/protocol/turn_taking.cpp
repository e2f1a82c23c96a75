#include "profiler/protocol/turn_taking.h"

#include "profiler/protocol/exit_code.h"

#include <fmt/ranges.h>

#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string_view>
#include <utility>

namespace profiler {
namespace {

/// What a worker holds besides the memory that --memory-limit counts: libtorch and the trace.
constexpr int64_t kWorkerBytes = int64_t{512} << 20;

/// A sweep without a limit grows until the machine's memory is full.
bool fills_memory(const Request& request) {
    return request.kind == RequestKind::kSweep && request.memory_limit_bytes < 0;
}

/// Before its first step a worker holds only the model. Nothing tells what the step will take.
bool has_unknown_need(const Request& request) {
    return request.kind == RequestKind::kCapture && request.warmup_steps <= 0;
}

/// Whether no worker may wait beside this one.
bool runs_alone(const Request& request) {
    return fills_memory(request) || has_unknown_need(request);
}

/// The most that the worker of a sweep will hold.
int64_t largest_sweep_bytes(const Request& request) {
    return request.memory_limit_bytes + request.memory_limit_bytes / 8 + kWorkerBytes;
}

std::string recipe_of(const Request& request) {
    return request.workload.is_object() ? request.workload.value("recipe_name", "") : "";
}

/// Different for every group of every process on this machine.
std::string make_run_id() {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return fmt::format("{:x}-{:x}", std::chrono::nanoseconds(now).count(), getpid());
}

bool is_out_of_memory(const WorkerState& state) {
    const auto* const outcome = std::get_if<WorkerOutcome>(&state);
    return outcome != nullptr && !*outcome &&
           outcome->error().exit_code == static_cast<int>(ExitCode::kOutOfMemory);
}

}  // namespace

TurnTaking::TurnTaking(std::vector<Request> requests)
    : requests_(std::move(requests)), begun_(requests_.size()) {
    for (Request& request : requests_) request.takes_turns = requests_.size() > 1;
    clients_.reserve(2 * requests_.size());  // a worker that ran out of memory is started once more
}

tl::expected<void, ErrorFrame> TurnTaking::run(const TurnEvents& events) {
    while (next_ < requests_.size() && !failure_) {
        gather_group(events);
        run_group(events);
    }
    if (cancelled_ && failure_) return tl::unexpected(cancelled_error());
    if (failure_) return tl::unexpected(*failure_);
    return {};
}

/// Starts workers one after the other, until the next one does not fit beside them.
void TurnTaking::gather_group(const TurnEvents& events) {
    while (next_ < requests_.size() && !failure_ && (group_.empty() || next_fits())) {
        const std::size_t index = next_;
        if (events.started) events.started(index);
        const WorkerState state = start_worker(index, events_of(index, events));
        // Its memory may suffice once the others are gone.
        const bool try_again =
            is_out_of_memory(state) && !group_.empty() && requests_[index].memory_limit_bytes < 0;
        if (try_again) break;
        ++next_;
        if (const auto* waits = std::get_if<WaitsForTurn>(&state)) {
            group_.push_back({index, clients_.size() - 1, *waits});
            largest_held_bytes_ = std::max(largest_held_bytes_, waits->held_bytes);
        } else {
            settle(index, std::get<WorkerOutcome>(state), events);
        }
    }
    const bool split = next_ < requests_.size() && !failure_ && !group_.empty();
    if (split) warn_of_split(events);
}

/// How much more memory than now a worker that waits may hold later.
int64_t TurnTaking::growth_bytes(const Waiting& member) const {
    const Request& request = requests_[member.index];
    const int64_t held_bytes = member.waits.held_bytes;
    if (request.kind == RequestKind::kSweep) {
        return std::max<int64_t>(0, largest_sweep_bytes(request) - held_bytes);
    }
    // A worker keeps the memory that its steps free, so that it holds the peak of its warm-up. The
    // second step is the first that runs beside the optimizer's state (two tensors a parameter).
    // The optimizer's first step holds them with the parameters and the gradients: they are at most
    // half of what the worker holds after it.
    return request.warmup_steps == 1 ? held_bytes / 2 : 0;
}

/// Whether the next request's worker fits into memory beside the waiting workers.
///
/// A sweep takes what its limit allows. What another recipe takes is not known before it has run:
/// `original` after `tempo` takes more. The rule leaves room for twice the largest recipe so far.
/// If a recipe takes even more and runs out of memory in its warm-up, gather_group tries it again
/// once the others are gone (without a limit of the user).
bool TurnTaking::next_fits() const {
    const Request& next = requests_[next_];
    const int64_t available_bytes = group_.back().waits.available_bytes;
    if (runs_alone(next) || available_bytes < 0) return false;
    int64_t needed_bytes =
        next.kind == RequestKind::kSweep ? largest_sweep_bytes(next) : 2 * largest_held_bytes_;
    for (const Waiting& member : group_) {
        if (runs_alone(requests_[member.index])) return false;
        needed_bytes += growth_bytes(member);
    }
    return needed_bytes <= available_bytes;
}

void TurnTaking::run_group(const TurnEvents& events) {
    const TakeTurn turn{.run = make_run_id(), .recipes = static_cast<int64_t>(group_.size())};
    while (!group_.empty()) {
        std::vector<Waiting> still_waiting;
        for (const Waiting& member : group_) {
            const WorkerState state =
                clients_[member.client].resume(turn, events_of(member.index, events));
            if (std::holds_alternative<WaitsForTurn>(state)) {
                still_waiting.push_back(member);
            } else {
                clients_[member.client].end();
                settle(member.index, std::get<WorkerOutcome>(state), events);
            }
        }
        std::ranges::reverse(still_waiting);
        group_ = std::move(still_waiting);
    }
}

WorkerState TurnTaking::start_worker(std::size_t index, const WorkerEvents& events) {
    auto worker = WorkerClient::start();
    if (!worker) return tl::unexpected(ErrorFrame{worker.error().message});
    clients_.push_back(std::move(*worker));
    ++started_;
    if (cancelled_) clients_.back().cancel();
    WorkerState state = clients_.back().begin(requests_[index], events);
    if (clients_.back().has_begun()) begun_[index] = true;
    if (!std::holds_alternative<WaitsForTurn>(state)) clients_.back().end();
    return state;
}

WorkerEvents TurnTaking::events_of(std::size_t index, const TurnEvents& events) const {
    WorkerEvents result;
    if (events.progress) {
        result.progress = [&events, index](const Progress& progress) {
            events.progress(index, progress);
        };
    }
    if (events.sample) {
        result.sample = [&events, index](const Sample& sample) { events.sample(index, sample); };
    }
    return result;
}

void TurnTaking::settle(std::size_t index, const WorkerOutcome& outcome, const TurnEvents& events) {
    if (!outcome && !outcome.error().out_of_memory() && !failure_) failure_ = outcome.error();
    if (events.ended) events.ended(index, outcome);
}

void TurnTaking::warn_of_split(const TurnEvents& events) const {
    constexpr std::string_view kDrift =
        "If the speed of the machine changes meanwhile, the change looks like a difference between "
        "recipes.";
    if (!events.split || std::ranges::any_of(requests_, fills_memory)) return;
    if (std::ranges::any_of(requests_, has_unknown_need)) {
        if (group_.front().index > 0) return;  // said before
        events.split(fmt::format(
            "Without a warm-up step the recipes do not take turns, because nothing tells how much "
            "memory they take: each is measured alone. {} With one warm-up step they take turns.",
            kDrift));
        return;
    }
    std::vector<std::string> recipes;
    for (const Waiting& member : group_) recipes.push_back(recipe_of(requests_[member.index]));
    events.split(fmt::format(
        "The recipes do not fit into memory together: {} {} measured before the others. {}",
        fmt::join(recipes, ", "), recipes.size() == 1 ? "is" : "are", kDrift));
}

/// Names the files of all workers that had recorded steps. A file of a request that did not begin
/// is from an earlier run.
ErrorFrame TurnTaking::cancelled_error() const {
    std::vector<std::string> partial_files;
    for (std::size_t i = 0; i < requests_.size(); ++i) {
        if (!begun_[i]) continue;
        const std::string partial = requests_[i].output_path + ".partial";
        std::error_code error;
        if (std::filesystem::exists(partial, error)) partial_files.push_back(partial);
    }
    ErrorFrame frame = *failure_;
    if (requests_.size() > 1 && !partial_files.empty()) {
        frame.message =
            fmt::format("The {} was cancelled. What was recorded before is in {}.",
                        work_of(requests_.front().kind), fmt::join(partial_files, ", "));
    }
    return frame;
}

void TurnTaking::cancel() {
    cancelled_ = true;
    const std::size_t count = started_;
    for (std::size_t i = 0; i < count; ++i) clients_[i].cancel();
}

std::string TurnTaking::log() const {
    std::string text;
    const std::size_t count = started_;
    for (std::size_t i = 0; i < count; ++i) text += clients_[i].log();
    return text;
}

}  // namespace profiler
