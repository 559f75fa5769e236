"""NCCL 2.30.7's own estimate of an all-reduce, read off its source a second time.

Written from src/graph/tuning.cc and src/graph/search.cc of https://github.com/NVIDIA/nccl/tree/v2.30.7-1, and not from
this repository's tuner (sim/plan/nccl_tuner.cpp), which docs/collective_choice.py checks against it. It leaves out the
same: NVLS, CollNet, and the search in the topology, for which the widest channels that NIC and GPU links have stand in.
Latencies in us, bandwidths in GB/s.
"""
import collections
import math
import pathlib
import re

import yaml

PLATFORMS = pathlib.Path(__file__).resolve().parent.parent / "platforms"
PROTOCOLS = ("LL", "LL128", "Simple")
SPEEDS_INSIDE = [40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3]
SPEEDS_INSIDE_SM90 = [60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3]
SPEEDS = [48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, .24, .12]
SPEEDS_SM90 = [48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, .24, .12]
HOP = {  # tree and ring by protocol
    "nvlink": {"tree": (.6, 1.25, 4), "ring": (.6, 1.9, 3.4)},
    "pcie": {"tree": (1, 1.9, 4), "ring": (1, 2.5, 5.7)},
    "net": {"tree": (5, 8.5, 14), "ring": (2.7, 4, 14)}}
BASE = {"tree": (6.8, 14, 8.4), "ring": (6.6, 14, 8.4)}
# On one node, two, more; Volta and before, Ampere, Hopper.
TREE_PER_CHANNEL = {1: (26.5, 24, 38.7), 2: (18.5, 23.6, 41.4), 3: (10, 17.8, 36)}
TREE_LL128_PER_CHANNEL = {1: (20, 20, 36.7), 2: (20, 20, 36.7), 3: (20, 20, 29)}
RING_LL128_PER_CHANNEL = (20, 20, 36.7)
LL_MOST = {1: (39, 87.7, 141), 2: (39,) * 3, 3: (20.4,) * 3}  # several nodes: Intel hosts
TREE_CORRECTION = {  # from 64 B on by powers of two
    "LL": (1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1),
    "LL128": (1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1),
    "Simple": (.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9)}


def rate(text):
    """GB/s of a rate as a cluster file has it."""
    number, unit = re.fullmatch(r"([\d.]+) *(\w+(?:/s)?)", str(text)).groups()
    return float(number) * {"Gbps": .125, "Mbps": .125e-3, "GB/s": 1, "MB/s": 1e-3, "TB/s": 1e3}[unit]


def micros(text):
    """us of a time as a cluster file has it."""
    number, unit = re.fullmatch(r"([\d.]+) *(\w+)", str(text)).groups()
    return float(number) * {"ns": 1e-3, "us": 1, "ms": 1e3}[unit]


class View:
    """What NCCL sees of the first nodes of a cluster of the platforms folder."""

    def __init__(self, name):
        cluster = yaml.safe_load((PLATFORMS / "presets" / (name + ".yaml")).read_text())
        devices = yaml.safe_load((PLATFORMS / "devices.yaml").read_text())["devices"]
        group, links = cluster["groups"][0], cluster["links"]
        fabric = group["fabric"]
        self.gpus, self.nics = group["gpus"], group.get("nics", 1)
        self.capability = float((cluster.get("devices", {}).get(group["device"]) or devices[group["device"]])
                                .get("compute_capability", 0))
        self.nvlink = "gpu_link" in fabric and fabric.get("peer_to_peer", True)
        self.nic_class = group.get("nic_link")
        nic = links[self.nic_class] if self.nic_class else {"bandwidth": "0 GB/s"}
        self.nic = rate(nic.get("reported_bandwidth", nic["bandwidth"]))
        self.reports_other = "reported_bandwidth" in nic
        self.capped = [link for link, fields in links.items() if "per_flow_cap" in fields]
        self.gpu_direct = group.get("gpu_direct", False)
        self.switch = fabric.get("gpus_per_switch", 0) or 1
        self.per_socket = fabric.get("switches_per_socket", 0)
        if self.nvlink:  # 20 of 25 GB/s per link, 20.6 on Hopper
            self.gpu = rate(links[fabric["gpu_link"]]["bandwidth"]) * (20.6 if self.capability >= 9 else 20) / 25
        else:  # 12 GB/s of PCIe Gen3 x16, a fifth more through an Intel CPU
            self.gpu = rate(links[fabric["pcie_link"]]["bandwidth"]) * 12 / 15.75
        costs, inside = cluster.get("collective", {}), fabric["gpu_link" if self.nvlink else "pcie_link"]
        self.rounds = (micros(costs.get("per_step_intra", "0us")) + micros(links[inside].get("latency", "0us")),
                       micros(costs.get("per_step_inter", "0us")) + micros(nic.get("latency", "0us")))
        self.socket_class = fabric.get("socket_link", "")
        self.socket = links.get(self.socket_class)
        self.switch = self.switch if fabric.get("peer_to_peer", True) else 1

    def generation(self):
        return 2 if self.capability >= 9 else 1 if self.capability >= 8 else 0

    def graphs(self, ranks, nodes):
        """(channels, GB/s inside, GB/s between) of ring and tree."""
        speeds = SPEEDS_SM90 if self.capability >= 9 else SPEEDS
        local, alone, gpu, through = min(self.gpus, ranks), ranks == nodes, self.gpu, 1
        if not self.nvlink and local > self.switch:
            through = 1.2
            if self.per_socket and local > self.switch * self.per_socket and self.socket:
                gpu = min(gpu, 1.2 * rate(self.socket["bandwidth"]) * self.socket.get("efficiency", 1))
        inside = math.inf if alone else gpu / through
        if nodes == 1:
            return (self.one_node(inside),) * 2
        fits = [speed for speed in speeds if speed <= 1.01 * min(self.nic, inside)]
        between = fits[0] if fits else speeds[-1]
        channels = self.nics if alone else min(self.nics, max(1, int(1.01 * inside / between)))
        channels, between = self.doubled(channels, between)
        tree = between
        if nodes == 2:  # a tree may have up to twice as much inside
            room = math.inf
            if not alone:  # the first two GPUs of a chain on PCIe carry half of the NIC's traffic each
                room = gpu / channels if self.nvlink else (gpu - between / 2) / channels / through
            for speed in reversed(speeds):
                if tree < 2 * between and tree < speed <= 1.01 * room:
                    tree = speed
        return (channels, between, between), (channels, tree, between)


    def doubled(self, channels, speed):
        """Wide channels are split in two."""
        if speed < 25 or self.capability > 8 and speed < 50 and channels > 4:
            return channels, speed
        return 2 * channels, speed / 2

    def one_node(self, limit):
        """As many channels as the GPU's links have room for; one on PCIe."""
        best = (0, 0)
        for speed in SPEEDS_INSIDE_SM90 if self.capability >= 9 else SPEEDS_INSIDE:
            if speed > 1.01 * limit:
                continue
            if best[0] and speed < .49 * best[1]:
                break
            channels = int(1.01 * limit / speed) if self.nvlink else 1
            if channels * speed > best[0] * best[1]:
                best = (channels, speed)
        channels, speed = self.doubled(*best)
        return channels, speed, speed


