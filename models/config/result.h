#pragma once

#include <fmt/core.h>

#include <string>
#include <tl/expected.hpp>
#include <utility>

/// A value, or one sentence that says what went wrong, where, and what to do about it.
///
/// For expected failures at an edge: a file, an option, a missing GPU. A broken invariant of our
/// own is not an expected failure; it throws.
namespace models {

struct Error {
    std::string message;  // complete, ends with a full stop, names the remedy
};

template <typename T>
using Result = tl::expected<T, Error>;

/// `return fail("{} is not a recipe; choose one of {}.", name, names);`
template <typename... Args>
tl::unexpected<Error> fail(fmt::format_string<Args...> text, Args&&... args) {
    return tl::unexpected(Error{fmt::format(text, std::forward<Args>(args)...)});
}

}  // namespace models
