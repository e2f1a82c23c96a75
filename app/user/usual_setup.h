#pragma once

#include "profiler/planner/data/software_environment.h"

#include <string>

namespace app {

/// The software environment of a prediction where the user names none: that of the torch which the
/// worker runs. For a torch that is newer than all environments it is the one of the newest.
std::string usual_setup();

/// "2.15": the torch with which a worker must run the steps of an environment. Empty: the usual
/// worker runs them.
std::string torch_for(const profiler::SoftwareEnvironment& environment);

}  // namespace app
