#include "profiler/trace/snapshot.h"

#include <cstdlib>
#include <system_error>

namespace profiler::sqlite {
namespace fs = std::filesystem;
namespace {

int64_t size_of(const fs::path& path) {
    std::error_code error;
    const auto size = fs::file_size(path, error);
    return error ? 0 : static_cast<int64_t>(size);
}

fs::path make_private_folder() {
    std::string name = (fs::temp_directory_path() / "temposcope-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) {
        throw fs::filesystem_error("cannot make a folder", name,
                                   std::error_code(errno, std::generic_category()));
    }
    return name;
}

}  // namespace

fs::path side_file(const fs::path& path, const char* suffix) {
    return path.string() + suffix;
}

Snapshot::Snapshot(const fs::path& path) {
    const fs::path log = side_file(path, "-wal");
    size_bytes_ = size_of(path) + size_of(log);
    if (size_of(log) == 0) {
        uri_ = file_uri(path.string(), "immutable=1");
        database_ = std::make_unique<Database>(connect());
        return;
    }
    // readonly_shm keeps SQLite from writing the index of the log, which is shared with the writer.
    // A writer that is just opening or closing can leave nothing to attach to: then copy as well.
    if (fs::exists(side_file(path, "-shm")) &&
        try_open(file_uri(path.string(), "readonly_shm=1"))) {
        return;
    }
    copy_ = make_private_folder();
    fs::copy_file(path, copy_ / "trace");
    fs::copy_file(log, copy_ / "trace-wal");
    uri_ = file_uri((copy_ / "trace").string(), "cache=private");
    database_ = std::make_unique<Database>(connect());
}

Snapshot::~Snapshot() {
    database_.reset();
    std::error_code ignored;
    if (!copy_.empty()) fs::remove_all(copy_, ignored);
}

bool Snapshot::try_open(const std::string& uri) {
    uri_ = uri;
    try {
        database_ = std::make_unique<Database>(connect());
        database_->integer("PRAGMA user_version");  // the first read attaches to the log
        return true;
    } catch (const Error& error) {
        database_.reset();
        const int code = error.primary_code();
        if (code == SQLITE_READONLY || code == SQLITE_CANTOPEN || error.busy()) return false;
        throw;
    }
}

}  // namespace profiler::sqlite
