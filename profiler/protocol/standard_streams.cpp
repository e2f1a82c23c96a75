#include "profiler/protocol/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

namespace profiler {

void open_missing_standard_streams() {
    // `open` gives the lowest number that is free.
    int descriptor = ::open("/dev/null", O_RDONLY);
    while (descriptor >= 0 && descriptor <= STDERR_FILENO) {
        descriptor = ::open("/dev/null", O_RDONLY);
    }
    if (descriptor >= 0) ::close(descriptor);
}

}  // namespace profiler
