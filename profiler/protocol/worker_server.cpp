#include "profiler/protocol/worker_server.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <thread>

namespace profiler {
namespace {

constexpr int64_t kSampleIntervalNs = 1'000'000'000 / 30;

int64_t now_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

}  // namespace

WorkerServer::WorkerServer(int descriptor) : socket_(descriptor) {
    fcntl(descriptor, F_SETFD, FD_CLOEXEC);
    // When memory runs out, the kernel shall take the workload and not the user's session.
    std::ofstream("/proc/self/oom_score_adj") << 500;
}

bool WorkerServer::has_program(int descriptor) {
    struct stat status {};
    return fstat(descriptor, &status) == 0 && S_ISSOCK(status.st_mode);
}

int WorkerServer::serve(const Handler& handler) {
    socket_.send(to_header(Hello{kProtocolVersion, std::string(build_version())}, 0));
    std::thread reader([this] { read_messages(); });
    while (const auto job = next_job()) answer(*job, handler);
    reader.join();
    return 0;
}

std::optional<WorkerServer::Job> WorkerServer::next_job() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ended_ || !jobs_.empty(); });
    if (jobs_.empty()) return std::nullopt;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    current_id_ = job.id;
    cancelled_ = cancelled_id_ == job.id;
    return job;
}

void WorkerServer::answer(const Job& job, const Handler& handler) {
    WorkerOutcome outcome;
    try {
        outcome = handler(job.request);
    } catch (const std::exception& error) {
        outcome = tl::unexpected(ErrorFrame{error.what()});
    }
    // Idle before the answer is out: a program that leaves right after it must not end us by force.
    current_id_ = 0;
    if (outcome) {
        socket_.send(to_header(*outcome, job.id), outcome->payload);
    } else {
        socket_.send(to_header(outcome.error(), job.id));
    }
}

void WorkerServer::read_messages() {
    FrameDecoder decoder;
    while (socket_.receive(decoder, true) != FrameSocket::Received::kEnd) {
        for (;;) {
            const auto frame = decoder.next();
            const auto message = frame && *frame
                                     ? from_header((*frame)->header)
                                     : models::Result<AddressedMessage>(AddressedMessage{});
            if (!frame || !message) {
                const auto& error = frame ? message.error() : frame.error();
                std::fprintf(stderr, "temposcope-worker: %s\n", error.message.c_str());
                std::_Exit(1);
            }
            if (!*frame) break;
            if (std::holds_alternative<Cancel>(message->message)) {
                const std::lock_guard lock(mutex_);
                cancelled_id_ = message->id;  // perhaps of a request that has not begun
                if (message->id == current_id_) cancelled_ = true;
            } else if (const auto* request = std::get_if<Request>(&message->message)) {
                const std::lock_guard lock(mutex_);
                jobs_.push_back({message->id, *request});
                changed_.notify_one();
            }
        }
    }
    // Nobody waits for the result; what a capture has committed stays in its .partial.
    if (current_id_ != 0) std::_Exit(1);
    const std::lock_guard lock(mutex_);
    ended_ = true;
    jobs_.clear();
    changed_.notify_one();
}

void WorkerServer::send(const Progress& progress) {
    socket_.send(to_header(progress, current_id_));
}

void WorkerServer::send(const Sample& sample) {
    const int64_t now = now_ns();
    int64_t due = next_sample_ns_;
    if (now < due || !next_sample_ns_.compare_exchange_strong(due, now + kSampleIntervalNs)) return;
    socket_.send(to_header(sample, current_id_));
}

}  // namespace profiler
