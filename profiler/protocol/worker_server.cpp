#include "profiler/protocol/worker_server.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <new>
#include <thread>
#include <utility>

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
    // When memory runs out, the kernel should kill the workload, not the user's session.
    std::ofstream("/proc/self/oom_score_adj") << 500;
}

bool WorkerServer::has_program(int descriptor) {
    struct stat status {};
    return fstat(descriptor, &status) == 0 && S_ISSOCK(status.st_mode);
}

int WorkerServer::serve(const Handler& handler) {
    socket_.send(to_header(Hello{kProtocolVersion, std::string(build_version())}, 0));
    std::thread reader([this] { read_messages(); });
    while (const auto pending = next_request()) answer(*pending, handler);
    reader.join();
    return 0;
}

std::optional<WorkerServer::PendingRequest> WorkerServer::next_request() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ended_ || !pending_.empty(); });
    if (pending_.empty()) return std::nullopt;
    PendingRequest next = std::move(pending_.front());
    pending_.pop_front();
    current_id_ = next.id;
    cancelled_ = cancelled_id_ == next.id;
    turn_.reset();
    return next;
}

void WorkerServer::answer(const PendingRequest& pending, const Handler& handler) {
    WorkerOutcome outcome;
    try {
        outcome = handler(pending.request);
    } catch (const std::bad_alloc&) {
        outcome = tl::unexpected(
            ErrorFrame{std::string(kWorkerOutOfMemory), static_cast<int>(ExitCode::kOutOfMemory)});
    } catch (const std::exception& error) {
        outcome = tl::unexpected(
            lacks_threads(error)
                ? ErrorFrame{std::string(kNoMoreThreads), static_cast<int>(ExitCode::kOutOfMemory)}
                : ErrorFrame{error.what()});
    }
    // Idle from here on: a program that leaves right after the answer must not end us by force.
    current_id_ = 0;
    if (outcome) {
        socket_.send(to_header(*outcome, pending.id), outcome->payload);
    } else {
        socket_.send(to_header(outcome.error(), pending.id));
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
            handle(*message);
        }
    }
    // Nobody waits for the result. The steps that a capture has committed stay in its .partial.
    if (current_id_ != 0) std::_Exit(1);
    const std::lock_guard lock(mutex_);
    ended_ = true;
    pending_.clear();
    changed_.notify_one();
}

void WorkerServer::handle(const AddressedMessage& message) {
    const std::lock_guard lock(mutex_);
    if (std::holds_alternative<Cancel>(message.message)) {
        cancelled_id_ = message.id;  // maybe of a request that has not begun
        if (message.id == current_id_) cancelled_ = true;
    } else if (const auto* turn = std::get_if<TakeTurn>(&message.message)) {
        if (message.id == current_id_) turn_ = *turn;
    } else if (const auto* request = std::get_if<Request>(&message.message)) {
        pending_.push_back({message.id, *request});
    }
    changed_.notify_one();
}

std::optional<TakeTurn> WorkerServer::wait_for_turn(const WaitsForTurn& waits) {
    socket_.send(to_header(waits, current_id_));
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return turn_ || cancelled_; });
    return cancelled_ ? std::nullopt : std::exchange(turn_, std::nullopt);
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
