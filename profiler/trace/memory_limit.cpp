#include "profiler/trace/memory_limit.h"

#include "profiler/trace/units.h"

namespace profiler {

std::string text_of_limit(int64_t size_bytes, int64_t limit_bytes) {
    const std::string text = format_bytes(size_bytes);
    return limit_bytes > 0 ? text + " of " + format_bytes(limit_bytes) : text;
}

bool is_near_limit(int64_t peak_bytes, int64_t limit_bytes) {
    return limit_bytes > 0 && peak_bytes > limit_bytes / 2;
}

}  // namespace profiler
