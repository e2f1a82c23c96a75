// Preloaded into a program, this library makes calls of a kind fail: the k-th that the program's
// own code makes after `main` began, or all from the k-th on, and in one program only.
//
//   TEMPOSCOPE_FAULT=KIND:K      KIND: alloc, read, write, open, mmap, fork, thread, rename, sync,
//                                socket, folder; K+ for all calls from the K-th on
//   TEMPOSCOPE_FAULT_IN=NAME     the name of the program's file, such as temposcope-worker
//   TEMPOSCOPE_FAULT_LOG=FILE    gets "x" when the first call has failed, and "d" for each
//                                descriptor that is open when `main` has returned

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string_view>

namespace {

enum class Kind {
    kNone,
    kAlloc,
    kRead,
    kWrite,
    kOpen,
    kMmap,
    kFork,
    kThread,
    kRename,
    kSync,
    kSocket,
    kFolder
};

// Set before `main`, read by every thread. Nothing here may allocate.
Kind g_kind = Kind::kNone;
std::atomic<long> g_calls_left = 0;
bool g_fails_on = false;  // each call after the k-th, too
const char* g_log = nullptr;

/// In the order of `Kind`.
constexpr std::string_view kKindNames[] = {"none", "alloc",  "read",   "write", "open",   "mmap",
                                           "fork", "thread", "rename", "sync",  "socket", "folder"};

Kind kind_of(std::string_view name) {
    const auto* const found = std::find(std::begin(kKindNames), std::end(kKindNames), name);
    return found == std::end(kKindNames) ? Kind::kNone
                                         : static_cast<Kind>(found - std::begin(kKindNames));
}

template <typename Function>
Function* next(const char* name) {
    return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

void log(const char* letter) {
    static const auto open_next = next<int(const char*, int, ...)>("open");
    static const auto write_next = next<ssize_t(int, const void*, size_t)>("write");
    const int file = open_next(g_log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (file < 0) return;
    [[maybe_unused]] const ssize_t written = write_next(file, letter, 1);
    close(file);
}

/// Whether this call shall fail.
bool fails(Kind kind, int error_number) {
    if (kind != g_kind) return false;
    const long calls_left = g_calls_left.fetch_sub(1);
    if (calls_left > 1 || (calls_left < 1 && !g_fails_on)) return false;
    if (calls_left == 1) log("x");
    errno = error_number;
    return true;
}

void begin(const char* program) {
    const char* fault = std::getenv("TEMPOSCOPE_FAULT");
    const char* wanted = std::getenv("TEMPOSCOPE_FAULT_IN");
    g_log = std::getenv("TEMPOSCOPE_FAULT_LOG");
    if (fault == nullptr || wanted == nullptr || g_log == nullptr) return;
    const char* slash = std::strrchr(program, '/');
    if (std::string_view(slash == nullptr ? program : slash + 1) != wanted) return;
    const std::string_view text = fault;
    const size_t colon = text.find(':');
    if (colon == std::string_view::npos) return;
    g_calls_left = std::strtol(fault + colon + 1, nullptr, 10);
    g_fails_on = text.ends_with('+');
    g_kind = kind_of(text.substr(0, colon));
}

using Main = int(int, char**, char**);
Main* g_main = nullptr;

void log_open_descriptors() {
    constexpr int kMost = 1024;
    for (int file = STDERR_FILENO + 1; file < kMost; ++file) {
        if (fcntl(file, F_GETFD) != -1) log("d");
    }
}

int main_with_faults(int argc, char** argv, char** environment) {
    begin(argv[0]);
    const int code = g_main(argc, argv, environment);
    const bool was_chosen = g_kind != Kind::kNone;
    g_kind = Kind::kNone;
    if (was_chosen) log_open_descriptors();
    return code;
}

}  // namespace

extern "C" {

int __libc_start_main(Main* main, int argc, char** argv, void (*init)(), void (*fini)(),
                      void (*rtld_fini)(), void* stack_end) {
    g_main = main;
    return next<int(Main*, int, char**, void (*)(), void (*)(), void (*)(), void*)>(
        "__libc_start_main")(main_with_faults, argc, argv, init, fini, rtld_fini, stack_end);
}

// glibc's own names for its allocator: `dlsym` allocates, so it cannot find them.
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

/// A function of this name and these parameters that fails if it is its turn, and else calls the
/// next one of its name.
#define INTERCEPT(kind, error, failed, type, name, parameters, arguments) \
    type name parameters {                                                \
        static const auto call = next<type parameters>(#name);            \
        return fails(Kind::kind, error) ? failed : call arguments;        \
    }

void* malloc(size_t size) { return fails(Kind::kAlloc, ENOMEM) ? nullptr : __libc_malloc(size); }
void* calloc(size_t count, size_t size) {
    return fails(Kind::kAlloc, ENOMEM) ? nullptr : __libc_calloc(count, size);
}
void* realloc(void* old, size_t size) {
    return fails(Kind::kAlloc, ENOMEM) ? nullptr : __libc_realloc(old, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
    return fails(Kind::kAlloc, ENOMEM) ? nullptr : __libc_memalign(alignment, size);
}
int posix_memalign(void** result, size_t alignment, size_t size) {
    if (fails(Kind::kAlloc, ENOMEM)) return ENOMEM;
    *result = __libc_memalign(alignment, size);
    return *result == nullptr ? ENOMEM : 0;
}

INTERCEPT(kRead, EIO, -1, ssize_t, read, (int file, void* bytes, size_t size), (file, bytes, size))
INTERCEPT(kRead, EIO, -1, ssize_t, pread, (int file, void* bytes, size_t size, off_t at),
          (file, bytes, size, at))
INTERCEPT(kRead, EIO, -1, ssize_t, pread64, (int file, void* bytes, size_t size, off64_t at),
          (file, bytes, size, at))
INTERCEPT(kRead, EIO, 0, size_t, fread, (void* bytes, size_t size, size_t count, FILE* file),
          (bytes, size, count, file))

INTERCEPT(kWrite, ENOSPC, -1, ssize_t, write, (int file, const void* bytes, size_t size),
          (file, bytes, size))
INTERCEPT(kWrite, ENOSPC, -1, ssize_t, pwrite, (int file, const void* bytes, size_t size, off_t at),
          (file, bytes, size, at))
INTERCEPT(kWrite, ENOSPC, -1, ssize_t, pwrite64,
          (int file, const void* bytes, size_t size, off64_t at), (file, bytes, size, at))
INTERCEPT(kWrite, ENOSPC, -1, ssize_t, writev, (int file, const iovec* parts, int count),
          (file, parts, count))
INTERCEPT(kWrite, ENOSPC, -1, int, ftruncate, (int file, off_t size), (file, size))
INTERCEPT(kWrite, ENOSPC, -1, int, ftruncate64, (int file, off64_t size), (file, size))

#define TEMPOSCOPE_OPEN(name)                                                  \
    int name(const char* path, int flags, ...) {                               \
        static const auto call = next<int(const char*, int, ...)>(#name);      \
        va_list more;                                                          \
        va_start(more, flags);                                                 \
        const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0; \
        va_end(more);                                                          \
        return fails(Kind::kOpen, EMFILE) ? -1 : call(path, flags, mode);      \
    }
TEMPOSCOPE_OPEN(open)
TEMPOSCOPE_OPEN(open64)
#undef TEMPOSCOPE_OPEN

INTERCEPT(kOpen, EMFILE, nullptr, FILE*, fopen, (const char* path, const char* mode), (path, mode))
INTERCEPT(kOpen, EMFILE, nullptr, FILE*, fopen64, (const char* path, const char* mode),
          (path, mode))

INTERCEPT(kMmap, ENOMEM, MAP_FAILED, void*, mmap,
          (void* at, size_t size, int protection, int flags, int file, off_t offset),
          (at, size, protection, flags, file, offset))
INTERCEPT(kMmap, ENOMEM, MAP_FAILED, void*, mmap64,
          (void* at, size_t size, int protection, int flags, int file, off64_t offset),
          (at, size, protection, flags, file, offset))

INTERCEPT(kFork, EAGAIN, -1, pid_t, fork, (), ())
INTERCEPT(kFork, EAGAIN, EAGAIN, int, posix_spawn,
          (pid_t * child, const char* path, const posix_spawn_file_actions_t* actions,
           const posix_spawnattr_t* attributes, char* const arguments[], char* const environment[]),
          (child, path, actions, attributes, arguments, environment))
INTERCEPT(kFork, EAGAIN, EAGAIN, int, posix_spawnp,
          (pid_t * child, const char* file, const posix_spawn_file_actions_t* actions,
           const posix_spawnattr_t* attributes, char* const arguments[], char* const environment[]),
          (child, file, actions, attributes, arguments, environment))
INTERCEPT(kThread, EAGAIN, EAGAIN, int, pthread_create,
          (pthread_t * thread, const pthread_attr_t* attributes, void* (*run)(void*),
           void* argument),
          (thread, attributes, run, argument))

INTERCEPT(kSocket, EMFILE, -1, int, socketpair, (int domain, int type, int protocol, int ends[2]),
          (domain, type, protocol, ends))
INTERCEPT(kSocket, EMFILE, -1, int, pipe2, (int ends[2], int flags), (ends, flags))
INTERCEPT(kFolder, ENOSPC, -1, int, mkdir, (const char* path, mode_t mode), (path, mode))
INTERCEPT(kFolder, ENOSPC, nullptr, char*, mkdtemp, (char* name), (name))

INTERCEPT(kRename, EIO, -1, int, rename, (const char* from, const char* to), (from, to))
INTERCEPT(kSync, EIO, -1, int, fsync, (int file), (file))
INTERCEPT(kSync, EIO, -1, int, fdatasync, (int file), (file))
#undef INTERCEPT

}  // extern "C"
