// Where the decisions of a drawn strategy come from: a random stream, or every decision in turn.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/random.hpp"

namespace simsync {

class Decisions {
public:
  Decisions() = default;
  virtual ~Decisions() = default;
  Decisions(const Decisions&) = delete;
  Decisions& operator=(const Decisions&) = delete;

  /// One of 0 ... n-1; n is at least 1.
  virtual std::size_t below(std::size_t n) = 0;
  /// How many of at most `most`, 1 at least.
  virtual std::size_t count(std::size_t most) = 0;
  /// True in `share` (0 to 1) of all draws.
  virtual bool coin(double share) = 0;
  /// A share for coins to come.
  virtual double share() = 0;
  /// An index of `scores`, more likely the higher its score: by a softmax of score / temperature.
  virtual std::size_t softmax(const std::vector<double>& scores, double temperature) = 0;
  /// One of `limit` interchangeable labels, of which `used` were given already: an old one, or the next.
  virtual std::size_t label(std::size_t used, std::size_t limit) = 0;
};

/// The same seed makes the same decisions on every platform but for the last bit of a softmax.
class RandomDecisions final : public Decisions {
public:
  explicit RandomDecisions(std::uint64_t seed) : random_(seed) {}
  std::size_t below(std::size_t n) override { return static_cast<std::size_t>(random_.below(n)); }
  std::size_t count(std::size_t most) override { return 1 + below(most); }
  bool coin(double share) override { return random_.unit() < share; }
  /// 0, 1/8, ... 1.
  double share() override;
  std::size_t softmax(const std::vector<double>& scores, double temperature) override;
  std::size_t label(std::size_t used, std::size_t limit) override;

private:
  Random random_;
};

/// Goes through all lists of decisions, each once: draw, then next(), until that says that there are no more.
class AllDecisions final : public Decisions {
public:
  std::size_t below(std::size_t n) override;
  /// Who may use all may use fewer.
  std::size_t count(std::size_t most) override { return most; }
  bool coin(double share) override;
  /// Coins are free, whatever their share.
  double share() override { return 0.5; }
  std::size_t softmax(const std::vector<double>& scores, double temperature) override;
  std::size_t label(std::size_t used, std::size_t limit) override;
  /// To the next list of decisions. False after the last.
  bool next();

private:
  struct Decision {
    std::size_t chosen = 0;
    std::size_t count = 1;
  };
  std::vector<Decision> decisions_;
  std::size_t at_ = 0;
};

}  // namespace simsync
