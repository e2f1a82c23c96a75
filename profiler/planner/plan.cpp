#include "profiler/planner/plan.h"

#include "profiler/planner/plan_row.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <future>
#include <mutex>
#include <thread>

namespace profiler {
namespace {

/// Recipes that save most, tried when none of the plan's own fits.
constexpr std::array<std::string_view, 2> kSavingRecipes{"checkpoint", "tempo-philox"};

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
          }) {}

    Plan run() {
        for (const models::Workload& workload : request_.workloads) {
            for (const Gpu* gpu : request_.gpus) {
                plan_.rows.push_back(start_row(request_, data_, workload, *gpu));
            }
        }
        fill_rows();
        for (PlanRow& row : plan_.rows) {
            if (row.status == PlanStatus::kDoesNotFit) suggest_recipe(row);
        }
        return std::move(plan_);
    }

private:
    /// Rows that one traced workload stands for: those of a workload under setups whose optimizer
    /// allocates the same.
    struct Group {
        models::Workload traced;
        std::vector<PlanRow*> rows;
    };

    std::vector<Group> open_groups() {
        std::vector<Group> groups;
        for (PlanRow& row : plan_.rows) {
            if (row.status != PlanStatus::kOk) continue;
            models::Workload traced = traced_workload(row.workload, *row.setup, data_.calibration);
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

    /// Groups are traced one after the other; the rows of each are then computed beside the next
    /// one's traces, at most one task a core at a time.
    void fill_rows() {
        const std::size_t limit = std::max(1U, std::thread::hardware_concurrency());
        std::vector<std::future<void>> running;
        const std::vector<Group> groups = open_groups();
        for (std::size_t i = 0; i < groups.size(); ++i) {
            const std::vector<PlanRow*>& rows = groups[i].rows;
            if (progress_) progress_(i, groups.size(), rows.front()->workload);
            auto family = StepFamily::trace(groups[i].traced, source_);
            if (!family) {
                for (PlanRow* row : rows) {
                    row->status = PlanStatus::kNotSupported;
                    row->reason = family.error().message;
                }
                continue;
            }
            if (running.size() == limit) {
                running.front().get();
                running.erase(running.begin());
            }
            running.push_back(
                std::async(std::launch::async, [this, rows, one = std::move(*family)]() mutable {
                    for (PlanRow* row : rows) fill_row(*row, request_, data_, one);
                }));
        }
        for (std::future<void>& task : running) task.get();
    }

    /// Names a recipe that does fit: of the plan, or else one that saves a lot.
    void suggest_recipe(PlanRow& row) {
        const int64_t wanted = row.batch_size.value_or(1);
        for (const PlanRow& other : plan_.rows) {
            if (other.gpu != row.gpu || other.max_batch_size.value_or(0) < wanted) continue;
            if (!models::comparable(row.workload, other.workload)) continue;
            row.reason += fmt::format(" The recipe {} would fit.", other.workload.recipe_name);
            return;
        }
        if (row.max_batch_size.value_or(0) > 0) return;
        std::vector<std::string_view> too_large;
        for (const std::string_view name : kSavingRecipes) {
            const std::optional<bool> fits = would_fit(row, name);
            if (!fits) continue;
            if (*fits) {
                row.reason += fmt::format(" The recipe {} would fit.", name);
                return;
            }
            too_large.push_back(name);
        }
        if (!too_large.empty()) {
            row.reason += fmt::format(" Neither would {} fit.", fmt::join(too_large, " or "));
        }
    }

    /// None: it cannot be known, or the card refuses the recipe.
    std::optional<bool> would_fit(const PlanRow& row, std::string_view recipe) {
        const auto workload = models::with_recipe(row.workload, recipe);
        if (!workload) return std::nullopt;
        PlanRow other = start_row(request_, data_, *workload, *row.gpu);
        if (other.status != PlanStatus::kOk) return std::nullopt;
        StepFamily* family =
            saving_family(traced_workload(*workload, *other.setup, data_.calibration));
        if (family == nullptr) return std::nullopt;
        fill_row(other, request_, data_, *family);
        if (!other.max_batch_size) return std::nullopt;
        return *other.max_batch_size > 0;
    }

    /// Traced once for all the rows that ask; null when it cannot be.
    StepFamily* saving_family(const models::Workload& workload) {
        for (auto& [known, family] : saving_families_) {
            if (known == workload) return family ? &*family : nullptr;
        }
        auto family = StepFamily::trace(workload, source_);
        saving_families_.emplace_back(workload, std::nullopt);
        if (!family) return nullptr;
        saving_families_.back().second = std::move(*family);
        return &*saving_families_.back().second;
    }

    const PlanRequest& request_;
    const PlannerData& data_;
    const PlanProgress& progress_;
    std::mutex source_mutex_;
    MetaTraceSource source_;  // the caller's, one call at a time
    Plan plan_;
    std::vector<std::pair<models::Workload, std::optional<StepFamily>>> saving_families_;
};

}  // namespace

bool Plan::has_ok_row() const {
    return std::any_of(rows.begin(), rows.end(),
                       [](const PlanRow& row) { return row.status == PlanStatus::kOk; });
}

Plan make_plan(const PlanRequest& request, const PlannerData& data, const MetaTraceSource& source,
               const PlanProgress& progress) {
    return Planner(request, data, source, progress).run();
}

}  // namespace profiler
