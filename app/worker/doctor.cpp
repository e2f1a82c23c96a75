#include "app/worker/doctor.h"

#include <ATen/Parallel.h>
#include <torch/version.h>

#include <dlfcn.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <string>

namespace app {
namespace {

nlohmann::json found(const char* name, const std::string& detail) {
    return {{"name", name}, {"status", "ok"}, {"detail", detail}, {"remedy", ""}};
}

nlohmann::json missing(const char* name, const std::string& detail, const std::string& remedy) {
    return {{"name", name}, {"status", "missing"}, {"detail", detail}, {"remedy", remedy}};
}

nlohmann::json describe_driver() {
    std::ifstream file("/proc/driver/nvidia/version");
    std::string line;
    if (std::getline(file, line)) return found("driver", line);
    return missing("driver", "no NVIDIA driver is loaded",
                   "Nothing to do for captures on the CPU; measuring on a GPU needs it.");
}

/// The copy that libtorch brought into this process, if any: a second one would not see its GPU.
nlohmann::json describe_cupti() {
    constexpr const char* kLibrary = "libcupti.so.13";
    if (void* library = dlopen(kLibrary, RTLD_LAZY | RTLD_NOLOAD); library != nullptr) {
        dlclose(library);
        return found("cupti", kLibrary);
    }
    return missing("cupti", "libtorch brought no CUPTI with it",
                   "Nothing to do for captures on the CPU; scripts/setup installs it.");
}

}  // namespace

nlohmann::json describe_machine() {
    const std::string torch = fmt::format("{}, {} threads", TORCH_VERSION, at::get_num_threads());
    return {{"checks", {found("torch", torch), describe_driver(), describe_cupti()}}};
}

}  // namespace app
