#include "profiler/planner/plan.h"

#include "profiler/planner/plan_advice.h"
#include "profiler/planner/plan_row.h"

#include <algorithm>
#include <future>
#include <mutex>
#include <thread>

namespace profiler {
namespace {

class Planner {
public:
    Planner(const PlanRequest& request, const PlannerData& data, const MetaTraceSource& source,
            const PlanProgress& progress)
        : request_(request),
          data_(data),
          progress_(progress),
          source_([this, &source](const auto&... arguments) {
              const std::lock_guard lock(source_mutex_);
              return source(arguments...);
          }),
          interpolations_(source_) {}

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
    /// The rows of one workload on GPUs whose software environments allocate the same: they need
    /// one traced step.
    struct Group {
        models::Workload traced;
        std::vector<PlanRow*> rows;
    };

    std::vector<Group> open_groups() {
        std::vector<Group> groups;
        for (PlanRow& row : plan_.rows) {
            if (row.status != PlanStatus::kOk) continue;
            models::Workload traced =
                traced_workload(row.workload, *row.environment, data_.calibration);
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

    /// This thread traces one group after the other. Other threads, one per core, fill the rows of
    /// the groups that are traced.
    void fill_rows() {
        const std::size_t limit = std::max(1U, std::thread::hardware_concurrency());
        std::vector<std::future<void>> running;
        const std::vector<Group> groups = open_groups();
        for (std::size_t i = 0; i < groups.size(); ++i) {
            const std::vector<PlanRow*>& rows = groups[i].rows;
            if (progress_) progress_(i, groups.size(), rows.front()->workload);
            const auto interpolation = interpolations_.get(groups[i].traced);
            if (!interpolation) {
                for (PlanRow* row : rows) row->refuse(interpolation.error());
                continue;
            }
            if (running.size() == limit) {
                running.front().get();
                running.erase(running.begin());
            }
            running.push_back(std::async(std::launch::async, [this, rows, one = *interpolation] {
                for (PlanRow* row : rows) fill_row(*row, request_, data_, *one);
            }));
        }
        for (std::future<void>& task : running) task.get();
    }

    const PlanRequest& request_;
    const PlannerData& data_;
    const PlanProgress& progress_;
    std::mutex source_mutex_;
    MetaTraceSource source_;  // the caller's, called by one thread at a time
    InterpolationCache interpolations_;
    Plan plan_;
};

}  // namespace

void PlanRow::refuse(const models::Error& error) {
    status = PlanStatus::kNotSupported;
    reason = error.message;
    reason_fields = error.fields;
}

bool Plan::has_ok_row() const {
    return std::any_of(rows.begin(), rows.end(),
                       [](const PlanRow& row) { return row.status == PlanStatus::kOk; });
}

Plan make_plan(const PlanRequest& request, const PlannerData& data, const MetaTraceSource& source,
               const PlanProgress& progress) {
    return Planner(request, data, source, progress).run();
}

}  // namespace profiler
