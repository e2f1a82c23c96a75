#pragma once

#include "models/config/result.h"

#include <cstdint>
#include <memory>
#include <string>

namespace app {

/// Hands one page to browsers of this machine, over HTTP on 127.0.0.1.
///
/// It answers GET of "/" only. A request must name this address in its Host header: otherwise a
/// web page from elsewhere could make its own host name point to 127.0.0.1 and read the answer
/// (DNS rebinding).
class PageServer {
public:
    /// `port` 0: one that is free. Errors: the port is taken or not allowed.
    static models::Result<PageServer> listen(std::string page, int port);
    PageServer(PageServer&&) noexcept;
    ~PageServer();

    /// "http://127.0.0.1:8080/"
    std::string address() const;
    /// Answers until `cancel`.
    void run();
    /// Ends `run`, also one that has not begun. A signal handler may call it.
    void cancel();

private:
    struct Impl;
    explicit PageServer(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace app
