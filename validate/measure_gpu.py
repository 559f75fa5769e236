#!/usr/bin/env python3
"""Times training steps of parts of models on one GPU with PyTorch, and what memory they take.

    validate/measure_gpu.py PREFIX OUT.csv [SECONDS]

One row a case, its id PREFIX-NUMBER, written as soon as it is there; stops after SECONDS (default 600). A case is a
decoder of Llama's shape with few blocks, whole or as one of `tensor` ranks of Megatron-LM's tensor parallelism computes
it (a share of the heads, of the feed-forward layer and of the vocabulary; nothing is sent, so that the loss means
nothing), or a whole model of torchvision or transformers. Times are medians over 8 steps, by events on the device. Memory
is the peak of PyTorch's allocated bytes in a step; it stays empty where an earlier case left something allocated. Needs
PyTorch, torchvision and transformers. h200_steps.csv and h100_steps.csv in validate/reference were
written by it.
"""
import csv
import gc
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

# Sizes as in models/zoo.
SHAPES = {
    "llama2-7b": {"width": 4096, "heads": 32, "key_heads": 32, "filter": 11008, "vocabulary": 32000},
    "llama2-13b": {"width": 5120, "heads": 40, "key_heads": 40, "filter": 13824, "vocabulary": 32000},
    "llama3-8b": {"width": 4096, "heads": 32, "key_heads": 8, "filter": 14336, "vocabulary": 128256},
    "llama3-70b": {"width": 8192, "heads": 64, "key_heads": 8, "filter": 28672, "vocabulary": 128256},
}
COLUMNS = ["id", "model", "depth", "tensor", "length", "batch", "precision", "recompute", "compiled", "optimizer",
           "forward_backward_ms", "optimizer_ms", "step_ms", "memory_gib", "status"]
GIB = 2.0**30
DEVICE = "cuda"


def rotate(x, cos, sin):
    """Rotary positions of x [batch, heads, length, size]."""
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


class Block(nn.Module):
    """A decoder block's share on one of `tensor` ranks."""

    def __init__(self, shape, tensor):
        super().__init__()
        width = shape["width"]
        self.size = width // shape["heads"]
        self.heads = shape["heads"] // tensor
        self.key_heads = shape["key_heads"] // tensor
        filter_share = shape["filter"] // tensor
        self.attention_norm = nn.RMSNorm(width)
        self.wq = nn.Linear(width, self.heads * self.size, bias=False)
        self.wk = nn.Linear(width, self.key_heads * self.size, bias=False)
        self.wv = nn.Linear(width, self.key_heads * self.size, bias=False)
        self.wo = nn.Linear(self.heads * self.size, width, bias=False)
        self.ffn_norm = nn.RMSNorm(width)
        self.w1 = nn.Linear(width, filter_share, bias=False)
        self.w3 = nn.Linear(width, filter_share, bias=False)
        self.w2 = nn.Linear(filter_share, width, bias=False)

    def forward(self, x, cos, sin):
        batch, length, _ = x.shape
        normed = self.attention_norm(x)
        query = self.wq(normed).view(batch, length, self.heads, self.size).transpose(1, 2)
        key = self.wk(normed).view(batch, length, self.key_heads, self.size).transpose(1, 2)
        value = self.wv(normed).view(batch, length, self.key_heads, self.size).transpose(1, 2)
        out = functional.scaled_dot_product_attention(rotate(query, cos, sin), rotate(key, cos, sin), value,
                                                      is_causal=True, enable_gqa=self.key_heads != self.heads)
        x = x + self.wo(out.transpose(1, 2).reshape(batch, length, -1))
        normed = self.ffn_norm(x)
        return x + self.w2(functional.silu(self.w1(normed)) * self.w3(normed))


