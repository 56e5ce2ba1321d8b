"""The optimizers' fused kernels on a GPU: the numbers of the plain rules in float64, and no wait for the host."""

import numpy as np
import pytest
import torch
from tests.reference.muon import newton_schulz
from tests.unit.optim.test_lamb import RULES, check_twenty_updates
from tests.unit.optim.test_muon import check_twenty_updates as check_twenty_updates_of_muon
from torch import nn
from torch.nn.utils import clip_grad_norm_

from bertwright.optim.build import build_optimizer
from bertwright.optim.config import AdamWConfig, LambConfig, MuonConfig, OptimConfig
from bertwright.optim.groups import set_rate
from bertwright.optim.muon import orthogonalized
from bertwright.optim.norms import clip_global_norm, square_norms

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU"),
    # What torch warns of differs by GPU and version: these tests ask for numbers.
    pytest.mark.filterwarnings("default::UserWarning:torch.*"),
]


class Small(nn.Module):
    """A table and a matrix, a bias and a layer norm."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(300, 24)
        self.inner = nn.Linear(24, 37)
        self.norm = nn.LayerNorm(37)


class Layered(nn.Module):
    """The same in a layer, whose matrices Muon orthogonalizes."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Small()])


def give_gradients(models: tuple[nn.Module, nn.Module], step: int) -> None:
    """The same to both, of lengths below the clipping limit and above."""
    random = np.random.default_rng(step)
    for pair in zip(*(model.parameters() for model in models), strict=True):
        gradient = (random.normal(size=pair[0].shape) * 10.0 ** (step % 5 - 3)).astype(np.float32)
        for p in pair:
            p.grad = torch.from_numpy(gradient).to(p.device, p.dtype)


@pytest.mark.parametrize(("options", "reference"), RULES.values(), ids=RULES)
@pytest.mark.parametrize("max_norm", [1.0, 0.0])
def test_lamb_follows_the_plain_rule(options: dict[str, object], reference: dict[str, object], max_norm: float) -> None:
    """torch's kernel has the decay rates in float32, the last bit of which counts if nothing is bias-corrected."""
    check_twenty_updates(options, reference, max_norm, "cuda", rounded=True)


def test_adamw_follows_torchs_loop_in_float64() -> None:
    torch.manual_seed(0)
    plain = Small().double()
    ours = Small()
    ours.load_state_dict(plain.state_dict())
    plain.load_state_dict(ours.state_dict())
    ours.cuda()
    optimizer = build_optimizer(AdamWConfig(), ours, {})
    decaying = [p for p in plain.parameters() if p.ndim == 2]
    groups = [
        {"params": decaying, "weight_decay": 0.01},
        {"params": [p for p in plain.parameters() if p.ndim == 1], "weight_decay": 0.0},
    ]
    loop = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.999), eps=1e-6, foreach=False, fused=False)
    before = [p.detach().clone() for p in plain.parameters()]
    for step in range(20):
        give_gradients((ours, plain), step)
        norm = clip_global_norm([p.grad for p in ours.parameters() if p.grad is not None], 1.0)
        expected = clip_grad_norm_(plain.parameters(), 1.0, foreach=False)
        assert float(norm) == pytest.approx(float(expected), rel=1e-6)
        set_rate(optimizer, 1e-3)
        optimizer.step()
        loop.step()
    for one, other, start in zip(ours.parameters(), plain.parameters(), before, strict=True):
        moved = (other - start).norm()
        assert moved > 0 and (one.cpu().double() - other).norm() <= 1e-5 * moved + 1e-6 * other.norm()


def test_muon_follows_the_plain_rule() -> None:
    """In bfloat16 a matrix of a layer, which moves by 4 % of its norm, is off by about a fiftieth of the way."""
    check_twenty_updates_of_muon("cuda", of_matrices=2e-3)


@pytest.mark.parametrize("shape", [(12, 30), (30, 12), (16, 16), (1, 9), (256, 64)])
def test_muons_iteration_is_in_bfloat16_and_its_result_is_not(shape: tuple[int, int]) -> None:
    matrix = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    found = orthogonalized(torch.tensor(matrix).cuda(), low=True)
    assert found.is_cuda and found.dtype == torch.float32
    expected, got = newton_schulz(matrix), found.cpu().double().numpy()
    off = np.linalg.norm(got - expected) / np.linalg.norm(expected)
    assert 1e-3 < off < 0.1, "eight bits of a fraction, five times over; float32 would be nearer"
    assert np.linalg.svd(got, compute_uv=False).max() < 1.25


def test_norms_are_added_up_in_float64() -> None:
    x = torch.randn(8000, 512, generator=torch.Generator().manual_seed(0)) * 0.02
    exact = float(np.square(x.numpy(), dtype=np.float64).sum())
    tail = float(np.square(x[0, :7].numpy(), dtype=np.float64).sum())
    found = square_norms([x.cuda(), 2 * x.cuda(), x[0, :7].cuda()])
    np.testing.assert_allclose(found.cpu().numpy(), [exact, 4 * exact, tail], rtol=1e-12)


@pytest.mark.parametrize(
    "config",
    [LambConfig(), LambConfig(bias_correction=False), AdamWConfig(), MuonConfig()],
    ids=["lamb", "lamb, uncorrected", "adamw", "muon"],
)
def test_an_update_does_not_wait_for_the_gpu(config: OptimConfig) -> None:
    model = Layered().cuda()
    optimizer = build_optimizer(config, model, {})
    for step in range(2):  # the first makes the moments
        give_gradients((model, model), step)
        set_rate(optimizer, 1e-3)
        # torch itself says so where the host would wait.
        torch.cuda.set_sync_debug_mode("error" if step else "default")
        try:
            clip_global_norm([p.grad for p in model.parameters() if p.grad is not None], 1.0)
            optimizer.step()
        finally:
            torch.cuda.set_sync_debug_mode("default")
