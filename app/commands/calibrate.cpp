#include "app/commands/calibrate.h"

#include "app/commands/interrupt.h"
#include "app/commands/progress.h"
#include "app/commands/user_calibration.h"
#include "app/window/settings.h"
#include "app/workload_jobs.h"
#include "profiler/planner/kernel_model.h"
#include "profiler/protocol/worker_client.h"
#include "profiler/trace/units.h"
#include "profiler/trace/write_file.h"

#include <fmt/chrono.h>
#include <nlohmann/json.hpp>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace app {
namespace {

using profiler::DeviceSpeed;
using profiler::PlannerData;
namespace fs = std::filesystem;

tl::expected<DeviceSpeed, Failure> measure(const std::string& device) {
    auto worker = profiler::WorkerClient::start();
    if (!worker) return failed(worker.error());
    const CancelOnInterrupt cancel(*worker);
    Progress progress;
    const auto outcome = worker->run(
        {.kind = profiler::RequestKind::kCalibrate, .device = device},
        {.progress = [&](const profiler::Progress& stage) {
            progress.update(static_cast<double>(stage.done) / static_cast<double>(stage.total),
                            fmt::format("measuring: {}", stage.stage));
        }});
    if (!outcome) return fail_with(ExitCode::kFailed, "{}", outcome.error().message);
    const auto speed = profiler::device_speed_from_json(outcome->summary);
    if (!speed) return failed(speed.error());
    return *speed;
}

std::string text_of(const fs::path& path) {
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

/// Both files, whole, or none: what was there comes back when they cannot be read as planner data.
models::Result<PlannerData> write(const fs::path& folder, const UserFiles& before,
                                  const UserFiles& files) {
    const auto put = [&](const char* name, const std::string& text) -> models::Result<void> {
        std::error_code error;
        if (!text.empty()) return profiler::write_file(folder / name, text);
        fs::remove(folder / name, error);
        return {};
    };
    std::error_code error;
    fs::create_directories(folder, error);
    // The card first: rows may only name cards that are known.
    if (auto ok = put("gpus.json", files.gpus); !ok) return tl::unexpected(ok.error());
    if (auto ok = put("calibration.json", files.calibration); !ok) {
        (void)put("gpus.json", before.gpus);
        return tl::unexpected(ok.error());
    }
    auto data = profiler::load_planner_data(folder);
    if (data) return data;
    (void)put("gpus.json", before.gpus);
    (void)put("calibration.json", before.calibration);
    return tl::unexpected(data.error());
}

/// What the time model makes of each measured product, from the rows that were just written.
double modelled_flop_per_s(const DeviceSpeed::Product& product,
                           const profiler::KernelModel& model) {
    const auto type =
        models::find_name<profiler::MatmulType>(profiler::kMatmulTypeNames, product.type);
    if (!type) return 0;
    const int64_t flop = 2 * product.size * product.size * product.size;
    const double time_ns =
        model.time_ns({.kernel = profiler::KernelKind::kGemm,
                       .type = *type,
                       .flop = flop,
                       .shape = {.m = product.size, .n = product.size, .k = product.size}});
    return static_cast<double>(flop) / (time_ns * 1e-9);
}

void print_speed(Output& output, const DeviceSpeed& speed, const profiler::KernelModel& model) {
    using profiler::Align;
    profiler::TextTable products{.columns = {{"product of", Align::kRight},
                                             {"in", Align::kLeft},
                                             {"TFLOPS", Align::kRight},
                                             {"the planner says", Align::kRight}}};
    for (const DeviceSpeed::Product& product : speed.products) {
        const double modelled = modelled_flop_per_s(product, model);
        products.rows.push_back({fmt::format("{0} x {0}", product.size), product.type,
                                 fmt::format("{:.4g}", product.flop_per_s / 1e12),
                                 fmt::format("{:.4g} ({:+.0f} %)", modelled / 1e12,
                                             100 * (modelled / product.flop_per_s - 1))});
    }
    output.heading(speed.device_name);
    output.table(products);
    output.line();
    output.line(fmt::format("y = 1.2 x           {:.4g} GB/s", speed.bytes_per_s / 1e9));
    output.line(fmt::format("softmax             {:.4g} GB/s, {:.2f} of that",
                            speed.softmax_bytes_per_s / 1e9,
                            speed.softmax_bytes_per_s / speed.bytes_per_s));
    output.line(fmt::format("LayerNorm           {:.4g} GB/s, {:.2f} of that",
                            speed.layer_norm_bytes_per_s / 1e9,
                            speed.layer_norm_bytes_per_s / speed.bytes_per_s));
    output.line(fmt::format("from launch to launch {:.3g} us", speed.launch_ns / 1e3));
}

std::string today() {
    const std::time_t now = std::time(nullptr);
    std::tm day{};
    localtime_r(&now, &day);
    return fmt::format("{:%Y-%m-%d}", day);
}

}  // namespace

Outcome run_calibration(const std::string& device, Output& output) {
    if (device.starts_with("predict:")) {
        return fail_with(ExitCode::kUsage,
                         "--calibrate measures a device that is here: choose cpu, cuda or auto.");
    }
    const fs::path folder = settings_folder();
    if (folder.empty()) {
        return fail_with(ExitCode::kFailed,
                         "There is no folder for your calibration: set HOME or XDG_CONFIG_HOME.");
    }
    // What is wrong with the files that are there shows before a minute is spent.
    const auto known = profiler::load_planner_data(folder);
    if (!known) return failed(known.error());
    const UserFiles before{.gpus = text_of(folder / "gpus.json"),
                           .calibration = text_of(folder / "calibration.json")};
    const auto speed = measure(measured_device(device));
    if (!speed) return tl::unexpected(speed.error());
    const auto calibration = calibrate(*speed, known->gpus, before, today());
    if (!calibration) return failed(calibration.error());
    const auto data = write(folder, before, calibration->files);
    if (!data) return failed(data.error());

    nlohmann::json document = to_json(*speed);
    document["gpu"] = calibration->gpu;
    document["path"] = (folder / "calibration.json").string();
    output.document(document);
    const auto gpu = profiler::find_gpu(data->gpus, calibration->gpu);
    if (!gpu) return failed(gpu.error());
    print_speed(output, *speed,
                profiler::KernelModel(**gpu, data->setups.front(), data->calibration));
    output.line();
    output.line(fmt::format("wrote {}: plans for --gpu {} use it from now on",
                            (folder / "calibration.json").string(), calibration->gpu));
    return ExitCode::kOk;
}

}  // namespace app
