#include "profiler/planner/plan.h"

#include "profiler/planner/data/gpu_name.h"
#include "profiler/planner/plan_advice.h"
#include "profiler/planner/plan_row.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <mutex>
#include <thread>

namespace profiler {
namespace {

/// More threads than this do not pay: each starts a worker of its own, which takes about 0.4 s.
constexpr std::size_t kMostThreads = 4;

class Planner {
public:
    Planner(const PlanRequest& request, const PlannerData& data, const StepSource& source,
            const PlanProgress& progress)
        : request_(request), data_(data), progress_(progress), interpolations_(source) {}

    Plan run() {
        for (const models::Workload& workload : request_.workloads) {
            for (const Gpu* gpu : request_.gpus) {
                plan_.rows.push_back(start_row(request_, data_, workload, *gpu));
            }
        }
        fill_rows();
        add_advice(plan_, request_, data_, interpolations_);
        return std::move(plan_);
    }

private:
    /// The rows that share their traces: of one workload, on one GPU or on GPUs whose software
    /// environments allocate the same.
    struct Group {
        StepToTrace traced;
        std::vector<PlanRow*> rows;
    };

    std::vector<Group> make_groups() {
        std::vector<Group> groups;
        for (PlanRow& row : plan_.rows) {
            if (row.status != PlanStatus::kOk) continue;
            StepToTrace traced = step_to_trace(row, request_, data_, row.workload);
            const auto same = std::find_if(groups.begin(), groups.end(), [&](const Group& group) {
                return group.traced == traced;
            });
            if (same == groups.end()) {
                groups.push_back({std::move(traced), {&row}});
            } else {
                same->rows.push_back(&row);
            }
        }
        return groups;
    }

    /// Several threads, this one among them, each trace and fill one group after the other. With
    /// two threads or more for each group, a group traces several batches at once.
    void fill_rows() {
        const std::vector<Group> groups = make_groups();
        std::atomic<std::size_t> next = 0;
        const auto fill = [&] {
            for (std::size_t i = next++; i < groups.size(); i = next++) fill_group(groups, i);
        };
        const unsigned cores = std::thread::hardware_concurrency();  // 0: not known
        const std::size_t most_threads =
            std::clamp(std::size_t{cores - std::min(cores, request_.busy_cores)}, std::size_t{1},
                       kMostThreads);
        const std::size_t num_threads = std::clamp(groups.size(), std::size_t{1}, most_threads);
        threads_per_group_ = most_threads / num_threads;
        std::vector<std::future<void>> others;
        for (std::size_t i = 1; i < num_threads; ++i) {
            others.push_back(std::async(std::launch::async, fill));
        }
        fill();
        for (std::future<void>& other : others) other.get();
    }

    void fill_group(const std::vector<Group>& groups, std::size_t index) {
        const auto& [traced, rows] = groups[index];
        if (progress_) {
            const std::lock_guard lock(mutex_);
            progress_(index, groups.size(), rows.front()->workload);
        }
        auto interpolation = BatchInterpolation::trace(
            traced, interpolations_.source(),
            {.num_threads = threads_per_group_, .later = batches_needed_later()});
        if (!interpolation) {
            for (PlanRow* row : rows) row->refuse(interpolation.error());
            return;
        }
        for (PlanRow* row : rows) fill_row(*row, request_, data_, *interpolation);
        // Advice may ask whether a row that does not fit would fit with ZeRO.
        const bool may_get_advice = std::any_of(rows.begin(), rows.end(), [](const PlanRow* row) {
            return row->status == PlanStatus::kDoesNotFit;
        });
        if (!may_get_advice) return;
        const std::lock_guard lock(mutex_);
        interpolations_.add(traced, std::move(*interpolation));
    }

    std::vector<int64_t> batches_needed_later() const {
        return request_.wants_memory_curve ? std::vector<int64_t>{1} : std::vector<int64_t>();
    }

    const PlanRequest& request_;
    const PlannerData& data_;
    const PlanProgress& progress_;
    std::size_t threads_per_group_ = 1;
    std::mutex mutex_;                   // of what follows, and of progress_
    InterpolationCache interpolations_;  // for advice
    Plan plan_;
};

}  // namespace

std::string PlanRow::device_name() const { return predicted_device_name(*gpu, environment->id); }

void PlanRow::refuse(const models::Error& error) {
    status = PlanStatus::kNotSupported;
    reason = error.message;
    reason_fields = error.fields;
    ran_out_of_memory = error.out_of_memory && !error.gpu_out_of_memory();
}

bool Plan::has_ok_row() const {
    return std::any_of(rows.begin(), rows.end(),
                       [](const PlanRow& row) { return row.status == PlanStatus::kOk; });
}

std::string not_limited_by_memory(int64_t max_batch, std::string_view why) {
    return fmt::format("it is not memory that limits the batch to {}. {}", max_batch, why);
}

Plan make_plan(const PlanRequest& request, const PlannerData& data, const StepSource& source,
               const PlanProgress& progress) {
    return Planner(request, data, source, progress).run();
}

}  // namespace profiler
