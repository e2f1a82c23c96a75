#pragma once

#include "models/config/result.h"
#include "profiler/trace/trace.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

/// A file that is written piece by piece. It gets its name when it is complete, so a file of that
/// name is always whole: the new file or its predecessor. And JSON, written in pieces.
namespace profiler {

class OutputFile {
public:
    /// A name that ends in ".gz" packs the bytes with gzip. A device or a pipe is written directly.
    /// Errors: as write_file (trace/file/write_file.h).
    static models::Result<OutputFile> create(const std::filesystem::path& path);
    OutputFile(OutputFile&&) noexcept;
    OutputFile& operator=(OutputFile&&) noexcept;
    ~OutputFile();  // without finish, nothing stays

    /// Appends bytes. After an error, such as a full disk, it does nothing, and finish reports it.
    void write(std::string_view bytes);
    int64_t size_bytes() const;  // written so far, before packing

    /// Writes what is left and gives the file its name. Errors: as write_file.
    models::Result<void> finish();

private:
    struct Impl;
    explicit OutputFile(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

/// A text in quotes; control characters, quotes and backslashes are escaped, and what is not UTF-8
/// becomes "?".
std::string json_text(std::string_view text);

/// The texts of a trace as JSON, each made once, when it is first asked for.
class JsonTexts {
public:
    explicit JsonTexts(const Trace& trace) : trace_(trace), made_(trace.strings.size()) {}
    /// `""` for none.
    std::string_view operator[](StringId id);

private:
    const Trace& trace_;
    std::vector<std::string> made_;
};

/// The items of a list, written to a file, one a line.
class JsonList {
public:
    explicit JsonList(OutputFile& file) : file_(file) {}

    template <typename... T>
    void add(fmt::format_string<T...> format, const T&... values) {
        lines_ += is_first_ ? "\n" : ",\n";
        is_first_ = false;
        fmt::vformat_to(std::back_inserter(lines_), format, fmt::make_format_args(values...));
        if (lines_.size() > (std::size_t{1} << 16)) flush();
    }
    void flush() {
        file_.write(lines_);
        lines_.clear();
    }

private:
    OutputFile& file_;
    std::string lines_;
    bool is_first_ = true;
};

}  // namespace profiler
