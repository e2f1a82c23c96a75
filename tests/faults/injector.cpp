// Preloaded into a program, this library makes one call of a kind fail: the k-th that the program's
// own code makes after `main` began, and in one program only.
//
//   TEMPOSCOPE_FAULT=KIND:K      KIND: alloc, write, open, mmap, fork, thread, rename, sync
//   TEMPOSCOPE_FAULT_IN=NAME     the name of the program's file, such as temposcope-worker
//   TEMPOSCOPE_FAULT_LOG=FILE    gets one byte when the call has failed

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <string_view>

namespace {

enum class Kind { kNone, kAlloc, kWrite, kOpen, kMmap, kFork, kThread, kRename, kSync };

// Set before `main`, read by every thread. Nothing here may allocate.
Kind g_kind = Kind::kNone;
std::atomic<long> g_calls_left = 0;
const char* g_log = nullptr;

Kind kind_of(std::string_view name) {
    if (name == "alloc") return Kind::kAlloc;
    if (name == "write") return Kind::kWrite;
    if (name == "open") return Kind::kOpen;
    if (name == "mmap") return Kind::kMmap;
    if (name == "fork") return Kind::kFork;
    if (name == "thread") return Kind::kThread;
    if (name == "rename") return Kind::kRename;
    if (name == "sync") return Kind::kSync;
    return Kind::kNone;
}

template <typename Function>
Function* next(const char* name) {
    return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

void log_fault() {
    static const auto open_next = next<int(const char*, int, ...)>("open");
    static const auto write_next = next<ssize_t(int, const void*, size_t)>("write");
    const int file = open_next(g_log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (file < 0) return;
    [[maybe_unused]] const ssize_t written = write_next(file, "x", 1);
    close(file);
}

/// Whether this call shall fail.
bool fails(Kind kind, int error_number) {
    if (kind != g_kind || g_calls_left.fetch_sub(1) != 1) return false;
    if (g_log != nullptr) log_fault();
    errno = error_number;
    return true;
}

void begin(const char* program) {
    const char* fault = std::getenv("TEMPOSCOPE_FAULT");
    const char* wanted = std::getenv("TEMPOSCOPE_FAULT_IN");
    if (fault == nullptr || wanted == nullptr) return;
    const char* slash = std::strrchr(program, '/');
    if (std::string_view(slash == nullptr ? program : slash + 1) != wanted) return;
    const std::string_view text = fault;
    const size_t colon = text.find(':');
    if (colon == std::string_view::npos) return;
    g_log = std::getenv("TEMPOSCOPE_FAULT_LOG");
    g_calls_left = std::strtol(fault + colon + 1, nullptr, 10);
    g_kind = kind_of(text.substr(0, colon));
}

using Main = int(int, char**, char**);
Main* g_main = nullptr;

int main_with_faults(int argc, char** argv, char** environment) {
    begin(argv[0]);
    return g_main(argc, argv, environment);
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

ssize_t write(int file, const void* bytes, size_t size) {
    static const auto call = next<ssize_t(int, const void*, size_t)>("write");
    return fails(Kind::kWrite, ENOSPC) ? -1 : call(file, bytes, size);
}
ssize_t pwrite(int file, const void* bytes, size_t size, off_t at) {
    static const auto call = next<ssize_t(int, const void*, size_t, off_t)>("pwrite");
    return fails(Kind::kWrite, ENOSPC) ? -1 : call(file, bytes, size, at);
}
ssize_t pwrite64(int file, const void* bytes, size_t size, off64_t at) {
    static const auto call = next<ssize_t(int, const void*, size_t, off64_t)>("pwrite64");
    return fails(Kind::kWrite, ENOSPC) ? -1 : call(file, bytes, size, at);
}
ssize_t writev(int file, const iovec* parts, int count) {
    static const auto call = next<ssize_t(int, const iovec*, int)>("writev");
    return fails(Kind::kWrite, ENOSPC) ? -1 : call(file, parts, count);
}

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

FILE* fopen(const char* path, const char* mode) {
    static const auto call = next<FILE*(const char*, const char*)>("fopen");
    return fails(Kind::kOpen, EMFILE) ? nullptr : call(path, mode);
}
FILE* fopen64(const char* path, const char* mode) {
    static const auto call = next<FILE*(const char*, const char*)>("fopen64");
    return fails(Kind::kOpen, EMFILE) ? nullptr : call(path, mode);
}

void* mmap(void* at, size_t size, int protection, int flags, int file, off_t offset) {
    static const auto call = next<void*(void*, size_t, int, int, int, off_t)>("mmap");
    return fails(Kind::kMmap, ENOMEM) ? MAP_FAILED
                                      : call(at, size, protection, flags, file, offset);
}
void* mmap64(void* at, size_t size, int protection, int flags, int file, off64_t offset) {
    static const auto call = next<void*(void*, size_t, int, int, int, off64_t)>("mmap64");
    return fails(Kind::kMmap, ENOMEM) ? MAP_FAILED
                                      : call(at, size, protection, flags, file, offset);
}

pid_t fork() {
    static const auto call = next<pid_t()>("fork");
    return fails(Kind::kFork, EAGAIN) ? -1 : call();
}
int posix_spawn(pid_t* child, const char* path, const posix_spawn_file_actions_t* actions,
                const posix_spawnattr_t* attributes, char* const arguments[],
                char* const environment[]) {
    static const auto call = next<decltype(posix_spawn)>("posix_spawn");
    return fails(Kind::kFork, EAGAIN)
               ? EAGAIN
               : call(child, path, actions, attributes, arguments, environment);
}
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                   void* argument) {
    static const auto call = next<decltype(pthread_create)>("pthread_create");
    return fails(Kind::kThread, EAGAIN) ? EAGAIN : call(thread, attributes, run, argument);
}

int rename(const char* from, const char* to) {
    static const auto call = next<int(const char*, const char*)>("rename");
    return fails(Kind::kRename, EIO) ? -1 : call(from, to);
}
int fsync(int file) {
    static const auto call = next<int(int)>("fsync");
    return fails(Kind::kSync, EIO) ? -1 : call(file);
}
int fdatasync(int file) {
    static const auto call = next<int(int)>("fdatasync");
    return fails(Kind::kSync, EIO) ? -1 : call(file);
}

}  // extern "C"
