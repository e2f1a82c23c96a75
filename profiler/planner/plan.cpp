#include "profiler/planner/plan.h"

#include "profiler/planner/data/gpu.h"
#include "profiler/planner/plan_row.h"
#include "profiler/planner/step/capacity_search.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <mutex>
#include <thread>

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
            if (other.gpu.id != row_.gpu.id || other.max_batch_size.value_or(0) < wanted) continue;
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
        const PlanRow other = start_row(request, data_, workload, row_.gpu);
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

/// Appends a sentence to the reason of each row that does not fit. It names, in this order:
///
///     a recipe of the plan that fits on the same GPU
///     checkpointing, or another recipe that saves much memory
///     a stage of ZeRO on the GPUs of the request
///     SGD, which has no optimizer state but trains differently
void add_advice(Plan& plan, const PlanRequest& request, const PlannerData& data,
                InterpolationCache& interpolations) {
    for (PlanRow& row : plan.rows) {
        if (row.status != PlanStatus::kDoesNotFit) continue;
        Advice(row, request, data, interpolations).add(plan);
    }
}

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
            const auto same = std::ranges::find(groups, traced, &Group::traced);
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
        const bool may_get_advice = std::ranges::any_of(
            rows, [](const PlanRow* row) { return row->status == PlanStatus::kDoesNotFit; });
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

std::string PlanRow::device_name() const { return predicted_device_name(gpu, environment.id); }

void PlanRow::refuse(const models::Error& error) {
    status = PlanStatus::kNotSupported;
    reason = error.message;
    reason_fields = error.fields;
    ran_out_of_memory = error.out_of_memory && !error.gpu_out_of_memory();
}

bool Plan::has_ok_row() const {
    return std::ranges::any_of(rows,
                               [](const PlanRow& row) { return row.status == PlanStatus::kOk; });
}

std::string not_limited_by_memory(int64_t max_batch, std::string_view why) {
    return fmt::format("it is not memory that limits the batch to {}. {}", max_batch, why);
}

models::Result<PlanRequest> make_plan_request(std::vector<models::Workload> workloads,
                                              const std::vector<std::string>& gpus,
                                              const std::string& environment,
                                              const PlannerData& data) {
    PlanRequest request{.workloads = std::move(workloads)};
    if (gpus == std::vector<std::string>{"all"}) {
        for (const Gpu& gpu : data.gpus) request.gpus.push_back(&gpu);
    } else {
        for (const std::string& id : gpus) {
            const auto gpu = find_gpu(data.gpus, id);
            if (!gpu) return tl::unexpected(gpu.error());
            request.gpus.push_back(*gpu);
        }
    }
    const auto found = find_environment(data.environments, environment);
    if (!found) return tl::unexpected(found.error());
    request.environment = *found;
    request.parallel.num_gpus = request.environment->num_gpus;
    return request;
}

Plan make_plan(const PlanRequest& request, const PlannerData& data, const StepSource& source,
               const PlanProgress& progress) {
    return Planner(request, data, source, progress).run();
}

}  // namespace profiler