# What an estimate may leave out, to see whether NCCL's choice hangs on it.
TERMS = ("size",  # treeCorrectionFactor
         "plateau",  # 1.4 or 1.9 times a ring's latency
         "limit",  # GB/s of a tree's channel
         "alone",  # 15 % off trees with one GPU per node
         "inside",  # on two nodes, what counts is a tree's bandwidth inside them
         "share",  # every NIC of a tree passes the payload twice
         "off",  # 8 % off trees
         "rounds",  # us of a hop: those of the cluster file take their place
         "ll128")  # the protocol LL128: a cluster file without `protocols` knows one way to move bytes


def busiest_share(nodes):
    """What the busiest NIC of a double binary tree sends, as a share of the payload: NCCL reckons with 2."""
    parents = {}

    def build(low, high, above):
        if low < high:
            root = low + 2 ** int(math.log2(high - low)) - 1
            parents[root] = above
            build(low, root, root)
            build(root + 1, high, root)

    build(0, nodes, None)
    edges = [(child, parent) for child, parent in parents.items() if parent is not None]
    ends = collections.Counter((end + shift) % nodes for shift in (0, 1) for edge in edges for end in edge)
    return .5 * max(ends.values())


def times(view, ranks, nodes, payload, without=()):
    """{(algorithm, protocol): us} of an all-reduce of `payload` bytes."""
    alone, column, g = ranks == nodes, min(nodes, 3), view.generation()
    kind = HOP["nvlink" if view.nvlink else "pcie"]
    ll128 = view.capability >= 7 and (alone or view.nvlink) and (nodes == 1 or view.gpu_direct)
    out = {}
    for algorithm, (channels, inside, between) in zip(("ring", "tree"), view.graphs(ranks, nodes)):
        per_channel = inside if nodes <= 2 and "inside" not in without else between
        bus = channels * per_channel
        for p, protocol in enumerate(PROTOCOLS):
            if protocol == "LL128" and (not ll128 or "ll128" in without):
                continue
            near, far = kind[algorithm][p], HOP["net"]["tree" if alone else algorithm][p]
            if algorithm == "ring" and nodes > 1:
                near = max(near, 3 if protocol == "Simple" else 1)
            if "rounds" in without:
                near, far = view.rounds
            if algorithm == "ring":
                bw = {"LL": min(.5 * bus, LL_MOST[column][g]), "Simple": bus,
                      "LL128": min(.92 * bus, channels * RING_LL128_PER_CHANNEL[g])}[protocol]
                bw *= ranks / (2 * (ranks - 1))
                latency = BASE["ring"][p] + 2 * ((ranks - nodes) * near + (nodes - 1) * far)
                many = payload / ranks / (2 * channels) >= 64
                if protocol == "Simple" and nodes > 1 and many and "plateau" not in without:
                    latency *= 1.9 if g == 0 else 1.4
            else:
                limit = math.inf if "limit" in without else channels * TREE_PER_CHANNEL[column][g]
                bw = min((1 if "off" in without else .92) * bus, limit)
                if protocol == "LL":
                    bw = min(bw / 3.8, LL_MOST[column][g])
                if protocol == "LL128":
                    bw = min(bw * (7 / 9 if nodes == 1 else 120 / 128), channels * TREE_LL128_PER_CHANNEL[column][g])
                passes = busiest_share(nodes) if nodes > 2 and "share" in without else 2
                bw *= (.85 if alone and "alone" not in without else 1) / passes
                power = int(math.log2(max(payload, 64) / 64))
                if power < 23 and "size" not in without:
                    bw *= TREE_CORRECTION[protocol][power]
                latency = BASE["tree"][p] + 2 * ((ranks // nodes - 1) * near + int(math.log2(nodes)) * far)
            out[algorithm, protocol] = latency + payload / (1e3 * bw)
    return out


def choice(view, ranks, nodes, payload, without=()):
    """`ring` or `tree`."""
    estimates = times(view, ranks, nodes, payload, without)
    return min(estimates, key=lambda key: (estimates[key], key[0] != "tree"))[0]
