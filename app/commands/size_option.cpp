#include "app/commands/size_option.h"

#include "profiler/trace/units.h"

namespace app {

models::Result<int64_t> parse_size(std::string_view option, std::string_view text) {
    const auto bytes = profiler::parse_bytes(text);
    if (bytes && *bytes == 0) return models::fail("{} is 0: give a size, such as 14GiB.", option);
    return bytes;
}

}  // namespace app
