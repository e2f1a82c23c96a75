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

/// Recipes that save most, tried when none of the plan's own fits: of activations, and of the
/// temporaries of the update.
constexpr std::array<std::string_view, 3> kSavingRecipes{"checkpoint", "tempo-philox",
                                                         "checkpoint,optimizer=adamw_fused"};
/// The last resort, since it trains otherwise: an optimizer without moments.
constexpr std::string_view kStatelessRecipe = "checkpoint,optimizer=sgd";

/// "checkpoint, tempo-philox or flash".
std::string alternatives(const std::vector<std::string>& names) {
    if (names.size() < 2) return names.empty() ? "" : names.front();
    return fmt::format("{} or {}", fmt::join(names.begin(), names.end() - 1, ", "), names.back());
}

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
            auto interpolation = BatchInterpolation::trace(groups[i].traced, source_);
            if (!interpolation) {
                for (PlanRow* row : rows) {
                    row->status = PlanStatus::kNotSupported;
                    row->reason = interpolation.error().message;
                }
                continue;
            }
            if (running.size() == limit) {
                running.front().get();
                running.erase(running.begin());
            }
            running.push_back(std::async(std::launch::async,
                                         [this, rows, one = std::move(*interpolation)]() mutable {
                                             for (PlanRow* row : rows)
                                                 fill_row(*row, request_, data_, one);
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
        if (row.max_batch_size.value_or(0) > 0 || has_no_room(row)) return;
        std::vector<std::string> too_large;
        for (const std::string_view name : kSavingRecipes) {
            if (suggests(name, row, too_large)) return;
        }
        if (suggest_sharding(row) || suggests(kStatelessRecipe, row, too_large)) return;
        if (!too_large.empty()) {
            row.reason += fmt::format(" Nor would {} fit.", alternatives(too_large));
        }
    }

    /// Whether a recipe fits, which the row's reason then says; else it is added to `too_large`
    /// where the GPU runs it.
    bool suggests(std::string_view recipe, PlanRow& row, std::vector<std::string>& too_large) {
        const auto workload = models::with_recipe(row.workload, recipe);
        if (!workload) return false;
        const std::optional<bool> fits = would_fit(request_, *workload, *row.gpu);
        if (fits && !*fits) too_large.emplace_back(recipe);
        if (!fits.value_or(false)) return false;
        row.reason += fmt::format(" The recipe {} would fit{}.", recipe,
                                  recipe == kStatelessRecipe
                                      ? ", whose optimizer has no moments and trains otherwise"
                                      : "");
        return true;
    }

    /// Names the first stage of ZeRO, on the GPUs that there are, in which the row fits.
    bool suggest_sharding(PlanRow& row) {
        PlanRequest sharded = request_;
        DataParallel& parallel = sharded.parallel;
        if (parallel.num_gpus == 1) return false;
        while (parallel.zero_stage < 3) {
            ++parallel.zero_stage;
            if (!would_fit(sharded, row.workload, *row.gpu).value_or(false)) continue;
            row.reason += fmt::format(" With --zero {} it would fit.", parallel.zero_stage);
            return true;
        }
        const auto checkpointed = models::with_recipe(row.workload, kSavingRecipes.front());
        if (!checkpointed || !would_fit(sharded, *checkpointed, *row.gpu).value_or(false)) {
            return false;
        }
        row.reason += fmt::format(" The recipe {} would fit with --zero {}.",
                                  kSavingRecipes.front(), parallel.zero_stage);
        return true;
    }

    /// Whether what lies beside the tensors takes all there is, so that no recipe can help.
    bool has_no_room(const PlanRow& row) const {
        return limits_of(row, request_, Parameters{}).capacity_bytes <= 0;
    }

    /// None: it cannot be known, or the GPU refuses the recipe.
    std::optional<bool> would_fit(const PlanRequest& request, const models::Workload& workload,
                                  const Gpu& gpu) {
        PlanRow other = start_row(request, data_, workload, gpu);
        if (other.status != PlanStatus::kOk) return std::nullopt;
        BatchInterpolation* interpolation =
            saving_family(traced_workload(workload, *other.setup, data_.calibration));
        if (interpolation == nullptr) return std::nullopt;
        fill_row(other, request, data_, *interpolation);
        if (!other.max_batch_size) return std::nullopt;
        return *other.max_batch_size > 0;
    }

    /// Traced once for all the rows that ask; null when it cannot be.
    BatchInterpolation* saving_family(const models::Workload& workload) {
        for (auto& [known, interpolation] : saving_families_) {
            if (known == workload) return interpolation ? &*interpolation : nullptr;
        }
        auto interpolation = BatchInterpolation::trace(workload, source_);
        saving_families_.emplace_back(workload, std::nullopt);
        if (!interpolation) return nullptr;
        saving_families_.back().second = std::move(*interpolation);
        return &*saving_families_.back().second;
    }

    const PlanRequest& request_;
    const PlannerData& data_;
    const PlanProgress& progress_;
    std::mutex source_mutex_;
    MetaTraceSource source_;  // the caller's, one call at a time
    Plan plan_;
    std::vector<std::pair<models::Workload, std::optional<BatchInterpolation>>> saving_families_;
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