class Decoder(nn.Module):
    """Table, blocks, norm, output and loss; `recompute` keeps the input of every block only."""

    def __init__(self, shape, depth, tensor, recompute, compiled):
        super().__init__()
        self.recompute = recompute
        self.size = shape["width"] // shape["heads"]
        vocabulary = shape["vocabulary"] // tensor
        self.table = nn.Embedding(vocabulary, shape["width"])
        self.blocks = nn.ModuleList(Block(shape, tensor) for _ in range(depth))
        self.norm = nn.RMSNorm(shape["width"])
        self.output = nn.Linear(shape["width"], vocabulary, bias=False)
        if compiled:
            for block in self.blocks:
                block.compile()

    def forward(self, tokens, targets):
        x = self.table(tokens)
        places = torch.arange(tokens.shape[1], dtype=torch.float32)
        angles = torch.outer(places, 10000.0 ** (-torch.arange(0, self.size, 2, dtype=torch.float32) / self.size))
        angles = torch.cat((angles, angles), dim=-1)
        cos, sin = angles.cos().bfloat16(), angles.sin().bfloat16()
        for block in self.blocks:
            if self.recompute == "full":
                x = checkpoint(block, x, cos, sin, use_reentrant=False)
            else:
                x = block(x, cos, sin)
        logits = self.output(self.norm(x))
        return functional.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


def decoder_case(case):
    """The model and a function that computes its loss."""
    shape = SHAPES[case["model"]]
    model = Decoder(shape, case["depth"], case["tensor"], case["recompute"], case["compiled"])
    high = shape["vocabulary"] // case["tensor"]
    tokens = torch.randint(high, (case["batch"], case["length"]), device=DEVICE)
    targets = torch.randint(high, (case["batch"], case["length"]), device=DEVICE)
    return model, lambda: model(tokens, targets)


def image_case(case):
    """A model of torchvision on 224 x 224 images."""
    import torchvision
    name = {"vit-l": "vit_l_16", "vit-b": "vit_b_16"}.get(case["model"], case["model"])
    model = getattr(torchvision.models, name)().to(memory_format=torch.channels_last)
    images = torch.randn(case["batch"], 3, 224, 224, device=DEVICE).to(memory_format=torch.channels_last)
    labels = torch.randint(1000, (case["batch"],), device=DEVICE)
    return model, lambda: functional.cross_entropy(model(images), labels)


def text_case(case):
    """A model of transformers."""
    import transformers
    size = (case["batch"], case["length"])
    if case["model"].startswith("gpt2"):
        sizes = {"gpt2": {}, "gpt2-large": {"n_embd": 1280, "n_layer": 36, "n_head": 20}}[case["model"]]
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes))
        tokens = torch.randint(50257, size, device=DEVICE)
        return model, lambda: model(tokens, labels=tokens).loss
    model = transformers.BertForPreTraining(transformers.BertConfig(
        hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096))
    tokens = torch.randint(30522, size, device=DEVICE)
    follows = torch.zeros(case["batch"], dtype=torch.long, device=DEVICE)
    return model, lambda: model(tokens, labels=tokens, next_sentence_label=follows).loss


def kind_of(case):
    if case["model"] in SHAPES:
        return decoder_case
    return text_case if case["length"] else image_case


def timed(work):
    """Milliseconds of each of two parts of a step on the device."""
    stamps = [torch.cuda.Event(enable_timing=True) for _ in range(3)]
    stamps[0].record()
    work[0]()
    stamps[1].record()
    work[1]()
    stamps[2].record()
    torch.cuda.synchronize()
    return stamps[0].elapsed_time(stamps[1]), stamps[1].elapsed_time(stamps[2])


