#include "app/commands/bench_request.h"

#include "app/commands/console/report.h"
#include "app/commands/options/values.h"
#include "models/config/model_file.h"
#include "models/config/validity.h"
#include "profiler/planner/data/published_benchmarks.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

namespace app {
namespace {

using models::Benchmark;
using models::BenchmarkKind;
using models::Result;
using models::Workload;
using namespace profiler;

/// What is timed where the options do not say: the cells of the notebook on a GPU, and on a
/// processor what takes seconds.
struct Defaults {
    std::string sizes, precisions, models, lengths, batches;
};

/// What the defaults depend on.
struct DeviceKind {
    bool is_cpu = false;
    bool has_tf32 = true;
    bool has_bf16 = true;
};

DeviceKind kind_of(const Gpu& gpu) {
    return {.has_tf32 = gpu.peak(MatmulType::kTf32).has_value(),
            .has_bf16 = gpu.peak(MatmulType::kBf16).has_value()};
}

Defaults defaults_of(BenchmarkKind kind, const DeviceKind& device) {
    const bool on_cpu = device.is_cpu;
    switch (kind) {
        case BenchmarkKind::kMatmul:
            if (on_cpu) return {.sizes = "128,512,2048", .precisions = "fp32,bf16"};
            return {.sizes = "128,512,2048,8192",
                    .precisions = device.has_tf32 ? "fp32,tf32,fp16" : "fp32,fp16"};
        case BenchmarkKind::kVector:
            return {.sizes = "65536,262144,1048576,4194304", .precisions = "fp32"};
        case BenchmarkKind::kLayer:
            return {.precisions = on_cpu ? "fp32" : "pure-fp16",
                    .models = "bert-large,gpt2-medium,t5-large-encoder,t5-large-decoder",
                    .lengths = "512",
                    .batches = on_cpu ? "2" : "2,8,32"};
        case BenchmarkKind::kModel:
            return {.precisions = on_cpu            ? "fp32"
                                  : device.has_bf16 ? "amp-bf16"
                                                    : "amp-fp16",
                    .models = "bert-large",
                    .lengths = on_cpu ? "128" : "512",
                    .batches = on_cpu ? "1" : "8"};
    }
    return {};
}

Result<std::vector<int64_t>> numbers_of(std::string_view option, const std::string& list) {
    const auto items = split_list(option, list);
    if (!items) return tl::unexpected(items.error());
    std::vector<int64_t> numbers;
    for (const std::string& item : *items) {
        const auto number = parse_whole_number(item);
        if (!number || *number < 1 || *number > (int64_t{1} << 31)) {
            return models::fail(
                "{} names '{}': write whole numbers from 1 to 2^31 with commas between.", option,
                item);
        }
        numbers.push_back(*number);
    }
    return numbers;
}

Result<std::vector<models::Precision>> precisions_of(const std::string& list) {
    const auto items = split_list("--precision", list);
    if (!items) return tl::unexpected(items.error());
    std::vector<models::Precision> precisions;
    for (const std::string& item : *items) {
        const auto precision = models::parse_precision(item);
        if (!precision) return tl::unexpected(precision.error());
        precisions.push_back(*precision);
    }
    return precisions;
}

const std::string& given_or(const std::string& given, const std::string& otherwise) {
    return given.empty() ? otherwise : given;
}

/// The head that trains a model as a whole.
std::string_view head_of(const models::ModelConfig& model) {
    const auto heads = model.traits().heads;
    return name_of(heads.empty() ? models::Head::kLayers : heads.front());
}

/// The benchmarks of one kind, in the order of a table. A workload that cannot be is a row, which
/// says so; it is an error if no other is possible.
class Grid {
public:
    Grid(const BenchOptions& options, BenchmarkKind kind, const DeviceKind& device)
        : options_(options), kind_(kind), defaults_(defaults_of(kind, device)) {}

    Result<std::vector<Benchmark>> make() {
        const auto precisions = precisions_of(given_or(options_.precisions, defaults_.precisions));
        if (!precisions) return tl::unexpected(precisions.error());
        for (const models::Precision precision : *precisions) {
            const bool has_sizes =
                kind_ == BenchmarkKind::kMatmul || kind_ == BenchmarkKind::kVector;
            auto ok = has_sizes ? add_sizes(precision) : add_models(precision);
            if (!ok) return tl::unexpected(ok.error());
        }
        if (problem_ && !has_possible_) return tl::unexpected(*problem_);
        return std::move(all_);
    }

private:
    Result<void> add_sizes(models::Precision precision) {
        if (models::is_autocast(precision) || precision == models::Precision::kFp64) {
            return models::fail_fields({"precision"},
                                       "A product of matrices has no precision {}: choose fp32, "
                                       "tf32, fp16 or bf16.",
                                       name_of(precision));
        }
        const auto sizes = numbers_of("--size", given_or(options_.sizes, defaults_.sizes));
        if (!sizes) return tl::unexpected(sizes.error());
        for (const int64_t size : *sizes) {
            constexpr int64_t kLargestMatrix = 46'340;  // 2^31 elements
            if (kind_ == BenchmarkKind::kMatmul && size > kLargestMatrix) {
                return models::fail(
                    "A matrix of {0} x {0} has more than 2^31 elements: choose a "
                    "smaller --size.",
                    size);
            }
            Benchmark one{.kind = kind_, .size = size};
            one.workload.precision = precision;
            all_.push_back(std::move(one));
        }
        return {};
    }

