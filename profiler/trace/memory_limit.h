#pragma once

#include <cstdint>
#include <string>

/// Memory beside the limit that it had: a device's size, or a limit that emulates one.
namespace profiler {

/// "14.1 GiB of 16.0 GiB"; without a limit (not above 0) "14.1 GiB".
std::string text_of_limit(int64_t size_bytes, int64_t limit_bytes);

/// Whether a limit belongs into a picture of a peak: far above it, it would press the rest flat.
bool is_near_limit(int64_t peak_bytes, int64_t limit_bytes);

}  // namespace profiler
