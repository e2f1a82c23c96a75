#include "profiler/planner/plan_row.h"

#include "models/config/compute_capability.h"
#include "models/config/switches.h"
#include "models/config/validity.h"
#include "profiler/analysis/step/describe_run.h"
#include "profiler/planner/data/gpu_support.h"
#include "profiler/planner/step/capacity_search.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace profiler {
namespace {

bool is_power_of_two(int64_t value) { return (value & (value - 1)) == 0; }

/// One row while it is being filled.
class RowBuilder {
public:
    RowBuilder(PlanRow& row, const PlanRequest& request, const PlannerData& data,
               BatchInterpolation& interpolation)
        : row_(row), request_(request), data_(data), interpolation_(interpolation) {}

    void fill() {
        if (!set_up()) return;
        auto max_batch = largest_batch(interpolation_, options_, capacity_bytes_, request_);
        if (max_batch && request_.batch_size > *max_batch) {
            // Fragmentation differs from batch to batch: a larger one may fit.
            const auto fits =
                fits_at(interpolation_, options_, capacity_bytes_, *request_.batch_size);
            if (!fits) return row_.refuse(fits.error());
            if (*fits) max_batch = *request_.batch_size;
        }
        if (!max_batch) return row_.refuse(max_batch.error());
        row_.max_batch_size = *max_batch;
        if (request_.wants_memory_curve) add_memory_curve(*max_batch);
        if (row_.status != PlanStatus::kOk) return;
        if (*max_batch == 0) return say_how_much_is_missing(1);
        add_end_of_batches(*max_batch);
        const auto model = time_model();
        if (model) add_curve(*model, *max_batch);
        const int64_t batch_size = request_.batch_size.value_or(*max_batch);
        if (batch_size > *max_batch) return say_how_much_is_missing(batch_size);
        add_memory(batch_size);
        if (model && row_.status == PlanStatus::kOk) add_times(*model, batch_size);
    }

private:
    /// What the GPU and its software environment leave for the step. False: the row is refused.
    bool set_up() {
        const auto step = interpolation_.ops_at(1);
        if (!step) {
            row_.refuse(step.error());
            return false;
        }
        GpuLimits limits = limits_of(row_, request_, step->parameters);
        memory_ = std::move(limits.memory);
        options_ = std::move(limits.options);
        capacity_bytes_ = limits.capacity_bytes;
        add_notes(*step);
        return trace_given_batch();
    }

    /// A batch that was asked for is traced, so that its figures are exact.
    bool trace_given_batch() {
        const auto batch_size = request_.batch_size;
        if (!request_.traces_each_gpu || !batch_size) return true;
        if (*batch_size > interpolation_.largest_valid_batch()) return true;
        if (const auto ok = interpolation_.trace_batch(*batch_size); !ok) {
            row_.refuse(ok.error());
            return false;
        }
        return true;
    }

    /// Notes where something other than memory limits the batch.
    void add_end_of_batches(int64_t max_batch) {
        if (max_batch < interpolation_.largest_valid_batch()) return;
        if (max_batch == BatchInterpolation::kLargestBatch) {
            row_.max_batch_end = MaxBatchEnd::kSearch;
            return add_other_limit(max_batch, "Larger ones were not tried");
        }
        row_.max_batch_end = MaxBatchEnd::kElements;
        models::Workload larger = row_.workload;
        larger.batch_size = max_batch + 1;
        const auto valid = models::validate(larger);
        const std::string why = valid ? "" : valid.error().message;
        add_other_limit(max_batch, fmt::format("At {}: {}", max_batch + 1,
                                               why.substr(0, why.find(": choose"))));
    }

    void add_other_limit(int64_t max_batch, std::string_view why) {
        row_.other_limit = not_limited_by_memory(max_batch, why);
        row_.notes.push_back(row_.other_limit);
    }

