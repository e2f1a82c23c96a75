#include "profiler/capture/cuda_source.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

namespace profiler {
namespace {

/// Why dlopen failed; the text begins with the name of the file.
std::string reason() {
    const char* const text = dlerror();
    return text != nullptr ? text : "unknown reason";
}

CudaCheck open(const char* name, const std::filesystem::path& file, int flags, void*& library) {
    library = dlopen(file.c_str(), flags);
    CudaCheck check{.name = name, .ok = library != nullptr, .detail = file.filename().string()};
    if (!check.ok) {
        check.detail = reason();
        check.remedy =
            fmt::format("Run scripts/setup and scripts/build again; until then {}.", kOnTheCpu);
    }
    return check;
}

CudaModule open_module(const std::filesystem::path& folder) {
    CudaModule module;
    void* library = nullptr;
    // libtorch_cuda is global: the modules after it need its symbols.
    const std::pair<const char*, std::filesystem::path> parts[] = {
        {"libtorch_cuda", "libtorch_cuda.so"},
        {"tempo_ops_cuda", folder / "libtempo_ops_cuda.so"},
        {"temposcope_cuda", folder / "libtemposcope_cuda.so"}};
    for (const auto& [name, file] : parts) {
        const bool is_ours = file.has_parent_path();
        module.checks.push_back(
            open(name, file, RTLD_NOW | (is_ours ? RTLD_LOCAL : RTLD_GLOBAL), library));
        if (!module.checks.back().ok) return module;
    }
    using MakeSource = CudaSource* (*)();
    const auto make_source =
        reinterpret_cast<MakeSource>(dlsym(library, "temposcope_make_cuda_source"));
    if (make_source != nullptr) module.source = make_source();
    return module;
}

}  // namespace

const CudaModule& open_cuda_module(const std::filesystem::path& folder) {
    static const CudaModule module = open_module(folder);
    return module;
}

std::string describe_problem(const std::vector<CudaCheck>& checks) {
    const auto failed = std::ranges::find(checks, false, &CudaCheck::ok);
    if (failed == checks.end()) return {};
    std::string remedy = failed->remedy;
    if (!remedy.empty()) remedy[0] = static_cast<char>(std::tolower(remedy[0]));
    return fmt::format("CUDA cannot be used here, because {}: {}", failed->detail, remedy);
}

}  // namespace profiler
