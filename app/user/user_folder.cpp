#include "app/user/user_folder.h"

#include <cstdlib>

namespace app {

std::filesystem::path user_folder(const char* variable, const char* below_home) {
    if (const char* named = std::getenv(variable); named && *named) {
        return std::filesystem::path(named) / "temposcope";
    }
    if (const char* home = std::getenv("HOME"); home && *home) {
        return std::filesystem::path(home) / below_home / "temposcope";
    }
    return {};
}

}  // namespace app