    void add_notes(const StepWork& step) {
        row_.notes.push_back(
            fmt::format("a CUDA context of {} is assumed", format_bytes(memory_.context_bytes)));
        if (!row_.gpu.compute_capability) {
            row_.notes.push_back(
                "memory requests come from CUDA's kernels, not from this device's kernels");
        }
        if (step.source != Source::kPredicted) {
            row_.notes.push_back(fmt::format("planned from a step {}, not from a GPU's step",
                                             describe(step.source)));
        }
        if (!step.has_shapes) {
            row_.notes.push_back(
                "the shapes of some GEMMs are not known: their tiles are not modelled");
        }
        const auto gpu_bytes = static_cast<int64_t>(row_.gpu.usable_memory_bytes.value);
        if (request_.budget_bytes.value_or(0) > gpu_bytes) {
            row_.notes.push_back(fmt::format("the budget of {} is more than the GPU has, {}",
                                             format_bytes(*request_.budget_bytes),
                                             format_bytes(gpu_bytes)));
        }
        if (request_.parallel.zero_stage > 0) {
            row_.notes.push_back(
                fmt::format("ZeRO {} shards tensors evenly", request_.parallel.zero_stage));
        }
    }

    /// Empty, with a note that says why, if there is no model of the GPU's kernels.
    std::optional<TimeModel> time_model() {
        if (!row_.gpu.no_kernel_model.empty()) {
            row_.notes.push_back(
                fmt::format("memory only for {}: {}", row_.gpu.id, row_.gpu.no_kernel_model));
            return std::nullopt;
        }
        if (row_.program) {
            const TimeModel model =
                time_model_of_program(row_.gpu, row_.environment, data_.calibration);
            add_kernel_notes(model.kernels, models::parse_precision(row_.program->step.precision)
                                                .value_or(models::Precision::kFp32));
            return model;
        }
        const auto model =
            make_time_model(row_.gpu, row_.environment, data_.calibration, row_.workload,
                            request_.parallel, bus_bytes_per_s(request_, data_, row_.gpu));
        if (!model) {
            row_.notes.push_back(model.error().message);
            return std::nullopt;
        }
        add_kernel_notes(model->kernels, row_.workload.precision);
        add_optimizer_note(*model);
        add_link_note();
        return *model;
    }

    void add_kernel_notes(const KernelModel& kernels, models::Precision precision) {
        for (std::string& note : kernels.notes(matmul_type_of(precision))) {
            row_.notes.push_back(std::move(note));
        }
        row_.notes.push_back(fmt::format("times {}", kernels.accuracy().text()));
    }

    void add_optimizer_note(const TimeModel& model) {
        const std::string_view of_recipe = name_of(row_.workload.recipe.optimizer);
        row_.notes.push_back(model.optimizer == of_recipe
                                 ? fmt::format("optimizer {}", model.optimizer)
                                 : fmt::format("optimizer {}, which {} has instead of {}",
                                               model.optimizer, row_.environment.id, of_recipe));
    }

    void add_link_note() {
        if (request_.parallel.num_gpus == 1) return;
        if (request_.bus_bytes_per_s) {
            row_.notes.push_back(fmt::format("GPUs linked at {} GB/s, as requested",
                                             *request_.bus_bytes_per_s / kGiga));
            return;
        }
        const LinkRow* link = find_link(data_.calibration, row_.gpu.id);
        if (link == nullptr) return;
        row_.notes.push_back(fmt::format("GPUs linked by {}, {} GB/s", link->name,
                                         link->bus_bytes_per_s.value / kGiga));
    }

