#pragma once

#include "models/config/result.h"

#include <exception>
#include <new>
#include <string_view>

namespace app {

/// Runs a job on a background thread. An exception that left the thread would end the program and
/// lose every open trace; instead it becomes one sentence that begins with `what` ("Drawing the
/// timeline").
template <typename Job>
auto run_guarded(std::string_view what, const Job& job) -> decltype(job()) {
    try {
        return job();
    } catch (const std::bad_alloc&) {
        return models::fail("{} needs more memory than is free; close other traces and try again.",
                            what);
    } catch (const std::exception& error) {
        return models::fail("{} failed ({}), which is a mistake in temposcope; please report it.",
                            what, error.what());
    }
}

}  // namespace app
