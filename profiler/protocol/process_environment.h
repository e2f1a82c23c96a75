#pragma once

#include <string>
#include <vector>

namespace profiler {

/// The environment of a process that this one starts, as exec takes it: `added` ("NAME=value")
/// before this program's variables of other names. A name without a value removes the variable.
/// Points into `added` and into this program's environment; ends with null.
std::vector<char*> with_own_environment(const std::vector<std::string>& added);

/// The value of a variable that holds a list: `value`, then what it holds in this process.
std::string before_own(const char* variable, const std::string& value);

}  // namespace profiler