    void say_how_much_is_missing(int64_t batch_size) {
        row_.status = PlanStatus::kDoesNotFit;
        row_.batch_size = batch_size;
        if (batch_size > interpolation_.largest_valid_batch()) {
            return say_batch_is_invalid(batch_size);
        }
        const std::string place = request_.budget_bytes ? "the budget" : row_.gpu.id;
        if (capacity_bytes_ <= 0) {
            row_.reason = fmt::format(
                "Nothing is left for tensors: the CUDA context{} takes {}, and {} has {}; {}.",
                request_.parallel.num_gpus > 1 ? " with NCCL" : "",
                format_bytes(memory_.usable_bytes - capacity_bytes_), place,
                format_bytes(memory_.usable_bytes),
                request_.budget_bytes ? "raise it" : "choose a GPU with more memory");
            return;
        }
        const auto least =
            least_capacity_bytes(interpolation_, options_, batch_size, capacity_bytes_);
        if (!least) return row_.refuse(least.error());
        const auto unlimited = interpolation_.unlimited_memory(batch_size, options_);
        if (!unlimited) return row_.refuse(unlimited.error());
        row_.reason = fmt::format(
            "Batch {} needs {}, {} more than {} has{}.", batch_size,
            text_of_need(*least, *unlimited, capacity_bytes_),
            format_bytes(*least - capacity_bytes_), place,
            *row_.max_batch_size > 0 ? fmt::format("; batch {} fits", *row_.max_batch_size) : "");
    }

    void say_batch_is_invalid(int64_t batch_size) {
        models::Workload workload = row_.workload;
        workload.batch_size = batch_size;
        if (const auto valid = models::validate(workload); !row_.program && !valid) {
            row_.reason = valid.error().message;
            row_.reason_fields = valid.error().fields;
            return;
        }
        row_.reason = fmt::format("Batch {} is above {}, the largest batch that a plan tries.",
                                  batch_size, interpolation_.largest_valid_batch());
    }

    /// Throughput at sampled batches, then at all batches around the best and around the largest,
    /// and at the batch of the request.
    void add_curve(const TimeModel& model, int64_t max_batch) {
        const bool dense = interpolation_.interpolates_ops();
        const std::vector<int64_t> coarse = sampled_batches(max_batch, dense);
        for (const int64_t batch_size : coarse) try_batch(model, batch_size);
        if (dense && row_.best_batch_size) {
            for (const int64_t b : batches_between({*row_.best_batch_size, max_batch}, coarse)) {
                try_batch(model, b);
            }
        }
        if (request_.batch_size && *request_.batch_size <= max_batch) {
            try_batch(model, *request_.batch_size);
        }
    }

    void try_batch(const TimeModel& model, int64_t batch_size) {
        const auto step = interpolation_.ops_at(batch_size);
        if (!step) return row_.refuse(step.error());
        const double step_ns = time_of(*step, model).total_ns();
        const double rate = sequences_per_s(batch_size, step_ns);
        if (rate > row_.best_sequences_per_s) {
            row_.best_sequences_per_s = rate;
            row_.best_batch_size = batch_size;
            row_.best_model_tflops = model_tflops(*step, step_ns);
        }
        const bool is_on_curve = is_power_of_two(batch_size) || batch_size == *row_.max_batch_size;
        const bool is_new = row_.curve.empty() || row_.curve.back().batch_size < batch_size;
        if (is_on_curve && is_new) row_.curve.push_back({batch_size, whole_ns(step_ns), rate});
    }

    /// Of one GPU.
    static double model_tflops(const StepWork& step, double step_ns) {
        return static_cast<double>(step.model_flop) / (step_ns / kNsPerS) / kTera;
    }

    double sequences_per_s(int64_t batch_size, double step_ns) const {
        models::Workload workload = row_.workload;
        workload.batch_size = batch_size;
        return static_cast<double>(sequences_per_step(workload) * request_.parallel.num_gpus) *
               kNsPerS / step_ns;
    }

    void add_memory(int64_t batch_size) {
        row_.batch_size = batch_size;
        const auto step = interpolation_.requests_at(batch_size);
        if (!step) return row_.refuse(step.error());
        memory_.contents = peak_contents(*step, options_, capacity_bytes_);
        memory_.saved_bytes = step->saved_bytes;
        row_.memory = memory_;
    }

