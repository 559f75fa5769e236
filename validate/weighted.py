"""What the scripts of this folder share."""


def quantile(weighted, share):
    """Of (value, weight) pairs: the least value that this share of the weight does not exceed."""
    pairs = sorted(weighted)
    total = sum(weight for _, weight in pairs)
    below = 0.0
    for value, weight in pairs:
        below += weight
        if below >= share * total - 1e-9:
            return value
    return pairs[-1][0]