    Result<void> add_models(models::Precision precision) {
        const auto names = split_list("--model", given_or(options_.models, defaults_.models));
        if (!names) return tl::unexpected(names.error());
        const RecipeList recipes = recipes_of(given_or(options_.recipes, "original"));
        for (const std::string& name : *names) {
            for (const std::string& recipe : recipes.names) {
                if (auto ok = add_model(name, recipe, precision); !ok) return ok;
            }
        }
        return {};
    }

    Result<void> add_model(const std::string& name, const std::string& recipe,
                           models::Precision precision) {
        const auto lengths = numbers_of("--seq", given_or(options_.lengths, defaults_.lengths));
        if (!lengths) return tl::unexpected(lengths.error());
        const auto batches = numbers_of("--batch", given_or(options_.batches, defaults_.batches));
        if (!batches) return tl::unexpected(batches.error());
        const auto counts = numbers_of("--accumulate", given_or(options_.micro_batches, "1"));
        if (!counts) return tl::unexpected(counts.error());
        StepForm one = options_.workload;
        one.model = name;
        const auto model = models::model_from(name);
        if (!model) return tl::unexpected(model.error());
        if (one.head.empty()) one.head = head_of(*model);
        auto base = make_workload(one);
        if (!base) return tl::unexpected(base.error());
        base = models::with_recipe(std::move(*base), recipe);
        if (!base) return tl::unexpected(base.error());
        base->precision = precision;
        for (const int64_t length : *lengths) {
            for (const int64_t batch : *batches) {
                for (const int64_t count : *counts) {
                    base->seq_len = length;
                    base->batch_size = batch;
                    base->gradient_accumulation_steps = count;
                    if (auto ok = add_workload(*base); !ok) return ok;
                }
            }
        }
        return {};
    }

    Result<void> add_workload(const Workload& workload) {
        const bool is_layer = kind_ == BenchmarkKind::kLayer;
        if (is_layer && models::is_autocast(workload.precision)) {
            return models::fail_fields({"precision"},
                                       "A layer is timed in one precision, not under autocast: "
                                       "choose fp32, tf32, pure-fp16 or pure-bf16.");
        }
        const Workload run = is_layer ? models::layer_workload(workload) : workload;
        const auto valid = models::validate(run);
        has_possible_ = has_possible_ || valid;
        if (!valid && !problem_) problem_ = valid.error();
        for (const bool has_backward : {false, true}) {
            if (!is_layer && has_backward) continue;
            all_.push_back({.kind = kind_, .has_backward = has_backward, .workload = workload});
        }
        return {};
    }

    const BenchOptions& options_;
    const BenchmarkKind kind_;
    const Defaults defaults_;
    std::vector<Benchmark> all_;
    bool has_possible_ = false;
    std::optional<models::Error> problem_;  // of the first workload that cannot be
};

/// The devices of the list: at most one of this machine, and GPUs that are predicted.
struct Devices {
    std::string measured;
    std::vector<const Gpu*> gpus;
    DeviceKind measured_kind() const { return {.is_cpu = measured == "cpu"}; }
};

Result<Devices> devices_of(const BenchOptions& options, const PlannerData& data) {
    const auto items = split_list("--device", options.device);
    if (!items) return tl::unexpected(items.error());
    Devices devices;
    for (const std::string& item : *items) {
        if (item.starts_with(kPredict)) {
            const auto gpu = find_gpu(data.gpus, item.substr(kPredict.size()));
            if (!gpu) return tl::unexpected(gpu.error());
            devices.gpus.push_back(*gpu);
            continue;
        }
        if (item != "auto" && item != "cpu" && item != "cuda") {
            return models::fail("'{}' is not a device: choose auto, cpu, cuda or predict:GPU.",
                                item);
        }
        if (!devices.measured.empty()) {
            return models::fail("--device names two devices of this machine: name one of them.");
        }
        devices.measured = measured_device(item);
    }
    return devices;
}

/// What `charts` compares: everything that was published of layers and models, on the GPUs that are
/// predicted; layers and a model of a small batch on the device at hand.
class ChartTasks {
public:
    ChartTasks(const BenchOptions& options, const PlannerData& data, const Devices& devices)
        : options_(options), data_(data), devices_(devices) {}

