#pragma once

#include <string>
#include <string_view>

/// Names come from files that nobody checked. What people read is written through one of these
/// functions, so that a name stays a text: on a terminal, in a spreadsheet and in printed JSON.
namespace profiler {

/// One line without what acts on a terminal or hides: control characters, marks that turn the
/// direction of writing, line ends, characters that nobody sees, and bytes that are not UTF-8
/// become "\\x1b", "\\u202e" or "\\U000e0041".
std::string printable(std::string_view text);

/// The same as a cell of a spreadsheet: a text that would be read as a formula gets an apostrophe
/// in front. Numbers stay numbers.
std::string spreadsheet_cell(std::string_view text);

/// The same as a cell of a CSV line (RFC 4180): quoted where it has to be.
std::string csv_cell(std::string_view text);

/// A JSON document in UTF-8. What acts on a terminal or hides becomes "\\u202e", which means the
/// same there; only the line ends between the values stay.
std::string printable_json(std::string_view document);

}  // namespace profiler
