#include "profiler/planner/plan_row.h"

#include "models/config/cuda_memory.h"
#include "models/config/validity.h"
#include "profiler/analysis/run_text.h"
#include "profiler/planner/data/support.h"
#include "profiler/trace/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace profiler {
namespace {

/// All batches up to here are tried for the best throughput, above only some.
constexpr int64_t kDenseBatches = 64;
/// Of those above: products are fastest on whole tiles.
constexpr int64_t kBatchStep = 8;

models::Result<bool> fits(BatchInterpolation& interpolation, const MemoryOptions& options,
                          int64_t capacity_bytes, int64_t batch_size) {
    if (batch_size > interpolation.largest_valid_batch()) return false;
    const auto unlimited = interpolation.unlimited_memory(batch_size, options);
    if (!unlimited) return tl::unexpected(unlimited.error());
    return fits(*unlimited, capacity_bytes,
                [&] { return interpolation.limited_memory(batch_size, options, capacity_bytes); });
}

/// A batch strictly between two, where a line through their peaks meets the capacity; the middle
/// where one of them cannot be.
int64_t guess_between(BatchInterpolation& interpolation, const MemoryOptions& options,
                      int64_t capacity_bytes, int64_t good, int64_t bad) {
    const int64_t middle = good + (bad - good) / 2;
    if (good == 0 || bad > interpolation.largest_valid_batch()) return middle;
    const auto low = interpolation.unlimited_memory(good, options);
    const auto high = interpolation.unlimited_memory(bad, options);
    if (!low || !high || high->peak_reserved_bytes <= low->peak_reserved_bytes) return middle;
    const auto share = static_cast<double>(capacity_bytes - low->peak_reserved_bytes) /
                       static_cast<double>(high->peak_reserved_bytes - low->peak_reserved_bytes);
    const auto guess =
        good + static_cast<int64_t>(std::clamp(share, 0.0, 1.0) * static_cast<double>(bad - good));
    return std::clamp(guess, good + 1, bad - 1);
}

bool is_power_of_two(int64_t value) { return (value & (value - 1)) == 0; }

/// One row while it is being filled.
class RowBuilder {
public:
    RowBuilder(PlanRow& row, const PlanRequest& request, const PlannerData& data,
               BatchInterpolation& interpolation)
        : row_(row), request_(request), data_(data), interpolation_(interpolation) {}

