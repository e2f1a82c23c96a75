#pragma once

#include "models/config/result.h"

#include <exception>
#include <new>
#include <string_view>

/// What a thread of ours throws would end the program and every open trace with it.
namespace app {

/// The job's Result; an exception becomes one sentence about `what` ("Drawing the timeline").
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
