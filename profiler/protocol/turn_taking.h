#pragma once

#include "profiler/protocol/worker_client.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

/// Captures or sweeps of several recipes, each in a worker of its own, that run their steps in
/// turn.
///
///     worker A   set-up, warm-up                   step             step   step
///     worker B                     set-up, warm-up       step step
///                                                  └ round 1 ┘ └ round 2 ┘
///
/// One worker runs at a time and the others sleep. A machine whose speed drifts (heat, other load)
/// then slows all recipes alike, and step k of one recipe can be compared with step k of another.
/// Each round goes in the opposite order of the one before, so that a steady drift cancels over two
/// rounds.
///
/// Sleeping workers keep their memory. Recipes that do not fit into memory together run in several
/// groups, one group after the other. Captures without a warm-up run alone, because nothing tells
/// how much memory they will take. On a GPU the workers do not take turns: each runs alone.
namespace profiler {

/// Called by `run` on its thread; `index` is a request's. Any member may be empty.
struct TurnEvents {
    std::function<void(std::size_t index)> started = {};
    std::function<void(std::size_t index, const Progress&)> progress = {};
    std::function<void(std::size_t index, const Sample&)> sample = {};
    std::function<void(std::size_t index, const WorkerOutcome&)> ended = {};
    /// Says why not all recipes take turns with each other.
    std::function<void(const std::string& text)> split = {};
};

class TurnTaking {
public:
    /// Sets `takes_turns` of the requests, if there are several.
    explicit TurnTaking(std::vector<Request> requests);
    TurnTaking(const TurnTaking&) = delete;
    TurnTaking& operator=(const TurnTaking&) = delete;

    /// Runs all requests. A request that runs out of memory is a result, which `ended` tells: the
    /// others go on. After another failure the workers that are set up finish, and no other starts.
    /// Error: the first of these failures, or that the run was cancelled.
    tl::expected<void, ErrorFrame> run(const TurnEvents& events);

    /// Makes `run` end. Any thread, also from a signal handler.
    void cancel();

    /// What all workers wrote to standard output and error. Any thread.
    std::string log() const;

private:
    /// A worker that is set up and waits for its turn.
    struct Waiting {
        std::size_t index = 0;   // of its request
        std::size_t client = 0;  // of its worker
        WaitsForTurn waits;
    };
    void gather_group(const TurnEvents& events);
    void run_group(const TurnEvents& events);
    bool next_fits() const;
    int64_t growth_bytes(const Waiting& member) const;
    WorkerState start_worker(std::size_t index, const WorkerEvents& events);
    WorkerEvents events_of(std::size_t index, const TurnEvents& events) const;
    void settle(std::size_t index, const WorkerOutcome& outcome, const TurnEvents& events);
    void warn_of_split(const TurnEvents& events) const;
    ErrorFrame cancelled_error() const;

    std::vector<Request> requests_;
    std::vector<bool> begun_;  // the requests that were sent to a worker
    std::vector<Waiting> group_;
    int64_t largest_held_bytes_ = 0;  // of the workers that have waited so far, in any group
    std::size_t next_ = 0;            // the first request without a worker
    std::optional<ErrorFrame> failure_;

    // For cancel() and log() on other threads: never reallocated, and valid below started_.
    std::vector<WorkerClient> clients_;
    std::atomic<std::size_t> started_ = 0;
    std::atomic<bool> cancelled_ = false;
};

}  // namespace profiler
