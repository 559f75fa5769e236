// Halving-doubling over any number of ranks: binary blocks, as in Gloo's AllreduceHalvingDoubling (Rabenseifner and
// Traeff, "More efficient reduction algorithms for non-power-of-two number of processors", 2004).
#include <algorithm>
#include <bit>
#include <cmath>

#include "sim/plan/collective_maker.hpp"

namespace simsync::detail {
namespace {

class BlockMaker {
public:
  BlockMaker(Maker& maker, int ranks) : maker_(maker), before_(static_cast<std::size_t>(ranks)) {}

  void make(const std::vector<BinaryBlock>& blocks) {
    for (const BinaryBlock& block : blocks) {
      // The largest share goes to the nearest rank.
      for (int distance = 1; distance < block.size; distance *= 2) exchange(block, distance);
    }
    for (std::size_t i = blocks.size() - 1; i > 0; --i) pass_up(blocks[i], blocks[i - 1]);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      // What goes to the next smaller block leaves beside the first exchange of the all-gather.
      const Done before = before_;
      if (i + 1 < blocks.size()) pass_down(blocks[i], blocks[i + 1], before);
      for (int distance = blocks[i].size / 2; distance > 0; distance /= 2) exchange(blocks[i], distance);
    }
  }

private:
  /// By rank: hops that it has sent and received, for which its next one waits.
  using Done = std::vector<std::vector<int>>;

  std::vector<int>& done_by(int rank) { return before_[static_cast<std::size_t>(rank)]; }

  int send(int from, int to, double bytes, int line, const Done& before) {
    return maker_.add({.from = from,
                       .to = to,
                       .bytes = bytes,
                       .rounds = 1,
                       .pipeline = line,
                       .needs = {},
                       .lag = 0,
                       .after = before[static_cast<std::size_t>(from)]});
  }

  /// Every rank of a block with the one `distance` away, which holds the other half of what is left.
  void exchange(const BinaryBlock& block, int distance) {
    const int line = maker_.pipeline(false);
    const Done before = before_;
    std::vector<int> sent;
    for (int r = block.begin; r < block.begin + block.size; ++r)
      sent.push_back(send(r, block.begin + ((r - block.begin) ^ distance), 0.5 / distance, line, before));
    for (int i = 0; i < block.size; ++i)
      done_by(block.begin + i) = {sent[static_cast<std::size_t>(i)], sent[static_cast<std::size_t>(i ^ distance)]};
  }

  /// Each rank of the smaller block has 1/size of the payload, which several of the larger one add to their own.
  void pass_up(const BinaryBlock& smaller, const BinaryBlock& larger) {
    const int line = maker_.pipeline(false);
    const Done before = before_;
    for (int i = 0; i < larger.size; ++i) {
      const int from = smaller.begin + i % smaller.size;
      const int id = send(from, larger.begin + i, 1.0 / larger.size, line, before);
      done_by(from).push_back(id);
      done_by(larger.begin + i).push_back(id);
    }
  }

  /// The same hops back. The sender goes on without waiting for their end.
  void pass_down(const BinaryBlock& larger, const BinaryBlock& smaller, const Done& before) {
    const int line = maker_.pipeline(false);
    for (int i = 0; i < larger.size; ++i) {
      const int to = smaller.begin + i % smaller.size;
      done_by(to).push_back(send(larger.begin + i, to, 1.0 / larger.size, line, before));
    }
  }

  Maker& maker_;
  Done before_;
};

}  // namespace

std::vector<BinaryBlock> binary_blocks(int ranks) {
  std::vector<BinaryBlock> out;
  for (int begin = 0; begin < ranks;) {
    const int size = static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks - begin)));
    out.push_back({begin, size});
    begin += size;
  }
  return out;
}

void make_halving_doubling(Maker& maker, int ranks) {
  BlockMaker(maker, ranks).make(binary_blocks(ranks));
}

}  // namespace simsync::detail