    /// Few batches, because each costs a simulation: between them memory is almost a line.
    void add_memory_curve(int64_t max_batch) {
        std::set<int64_t> batches{1, std::min<int64_t>(2, interpolation_.largest_valid_batch())};
        for (const int64_t quarters : {1, 2, 3, 4}) {
            batches.insert(std::max<int64_t>(1, quarters * max_batch / 4));
        }
        const int64_t other_bytes = memory_.usable_bytes - capacity_bytes_;
        for (const int64_t batch_size : batches) {
            const auto step = interpolation_.requests_at(batch_size);
            if (!step) return row_.refuse(step.error());
            const PeakContents contents = peak_contents(*step, options_, std::nullopt);
            const auto least = least_capacity(batch_size, max_batch, contents.peaks);
            if (!least) return row_.refuse(least.error());
            row_.memory_curve.push_back({batch_size, other_bytes + *least,
                                         *least - contents.peaks.peak_allocated_bytes,
                                         contents.by_category});
        }
    }

    /// To a thousandth of the GPU, as curves show no more; smaller gaps count as none. A batch that
    /// fits needs no more than there is; the bisection may end above that, because more memory can
    /// mean larger gaps.
    models::Result<int64_t> least_capacity(int64_t batch_size, int64_t max_batch,
                                           const StepMemory& unlimited) {
        const int64_t precision = std::max(kSmallSegmentBytes, memory_.usable_bytes / 1024);
        auto least = least_capacity_bytes(interpolation_, options_, batch_size, 0, precision);
        if (!least) return least;
        const int64_t allocated = unlimited.peak_allocated_bytes;
        if (*least - allocated <= precision) *least = allocated;
        return batch_size <= max_batch ? std::min(*least, capacity_bytes_) : *least;
    }

    void add_times(const TimeModel& model, int64_t batch_size) {
        const auto step = interpolation_.ops_at(batch_size);
        if (!step) return row_.refuse(step.error());
        row_.time = time_of(*step, model);
        row_.time_accuracy = model.kernels.accuracy();
        row_.sequences_per_s = sequences_per_s(batch_size, row_.time->total_ns());
        row_.model_tflops = model_tflops(*step, row_.time->total_ns());
    }

    PlanRow& row_;
    const PlanRequest& request_;
    const PlannerData& data_;
    BatchInterpolation& interpolation_;
    PlanMemory memory_;
    MemoryOptions options_;
    int64_t capacity_bytes_ = 0;  // for tensors
};

std::vector<models::Attention> attentions_in(const models::Workload& workload) {
    std::vector<models::Attention> attentions;
    for (const models::Recipe& recipe : models::recipes_in(workload)) {
        if (std::ranges::find(attentions, recipe.attention) == attentions.end()) {
            attentions.push_back(recipe.attention);
        }
    }
    return attentions;
}

bool uses_fused_attention(const models::Workload& workload) {
    const auto recipes = models::recipes_in(workload);
    return std::ranges::any_of(recipes, [](const models::Recipe& recipe) {
        return models::kAttentionSwitch.chosen(recipe).is_fused_attention;
    });
}

/// Puts the row into the software environment of the request, or into its substitute for older
/// GPUs.
models::Result<void> choose_environment(PlanRow& row, const PlanRequest& request,
                                        const PlannerData& data) {
    row.environment = *request.environment;
    const auto environment = environment_for(data.environments, *request.environment, row.gpu);
    if (!environment) return tl::unexpected(environment.error());
    row.environment = **environment;
    if (row.environment.id != request.environment->id) {
        row.notes.push_back(fmt::format("PyTorch {} does not run on {}: {} is assumed",
                                        request.environment->torch, row.gpu.id,
                                        row.environment.id));
    }
    return {};
}

}  // namespace

