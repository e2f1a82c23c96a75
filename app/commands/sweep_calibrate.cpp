#include "app/commands/console/interrupt.h"
#include "app/commands/console/progress.h"
#include "app/commands/console/report.h"
#include "app/commands/sweep.h"
#include "app/user/settings.h"
#include "app/user/user_calibration.h"
#include "app/user/workload_jobs.h"
#include "profiler/planner/step/kernel_model.h"
#include "profiler/protocol/worker_client.h"
#include "profiler/trace/file/write_file.h"
#include "profiler/trace/units.h"

#include <fmt/chrono.h>
#include <nlohmann/json.hpp>

#include <unistd.h>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>

/// `sweep --calibrate`: the worker measures the device, and the result is added to the user's
/// planner files.
namespace app {
namespace {

using namespace profiler;
namespace fs = std::filesystem;

tl::expected<DeviceSpeed, Failure> measure(const std::string& device) {
    auto worker = WorkerClient::start();
    if (!worker) return failed(worker.error());
    const CancelOnInterrupt cancel(*worker);
    Progress progress;
    const auto outcome = worker->run(
        {.kind = RequestKind::kCalibrate, .device = device},
        {.progress = [&](const profiler::Progress& stage) {
            progress.update(static_cast<double>(stage.done) / static_cast<double>(stage.total),
                            fmt::format("measuring: {}", stage.stage));
        }});
    if (!outcome && outcome.error().cancelled) {
        return fail_with(ExitCode::kFailed,
                         "The measurement was cancelled; your calibration is as before.");
    }
    if (!outcome) return failed(to_error(outcome.error()));
    const auto speed = device_speed_from_json(outcome->summary);
    if (!speed) return failed(speed.error());
    return *speed;
}

std::string text_of(const fs::path& path) {
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

models::Result<void> put(const fs::path& path, const std::string& before, const std::string& text) {
    if (text == before) return {};
    return write_file(path, text);
}

/// Writes the changed files and reads them back as planner data. On an error (a file that cannot be
/// written, or data that is not valid together) both files are restored.
models::Result<PlannerData> write(const fs::path& folder, const UserFiles& before,
                                  const UserFiles& files) {
    const fs::path gpus = folder / "gpus.json";
    const fs::path calibration = folder / "calibration.json";
    // The GPU first: rows may name only known GPUs.
    if (auto ok = put(gpus, before.gpus, files.gpus); !ok) return tl::unexpected(ok.error());
    auto ok = put(calibration, before.calibration, files.calibration);
    auto data =
        ok ? load_planner_data(folder) : models::Result<PlannerData>(tl::unexpected(ok.error()));
    if (data) return data;
    for (const auto& [path, text] :
         {std::pair(gpus, before.gpus), std::pair(calibration, before.calibration)}) {
        if (text.empty()) {
            std::error_code ignored;
            fs::remove(path, ignored);
        } else if (auto restored = write_file(path, text); !restored) {
            return models::fail("{} And {} could not be restored: {}", data.error().message,
                                path.string(), restored.error().message);
        }
    }
    return data;
}

/// What the time model predicts for a measured GEMM, with the rows that were just written.
std::string modelled(const DeviceSpeed::Gemm& gemm, const Gpu& gpu, const KernelModel& model) {
    const auto type = models::find_name<MatmulType>(kMatmulTypeNames, gemm.type);
    if (!type || !gpu.peak(*type)) return "too slow for a plan";
    const int64_t flop = 2 * gemm.size * gemm.size * gemm.size;
    const double time_ns =
        model.time_ns({.kernel = KernelKind::kGemm,
                       .type = *type,
                       .flop = flop,
                       .shape = {.m = gemm.size, .n = gemm.size, .k = gemm.size}});
    const double flop_per_s = static_cast<double>(flop) / time_ns * kNsPerS;
    return fmt::format("{:.4g} ({:+.0f} %)", flop_per_s / kTera,
                       100 * (flop_per_s / gemm.flop_per_s - 1));
}

void print_speed(Output& output, const DeviceSpeed& speed, const Gpu& gpu,
                 const KernelModel& model) {
    TextTable gemms{.columns = {{"GEMM of", Align::kRight},
                                {"in", Align::kLeft},
                                {"TFLOPS", Align::kRight},
                                {"predicted", Align::kRight}}};
    for (const DeviceSpeed::Gemm& gemm : speed.gemms) {
        gemms.rows.push_back({fmt::format("{0} x {0}", gemm.size), gemm.type,
                              fmt::format("{:.4g}", gemm.flop_per_s / kTera),
                              modelled(gemm, gpu, model)});
    }
    output.heading(speed.device_name);
    output.table(gemms);
    output.line();
    output.line(fmt::format("y = 1.2 x           {:.4g} GB/s", speed.bytes_per_s / kGiga));
    output.line(fmt::format("softmax             {:.4g} GB/s, {:.2f} of that",
                            speed.softmax_bytes_per_s / kGiga,
                            speed.softmax_bytes_per_s / speed.bytes_per_s));
    output.line(fmt::format("LayerNorm           {:.4g} GB/s, {:.2f} of that",
                            speed.layer_norm_bytes_per_s / kGiga,
                            speed.layer_norm_bytes_per_s / speed.bytes_per_s));
    output.line(fmt::format("launch to launch    {:.3g} us", speed.launch_ns / 1e3));
}

std::string today() {
    const std::time_t now = std::time(nullptr);
    std::tm day{};
    localtime_r(&now, &day);
    return fmt::format("{:%Y-%m-%d}", day);
}

/// Finds out before the measurement, which takes a minute, whether the result can be written.
models::Result<void> check_before(const fs::path& folder) {
    if (const auto sound = load_planner_data(folder); !sound) {
        return tl::unexpected(sound.error());
    }
    std::error_code error;
    fs::create_directories(folder, error);
    if (!fs::is_directory(folder, error) || ::access(folder.c_str(), W_OK) != 0) {
        return models::fail(
            "Your planner data cannot be written into {}: make the folder writable, or choose "
            "another one with XDG_CONFIG_HOME.",
            folder.string());
    }
    return {};
}

Outcome run_calibration(const std::string& device, Output& output) {
    if (device != "auto" && device != "cpu" && device != "cuda") {
        return fail_with(
            ExitCode::kUsage,
            "--calibrate measures a device of this machine, not '{}': choose auto, cpu or cuda.",
            device);
    }
    const fs::path folder = settings_folder();
    if (folder.empty()) {
        return fail_with(ExitCode::kFailed,
                         "There is no folder for your calibration: set HOME or XDG_CONFIG_HOME.");
    }
    if (const auto ok = check_before(folder); !ok) return failed(ok.error());
    const auto speed = measure(measured_device(device));
    if (!speed) return tl::unexpected(speed.error());
    // Read again after the measurement: the files may have been edited meanwhile.
    const auto known = load_planner_data(folder);
    if (!known) return failed(known.error());
    const UserFiles before{.gpus = text_of(folder / "gpus.json"),
                           .calibration = text_of(folder / "calibration.json")};
    const auto calibration = calibrate(*speed, known->gpus, before, today());
    if (!calibration) return failed(calibration.error());
    const auto data = write(folder, before, calibration->files);
    if (!data) return failed(data.error());

    nlohmann::json document = to_json(*speed);
    document["gpu"] = calibration->gpu;
    document["path"] = (folder / "calibration.json").string();
    output.document(document);
    const auto gpu = find_gpu(data->gpus, calibration->gpu);
    if (!gpu) return failed(gpu.error());
    print_speed(output, *speed, **gpu,
                KernelModel(**gpu, data->environments.front(), data->calibration));
    output.line();
    if (calibration->is_new_gpu) output.line("wrote " + (folder / "gpus.json").string());
    output.line(fmt::format("wrote {}: plans for --gpu {} now use it",
                            (folder / "calibration.json").string(), calibration->gpu));
    return ExitCode::kOk;
}

}  // namespace

Mode calibration_mode(const SweepOptions& options) {
    return {
        .bit = kCalibrate,
        .chosen_by = "--calibrate",
        .refuse = sentence("--calibrate trains nothing: leave {} out."),
        .run = [&](Output& output) { return run_calibration(options.workload.device, output); }};
}

}  // namespace app
