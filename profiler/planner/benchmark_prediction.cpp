#include "profiler/planner/benchmark_prediction.h"

#include "models/config/precision.h"
#include "profiler/planner/plan_row.h"
#include "profiler/planner/step/capacity_search.h"
#include "profiler/planner/step/layer_profile.h"
#include "profiler/planner/step/step_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace profiler {
namespace {

using models::Benchmark;
using models::BenchmarkKind;
using models::Result;

/// Adding a gradient to the one of an earlier call: a pass over both for each parameter.
StepOp gradient_additions(const Parameters& parameters) {
    const int64_t tensors = std::max<int64_t>(parameters.num_tensors, 1);
    return {.phase = PhaseKind::kBackward,
            .op_class = OpClass::kElementWise,
            .work = {.kernel = KernelKind::kElementWise,
                     .flop = parameters.num_elements / tensors,
                     .moved_bytes = 3 * parameters.size_bytes / tensors},
            .count = parameters.num_tensors};
}

class Prediction {
public:
    Prediction(const Benchmark& benchmark, const Gpu& gpu, const SoftwareEnvironment& environment,
               const PlannerData& data, const StepSource& source)
        : benchmark_(benchmark),
          workload_(benchmark.kind == BenchmarkKind::kLayer
                        ? models::layer_workload(benchmark.workload)
                        : benchmark.workload),
          gpu_(gpu),
          data_(data),
          source_(source) {
        request_.environment = &environment;
        request_.batch_size = workload_.batch_size;
    }

    Result<PredictedBenchmark> predict() {
        if (!gpu_.no_kernel_model.empty()) {
            return models::fail_fields({"gpu"}, "{} has no modelled times: {}.", gpu_.id,
                                       gpu_.no_kernel_model);
        }
        row_ = start_row(request_, data_, workload_, gpu_);
        if (row_.status != PlanStatus::kOk) {
            return tl::unexpected(models::Error{row_.reason, row_.reason_fields});
        }
        switch (benchmark_.kind) {
            case BenchmarkKind::kMatmul:
            case BenchmarkKind::kVector:
                return predict_kernel();
            case BenchmarkKind::kLayer:
            case BenchmarkKind::kModel:
                return predict_step();
        }
        return models::fail("This benchmark is not known.");
    }

private:
    PredictedBenchmark result(models::BenchmarkTime time, const KernelModel& kernels) {
        std::vector<std::string> notes = std::move(row_.notes);
        const bool has_gemms = benchmark_.kind != BenchmarkKind::kVector;
        for (std::string& note :
             kernels.notes(has_gemms ? matmul_type_of(workload_.precision) : std::nullopt)) {
            notes.push_back(std::move(note));
        }
        notes.push_back(
            fmt::format("times of steps {}; single kernels are further off (docs/dev/bench.md)",
                        kernels.accuracy().text()));
        return {.time = time, .notes = std::move(notes)};
    }

    /// Calls of one kernel, one after the other: the host is ahead of the GPU.
    Result<PredictedBenchmark> predict_kernel() {
        const KernelModel kernels(gpu_, row_.environment, data_.calibration);
        const MatmulType type = *matmul_type_of(workload_.precision);
        if (benchmark_.kind == BenchmarkKind::kMatmul && !gpu_.peak(type)) {
            return models::fail_fields({"precision"}, "{} has no products of {}.", gpu_.id,
                                       name_of(workload_.precision));
        }
        const int64_t n = benchmark_.size;
        const int64_t word_bytes = models::weight_bytes(workload_.precision);
        const int64_t held_bytes = word_bytes * (benchmark_.kind == BenchmarkKind::kMatmul
                                                     ? 3 * n * n
                                                     : 2 * n);  // what is read and written
        if (held_bytes > limits_of(row_, request_, Parameters()).capacity_bytes) {
            return result({.out_of_memory = true}, kernels);
        }
        const KernelWork work = benchmark_.kind == BenchmarkKind::kMatmul
                                    ? KernelWork{.kernel = KernelKind::kGemm,
                                                 .type = type,
                                                 .flop = 2 * n * n * n,
                                                 .moved_bytes = 3 * n * n * word_bytes,
                                                 .shape = {1, n, n, n}}
                                    : KernelWork{.kernel = KernelKind::kElementWise,
                                                 .flop = n,
                                                 .moved_bytes = 2 * n * word_bytes};
        return result({.time_ns = whole_ns(kernels.time_ns(work))}, kernels);
    }

    /// Empty: the step does not fit.
    Result<std::optional<StepMemory>> memory_of(const StepWork& step) {
        const GpuLimits limits = limits_of(row_, request_, step.parameters);
        const StepMemory peaks = simulate_step(step, limits.options, std::nullopt);
        const auto ok = fits(peaks, limits.capacity_bytes, [&] {
            return Result<StepMemory>(simulate_step(step, limits.options, limits.capacity_bytes));
        });
        if (!ok) return tl::unexpected(ok.error());
        return *ok ? std::optional(peaks) : std::nullopt;
    }

    /// A step of the model, or of its layer alone.
    Result<PredictedBenchmark> predict_step() {
        const auto model = make_time_model(gpu_, row_.environment, data_.calibration, workload_);
        if (!model) return tl::unexpected(model.error());
        const auto traced =
            source_({.workload = traced_workload(workload_, row_.environment, data_.calibration),
                     .gpu = gpu_.id});
        if (!traced) return tl::unexpected(traced.error());
        auto step = step_work_of(**traced);
        if (!step) return tl::unexpected(step.error());
        const bool is_layer = benchmark_.kind == BenchmarkKind::kLayer;
        if (!is_layer) repeat_first_step(*step);
        const auto memory = memory_of(*step);
        if (!memory) return tl::unexpected(memory.error());
        if (!*memory) return result({.out_of_memory = true}, model->kernels);
        if (is_layer) return predict_layer(**traced, step->parameters, *model);
        return result({.time_ns = whole_ns(time_of(*step, *model).total_ns()),
                       .peak_allocated_bytes = (*memory)->peak_allocated_bytes},
                      model->kernels);
    }

    Result<PredictedBenchmark> predict_layer(const Trace& trace, const Parameters& parameters,
                                             const TimeModel& model) {
        auto profile = profile_layers(trace);
        if (!profile) return tl::unexpected(profile.error());
        StepWork& layer = profile->work.front();
        layer.ops.push_back(gradient_additions(parameters));
        const StepTime time = time_of(layer, model);
        const double ns =
            time.forward.total_ns() + (benchmark_.has_backward ? time.backward.total_ns() : 0.0);
        return result({.time_ns = whole_ns(ns)}, model.kernels);
    }

    const Benchmark& benchmark_;
    const models::Workload workload_;
    const Gpu& gpu_;
    const PlannerData& data_;
    const StepSource& source_;
    PlanRequest request_;
    PlanRow row_;
};

}  // namespace

Result<PredictedBenchmark> predict_benchmark(const Benchmark& benchmark, const Gpu& gpu,
                                             const SoftwareEnvironment& environment,
                                             const PlannerData& data, const StepSource& source) {
    return Prediction(benchmark, gpu, environment, data, source).predict();
}

}  // namespace profiler
