#pragma once

#include "models/config/result.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>

/// A file that is written piece by piece. It gets its name when it is complete, so that a file of
/// that name is whole or is what was there before.
namespace profiler {

class OutputFile {
public:
    /// A name that ends in ".gz" packs the bytes with gzip. A device or a pipe is written directly.
    /// Errors: as write_file (trace/write_file.h).
    static models::Result<OutputFile> create(const std::filesystem::path& path);
    OutputFile(OutputFile&&) noexcept;
    OutputFile& operator=(OutputFile&&) noexcept;
    ~OutputFile();  // without finish, nothing stays

    /// Appends bytes. After an error, such as a full disk, it does nothing, and finish reports it.
    void write(std::string_view bytes);
    bool has_failed() const;
    int64_t size_bytes() const;  // written so far, before packing

    /// Writes what is left and gives the file its name. Errors: as write_file.
    models::Result<void> finish();

private:
    struct Impl;
    explicit OutputFile(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace profiler
