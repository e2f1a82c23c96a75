#include "profiler/virtual_gpu/torch_install.h"

#include <cuda_runtime_api.h>
#include <cudnn_version.h>
#include <nccl.h>

#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace profiler::virtual_gpu {
namespace {

namespace fs = std::filesystem;

TorchInstall of_the_headers() {
    return {.cuda = CUDART_VERSION,
            .cudnn = CUDNN_VERSION,
            .nccl = NCCL_VERSION_CODE,
            .capabilities = {75, 80, 86, 90, 100, 120}};
}

/// The folder `torch`; empty: none is loaded.
std::string find_torch() {
    std::string folder;
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* found) {
            constexpr std::string_view kEnd = "/lib/libc10_cuda.so";
            const std::string_view path = info->dlpi_name;
            if (!path.ends_with(kEnd)) return 0;
            static_cast<std::string*>(found)->assign(path.substr(0, path.size() - kEnd.size()));
            return 1;
        },
        &folder);
    return folder;
}

std::string text_of(const fs::path& file) {
    std::ifstream stream(file);
    return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

using Version = std::array<int, 3>;

/// The first version behind the first `name` that has one in its line:
/// "nvidia-cudnn-cu13==9.19.0.56; ..." -> 9, 19, 0, and "cuda: Optional[str] = '13.0'" -> 13, 0, 0.
std::optional<Version> version_behind(std::string_view text, std::string_view name) {
    for (std::size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1)) {
        std::string line(text.substr(at, text.find('\n', at + name.size()) - at));
        line.erase(0, std::min(line.size(), line.find('=')));
        line.erase(0, std::min(line.size(), line.find_first_of("0123456789")));
        if (line.empty()) continue;
        Version version{};
        const char* digits = line.c_str();
        for (int& part : version) {
            char* end = nullptr;
            part = static_cast<int>(std::strtol(digits, &end, 10));
            if (*end != '.' || std::isdigit(static_cast<unsigned char>(end[1])) == 0) break;
            digits = end + 1;
        }
        return version;
    }
    return std::nullopt;
}

/// Calls use(text) with the bytes of a file, which may be large.
template <typename Use>
void read_mapped(const fs::path& path, const Use& use) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    struct stat status {};
    const bool has_bytes = fstat(file, &status) == 0 && status.st_size > 0;
    const auto size = static_cast<std::size_t>(status.st_size);
    void* const bytes =
        has_bytes ? mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0) : MAP_FAILED;
    close(file);
    if (bytes == MAP_FAILED) return;
    use(std::string_view(static_cast<const char*>(bytes), size));
    munmap(bytes, size);
}

/// libtorch_python of every version has torch.cuda.get_arch_list(): "sm_75 sm_80 sm_90".
std::vector<int> capabilities_in(std::string_view library) {
    constexpr std::size_t kLongest = 200;
    for (std::size_t at = library.find("sm_"); at != library.npos;
         at = library.find("sm_", at + 1)) {
        std::string list(library.substr(at, kLongest));
        list = list.c_str();  // up to its end
        if (list.find(" sm_") == list.npos) continue;
        std::vector<int> all;
        for (std::size_t next = 0; next != list.npos; next = list.find("sm_", next + 1)) {
            all.push_back(std::atoi(list.c_str() + next + 3));
        }
        std::ranges::sort(all);
        all.erase(std::ranges::unique(all).begin(), all.end());
        return all;
    }
    return {};
}

/// The requirements of torch's package; empty for one that no pip installed.
std::string requirements_beside(const fs::path& torch) {
    std::error_code error;
    for (fs::directory_iterator entry(torch.parent_path(), error), end; !error && entry != end;
         entry.increment(error)) {
        const std::string name = entry->path().filename().string();
        if (name.starts_with("torch-") && name.ends_with(".dist-info")) {
            return text_of(entry->path() / "METADATA");
        }
    }
    return {};
}

TorchInstall read_install(const fs::path& torch) {
    TorchInstall install = of_the_headers();
    if (const auto cuda = version_behind(text_of(torch / "version.py"), "\ncuda")) {
        install.cuda = (*cuda)[0] * 1000 + (*cuda)[1] * 10;
    }
    const std::string requirements = requirements_beside(torch);
    const auto number = [](const Version& v) { return v[0] * 10'000 + v[1] * 100 + v[2]; };
    if (const auto cudnn = version_behind(requirements, "nvidia-cudnn-cu")) {
        install.cudnn = number(*cudnn);
    }
    if (const auto nccl = version_behind(requirements, "nvidia-nccl-cu")) {
        install.nccl = number(*nccl);
    }
    read_mapped(torch / "lib" / "libtorch_python.so", [&](std::string_view library) {
        auto capabilities = capabilities_in(library);
        if (!capabilities.empty()) install.capabilities = std::move(capabilities);
    });
    return install;
}

}  // namespace

const TorchInstall& torch_install() {
    static const TorchInstall unknown = of_the_headers();
    static std::atomic<const TorchInstall*> known = nullptr;
    if (const TorchInstall* const install = known) return *install;
    const std::string torch = find_torch();
    if (torch.empty()) return unknown;
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    if (known == nullptr) known = new TorchInstall(read_install(torch));
    return *known;
}

}  // namespace profiler::virtual_gpu
