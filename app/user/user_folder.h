#pragma once

#include <filesystem>

namespace app {

/// The program's folder for a purpose, as the XDG base directory specification has it:
/// `$VARIABLE/temposcope`, or `BELOW_HOME/temposcope` in the home folder. Empty where neither is
/// set: a folder that all users share could be another user's.
std::filesystem::path user_folder(const char* variable, const char* below_home);

}  // namespace app
