#pragma once

#include <cstddef>
#include <string_view>

namespace profiler {

/// Code of a diagnostic: the categories of `count` blocks are inferred, not recorded.
inline constexpr std::string_view kInferredCategories = "inferred_categories";

/// Code of a diagnostic: kStartState of a device that is not the first, as "start_state of cuda:1".
/// The events of each device of a snapshot have numbers of their own.
inline constexpr std::string_view kStartStateOf = "start_state of ";

/// The most frames of one call stack that readers keep and writers write.
inline constexpr std::size_t kMostStackFrames = 256;

/// A snapshot names the user's metadata and the compiled graph of an allocation beside its frames.
/// Here they are the innermost frames: the function is the text, the file one of these. So they are
/// found and written as frames are, and stacks that differ in nothing else share all other rows.
inline constexpr std::string_view kUserMetadataFile = "<user_metadata>";
inline constexpr std::string_view kCompileContextFile = "<compile_context>";
constexpr bool is_mark_file(std::string_view file) {
    return file == kUserMetadataFile || file == kCompileContextFile;
}

}  // namespace profiler
