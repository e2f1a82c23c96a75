#include "profiler/protocol/process_environment.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace profiler {

std::string before_own(const char* variable, const std::string& value) {
    const char* const own = std::getenv(variable);
    return own == nullptr || *own == '\0' ? value : value + ":" + own;
}

std::vector<char*> with_own_environment(const std::vector<std::string>& added) {
    std::vector<char*> variables;
    for (const std::string& variable : added) {
        if (variable.find('=') == std::string::npos) continue;
        variables.push_back(const_cast<char*>(variable.c_str()));
    }
    for (char** own = environ; *own != nullptr; ++own) {
        const std::string_view name =
            std::string_view(*own).substr(0, std::string_view(*own).find('='));
        const bool is_replaced = std::ranges::any_of(added, [&](const auto& variable) {
            return std::string_view(variable).substr(0, variable.find('=')) == name;
        });
        if (!is_replaced) variables.push_back(*own);
    }
    variables.push_back(nullptr);
    return variables;
}

void open_missing_standard_streams() {
    // `open` gives the lowest number that is free.
    int descriptor = ::open("/dev/null", O_RDONLY);
    while (descriptor >= 0 && descriptor <= STDERR_FILENO) {
        descriptor = ::open("/dev/null", O_RDONLY);
    }
    if (descriptor >= 0) ::close(descriptor);
}

}  // namespace profiler
