#include "models/expression.hpp"

#include <fmt/format.h>

#include <cctype>

#include "models/shape.hpp"

namespace simsync::detail {
namespace {

constexpr std::size_t kLongest = 200;
constexpr int kDeepest = 20;

bool is_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// Recursive descent; after the first error every function returns at once.
class Parser {
public:
  Parser(const std::string& text, const Lookup& lookup) : text_(text), lookup_(lookup) {}

  Evaluated run() {
    if (text_.size() > kLongest) {
      fail(fmt::format("is longer than {} characters", kLongest));
      return result_;
    }
    const std::int64_t value = sum(0);
    skip();
    if (ok() && at_ < text_.size()) fail(fmt::format("unexpected '{}'", text_[at_]));
    result_.value = ok() ? value : 0;
    return result_;
  }

private:
  [[nodiscard]] bool ok() const { return result_.error.empty(); }
  void fail(const std::string& why) {
    if (ok()) result_.error = why;
  }
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  std::int64_t sum(int depth) {
    std::int64_t value = product(depth);
    while (ok()) {
      if (take('+')) {
        value = bounded(value + product(depth));
      } else if (take('-')) {
        value = bounded(value - product(depth));
      } else {
        break;
      }
    }
    return value;
  }

  std::int64_t product(int depth) {
    std::int64_t value = atom(depth);
    while (ok()) {
      if (take('*')) {
        std::int64_t out = 0;
        if (__builtin_mul_overflow(value, atom(depth), &out)) fail(too_large());
        value = bounded(out);
      } else if (take('/')) {
        value = quotient(value, atom(depth));
      } else {
        break;
      }
    }
    return value;
  }

  std::int64_t quotient(std::int64_t value, std::int64_t by) {
    if (!ok()) return 0;
    if (by == 0) {
      fail("divides by zero");
      return 0;
    }
    if (value % by != 0) fail(fmt::format("{} / {} leaves a remainder", value, by));
    return value / by;
  }

  std::int64_t atom(int depth) {
    if (depth > kDeepest) {
      fail("has too many parentheses");
      return 0;
    }
    if (take('(')) {
      const std::int64_t value = sum(depth + 1);
      if (ok() && !take(')')) fail("lacks a ')'");
      return value;
    }
    if (take('-')) return -atom(depth + 1);
    if (take('$')) return name();
    return number();
  }

  std::int64_t name() {
    std::string word;
    while (at_ < text_.size() && is_name(text_[at_])) word += text_[at_++];
    const auto value = word.empty() ? std::nullopt : lookup_(word);
    if (!value) {
      fail(fmt::format("unknown parameter '${}'", word));
      result_.unknown = word;
    }
    return bounded(value.value_or(0));
  }

  std::int64_t number() {
    skip();
    const std::size_t start = at_;
    std::int64_t value = 0;
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) {
      value = bounded(value * 10 + (text_[at_++] - '0'));
    }
    if (at_ == start) fail(fmt::format("expected a whole number or $name, got '{}'", text_.substr(start)));
    return value;
  }

  std::int64_t bounded(std::int64_t value) {
    if (value >= -kMaxElements && value <= kMaxElements) return value;
    fail(too_large());
    return 0;
  }
  [[nodiscard]] std::string too_large() const {
    return fmt::format("'{}' is too large: expected at most {}", text_.substr(0, 60), kMaxElements);
  }

  const std::string& text_;
  const Lookup& lookup_;
  std::size_t at_ = 0;
  Evaluated result_;
};

}  // namespace

Evaluated evaluate(const std::string& text, const Lookup& lookup) {
  return Parser(text, lookup).run();
}

}  // namespace simsync::detail
