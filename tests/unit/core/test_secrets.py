"""How a text holds a secret: what is refused in descriptions of jobs, and what stands for it in commands."""

import pytest

from bertwright.core.secrets import HIDDEN, hidden_value, hidden_words, secret_in

NAMED = "which is the name of a secret"
ADDRESS = "an address with a password, a token or a query"
HEADER = "an authentication header (Authorization, Bearer)"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("export HF_TOKEN=planted", f"HF_TOKEN=..., {NAMED}"),
        ("--api-key=planted", f"api-key=..., {NAMED}"),
        ("--env=TOKEN=planted", f"TOKEN=..., {NAMED}"),
        ("--env=HF_TOKEN=planted", f"HF_TOKEN=..., {NAMED}"),
        ("huggingface-cli login --token planted", f"--token ..., {NAMED}"),
        ("mysql --password 'planted' db", f"--password ..., {NAMED}"),
        ("mpirun -n 2 -genv HF_TOKEN planted run", f"-env HF_TOKEN ..., {NAMED}"),
        ("mpirun -env MY_SECRET 'planted' run", f"-env MY_SECRET ..., {NAMED}"),
        ("curl -H 'Authorization: Bearer planted' host", HEADER),
        ("curl -H 'authorization: planted' host", HEADER),
        ('curl -H "Proxy-Authorization: Basic cGxhbnRlZA==" host', HEADER),
        ("say Bearer planted1", HEADER),
        ("curl https://host/a?sig=planted", ADDRESS),
        ("https://me:planted@host/a", ADDRESS),
    ],
)
def test_a_secret_in_a_text_is_told_without_it(text: str, found: str) -> None:
    assert secret_in(text) == found and "planted" not in found


@pytest.mark.parametrize(
    "text",
    [
        "HF_TOKEN=$(cat ~/.hf)",
        'login --token "$HF_TOKEN"',
        "login --token $HF_TOKEN",
        "login --token --quiet",
        "login --token",
        "mpirun -genv HF_TOKEN $HF_TOKEN run",
        "mpirun -genv OMP_NUM_THREADS 4 run",
        "docker run --env HF_TOKEN image",
        "curl -H 'Authorization: Bearer $HF_TOKEN' host",
        'curl -H "Authorization: $HEADER" host',
        "the bearer of this letter",
        "bearer certificates",
        "spm --max-tokens 5",
        "--container-image=nvcr.io#nvidia/pytorch:25.01-py3",
    ],
)
def test_what_is_asked_for_elsewhere_or_is_none_is_no_secret(text: str) -> None:
    assert secret_in(text) == ""


def test_the_value_of_an_option_may_be_the_next_word() -> None:
    assert secret_in("planted", before="--password") == f"--password ..., {NAMED}"
    assert not secret_in("planted", before="--user") and not secret_in("--quiet", before="--password")
    assert not secret_in("planted", before="login --password"), "a line that ends is no word"


def test_secrets_of_a_command_are_hidden() -> None:
    words = (
        "p",
        "--api-key=planted",
        "--token",
        "planted",
        "--password",
        "--quiet",
        "HF_TOKEN=planted b",
        "a=b",
        "--env=TOKEN=planted",
    )
    words += ("Authorization: Bearer planted", "https://me:planted@host/a")
    assert hidden_words(words) == (
        *("p", f"--api-key={HIDDEN}", "--token", HIDDEN, "--password", "--quiet", f"HF_TOKEN={HIDDEN}", "a=b"),
        f"--env=TOKEN={HIDDEN}",
        *(f"Authorization: Bearer {HIDDEN}", "https://host/a"),
    )
    assert hidden_value("HF_TOKEN", "planted") == HIDDEN and hidden_value("DATA", "a") == "a"


@pytest.mark.parametrize("option", ["-genv", "--genv", "-env", "--env"])
def test_the_value_of_a_variable_that_mpirun_sets_is_the_word_after_its_name(option: str) -> None:
    secret = ("mpirun", option, "API_TOKEN", "planted", option, "DB_PASSWORD", "-planted")
    plain = (option, "OMP_NUM_THREADS", "4", "run", "--max-tokens", "x")
    assert hidden_words(secret + plain) == (
        *("mpirun", option, "API_TOKEN", HIDDEN, option, "DB_PASSWORD", HIDDEN),
        *plain,
    )
    assert hidden_words((option, "API_TOKEN=planted", "run")) == (option, f"API_TOKEN={HIDDEN}", "run")
