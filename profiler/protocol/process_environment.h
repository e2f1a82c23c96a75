#pragma once

#include <string>
#include <vector>

/// What a process finds when it starts: its environment and its standard streams.
namespace profiler {

/// The environment of a process that this one starts, as exec takes it: `added` ("NAME=value")
/// before this program's variables of other names. A name without a value removes the variable.
/// Points into `added` and into this program's environment; ends with null.
std::vector<char*> with_own_environment(const std::vector<std::string>& added);

/// The value of a variable that holds a list: `value`, then what it holds in this process.
std::string before_own(const char* variable, const std::string& value);

//

/// Opens /dev/null in place of a standard stream that is closed (`2>&-`). Otherwise the next file
/// or socket gets its number, and messages are written into it. /dev/null is opened for reading
/// only, so writing to the stream still fails. Call it first in `main`.
void open_missing_standard_streams();

}  // namespace profiler
