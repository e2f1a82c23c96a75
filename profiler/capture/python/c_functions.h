#pragma once

#include <c10/util/Exception.h>
#include <nlohmann/json.hpp>

#include <exception>
#include <functional>
#include <string>

/// The recorder as plain C functions, for Python's ctypes: one library serves every Python. A
/// tensor is passed as `tensor._cdata`, which is the address of its TensorImpl. A function that may
/// fail returns 0, or 1 and leaves one sentence in temposcope_error().
/// app/python/temposcope/_recorder.py declares them for Python.
#define TEMPOSCOPE_EXPORT extern "C" __attribute__((visibility("default")))

namespace profiler {

/// What the last function that failed on this thread says.
inline std::string& last_error() {
    thread_local std::string error;
    return error;
}

inline int guarded(const std::function<void()>& body) try {
    body();
    return 0;
} catch (const c10::Error& error) {
    last_error() = error.what_without_backtrace();
    return 1;
} catch (const std::exception& error) {
    last_error() = error.what();
    return 1;
}

/// The JSON that `body` returns, as text that lives until the next call on this thread. Null: it
/// failed, as temposcope_error() says.
inline const char* guarded_text(const std::function<nlohmann::json()>& body) {
    thread_local std::string text;
    const int status = guarded([&] { text = body().dump(); });
    return status == 0 ? text.c_str() : nullptr;
}

}  // namespace profiler