def measure(case):
    """Fills in what a case takes."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = case["precision"] == "tf32"
    torch.backends.cudnn.benchmark = True
    torch.set_default_device(DEVICE)
    torch.set_default_dtype(torch.bfloat16 if case["precision"] == "bf16" else torch.float32)
    left_over = torch.cuda.memory_allocated()
    model, loss_of = kind_of(case)(case)
    model.train()
    if case["optimizer"] == "adam":
        optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, fused=True)

    def forward_backward():
        with torch.autocast(DEVICE, torch.bfloat16, enabled=case["precision"] == "amp"):
            loss = loss_of()
        loss.backward()

    def update():
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    for _ in range(3):
        timed((forward_backward, update))
    torch.cuda.reset_peak_memory_stats()
    times = [timed((forward_backward, update)) for _ in range(8)]
    case["forward_backward_ms"] = round(statistics.median(both[0] for both in times), 3)
    case["optimizer_ms"] = round(statistics.median(both[1] for both in times), 3)
    case["step_ms"] = round(case["forward_backward_ms"] + case["optimizer_ms"], 3)
    case["memory_gib"] = "" if left_over else round(torch.cuda.max_memory_allocated() / GIB, 3)
    case["status"] = "ran"


def decoder(model, depth, tensor, length, batch, precision="bf16", recompute="none", compiled=0):
    return {"model": model, "depth": depth, "tensor": tensor, "length": length, "batch": batch,
            "precision": precision, "recompute": recompute, "compiled": compiled, "optimizer": "adam"}


def whole(model, batch, precision, length="", optimizer="momentum"):
    return {"model": model, "depth": "", "tensor": 1, "length": length, "batch": batch, "precision": precision,
            "recompute": "none", "compiled": 0, "optimizer": optimizer}


def cases():
    """The most telling ones first."""
    yield whole("resnet50", 64, "amp")
    for tensor in (1, 2, 4, 8):
        yield decoder("llama2-7b", 4, tensor, 4096, 1)
        yield decoder("llama3-70b", 2, tensor, 8192, 1)
        yield decoder("llama3-8b", 4, tensor, 8192, 1)
    for precision, recompute in (("amp", "none"), ("amp", "full"), ("bf16", "full")):
        yield decoder("llama2-7b", 4, 1, 4096, 2, precision, recompute)
        yield decoder("llama3-8b", 2, 1, 8192, 1, precision, recompute)
    for model, batch, precision in (("resnet50", 256, "amp"), ("resnet50", 64, "tf32"), ("resnet50", 64, "fp32"),
                                    ("vgg16", 64, "amp"), ("vit-l", 32, "amp"), ("resnet152", 64, "amp")):
        yield whole(model, batch, precision)
    for model, batch, length in (("bert-large", 16, 128), ("bert-large", 8, 512), ("gpt2", 8, 1024),
                                 ("gpt2-large", 4, 1024)):
        yield whole(model, batch, "amp", length, "adam")
    for compiled in (0, 1):
        for batch in (1, 2, 4):
            yield decoder("llama2-7b", 4, 4, 4096, batch, compiled=compiled)
    for tensor in (2, 4, 8):
        yield decoder("llama2-13b", 4, tensor, 4096, 1)
        yield decoder("llama2-7b", 4, tensor, 2048, 1)
        yield decoder("llama3-70b", 2, tensor, 4096, 1)
    for batch, length in ((8, 512), (4, 1024), (2, 2048), (1, 4096)):
        yield decoder("llama2-7b", 4, 1, length, batch, "amp")


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    deadline = time.monotonic() + (float(sys.argv[3]) if len(sys.argv) == 4 else 600.0)
    with open(sys.argv[2], "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        for number, case in enumerate(cases(), 1):
            if time.monotonic() > deadline:
                break
            case["id"] = f"{sys.argv[1]}-{number:02}"
            try:
                measure(case)
            except torch.cuda.OutOfMemoryError:
                case["status"] = "out of memory"
            except Exception as error:  # one case that fails is no reason to lose the others
                case["status"] = "failed"
                print(f"{case['id']}: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr)
            torch.compiler.reset()
            gc.collect()
            torch._C._cuda_clearCublasWorkspaces()  # they would count as memory of the next case
            torch.cuda.empty_cache()
            writer.writerow(case)
            file.flush()
            print(*(case.get(column, "") for column in COLUMNS), flush=True)
    print(torch.__version__, torch.cuda.get_device_name())


if __name__ == "__main__":
    main()
