#include "profiler/virtual_gpu/work.h"

#include <functional>
#include <mutex>
#include <set>
#include <string>

namespace profiler::virtual_gpu {

const char* intern(std::string_view name) {
    static std::mutex mutex;
    static auto* const names = new std::set<std::string, std::less<>>;
    const std::lock_guard lock(mutex);
    const auto found = names->find(name);
    return (found != names->end() ? *found : *names->emplace(name).first).c_str();
}

}  // namespace profiler::virtual_gpu
