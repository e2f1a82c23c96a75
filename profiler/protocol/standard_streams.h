#pragma once

namespace profiler {

/// Opens /dev/null in place of a standard stream that is closed (`2>&-`). Otherwise the next file
/// or socket gets its number, and messages are written into it. It is open for reading, so what is
/// written to the stream fails as it would without it. Call it first in `main`.
void open_missing_standard_streams();

}  // namespace profiler
