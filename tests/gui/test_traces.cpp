#include "tests/gui/test_traces.h"

#include "app/prediction/predictor.h"
#include "models/config/workload.h"
#include "profiler/trace/file/trace_file.h"
#include "tests/support/small_program.h"
#include "tests/support/synthetic_trace.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>

namespace tests {
namespace {

using namespace profiler;

/// Step times that grow a little faster than the batch.
void add_sweep(Trace& trace, double bytes_per_sequence, double step_factor) {
    constexpr int64_t kLimit_bytes = int64_t{8} << 30;
    constexpr int64_t kFixed_bytes = int64_t{1} << 30;
    trace.runs.set<&Run::memory_limit_bytes>(Id<Run>(0), kLimit_bytes);
    for (const int64_t batch : {1, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20}) {
        const auto peak_bytes =
            kFixed_bytes + static_cast<int64_t>(bytes_per_sequence * static_cast<double>(batch));
        const bool fits = peak_bytes <= kLimit_bytes;
        const auto point = trace.sweep_points.append(
            {.batch_size = batch,
             .outcome = fits ? SweepOutcome::kOk : SweepOutcome::kOutOfMemory,
             .peak_allocated_bytes = std::min(peak_bytes, kLimit_bytes),
             .peak_reserved_bytes = std::min(peak_bytes, kLimit_bytes),
             .requested_bytes = fits ? -1 : int64_t{64} << 20,
             .free_bytes = fits ? -1 : int64_t{12} << 20});
        if (!fits) break;
        const double step_ms = step_factor * (90.0 + 46.0 * static_cast<double>(batch));
        for (const double noise : {0.98, 1.0, 1.03}) {
            trace.sweep_samples.append(
                {.point = point, .step_time_ns = static_cast<int64_t>(step_ms * noise * 1e6)});
        }
    }
}

/// Each op launches one kernel, which begins after the op and after the kernel before it.
void add_kernels(Trace& trace) {
    const auto stream = trace.streams.append({.device = Id<Device>(0), .handle = 7});
    int64_t free_ns = 0;
    for (std::size_t i = 0; i < trace.ops.size(); ++i) {
        const Op op = trace.ops[Id<Op>(i)];
        const int64_t start_ns = std::max(free_ns, op.start_ns + (op.end_ns - op.start_ns) / 2);
        free_ns = start_ns + (op.end_ns - op.start_ns) * 3 / 4;
        trace.kernels.append({.name = op.name,
                              .stream = stream,
                              .op = Id<Op>(i),
                              .start_ns = start_ns,
                              .end_ns = free_ns});
    }
}

struct Sweep {
    double bytes_per_sequence = 0;
    double step_factor = 1;
};

void describe_run(Trace& trace, const std::string& recipe,
                  int64_t batch_size = models::Workload().batch_size) {
    trace.runs.set<&Run::recipe>(Id<Run>(0), trace.strings.intern(recipe));
    models::Workload workload{.model = *models::find_model("bert-large"),
                              .recipe_name = recipe,
                              .recipe = *models::parse_recipe(recipe),
                              .batch_size = batch_size};
    trace.runs.set<&Run::workload>(Id<Run>(0),
                                   trace.strings.intern(models::to_json(workload).dump()));
    trace.runs.set<&Run::model>(Id<Run>(0), trace.strings.intern("bert-large"));
}

/// As `temposcope run --stacks` records a model of two stacks: layers count on in the decoder, and
/// every allocation has one of two lines.
void describe_program(Trace& trace) {
    trace.runs.set<&Run::workload>(Id<Run>(0), trace.strings.intern(R"({"program": "train.py"})"));
    trace.runs.set<&Run::model>(Id<Run>(0), trace.strings.intern("T5ForConditionalGeneration"));
    trace.runs.set<&Run::recipe>(Id<Run>(0), StringId());
    const int64_t half = trace.run().num_layers / 2;
    for (std::size_t i = 0; i < trace.module_paths.size(); ++i) {
        const Id<ModulePath> id(i);
        const ModulePath row = trace.module_paths[id];
        if (row.layer < half) continue;
        const std::string before = fmt::format("encoder.layer.{}", row.layer);
        const std::string inside(trace.text(row.path).substr(before.size()));
        trace.module_paths.set<&ModulePath::path>(
            id, trace.strings.intern(fmt::format("decoder.layer.{}{}", row.layer - half, inside)));
    }
    std::array<Id<Stack>, 2> stacks;
    for (const int64_t line : {12, 34}) {
        const auto frame = trace.frames.append({.function = trace.strings.intern("forward"),
                                                .file = trace.strings.intern("mine/train.py"),
                                                .line = line});
        stacks[line == 34] = trace.stacks.append({.frame = frame});
    }
    for (std::size_t i = 0; i < trace.allocations.size(); ++i) {
        trace.allocations.set<&Allocation::stack>(Id<Allocation>(i), stacks[i % 2]);
    }
}

void write(const Trace& trace, const std::filesystem::path& file) {
    const auto written = write_trace(trace, file);
    if (!written) throw std::runtime_error(written.error().message);
}

void write(const std::filesystem::path& folder, const std::string& recipe, const Sweep& sweep) {
    Trace trace = make_synthetic_trace(
        {.num_allocations = 5'000, .in_place = !recipe.starts_with("original")});
    add_kernels(trace);
    describe_run(trace, recipe);
    add_sweep(trace, sweep.bytes_per_sequence, sweep.step_factor);
    write(trace, folder / (recipe + ".tscope"));
}

/// A sweep without a step.
void write_sweep(const std::filesystem::path& folder, const std::string& recipe,
                 const Sweep& sweep) {
    std::filesystem::create_directories(folder);
    Trace trace;
    trace.runs.append(
        {.state = RunState::kComplete, .num_layers = 24, .batch_size = 8, .seq_len = 512});
    describe_run(trace, recipe);
    add_sweep(trace, sweep.bytes_per_sequence, sweep.step_factor);
    write(trace, folder / (recipe + ".tscope"));
}

}  // namespace

void write_named_step(const std::filesystem::path& file, const NamedStep& step) {
    Trace trace = make_synthetic_trace({.num_allocations = 5'000,
                                        .batch_size = step.batch_size,
                                        .in_place = step.recipe != "original"});
    describe_run(trace, step.recipe, step.batch_size);
    trace.runs.set<&Run::recipe>(Id<Run>(0), trace.strings.intern(step.name));
    if (step.with_sweep) add_sweep(trace, 495.0 * (1 << 20), 1.02);
    std::filesystem::create_directories(file.parent_path());
    write(trace, file);
}

void write_test_traces(const std::filesystem::path& folder) {
    constexpr double kMiB = 1 << 20;
    std::filesystem::create_directories(folder);
    write(folder, "original", {690 * kMiB, 1.0});
    write(folder, "tempo", {495 * kMiB, 1.02});
    write(folder, "tempo-packed", {452 * kMiB, 1.05});
    write_sweep(folder / "sweeps", "tempo", {495 * kMiB, 1.02});
    Trace program = make_synthetic_trace({.num_allocations = 5'000, .num_layers = 6});
    describe_program(program);
    std::filesystem::create_directories(folder / "programs");
    write(program, folder / "programs" / "train.tscope");
    std::filesystem::create_directories(folder / "failed");
    write(LanguageModel().finish(), folder / "failed" / "oom.tscope");
}

app::DocumentPtr predicted_step(const char* gpu, int64_t num_layers) {
    models::Workload workload{.model = *models::find_model("bert-base"),
                              .head = models::Head::kMlm};
    workload.model.num_layers = num_layers;
    workload.precision = models::Precision::kFp16;
    workload.batch_size = 8;
    workload.seq_len = 128;
    app::Predictor predictor;
    auto trace = predictor.predict({workload, gpu});
    if (!trace) return nullptr;
    return app::make_document("original", std::make_shared<const Trace>(std::move(*trace)));
}

}  // namespace tests