    Result<BenchRequest> make() {
        for (const Gpu* gpu : devices_.gpus) {
            for (const PublishedBenchmark* one : drawn_for(*gpu)) {
                const std::string setup =
                    one->setup.empty() || options_.names_setup ? options_.setup : one->setup;
                const auto environment = find_environment(data_.environments, setup);
                if (!environment) return tl::unexpected(environment.error());
                request_.predicted.push_back({one->benchmark, gpu, *environment, one->setup});
            }
        }
        if (devices_.measured.empty()) return std::move(request_);
        BenchOptions own = options_;
        own.recipes.clear();
        for (const BenchmarkKind kind : {BenchmarkKind::kLayer, BenchmarkKind::kModel}) {
            auto grid = Grid(own, kind, devices_.measured_kind()).make();
            if (!grid) return tl::unexpected(grid.error());
            request_.measured.insert(request_.measured.end(), grid->begin(), grid->end());
        }
        return std::move(request_);
    }

private:
    /// What was published for the GPU; where nothing was, what was published for any other, each
    /// benchmark once.
    static std::vector<const PublishedBenchmark*> drawn_for(const Gpu& gpu) {
        std::vector<const PublishedBenchmark*> own, others;
        for (const PublishedBenchmark& one : published_benchmarks()) {
            if (!is_drawn(one)) continue;
            auto& drawn = one.gpu == gpu.id ? own : others;
            const bool is_known = std::ranges::any_of(drawn, [&](const auto* other) {
                return other->benchmark == one.benchmark && other->setup == one.setup;
            });
            if (!is_known) drawn.push_back(&one);
        }
        return own.empty() ? others : own;
    }

    /// Of a layer's batches the largest, which are the README's; every model.
    static bool is_drawn(const PublishedBenchmark& one) {
        if (one.benchmark.kind == BenchmarkKind::kModel) return true;
        if (one.benchmark.kind != BenchmarkKind::kLayer) return false;
        return std::none_of(published_benchmarks().begin(), published_benchmarks().end(),
                            [&](const PublishedBenchmark& other) {
                                const Workload &a = one.benchmark.workload,
                                               &b = other.benchmark.workload;
                                return other.benchmark.kind == BenchmarkKind::kLayer &&
                                       other.gpu == one.gpu && a.model.name == b.model.name &&
                                       a.seq_len == b.seq_len && b.batch_size > a.batch_size;
                            });
    }

    const BenchOptions& options_;
    const PlannerData& data_;
    const Devices& devices_;
    BenchRequest request_;
};

Result<BenchRequest> make_tasks(const BenchOptions& options, const PlannerData& data) {
    const auto devices = devices_of(options, data);
    if (!devices) return tl::unexpected(devices.error());
    if (options.names_setup && devices->gpus.empty()) {
        return models::fail(
            "--setup is the software environment of predictions, and --device {} predicts nothing: "
            "leave it out, or name a predict:GPU.",
            options.device);
    }
    BenchRequest request;
    if (options.what == "charts") {
        if (options.charts.folder.empty()) {
            return models::fail("Charts need a folder: name one with --charts DIR.");
        }
        auto tasks = ChartTasks(options, data, *devices).make();
        if (!tasks) return tl::unexpected(tasks.error());
        request = std::move(*tasks);
    } else {
        const auto kind = *models::find_name<BenchmarkKind>(models::kBenchmarkNames, options.what);
        const auto environment = find_environment(data.environments, options.setup);
        if (!environment) return tl::unexpected(environment.error());
        for (const Gpu* gpu : devices->gpus) {
            const auto predicted = Grid(options, kind, kind_of(*gpu)).make();
            if (!predicted) return tl::unexpected(predicted.error());
            for (const Benchmark& one : *predicted) {
                request.predicted.push_back({one, gpu, *environment});
            }
        }
        if (!devices->measured.empty()) {
            auto measured = Grid(options, kind, devices->measured_kind()).make();
            if (!measured) return tl::unexpected(measured.error());
            request.measured = std::move(*measured);
        }
    }
    request.device = devices->measured;
    return request;
}

}  // namespace

Result<BenchRequest> make_bench_request(const BenchOptions& options, const PlannerData& data) {
    if (const auto ok = check_ending(options.output); !ok) return tl::unexpected(ok.error());
    if (options.steps < 1) {
        return models::fail_fields({"steps"}, "The number of steps is {}: time at least 1 step.",
                                   options.steps);
    }
    const double seconds = options.seconds.value_or(3);
    if (!(seconds > 0) || seconds > 3600) {
        return models::fail("--seconds is {}: it must be more than 0 and at most 3600.", seconds);
    }
    auto request = make_tasks(options, data);
    if (!request) return request;
    request->seconds = seconds;
    request->steps = options.steps;
    return request;
}

}  // namespace app
