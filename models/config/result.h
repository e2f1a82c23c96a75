#pragma once

#include <fmt/core.h>

#include <initializer_list>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

/// A value, or one sentence that says what went wrong, where, and what to do about it.
///
/// Use it for expected failures at an edge: a file, an option, a missing GPU. A broken invariant of
/// our own code throws instead.
namespace models {

struct Error {
    std::string message;  // complete, ends with a full stop, names the remedy
    /// The fields whose values the remedy changes, by their names in JSON: "seq_len". The message
    /// speaks of them in words ("the sequence length"); a command adds its options ("--seq"). Names
    /// are literals and outlive the error.
    std::vector<std::string_view> fields = {};
    bool out_of_memory = false;  // of this machine or of a GPU; commands have an exit code for it

    /// A smaller step would fit on the GPU. Otherwise this machine's memory ran out.
    bool gpu_out_of_memory() const { return out_of_memory && !fields.empty(); }
};

template <typename T>
using Result = tl::expected<T, Error>;

/// `return fail("'{}' is not a recipe: choose one of {}.", name, names);`
template <typename... Args>
tl::unexpected<Error> fail(fmt::format_string<Args...> text, Args&&... args) {
    return tl::unexpected(Error{fmt::format(text, std::forward<Args>(args)...)});
}

/// `fail` with the fields to change:
///     return fail_fields({"seq_len"}, "The sequence length {} is over the {} positions of {}: "
///                        "choose a shorter sequence.", w.seq_len, positions, m.name);
template <typename... Args>
tl::unexpected<Error> fail_fields(std::initializer_list<std::string_view> fields,
                                  fmt::format_string<Args...> text, Args&&... args) {
    return tl::unexpected(Error{fmt::format(text, std::forward<Args>(args)...), fields});
}

}  // namespace models