    void fill() {
        if (!set_up()) return;
        const auto max_batch = find_max_batch(interpolation_, options_, capacity_bytes_);
        if (!max_batch) return refuse(max_batch.error().message);
        row_.max_batch_size = *max_batch;
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
    void refuse(std::string reason) {
        row_.status = PlanStatus::kNotSupported;
        row_.reason = std::move(reason);
    }

    /// What is the GPU's and the setup's; false when the row is refused.
    bool set_up() {
        const auto step = interpolation_.ops_at(1);
        if (!step) {
            refuse(step.error().message);
            return false;
        }
        GpuLimits limits = limits_of(row_, request_, step->parameters);
        memory_ = std::move(limits.memory);
        options_ = std::move(limits.options);
        capacity_bytes_ = limits.capacity_bytes;
        add_notes(*step);
        return true;
    }

    /// Says where something else than memory ends the batches.
    void add_end_of_batches(int64_t max_batch) {
        if (max_batch < interpolation_.largest_valid_batch()) return;
        if (max_batch == BatchInterpolation::kLargestBatch) {
            row_.max_batch_end = MaxBatchEnd::kSearch;
            row_.notes.push_back(fmt::format("no batch above {} was looked for", max_batch));
            return;
        }
        row_.max_batch_end = MaxBatchEnd::kElements;
        models::Workload larger = row_.workload;
        larger.batch_size = max_batch + 1;
        const auto valid = models::validate(larger);
        const std::string why = valid ? "" : valid.error().message;
        row_.notes.push_back(fmt::format("batches end at {}, though not for memory. At {}: {}",
                                         max_batch, max_batch + 1,
                                         why.substr(0, why.find(": choose"))));
    }

    void add_notes(const StepWork& step) {
        row_.notes.push_back(
            fmt::format("context of {} assumed", format_bytes(memory_.context_bytes)));
        if (!row_.gpu->compute_capability) {
            row_.notes.push_back("the requests are those of CUDA's kernels, not of this device's");
        }
        if (step.source != Source::kPredicted) {
            row_.notes.push_back(fmt::format("from a step {}: its requests stand for a GPU's",
                                             describe(step.source)));
        }
        if (!step.has_shapes) {
            row_.notes.push_back("shapes of some products are not known: tiles are not modelled");
        }
        const auto gpu_bytes = static_cast<int64_t>(row_.gpu->usable_memory_bytes.value);
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

    /// None, and a note, where no honest model of the GPU's kernels exists.
    std::optional<TimeModel> time_model() {
        if (!row_.gpu->no_kernel_model.empty()) {
            row_.notes.push_back(
                fmt::format("memory only for {}: {}", row_.gpu->id, row_.gpu->no_kernel_model));
            return std::nullopt;
        }
        const auto model =
            make_time_model(*row_.gpu, *row_.setup, data_.calibration, row_.workload,
                            request_.parallel, bus_bytes_per_s(request_, data_, *row_.gpu));
        if (!model) {
            row_.notes.push_back(model.error().message);
            return std::nullopt;
        }
        for (std::string& note : model->kernels.notes(*matmul_type_of(row_.workload.precision))) {
            row_.notes.push_back(std::move(note));
        }
        row_.notes.push_back(fmt::format("optimizer {}", model->optimizer));
        add_link_note();
        return *model;
    }

    void add_link_note() {
        if (request_.parallel.num_gpus == 1) return;
        if (request_.bus_bytes_per_s) {
            row_.notes.push_back(fmt::format("GPUs linked at {} GB/s, as --link says",
                                             *request_.bus_bytes_per_s / kGiga));
            return;
        }
        const LinkRow* link = find_link(data_.calibration, row_.gpu->id);
        if (link == nullptr) return;
        row_.notes.push_back(fmt::format("GPUs linked by {}, {} GB/s", link->name,
                                         link->bus_bytes_per_s.value / kGiga));
    }

    void say_how_much_is_missing(int64_t batch_size) {
        row_.status = PlanStatus::kDoesNotFit;
        row_.batch_size = batch_size;
        if (batch_size > interpolation_.largest_valid_batch()) {
            models::Workload workload = row_.workload;
            workload.batch_size = batch_size;
            const auto valid = models::validate(workload);
            row_.reason = valid ? fmt::format("Batch {} is beyond {}, where the search ends.",
                                              batch_size, interpolation_.largest_valid_batch())
                                : valid.error().message;
            return;
        }
        const std::string_view place =
            request_.budget_bytes ? std::string_view("the budget") : row_.gpu->id;
        if (capacity_bytes_ <= 0) {
            row_.reason = fmt::format(
                "The {} of {} are less than what CUDA takes before the first tensor: a context of "
                "{}{}.",
                format_bytes(memory_.usable_bytes), place, format_bytes(memory_.context_bytes),
                request_.parallel.num_gpus > 1 ? ", and NCCL" : "");
            return;
        }
        const auto least =
            least_capacity_bytes(interpolation_, options_, batch_size, capacity_bytes_);
        if (!least) return refuse(least.error().message);
        row_.reason = fmt::format(
            "Batch {} needs {} for tensors, {} more than {} has{}.", batch_size,
            format_bytes(*least), format_bytes(*least - capacity_bytes_), place,
            *row_.max_batch_size > 0 ? fmt::format("; batch {} fits", *row_.max_batch_size) : "");
    }

    /// Throughput at the batches of a coarse list, then at all around the best of them, around the
    /// largest and at --batch.
    void add_curve(const TimeModel& model, int64_t max_batch) {
        const bool dense = interpolation_.has_line_of_ops();
        const std::vector<int64_t> coarse = batches_up_to(max_batch, dense);
        for (const int64_t batch_size : coarse) look_at(model, batch_size);
        if (dense && row_.best_batch_size) {
            for (const int64_t b : batches_beside({*row_.best_batch_size, max_batch}, coarse)) {
                look_at(model, b);
            }
        }
        if (request_.batch_size && *request_.batch_size <= max_batch) {
            look_at(model, *request_.batch_size);
        }
    }

    void look_at(const TimeModel& model, int64_t batch_size) {
        const auto step = interpolation_.ops_at(batch_size);
        if (!step) return refuse(step.error().message);
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
        return static_cast<double>(batch_size * request_.parallel.num_gpus) * kNsPerS / step_ns;
    }

    void add_memory(int64_t batch_size) {
        row_.batch_size = batch_size;
        const auto step = interpolation_.at(batch_size);
        if (!step) return refuse(step.error().message);
        if (std::string why = interpolation_.why_not_affine(batch_size); !why.empty()) {
            row_.notes.push_back(std::move(why));
        }
        memory_.contents = peak_contents(*step, options_, capacity_bytes_);
        row_.memory = memory_;
    }

    void add_times(const TimeModel& model, int64_t batch_size) {
        const auto step = interpolation_.ops_at(batch_size);
        if (!step) return refuse(step.error().message);
        row_.time = time_of(*step, model);
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
        if (std::find(attentions.begin(), attentions.end(), recipe.attention) == attentions.end()) {
            attentions.push_back(recipe.attention);
        }
    }
    return attentions;
}

bool uses_fused_attention(const models::Workload& workload) {
    const auto recipes = models::recipes_in(workload);
    return std::any_of(recipes.begin(), recipes.end(), [](const models::Recipe& recipe) {
        return recipe.attention == models::Attention::kFlash ||
               recipe.attention == models::Attention::kEfficient ||
               recipe.attention == models::Attention::kCudnn;
    });
}

}  // namespace

PlanRow start_row(const PlanRequest& request, const PlannerData& data,
                  const models::Workload& workload, const Gpu& gpu) {
    PlanRow row{.workload = workload, .gpu = &gpu, .setup = request.setup};
    const auto refuse = [&](std::string reason) {
        row.status = PlanStatus::kNotSupported;
        row.reason = std::move(reason);
        return row;
    };
    const auto setup = setup_for(data.setups, *request.setup, gpu);
    if (!setup) return refuse(setup.error().message);
    row.setup = *setup;
    if (row.setup != request.setup) {
        row.notes.push_back(fmt::format("PyTorch {} does not run on {}: {} assumed",
                                        request.setup->torch, gpu.id, row.setup->id));
    }
    if (auto reason = why_not_supported(workload, gpu)) return refuse(*reason);
    for (const models::Attention attention : attentions_in(workload)) {
        std::string why = why_not_comparable(attention, gpu, data.calibration);
        if (!why.empty()) row.notes.push_back(std::move(why));
    }
    if (uses_fused_attention(workload)) {
        row.notes.push_back("fused attention's times rest on charts of the kernels alone");
        if (row.setup->torch.starts_with("1.")) {
            row.notes.push_back(fmt::format(
                "PyTorch {} of {} has no fused attention: that of 2.0 is assumed in its place",
                row.setup->torch, row.setup->id));
        }
    }
    return row;
}

GpuLimits limits_of(const PlanRow& row, const PlanRequest& request, const Parameters& parameters) {
    GpuLimits limits;
    PlanMemory& memory = limits.memory;
    memory.context_bytes = static_cast<int64_t>(row.setup->context_bytes(row.gpu->id).value);
    memory.usable_bytes = static_cast<int64_t>(row.gpu->usable_memory_bytes.value);
    if (request.budget_bytes) {
        memory.usable_bytes = std::min(memory.usable_bytes, *request.budget_bytes);
    }
    memory.terms = data_parallel_terms(request.parallel, parameters,
                                       row.setup->ddp_buckets == DdpBuckets::kCopy,
                                       static_cast<int64_t>(row.setup->nccl_bytes.value));
    limits.capacity_bytes = memory.usable_bytes - memory.context_bytes;
    limits.options = {.settings = request.allocator,
                      .gradients = row.setup->gradients,
                      .parallel = request.parallel};
    if (row.gpu->compute_capability) {
        limits.options.cublas_workspace_bytes =
            models::cublas_workspace_bytes(*row.gpu->compute_capability);
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

models::Result<bool> fits(const StepMemory& unlimited, int64_t capacity_bytes,
                          const std::function<models::Result<StepMemory>()>& limited) {
    if (unlimited.peak_reserved_bytes <= capacity_bytes) return true;
    if (unlimited.peak_allocated_bytes > capacity_bytes) return false;
    const auto memory = limited();
    if (!memory) return tl::unexpected(memory.error());
    return !memory->out_of_memory;
}

models::Result<int64_t> least_capacity_bytes(
    const StepMemory& unlimited, int64_t too_small_bytes,
    const std::function<models::Result<StepMemory>(int64_t limit_bytes)>& limited) {
    constexpr int64_t kStepBytes = int64_t{2} << 20;  // the size of the allocator's small segments
    int64_t bad = std::max(too_small_bytes, unlimited.peak_allocated_bytes - 1);
    int64_t good = std::max(unlimited.peak_reserved_bytes, bad + 1);
    while (good - bad > kStepBytes) {
        const int64_t middle = bad + (good - bad) / 2;
        const auto memory = limited(middle);
        if (!memory) return tl::unexpected(memory.error());
        (memory->out_of_memory ? bad : good) = middle;
    }
    return good;
}

models::Result<int64_t> least_capacity_bytes(BatchInterpolation& interpolation,
                                             const MemoryOptions& options, int64_t batch_size,
                                             int64_t too_small_bytes) {
    const auto unlimited = interpolation.unlimited_memory(batch_size, options);
    if (!unlimited) return tl::unexpected(unlimited.error());
    return least_capacity_bytes(*unlimited, too_small_bytes, [&](int64_t limit_bytes) {
        return interpolation.limited_memory(batch_size, options, limit_bytes);
    });
}

std::vector<int64_t> batches_beside(const std::vector<int64_t>& best,
                                    const std::vector<int64_t>& looked_at) {
    std::set<int64_t> batches;
    for (const int64_t batch_size : best) {
        const auto at = std::find(looked_at.begin(), looked_at.end(), batch_size);
        if (at == looked_at.end()) continue;
        const int64_t first = at == looked_at.begin() ? batch_size : *(at - 1);
        const int64_t last = at + 1 == looked_at.end() ? batch_size : *(at + 1);
        const int64_t stride = (last - first) / kDenseBatches + 1;  // 1 but for huge batches
        for (int64_t b = first + 1; b < last; b += stride) batches.insert(b);
    }
    for (const int64_t known : looked_at) batches.erase(known);
    return {batches.begin(), batches.end()};
}

std::vector<int64_t> batches_up_to(int64_t max_batch, bool dense) {
    std::set<int64_t> batches{max_batch};
    for (int64_t b = 1; b < max_batch; b *= 2) batches.insert(b);
    if (!dense) return {batches.begin(), batches.end()};
    for (int64_t b = 1; b <= std::min(max_batch, kDenseBatches); ++b) batches.insert(b);
    const int64_t rest = std::max<int64_t>(max_batch - kDenseBatches, 0);
    const int64_t step =
        std::max<int64_t>((rest / kDenseBatches + kBatchStep - 1) / kBatchStep, 1) * kBatchStep;
    for (int64_t b = kDenseBatches + step; b < max_batch; b += step) batches.insert(b);
    return {batches.begin(), batches.end()};
}

void fill_row(PlanRow& row, const PlanRequest& request, const PlannerData& data,
              BatchInterpolation& interpolation) {
    RowBuilder(row, request, data, interpolation).fill();
}

models::Result<int64_t> find_max_batch(BatchInterpolation& interpolation,
                                       const MemoryOptions& options, int64_t capacity_bytes) {
    if (capacity_bytes <= 0) return 0;
    int64_t good = 0;
    int64_t bad = interpolation.home_begin();
    while (bad <= interpolation.largest_valid_batch()) {
        const auto ok = fits(interpolation, options, capacity_bytes, bad);
        if (!ok) return tl::unexpected(ok.error());
        if (!*ok) break;
        good = bad;
        bad *= 2;
    }
    // Memory is nearly a line: a few guesses on it, then halves.
    constexpr int kGuesses = 4;
    for (int i = 0; bad - good > 1; ++i) {
        const int64_t middle =
            i < kGuesses ? guess_between(interpolation, options, capacity_bytes, good, bad)
                         : good + (bad - good) / 2;
        const auto ok = fits(interpolation, options, capacity_bytes, middle);
        if (!ok) return tl::unexpected(ok.error());
        (*ok ? good : bad) = middle;
    }
    return good;
}

}  // namespace profiler