PlanRow start_row(const PlanRequest& request, const PlannerData& data,
                  const PlannedProgram& program, const Gpu& gpu) {
    PlanRow row{.program = program, .gpu = gpu};
    if (const auto ok = choose_environment(row, request, data); !ok) row.refuse(ok.error());
    return row;
}

PlanRow start_row(const PlanRequest& request, const PlannerData& data,
                  const models::Workload& workload, const Gpu& gpu) {
    PlanRow row{.workload = workload, .gpu = gpu};
    const auto refuse = [&](const models::Error& error) {
        row.refuse(error);
        return row;
    };
    if (const auto ok = choose_environment(row, request, data); !ok) return refuse(ok.error());
    if (const auto ok = check_gpu_support(workload, gpu); !ok) return refuse(ok.error());
    for (const models::Attention attention : attentions_in(workload)) {
        std::string why = why_not_comparable(attention, gpu, data.calibration);
        if (!why.empty()) row.notes.push_back(std::move(why));
    }
    if (uses_fused_attention(workload)) {
        row.notes.push_back(
            "fused attention's times come from published charts of the kernels alone");
        if (row.environment.torch.starts_with("1.")) {
            row.notes.push_back(
                fmt::format("PyTorch {} of {} has no fused attention: PyTorch 2.0's is assumed",
                            row.environment.torch, row.environment.id));
        }
    }
    return row;
}

models::Result<int64_t> largest_batch(BatchInterpolation& interpolation,
                                      const MemoryOptions& options, int64_t capacity_bytes,
                                      const PlanRequest& request) {
    const auto& find = request.traces_each_gpu ? find_traced_max_batch : find_max_batch;
    return find(interpolation, options, capacity_bytes);
}

StepToTrace step_to_trace(const PlanRow& row, const PlanRequest& request, const PlannerData& data,
                          const models::Workload& workload) {
    return {.workload = traced_workload(workload, row.environment, data.calibration),
            .gpu = request.traces_each_gpu ? row.gpu.id : ""};
}

GpuLimits limits_of(const PlanRow& row, const PlanRequest& request, const Parameters& parameters) {
    GpuLimits limits;
    PlanMemory& memory = limits.memory;
    memory.context_bytes = static_cast<int64_t>(row.environment.context_bytes(row.gpu.id).value);
    memory.usable_bytes = static_cast<int64_t>(row.gpu.usable_memory_bytes.value);
    if (request.budget_bytes) {
        memory.usable_bytes = std::min(memory.usable_bytes, *request.budget_bytes);
    }
    memory.terms = data_parallel_terms(request.parallel, parameters,
                                       row.environment.ddp_buckets == DdpBuckets::kCopy,
                                       static_cast<int64_t>(row.environment.nccl_bytes.value));
    limits.capacity_bytes = memory.usable_bytes - memory.context_bytes;
    limits.options = {.settings = request.allocator,
                      .gradients = row.environment.gradients,
                      .parallel = request.parallel};
    if (row.gpu.compute_capability) {
        limits.options.cublas_workspace_bytes =
            models::cublas_workspace_bytes(*row.gpu.compute_capability);
    }
    for (const MemoryTerm& term : memory.terms) {
        if (term.is_tensor) {
            limits.options.persistent_bytes.push_back(std::max<int64_t>(term.size_bytes, 1));
        } else {
            limits.capacity_bytes -= term.size_bytes;
        }
    }
    return limits;
}

double bus_bytes_per_s(const PlanRequest& request, const PlannerData& data, const Gpu& gpu) {
    if (request.parallel.num_gpus == 1) return 0;
    if (request.bus_bytes_per_s) return *request.bus_bytes_per_s;
    const LinkRow* link = find_link(data.calibration, gpu.id);
    return link == nullptr ? 0 : link->bus_bytes_per_s.value;
}

void fill_row(PlanRow& row, const PlanRequest& request, const PlannerData& data,
              BatchInterpolation& interpolation) {
    RowBuilder(row, request, data, interpolation).fill();
}

}  // namespace profiler
