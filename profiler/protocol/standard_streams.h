#pragma once

namespace profiler {

/// Opens /dev/null in place of a standard stream that is closed (`2>&-`). Otherwise the next file
/// or socket gets its number, and messages are written into it. /dev/null is opened for reading
/// only, so writing to the stream still fails. Call it first in `main`.
void open_missing_standard_streams();

}  // namespace profiler
