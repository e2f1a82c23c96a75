#include "profiler/planner/plan_advice.h"

#include "profiler/planner/plan_row.h"
#include "profiler/planner/step/capacity_search.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace profiler {
namespace {

/// Recipes that save the most activations, and temporaries of the parameter update.
constexpr std::array<std::string_view, 3> kSavingRecipes{"checkpoint", "tempo-philox",
                                                         "checkpoint,optimizer=adamw_fused"};
constexpr std::string_view kStatelessRecipe = "checkpoint,optimizer=sgd";

/// "checkpoint, tempo-philox or flash".
std::string alternatives(const std::vector<std::string>& names) {
    if (names.size() < 2) return names.empty() ? "" : names.front();
    return fmt::format("{} or {}", fmt::join(names.begin(), names.end() - 1, ", "), names.back());
}

class Advice {
public:
    Advice(PlanRow& row, const PlanRequest& request, const PlannerData& data,
           InterpolationCache& interpolations)
        : row_(row), request_(request), data_(data), interpolations_(interpolations) {}

    void add(const Plan& plan) {
        if (suggest_row_of(plan)) return;
        if (row_.max_batch_size.value_or(0) > 0 || has_no_room()) return;
        for (const std::string_view recipe : kSavingRecipes) {
            if (suggest(recipe, "")) return;
        }
        if (suggest_sharding()) return;
        if (suggest(kStatelessRecipe, ". It has no optimizer state and trains differently")) return;
        if (!too_large_.empty()) {
            row_.reason += fmt::format(" Nor would {} fit.", alternatives(too_large_));
        }
    }

private:
    bool suggest_row_of(const Plan& plan) {
        const int64_t wanted = row_.batch_size.value_or(1);
        for (const PlanRow& other : plan.rows) {
            if (other.gpu != row_.gpu || other.max_batch_size.value_or(0) < wanted) continue;
            if (!models::comparable(row_.workload, other.workload)) continue;
            row_.reason += fmt::format(" The recipe {} would fit.", other.workload.recipe_name);
            return true;
        }
        return false;
    }

    /// Whether the recipe fits. A recipe that the GPU runs but that does not fit is remembered.
    bool suggest(std::string_view recipe, std::string_view remark) {
        const auto workload = models::with_recipe(row_.workload, recipe);
        if (!workload) return false;
        const std::optional<bool> fits = would_fit(request_, *workload);
        if (fits && !*fits) too_large_.emplace_back(recipe);
        if (!fits.value_or(false)) return false;
        row_.reason += fmt::format(" The recipe {} would fit{}.", recipe, remark);
        return true;
    }

    /// Tries the stages of ZeRO in turn, then the last stage with checkpointing.
    bool suggest_sharding() {
        PlanRequest sharded = request_;
        DataParallel& parallel = sharded.parallel;
        if (parallel.num_gpus == 1) return false;
        while (parallel.zero_stage < 3) {
            ++parallel.zero_stage;
            if (!would_fit(sharded, row_.workload).value_or(false)) continue;
            row_.reason += fmt::format(" It would fit with ZeRO stage {}.", parallel.zero_stage);
            row_.reason_fields.emplace_back("zero_stage");
            return true;
        }
        const auto checkpointed = models::with_recipe(row_.workload, kSavingRecipes.front());
        if (!checkpointed || !would_fit(sharded, *checkpointed).value_or(false)) return false;
        row_.reason += fmt::format(" The recipe {} would fit with ZeRO stage {}.",
                                   kSavingRecipes.front(), parallel.zero_stage);
        row_.reason_fields.emplace_back("zero_stage");
        return true;
    }

    /// Whether the CUDA context and NCCL already take all memory, so that no recipe can help.
    bool has_no_room() const { return limits_of(row_, request_, Parameters{}).capacity_bytes <= 0; }

    /// Whether one sequence fits. Empty: the GPU refuses the recipe, or it cannot be traced.
    std::optional<bool> would_fit(const PlanRequest& request, const models::Workload& workload) {
        const PlanRow other = start_row(request, data_, workload, *row_.gpu);
        if (other.status != PlanStatus::kOk) return std::nullopt;
        const auto interpolation =
            interpolations_.get(step_to_trace(other, request, data_, workload));
        if (!interpolation) return std::nullopt;
        const auto step = (*interpolation)->ops_at(1);
        if (!step) return std::nullopt;
        const GpuLimits limits = limits_of(other, request, step->parameters);
        const auto fits = fits_at(**interpolation, limits.options, limits.capacity_bytes, 1);
        return fits ? std::optional(*fits) : std::nullopt;
    }

    PlanRow& row_;
    const PlanRequest& request_;
    const PlannerData& data_;
    InterpolationCache& interpolations_;
    std::vector<std::string> too_large_;
};

}  // namespace

void add_advice(Plan& plan, const PlanRequest& request, const PlannerData& data,
                InterpolationCache& interpolations) {
    for (PlanRow& row : plan.rows) {
        if (row.status != PlanStatus::kDoesNotFit) continue;
        Advice(row, request, data, interpolations).add(plan);
    }
}

}  // namespace profiler
