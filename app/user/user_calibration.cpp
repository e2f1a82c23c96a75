#include "app/user/user_calibration.h"

#include "profiler/planner/data/gpu.h"
#include "profiler/trace/units.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <optional>

namespace app {
namespace {

using nlohmann::ordered_json;
using namespace profiler;

constexpr std::string_view kCommand = "(temposcope sweep --calibrate)";

/// Whether an earlier measurement added this GPU.
bool is_measured(const Gpu& gpu) { return gpu.memory_bytes.source.ends_with(kCommand); }

/// The catalogue's GPU for a device, by name and memory.
const Gpu* find_gpu_row(const std::vector<Gpu>& known, const DeviceSpeed& speed) {
    const Gpu* best = nullptr;
    const auto distance = [&](const Gpu& gpu) {
        return std::abs(gpu.usable_memory_bytes.value / static_cast<double>(speed.memory_bytes) -
                        1);
    };
    for (const Gpu& gpu : known) {
        constexpr double kSameMemory = 0.05;
        // One that only its memory is known of stays as the user wrote it.
        if (!gpu.no_kernel_model.empty()) continue;
        if (!gpu.compute_capability || distance(gpu) > kSameMemory) continue;
        if (models::to_text(*gpu.compute_capability) != speed.compute_capability) continue;
        if (!is_same_gpu_model(gpu.name, speed.device_name)) continue;
        if (best == nullptr || distance(gpu) < distance(*best)) best = &gpu;
    }
    return best;
}

std::string id_of(const DeviceSpeed& speed) {
    if (speed.compute_capability.empty()) return "cpu";
    std::string id;
    for (const std::string& word : words_of_name(speed.device_name)) {
        if (word == "nvidia") continue;
        id += (id.empty() ? "" : "-") + word;
    }
    return id.empty() ? "cuda" : id;
}

std::string_view tier_of(const DeviceSpeed& speed) {
    const auto words = words_of_name(speed.device_name);
    if (std::ranges::find(words, "geforce") != words.end()) return "geforce";
    const bool professional = std::ranges::find(words, "rtx") != words.end();
    return professional || speed.compute_capability.empty() ? "workstation" : "server";
}

/// Rounds to four significant digits: a measurement is not more exact.
double rounded(double value) { return std::stod(fmt::format("{:.4g}", value)); }

/// The rate of the largest GEMM of a type. Empty if it is below the smallest rate that planner data
/// may hold, as on a processor without arithmetic for this type.
std::optional<double> rate_of(const DeviceSpeed& speed, std::string_view type) {
    const DeviceSpeed::Gemm* largest = nullptr;
    for (const DeviceSpeed::Gemm& gemm : speed.gemms) {
        if (gemm.type == type && (largest == nullptr || gemm.size > largest->size)) {
            largest = &gemm;
        }
    }
    if (largest == nullptr || largest->flop_per_s / kTera < kGpuLimits.least) {
        return std::nullopt;
    }
    return largest->flop_per_s;
}

ordered_json gpu_row(const DeviceSpeed& speed, const std::string& id, const std::string& source) {
    const auto figure = [&](double value) {
        return ordered_json{{"value", rounded(value)}, {"source", source}};
    };
    ordered_json row{{"id", id}, {"name", speed.device_name}, {"tier", tier_of(speed)}};
    if (!speed.compute_capability.empty()) row["compute_capability"] = speed.compute_capability;
    // Round down, never up: the largest batch depends on it.
    const double memory_mib = std::floor(static_cast<double>(speed.memory_bytes) / kMiBBytes);
    const ordered_json memory{{"value", memory_mib / 1024}, {"source", source}};
    row["memory_gib"] = memory;
    row["usable_memory_gib"] = memory;
    row["bandwidth_gb_per_s"] = figure(speed.bytes_per_s / kGiga);
    for (const std::string_view type : kMatmulTypeNames) {
        if (const auto rate = rate_of(speed, type)) {
            row[fmt::format("{}_tflops", type)] = figure(*rate / kTera);
        }
    }
    row["sm_count"] = figure(static_cast<double>(speed.sm_count));
    row["l2_mib"] = figure(std::max(1.0, static_cast<double>(speed.l2_bytes) / kMiBBytes));
    return row;
}

models::Result<ordered_json> parse_object(const std::string& text, std::string_view file) {
    if (text.empty()) return ordered_json::object();
    ordered_json json = ordered_json::parse(text, nullptr, false);
    if (!json.is_object()) {
        return models::fail("Your {} is not a JSON object: correct it, or move it away.", file);
    }
    return json;
}

/// A list of rows in a document, without the rows of `source`.
ordered_json& rows_without(ordered_json& document, const char* key, const std::string& source) {
    ordered_json& rows = document[key];
    if (!rows.is_array()) rows = ordered_json::array();
    ordered_json kept = ordered_json::array();
    for (ordered_json& row : rows) {
        if (!row.is_object() || row.value("source", "") != source) kept.push_back(std::move(row));
    }
    return rows = std::move(kept);
}

void add_calibration_rows(const DeviceSpeed& speed, const std::string& id,
                          const std::string& source, ordered_json& document) {
    const ordered_json gpus = ordered_json::array({id});
    ordered_json& matmul = rows_without(document, "matmul", source);
    for (const std::string_view type : kMatmulTypeNames) {
        if (const auto rate = rate_of(speed, type)) {
            matmul.push_back({{"gpus", gpus},
                              {"type", type},
                              {"tflops", rounded(*rate / kTera)},
                              {"source", source}});
        }
    }
    rows_without(document, "bandwidth", source)
        .push_back(
            {{"gpus", gpus}, {"gb_per_s", rounded(speed.bytes_per_s / kGiga)}, {"source", source}});
    ordered_json& efficiencies = rows_without(document, "efficiencies", source);
    // Both passes were measured together.
    for (const auto& [kernel, bytes_per_s] :
         {std::pair("softmax", speed.softmax_bytes_per_s),
          std::pair("softmax_backward", speed.softmax_bytes_per_s),
          std::pair("layer_norm", speed.layer_norm_bytes_per_s),
          std::pair("layer_norm_backward", speed.layer_norm_bytes_per_s)}) {
        efficiencies.push_back({{"kernel", kernel},
                                {"kernel_set", "torch"},
                                {"gpus", gpus},
                                {"efficiency", rounded(bytes_per_s / speed.bytes_per_s)},
                                {"source", source}});
    }
    constexpr double kError = 0.14;  // as the H200's, which was measured in the same way
    rows_without(document, "accuracy", source)
        .push_back({{"gpus", gpus}, {"basis", "own"}, {"error", kError}, {"source", source}});
    rows_without(document, "launch", source)
        .push_back(
            {{"gpus", gpus}, {"ns", rounded(std::max(1.0, speed.launch_ns))}, {"source", source}});
}

void put_gpu(ordered_json& document, ordered_json gpu) {
    ordered_json& gpus = document["gpus"];
    if (!gpus.is_array()) gpus = ordered_json::array();
    const std::string id = gpu["id"];
    for (ordered_json& old : gpus) {
        if (!old.is_object() || old.value("id", "") != id) continue;
        old = std::move(gpu);
        return;
    }
    gpus.push_back(std::move(gpu));
}

/// Whether the user wrote a GPU with this id by hand.
bool is_written_by_hand(const std::vector<Gpu>& known, std::string_view id) {
    return std::ranges::any_of(known,
                               [&](const Gpu& gpu) { return gpu.id == id && !is_measured(gpu); });
}

}  // namespace

models::Result<UserCalibration> calibrate(const DeviceSpeed& speed, const std::vector<Gpu>& known,
                                          const UserFiles& files, std::string_view date) {
    auto gpus = parse_object(files.gpus, "gpus.json");
    if (!gpus) return tl::unexpected(gpus.error());
    auto calibration = parse_object(files.calibration, "calibration.json");
    if (!calibration) return tl::unexpected(calibration.error());

    const Gpu* const gpu = find_gpu_row(known, speed);
    UserCalibration result{.gpu = gpu != nullptr ? gpu->id : id_of(speed),
                           .is_new_gpu = gpu == nullptr || is_measured(*gpu),
                           .files = files};
    if (result.is_new_gpu && is_written_by_hand(known, result.gpu)) {
        return models::fail(
            "'{0}' would be the name of this device, and a GPU of your gpus.json has it: give that "
            "GPU another id.",
            result.gpu);
    }
    const std::string source = "measured_" + result.gpu;
    const std::string words =
        fmt::format("{}, measured here on {} {}", speed.device_name, date, kCommand);
    if (result.is_new_gpu) {
        (*gpus)["sources"][source] = words;
        put_gpu(*gpus, gpu_row(speed, result.gpu, source));
        result.files.gpus = gpus->dump(2) + "\n";
    }
    (*calibration)["sources"][source] = words;
    add_calibration_rows(speed, result.gpu, source, *calibration);
    result.files.calibration = calibration->dump(2) + "\n";
    return result;
}

}  // namespace app
