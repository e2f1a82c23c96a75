#include "profiler/protocol/virtual_gpu_process.h"

#include "models/config/compute_capability.h"
#include "profiler/protocol/process_environment.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <system_error>
#include <utility>

namespace profiler {
namespace {

namespace fs = std::filesystem;

nlohmann::json to_json(const VirtualCard& card) {
    const models::SmLimits limits = models::sm_limits(card.capability);
    nlohmann::json json{{"name", card.name},
                        {"compute_capability", models::to_text(card.capability)},
                        {"total_bytes", card.total_bytes},
                        {"context_bytes", card.context_bytes},
                        {"sm_count", card.sm_count},
                        {"l2_bytes", card.l2_bytes},
                        {"nccl_bytes", card.nccl_bytes},
                        {"threads_per_sm", limits.threads},
                        {"blocks_per_sm", limits.blocks},
                        {"shared_bytes_per_sm", limits.shared_bytes},
                        {"shared_bytes_per_block", limits.shared_bytes_per_block}};
    for (const auto& [key, value] : {std::pair("clock_khz", card.clock_khz),
                                     std::pair("memory_clock_khz", card.memory_clock_khz),
                                     std::pair("memory_bus_bits", card.memory_bus_bits)}) {
        if (value > 0) json[key] = value;
    }
    return json;
}

/// All libraries of the folder, separated by colons.
models::Result<std::string> libraries_in(const fs::path& folder) {
    std::vector<std::string> libraries;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
        libraries.push_back(entry->path().string());
    }
    if (error || libraries.empty()) {
        return models::fail("The simulated GPU is missing in {}: run scripts/build again.",
                            folder.string());
    }
    std::ranges::sort(libraries);
    std::string all;
    for (const std::string& library : libraries) all += (all.empty() ? "" : ":") + library;
    return all;
}

}  // namespace

models::Result<std::vector<std::string>> virtual_gpu_environment(
    const fs::path& folder, const std::vector<VirtualCard>& cards) {
    if (folder.string().find_first_of(" :") != std::string::npos) {
        return models::fail(
            "The simulated GPU cannot be loaded from {}, because the path has a space or a colon: "
            "move the folder.",
            folder.string());
    }
    const auto libraries = libraries_in(folder);
    if (!libraries) return tl::unexpected(libraries.error());
    nlohmann::json devices = nlohmann::json::array();
    for (const VirtualCard& card : cards) devices.push_back(to_json(card));
    return std::vector<std::string>{
        "LD_PRELOAD=" + before_own("LD_PRELOAD", *libraries),
        // For libraries that are opened by name. What is in the last folder stands in for those
        // that neither LD_LIBRARY_PATH nor the RPATH of who asks names.
        "LD_LIBRARY_PATH=" + before_own("LD_LIBRARY_PATH", folder.string()) + ":" +
            folder.string() + "_fallback",
        std::string(kVirtualGpuVariable) + "=" + nlohmann::json{{"devices", devices}}.dump(),
        // From 2.15 on, torch has a second process group for NCCL. The simulated one serves the
        // first, which torch still has.
        "TORCH_DIST_USE_NCCL2=0"};
}

fs::path virtual_gpu_folder() {
    const char* const folder = std::getenv("TEMPOSCOPE_VIRTUAL_GPU_FOLDER");
    if (folder != nullptr && *folder != '\0') return folder;
    std::error_code error;
    return fs::read_symlink("/proc/self/exe", error).parent_path() / "virtual_gpu";
}

}  // namespace profiler
